#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 500
# An ordinary user profiles a JVM of that user: without BPF, with the agent's own timers; and with BPF's capabilities.
. "$(dirname "$0")/lib.sh"

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)

# From here on, the JVM and duet run as an ordinary user.
become_ordinary() {
	[ "$(id -u)" = 0 ] || return 0
	"${nobody[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	JVM_AS=("${nobody[@]}") DUET_AS=("${nobody[@]}")
}

profile_as_user() { # HOME OPTIONS...
	local home=$1
	shift
	become_ordinary
	start_jvm "$home" shop.Demo
	record -p "$jvm" -d 3 -i 5ms "$@" -o collapsed -f "$here/out"
	expect_status 0
	expect_file "$here/out"
	expect_contains "$here/out" 'shop/Pricing\.averages'
	expect_contains "$here/out" 'shop/Archiver\.compress'
	expect_contains "$here/out" '[Dd]eflate'
	expect_lacks "$here/out" '_\[k\]'
	expect_alive "$jvm"
}

jdk_case_ctimer() {
	profile_as_user "$jdk" --engine ctimer
}

jdk_case_itimer() {
	profile_as_user "$jdk" --engine itimer
}

# ---- as whole as BPF's -------------------------------------------------------------------------

need_walk() {
	[ "$(uname -m)" = x86_64 ] || skip "its limits were measured on x86-64 only"
}

entries='^(__clone3|clone3|__clone|clone|_start|start_thread)(;| )'

# Expects of the recording: the same walk as BPF's has reached the threads' entries, through the native frames below
# Java, without AsyncGetCallTrace, which agrees where it was called as a check.
expect_whole() { # PERCENT
	local worker="$entries(.*;)?start_thread;.*;java/lang/Thread\\.run;.*shop/Worker\\.run"
	expect_status 0
	expect_share "walked to the entry" "$(reported walked)" '>=' "$1"
	expect_share "stacks rooted there" "$(matching "$here/out" "$entries")" '>=' "$1"
	grep 'shop/Worker\.run' "$here/out" >"$here/workers"
	expect_share "of workers, with what is below Java" "$(matching "$here/workers" "$worker")" '>=' "$1"
	expect_share "needed AsyncGetCallTrace" "$(reported_needed_calls)" '<=' $((100 - $1))
	expect "contradicted" "$(reported_contradicted | cut -d ' ' -f 1)" '<=' 1 # of a handful
	expect_share "without code or names" "$(matching "$here/out" 'unknown_(code|method)')" '<=' 1
}

# "N M" of "walked: ... of M samples ..., N needed a call"
reported_needed_calls() {
	sed -n 's/.*walked: [0-9]* of \([0-9]*\) .* \([0-9]*\) needed a call.*/\2 \1/p' "$here/stderr" | tail -n 1
}

whole_as_user() { # CPU_SECONDS ENGINE
	need_walk
	become_ordinary
	start_jvm "$jdk" shop.Demo
	warm_up "$1"
	record_cpu 2 -p "$jvm" -i 4ms -v --engine "$2" -o collapsed -f "$here/out"
	expect_whole 97
	expect_alive "$jvm"
}

jdk_case_whole() {
	whole_as_user 3 ctimer
}

jdk_case_whole_itimer() {
	whole_as_user 4 itimer
}

jdk_case_whole_interpreted() {
	JVM_OPTS=(-Xint)
	whole_as_user 3 ctimer
}

# Most libraries are loaded after the agent, and before the first compilation parts of the JVM's layout are unknown.
jdk_case_whole_from_the_start() {
	need_walk
	become_ordinary
	record -d 6 -i 4ms -v --engine ctimer -o collapsed -f "$here/out" -- \
		"$jdk/bin/java" -Xmx256m -cp "$workloads" shop.Demo 8
	expect_whole 95
}

# The C library has no frame pointers: the Java caller of its functions through JNI is found nevertheless.
jdk_case_library_called_by_java() {
	local called='workload/SystemCalls\.interrupted;Java_workload_SystemCalls_interrupted;[^;]*poll'
	need_walk
	become_ordinary
	start_jvm "$jdk" workload.SystemCalls 60
	sleep 3
	record -p "$jvm" -d 4 -i 4ms -v --engine ctimer -o collapsed -f "$here/out"
	expect_status 0
	grep -E ';[^;/]*(poll|epoll_wait)( |;)' "$here/out" >"$here/calls"
	expect "samples in poll and epoll_wait" "$(total "$here/calls")" '>=' 20
	expect_share "with the Java that called" "$(matching "$here/calls" "$entries.*$called")" '>=' 97
}

# JNI up-calls: native frames between two Java segments have their true place.
jdk_case_native_between_java() {
	local up='workload/Interleave\.across;Java_workload_Interleave_across;[^/]*workload/Interleave\.down'
	need_walk
	become_ordinary
	start_jvm "$jdk" workload.Interleave
	sleep 3
	record -p "$jvm" -d 4 -i 4ms -v --engine ctimer -o collapsed -f "$here/out"
	expect_status 0
	grep 'workload/TwoBusy\.spin' "$here/out" >"$here/below"
	up="workload/Interleave\\.main;.*$up;.*$up;.*$up;.*workload/TwoBusy\\.spin"
	expect_share "with native code in its place" "$(matching "$here/below" "$up")" '>=' 97
}

# The stack has the mounted thread's frames, a mark for the frames on the heap, and the carrier's frames.
jdk_case_virtual_threads() {
	local root='java/util/concurrent/ForkJoinWorkerThread\.run;.*jdk/internal/vm/Continuation\.enterSpecial'
	local heap='\\[frames_on_heap\\];(workload/Virtual\.(down|forEver);)*'
	need_jdk 21 "virtual threads"
	need_walk
	become_ordinary
	start_jvm "$jdk" workload.Virtual 300 1000000
	sleep 4
	record -p "$jvm" -d 4 -i 4ms -v --engine ctimer -o collapsed -f "$here/out"
	expect_status 0
	expect_share "walked to the entry" "$(reported walked)" '>=' 95
	expect "below the carrier, %" \
		"$(share "$here/out" "$entries.*$root;${heap}workload/Virtual\.many;workload/TwoBusy\.spin")" '>=' 85
	expect_alive "$jvm"
}

# ---- wall ----------------------------------------------------------------------------------------

seconds_of() { # NAME [METHOD]: of threads of this name
	awk -v name="[$1" -v method="${2:-}" 'index($0, name) && index($0, method) { sum += $NF }
		END { print sum / 1e9 }' "$here/out"
}

said() { # NAME [METHOD]: the same as the threads themselves have measured it
	awk -v name="$1" -v method="${2:-}" 'NF == 3 && $1 == name && (!method || $2 == method) { sum += $3 }
		END { print sum / 1e9 }' "$jvm_out"
}

percent() { # PART WHOLE
	awk "BEGIN { print 100 * $1 / $2 }"
}

# Each thread has all of its time, once, where it was spent. No call that a signal would end is interrupted.
wall_as_user() { # ENGINE EVENTS TOLERANCE
	local whole name tolerance=$3
	become_ordinary
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$jdk" workload.WallTimes 5 400
	${DUET_AS[@]+"${DUET_AS[@]}"} "$duet" record -v -p "$jvm" -d 300 -e "$2" --engine "$1" --total -t -o duet \
		-f "$here/out.duet" >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 120 test -s "$here/out.duet" # from when on it records
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 30
	end_record INT
	expect_status 0
	whole=$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr")
	run_duet convert "$here/out.duet" --event wall --total -t -o collapsed "$here/out"
	for name in idle-0 idle-399 "VM Thread"; do
		expect_near "time of $name, %" "$(percent "$(seconds_of "$name")" "$whole")" 100 2
	done
	for name in naps-0 naps-1 turns-0 turns-1 works-0 works-1; do
		expect_near "time of $name, %" "$(percent "$(seconds_of $name)" "$(said $name)")" 100 "$tolerance"
	done
	# some 100 looks at each, fewer while the machine has much else to do
	expect_near "naps that sleep, %" "$(percent "$(seconds_of naps- inSleep)" "$(seconds_of naps-)")" \
		"$(percent "$(said naps-0 inSleep)" "$(said naps-0)")" 20
	expect "of the born, threads at a time" "$(awk "BEGIN { print $(seconds_of born) / $whole }")" '>=' 0.2
	expect_contains "$here/out" 'WallTimes\.inWait.*\[futex\] '
	expect "calls that were interrupted" "$(awk '/^EINTR/ { print $2 }' "$jvm_out")" '==' 0
}

jdk_case_wall() {
	wall_as_user ctimer wall 4
}

# It spreads the CPU time of the process over threads at random.
jdk_case_wall_itimer() {
	wall_as_user itimer cpu,wall=20ms 15
}

# ---- the choice ----------------------------------------------------------------------------------

# Without --engine: the choice and its reason are reported once.
case_automatic() {
	profile_as_user "$(any_jdk)"
	expect "lines that name the engine" "$(grep -cE 'ctimer|itimer' "$here/stderr")" '>=' 1
	expect_contains "$here/stderr" 'BPF|bpf'
}

case_recorded_in_the_file() {
	become_ordinary
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 2 -o text=full -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'ctimer|itimer'
}

# An engine that was asked for by name is not replaced by another.
case_forced_bpf_fails() {
	become_ordinary
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 2 --engine bpf -o collapsed -f "$here/out"
	expect_refusal 1 'CAP_BPF|CAP_PERFMON|root|permission|permitted'
	expect_alive "$jvm"
}

# A command that cannot be profiled is not run.
case_refused_command_does_not_run() {
	become_ordinary
	record --engine bpf -o collapsed -f "$here/out" -- touch "$here/ran"
	expect_refusal 1 'CAP_BPF|CAP_PERFMON|root|permission|permitted'
	sleep 1
	[ ! -e "$here/ran" ] || fail "the command ran"
}

# Threads that start during the recording have timers too.
case_new_threads() {
	become_ordinary
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$(any_jdk)" workload.TwoBusy 2
	start_record -p "$jvm" -d 30 -i 5ms --engine ctimer -t -o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 30
	end_record INT
	expect_contains "$here/out" '^\[busy-0 tid=[0-9]+\]'
	expect_contains "$here/out" '^\[busy-1 tid=[0-9]+\]'
}

# root profiles another user's JVM: the attach runs with that user's credentials.
jdk_case_root_profiles_a_users_jvm() {
	need_root
	need_bpf
	JVM_AS=("${nobody[@]}")
	start_jvm "$jdk" shop.Demo
	record -p "$jvm" -d 3 -i 5ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'shop/Pricing'
	expect_alive "$jvm"
}

# BPF takes these two, which systemd and containers give: not CAP_SYS_ADMIN, and names need not CAP_SYSLOG.
jdk_case_two_capabilities() {
	need_bpf
	need_root
	become_ordinary
	DUET_AS=("${JVM_AS[@]:0:4}" --inh-caps=-all,+bpf,+perfmon --ambient-caps=-all,+bpf,+perfmon
		--bounding-set=-all,+bpf,+perfmon)
	start_jvm "$jdk" shop.Demo
	record_cpu 1 -p "$jvm" -i 1ms --engine bpf -o collapsed -f "$here/out"
	expect_contains "$here/out" 'shop/Pricing'
	expect_contains "$here/out" '_\[k\]( |;)'
	expect_lacks "$here/out" '\[kernel\]\+0x'
	expect_lacks "$here/stderr" 'not names'
	expect_alive "$jvm"
}

# A process that /proc hides is not reported as ended, and the user's own JVM is profiled as usual.
case_hidden_processes() { # apart
	local hidden
	need_root
	# shellcheck disable=SC2016
	hidden=(unshare -m sh -c 'mount -t proc -o hidepid=2 proc /proc && exec "$@"' sh)
	"${hidden[@]}" true || skip "/proc cannot be mounted with hidepid"
	become_ordinary
	start_jvm "$(any_jdk)" shop.Demo
	DUET_AS=("${hidden[@]}" "${nobody[@]}")
	record -p $$ -d 1
	expect_refusal 1 "process $$ exists, but /proc hides it"
	expect "lines of complaint" "$(grep -cv "^duet: debug: " "$here/stderr")" '==' 1
	run_duet list
	expect_contains "$here/stderr" 'proc hides processes of other users'
	record -p "$jvm" -d 2 -i 5ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'shop/'
}

run_cases "$@"
