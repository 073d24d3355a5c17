#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The first process of a virtual machine: runs these cases on its console and then turns the power off. The machine is
# emulated, so its times are not measured.
export PATH=/usr/sbin:/usr/bin DUET_BUILD=/run/build
. /run/tests/system/lib.sh
trap '/usr/bin/busybox poweroff -f' EXIT
export JVM_PATIENCE=600 # the clock jumps when the machine only waits for the host's disk
JVM_AS=(nice -n 19) # emulated, duet would wait long for a CPU
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)

kernel_is_at_least() { # VERSION
	printf '%s\n' "$1" "$(uname -r)" | sort -CV
}

# Shown in the table instead of "ok".
figure() {
	echo "= $*"
}

oldest_jdk() {
	jdks | head -n 1
}

newest_jdk() {
	jdks | tail -n 1
}

# Prints how samples and Java stacks are joined on this kernel.
pairing() {
	if kernel_is_at_least 6.13; then echo cookie; else echo interval; fi
}

case_release() {
	figure "$(uname -r)"
}

expect_feature() { # NAME SINCE
	local verdict=no
	! kernel_is_at_least "$2" || verdict=yes
	expect_contains "$here/stdout" "^  $verdict +$1\$"
}

case_check() {
	run_duet check
	expect_status 0
	expect_contains "$here/stdout" '^bpf: ready'
	expect_contains "$here/stdout" 'will use bpf$'
	expect_lacks "$here/stdout" '^  NO '
	expect_feature 'user registers in system calls' 5.15
	expect_feature 'mappings of new processes' 5.17
	expect_feature 'signal with cookie' 6.13
}

case_check_as_user() {
	DUET_AS=("${nobody[@]}")
	run_duet check
	expect_status 0
	expect_contains "$here/stdout" '^bpf: not available'
	expect_contains "$here/stdout" '^  NO +rights$'
	expect_contains "$here/stdout" '^  yes +BTF$'
	expect_contains "$here/stdout" 'will use ctimer$'
}

record_demo() { # HOME OPTIONS...
	start_jvm "$1" shop.Demo
	record -p "$jvm" -d 3 -i 10ms -a "${@:2}" -o collapsed -f "$here/out"
	expect_status 0
	expect_file "$here/out"
	expect_alive "$jvm"
	expect_contains "$here/out" 'shop/Worker\.run_\[[0ij]\];shop/'
}

# Expects a share of the samples that got a signal. Many samples get none when everything is emulated, because the
# thread is in the agent's handler or in a system call that the signal would break. Their number is a rate, which is not
# checked.
joined() {
	awk '/^duet: joined: / { joined = $3; signalled = $5 } /not joined: no signal was sent/ { signalled -= $3 }
		END { printf "%.2f\n", signalled ? 100 * joined / signalled : 0 }' "$here/stderr"
}

# An emulated recording has some fifty samples. One that is lost for lack of time is two percent of them, so this checks
# that samples are joined, not how many. With pairing by interval, a sample between the delivery of a signal and the
# first instruction of its handler prevents two joins. That takes a microsecond on a machine, a hundred in here, and
# more when pages are touched for the first time.
expect_joined() {
	expect "joined, % of signalled samples" "$(joined)" '>=' 90
	figure "$(joined) % ($(pairing))"
	sed 's/^/# /' "$here/stderr"
}

# Expects stacks down to the entries of threads, with Java frames. Emulated, many samples are in the kernel's vdso,
# which has no unwind rows on aarch64: 90 to 99 % were seen, and 23 to 28 % when only native frames were walked there.
expect_walked() {
	expect_share "walked to the entry" "$(reported walked)" '>=' 75
}

# The file has what was chosen as a fact.
expect_engine_and_pairing() {
	record -p "$jvm" -d 1 -o text=full -f "$here/text"
	expect_contains "$here/text" '^engine +: bpf$'
	expect_contains "$here/text" "^pairing +: $(pairing)\$"
}

jdk_case_joined() {
	record_demo "$jdk" -t
	expect_joined
	expect_walked
	expect_contains "$here/out" '_\[k\] [0-9]+$'
	expect_contains "$here/out" '^\[(C[12] Comp|GC|G1 )'
	expect_engine_and_pairing
}

case_ctimer() {
	record_demo "$(oldest_jdk)" --engine ctimer
	expect_lacks "$here/out" '_\[k\]'
	expect_walked
}

# An ordinary user, who lacks the rights for BPF, records a JVM of that user.
case_fallback() {
	JVM_AS=(nice -n 19 "${nobody[@]}") DUET_AS=("${nobody[@]}")
	record_demo "$(newest_jdk)"
	expect_contains "$here/stderr" 'CAP_BPF.*ctimer'
	expect_lacks "$here/out" '_\[k\]'
}

# With all frames of deep stacks the verifier checks more of the program.
case_command() {
	record -i 10ms -j 16384 -a -o collapsed -f "$here/out" -- "$(newest_jdk)/bin/java" -Xmx256m \
		-cp "$workloads" shop.Demo 5
	expect_status 0
	expect_file "$here/out"
	expect_contains "$here/stdout" '^READY'
	expect_contains "$here/out" 'shop/Worker\.run_\[[0ij]\];shop/'
	expect_joined
}

spin_in() { # CGROUP
	mkdir "/sys/fs/cgroup/$1"
	bash -c 'echo $$ >"/sys/fs/cgroup/$0/cgroup.procs"
		exec nice -n 19 /usr/bin/busybox sh -c "while :; do :; done"' "$1" &
	jvms+=($!)
}

# How the kernel represents a cgroup's ancestors changed with 6.1.
case_targets() {
	/usr/bin/busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup || skip "no cgroup v2"
	spin_in in
	spin_in in/below
	spin_in out
	record --cgroup /in -d 3 -i 10ms --by container,process -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" '^/in;busybox;'
	expect_contains "$here/out" '^/in/below;busybox;'
	expect_lacks "$here/out" '^/(out)?;'
	record --comm busybox -d 3 -i 10ms --by process,container -o collapsed -f "$here/out"
	expect_contains "$here/out" '^busybox;/out;'
	expect_lacks "$here/out" '^(duet|bash|kworker.*);'
}

# A perf event and a program of another kind at the same time, which Linux 5.10 supports too. The workload waits for its
# gate until the unwind rows are there: emulated, these may take longer than all its calls.
case_events() {
	start_record -e syscalls,cpu=10ms -o collapsed --total -f "$here/out.collapsed" -- \
		"$workloads/events" "$here/gate" calls 1000
	sleep 3
	touch "$here/gate"
	end_record
	expect_status 0
	expect_file "$here/out.cpu.collapsed"
	expect "system calls" "$(matching "$here/out.collapsed" '(^|;)syscall [0-9]+$' | cut -d ' ' -f 1)" '==' 1000
	expect "of them with all their callers" \
		"$(matching "$here/out.collapsed" ';main;.*(ask;){61}syscall ' | cut -d ' ' -f 1)" '>=' 500
}

# Records a workload that waits in known functions, with one hook for the samples of sleeps.
record_sleeps() { # HOOK
	rm -f "$here/gate"
	jvm_out=$here/sleeps.$1
	"$workloads/sleeps" "$here/gate" 4 >"$jvm_out" &
	jvm=$!
	wait_for_line "$jvm_out" '^READY' 60
	start_record -p "$jvm" -e offcpu=1ms --off-cpu-hook "$1" --total -t -d 100 -o collapsed -f "$here/out.$1"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 120
	end_record
	expect_status 0
}

# Prints the recorded time of a thread, as a percentage of what it has measured itself.
told_of_said() { # HOOK NAME
	grep -F "[$2" "$here/out.$1" | awk -v name="$2" 'NR == FNR { told += $NF; next }
		$1 == name { said += $2 }
		END { print said ? 100 * told / said : 0 }' - "$jvm_out"
}

# What the ring had no room for is missing in each kind alike; the recorder has told how much.
expect_sleeps() { # HOOK
	local name lost made tolerance=20
	made=$(awk '/^duet: [0-9]+ samples in .*engine/ { print $2 }' "$here/stderr")
	lost=$(awk '/samples dropped: the kernel ring was full/ { print $3 }' "$here/stderr")
	tolerance=$((tolerance + 100 * ${lost:-0} / (made + ${lost:-0})))
	for name in in_nanosleep in_poll in_lock in_pipe; do
		expect_near "$name at $1, % of what it has measured" "$(told_of_said "$1" $name)" 100 $tolerance
	done
}

# Each hook that this kernel has. Emulated, threads wait long for the CPU, and at random.
case_sleeps() {
	local hook used=
	run_duet check
	cp "$here/stdout" "$here/checked"
	for hook in sched_exit_tp rseq_update finish_task_switch sys_exit; do
		grep -qE "^  yes +hook $hook\$" "$here/checked" || continue
		record_sleeps "$hook"
		expect_sleeps "$hook"
		expect_contains "$here/out.$hook" ';in_poll;.*;\[poll\] '
		expect_contains "$here/out.$hook" ';in_lock;.*;\[futex\] '
		sed 's/^/# /' "$here/stderr"
		used+="${used:+ }$hook"
	done
	[ -n "$used" ] || fail "this kernel has no hook for sleeps"
	figure "$used"
}

# Lets the machine sleep for so many seconds: all but one of its CPUs are switched off meanwhile.
suspend() { # SECONDS
	echo 0 >/sys/class/rtc/rtc0/wakealarm
	echo "+$1" >/sys/class/rtc/rtc0/wakealarm
	echo mem >/sys/power/state
}

record_over_a_suspend() { # PIDS
	start_record -p "$1" --no-attach -e wall=10ms --total -t -d 9 -o collapsed -f "$here/out"
	sleep 2
	suspend 30 || fail "the machine refuses"
	end_record
	expect_status 0
	sed 's/^/# /' "$here/stderr"
}

# Each thread has the time of the recording, which does not count the machine's sleep. A CPU that has come back is
# sampled again: without that, the thread that computes there would have a quarter of its time.
case_suspend() {
	local pids=() name seconds clocks cpu
	grep -qw mem /sys/power/state && [ -e /sys/class/rtc/rtc0/wakealarm ] || skip "no suspend to memory"
	"$workloads/parked" 3 >"$here/parked" &
	pids+=($!)
	for ((cpu = 0; cpu < $(nproc); cpu++)); do
		cp "$workloads/busy" "$here/on_cpu$cpu"
		nice -n 19 taskset -c $cpu "$here/on_cpu$cpu" 1 1000 >/dev/null &
		pids+=($!)
	done
	jvms+=("${pids[@]}")
	clocks=$(cut -d . -f 1 /proc/uptime)
	record_over_a_suspend "$(IFS=,; echo "${pids[*]}")"
	clocks=$(($(cut -d . -f 1 /proc/uptime) - clocks))
	seconds=$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr")
	expect_near "the recording, s" "$seconds" 9 3
	expect "what has passed, s" $clocks '>=' 35
	for name in parked_0 parked_1 parked_2; do
		expect_near "time of $name, s" \
			"$(grep -F "[$name " "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')" "$seconds" 1
	done
	for ((cpu = 0; cpu < $(nproc); cpu++)); do
		expect_near "time of the thread on CPU $cpu, s" \
			"$(grep -F "[on_cpu$cpu " "$here/out" | grep -vF "[idle]" | awk '{ sum += $NF }
				END { print sum / 1e9 }')" \
			"$seconds" "$(awk "BEGIN { print $seconds / 4 + 1 }")"
	done
	figure "$(nproc) CPUs"
}

# ---- frames that the walk knows of ----

busy_native() { # PROGRAM ARGS...
	[ -x "$workloads/$1" ] || return
	nice -n 19 "$workloads/$1" "${@:2}" >"$here/native.${#jvms[@]}" &
	jvms+=($!)
}

# Expects that nearly all samples that match OF match PATTERN, too.
expect_frames() { # WHAT OF PATTERN
	grep -E "$2" "$here/out" >"$here/of"
	grep -vE "$3" "$here/of" | head -n 3 | cut -c 1-600 | sed "s/^/# not $1: /"
	expect_share "$1" "$(matching "$here/of" "$3")" '>=' 90
}

# One recording of programs whose frames are known: functions that call each other, signal handlers, with trampolines
# that no table describes, too, goroutines on the stacks of Go's runtime, threads that end, children of vfork().
case_frames() {
	local links trampoline='(__restore_rt|__kernel_rt_sigreturn)' spawner
	links=$(printf 'link_%d;' {30..0})
	JVM_OPTS=(-Djdk.lang.Process.launchMechanism=VFORK)
	start_jvm "$(oldest_jdk)" workload.Spawner
	spawner=$jvm
	start_jvm "$(oldest_jdk)" workload.ShortThreads 1000
	busy_native native compute
	busy_native native signal
	busy_native native_musl_static signal
	busy_native goroutines
	record --host --no-attach -d 15 -i 2ms -t -o collapsed -f "$here/out"
	expect_status 0
	grep -v ' debug: ' "$here/stderr" | sed 's/^/# /'
	expect_frames "all calls" ';link_0;leaf_compute' ";main;run;${links}leaf_compute"
	expect_frames "below a handler" ';handle;leaf_compute' \
		";run;${links}leaf_interrupted;(leaf_compute;)?$trampoline;handle;leaf_compute"
	expect_frames "children of vfork()" ';childProcess' \
		"^\\[[^;]*pid=$spawner\\];.*Spawner\\.spawn;.*forkAndExec;"
	expect "threads that end" "$(total <(grep -E ';\[exiting\];.*do_exit' "$here/out"))" '>=' 5
	expect_lacks "$here/out" 'not_signalled_exiting'
	[ ! -x "$workloads/goroutines" ] ||
		expect_frames "goroutines" ';main.main;' ';runtime.goexit[^;]*;runtime.main;main.main;'
}

# Inlined methods above leaf calls, judged by a program of which it is known which method makes which call.
jdk_case_inlined() {
	local how figures
	for how in -XX:-DebugNonSafepoints -XX:+DebugNonSafepoints; do
		JVM_OPTS=(-XX:+UnlockDiagnosticVMOptions "$how")
		start_jvm "$jdk" workload.Leafs 1000 10 6
		warm_up 8
		record -p "$jvm" --no-attach -d 6 -i 4ms -t -a -o collapsed -f "$here/out"
		expect_status 0
		kill -KILL "$jvm" && wait "$jvm" 2>/dev/null
		perl /run/tests/system/inlined.pl "$here/out" >"$here/figures" 2>"$here/faults"
		sed "s/^/# $how: /" "$here/figures" "$here/faults"
		figures+=" $(awk '$1 == "leaf_silent" { print $2 }' "$here/figures")"
		expect "samples in the loop" "$(awk '$1 == "known" { print $2 }' "$here/figures")" '>=' 100
		expect "leaf calls that lack their caller without a mark, %" "${figures##* }" '<=' 2
	done
	figure "$figures"
}

# ---- cases of the host's tests ----

of_host() { # SCRIPT CASE...
	(cd /run && exec bash "tests/system/$1.sh" "${@:2}") 2>&1 | tee "$here/cases" | sed -u 's/^/# /'
	! grep -q '^not ok' "$here/cases" || fail "$(grep -m 1 '^not ok' "$here/cases" | cut -c 8-)"
	grep -q '^ok' "$here/cases" || skip "$(grep -m 1 '^skip' "$here/cases" | cut -c 6-)"
}

# The kernel's own trace says how long requests take.
case_block() {
	ln -s /usr/bin/busybox /run/mount
	ln -s /usr/bin/busybox /run/umount
	PATH=$PATH:/run TMPDIR=/mnt of_host record_block time by_the_kernel
}

case_native_methods() {
	of_host record_method "native_methods@$(basename "$(newest_jdk)")"
}

case_native_memory() {
	of_host record_nativemem "every_call@$(basename "$(newest_jdk)")"
}

echo # the firmware's output does not end with a newline
echo 2 >/proc/sys/kernel/unprivileged_bpf_disabled
echo 3 >/proc/sys/kernel/perf_event_paranoid
echo "cases begin"
run_cases "$@"
echo "cases are over"
