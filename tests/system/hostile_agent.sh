#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 900
#
# A process that poses as a JVM with an agent attacks the loader through everything they share, beside an honest JVM.
# The loader ends in time, stays small and reports the problem, and the honest JVM's samples stay joined.
. "$(dirname "$0")/lib.sh"

hostile=$DUET_BUILD/tests/system/hostile_agent
memory_cap_kb=$((256 << 10))
patience=60 # seconds after which a loader that still reads is killed
! is_sanitized || { memory_cap_kb=$((memory_cap_kb + (2 << 20))) && patience=240; }

# The attacker runs as nobody: it must gain nothing from a loader that is root. Its pid is $attacker.
start_attacker() { # ATTACK
	cp -f /bin/true "$here/libjvm.so"
	chmod 755 "$here/libjvm.so"
	rm -f "$here/attacker" # the last one's READY
	# The user nobody could not remove a socket that an earlier JVM of this pid has left.
	sh -c 'rm -f "/tmp/.java_pid$$"; exec "$@"' sh setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$hostile" "$here/libjvm.so" "$1" >"$here/attacker" 2>&1 </dev/null &
	attacker=$!
	jvm=${jvm:-$attacker} # wait_for_line() asks whether it is there
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
}

end_attacker() {
	kill -KILL "$attacker" 2>/dev/null
	wait "$attacker" 2>/dev/null
	rm -f "/tmp/.java_pid$attacker"
}

# The most memory process $1 ever held, in kB; asked until it ends, for $patience s at most.
peak_memory() {
	local peak=0 now end=$((SECONDS + patience))
	while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$1/status" 2>/dev/null) && [ -n "$now" ]; do
		peak=$now
		[ $SECONDS -lt $end ] || kill -KILL "$1"
		sleep 0.02
	done
	echo "$peak"
}

milliseconds() {
	date +%s%3N
}

# Records the attacker and the honest JVM. Sets $peak to the most memory and $took to the seconds. $least is an eighth
# of the samples that the honest JVM's CPU time allows in the loader's whole life: the machine may be busy, and timers
# of ctimer expire only with the kernel's ticks, every 4 ms where the interval is 2 ms.
record_both() { # RECORD-OPTIONS...
	local started=$SECONDS begin ticks seconds=2
	begin=$(milliseconds) ticks=$(cpu_ticks "$jvm")
	[[ ! " $* " =~ " -d "([0-9]+)" " ]] || seconds=${BASH_REMATCH[1]}
	"$duet" record -v --agent always -p "$attacker,$jvm" -d 2 -i 2ms -t -o collapsed -f "$here/out" "$@" \
		>"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	peak=$(peak_memory "$recorder")
	end_record
	took=$((SECONDS - started))
	ticks=$(($(cpu_ticks "$jvm") - ticks))
	least=$((ticks * 1000 / ticks_per_second * seconds * 1000 / ($(milliseconds) - begin) / 2 / 8))
}

# Runs the attack: only the attacker loses samples, and the report has a sentence about it.
survive() { # ATTACK PATTERN RECORD-OPTIONS...
	local attack=$1 pattern=$2
	shift 2
	start_attacker "$attack"
	record_both "$@"
	expect_status 0 "$attack"
	grep -qE -- "$pattern" "$here/stderr" || fail "$attack: no word of \"$pattern\": $(cat "$here/stderr")"
	! grep -q $'\033' "$here/stderr" "$here/out" || fail "$attack: an escape sequence got through"
	grep "pid=$jvm\];\[busy" "$here/out" >"$here/honest"
	expect "$attack: honest samples" "$(total "$here/honest")" '>' "$least"
	expect_share "$attack: joined of them" "$(matching "$here/honest" 'workload/')" '>=' 95
	expect "$attack: kB of memory" "$peak" '<' "$memory_cap_kb"
	expect "$attack: seconds" "$took" '<' "$patience" # otherwise it did not end by itself
	expect_alive "$jvm" "after $attack"
	[ "$(proc_state "$attacker")" != Z ] || fail "$attack: the attacker was killed: $(cat "$here/attacker")"
	end_attacker
}

start_honest() {
	need_bpf
	need_root
	start_jvm "$(any_jdk)" workload.TwoBusy 600 1
}

# ---- cases -----------------------------------------------------------------------------------

case_attach() {
	start_honest
	survive attach_silence 'does not answer'
	survive attach_close 'refused the attach request'
	survive attach_noise 'does not answer|half an answer'
	survive attach_endless 'does not answer|half an answer'
	survive attach_refused 'did not load the agent'
	survive attach_no_listener 'does not answer'
}

case_hello() {
	start_honest
	survive hello_silence 'did not answer for 10 s'
	survive hello_close 'closed (its control socket|the control socket during the handshake)' # at once, or later
	survive hello_noise 'malformed message'
	survive hello_twice 'out of turn'
	survive hello_version 'malformed message'
	survive hello_without_end 'malformed message'
	survive hello_descriptors 'samples'
}

# Behaves as a JVM that shuts down early, which is no error of its agent.
case_ending() {
	start_honest
	survive hello_ending 'ended too early'
	expect_lacks "$here/stderr" 'out of turn'
}

case_started() {
	start_honest
	survive started_silence 'did not answer for 10 s'
	survive started_close 'closed the control socket during the handshake'
	survive started_noise 'malformed message'
	survive started_twice 'out of turn'
	survive started_escapes '\?\[2J'
}

# A JVM that cannot give one of the events says so in one sentence, and gives the others.
case_one_event_refused() {
	start_honest
	survive started_without_alloc 'no samples of alloc: a JVM before JDK 11 cannot sample' -e cpu=2ms,alloc
	expect "sentences" "$(grep -c 'no samples of' "$here/stderr")" '==' 1
	expect "CPU samples of the one that refused" "$(matching "$here/out" "pid=$attacker\\]")" '>' 10
}

# A signal or handler that is not the agent's own is refused before BPF hears of it.
case_signals() {
	start_honest
	survive started_kill 'cannot be its own' -d 1
	survive started_stop 'cannot be its own' -d 1
	survive started_signal_0 'cannot be its own' -d 1
	survive started_signal_65 'malformed message' -d 1
	survive started_default_handler 'cannot be its own' -d 1
	survive started_engine 'cannot be its own' -d 1
	survive started_ignoring_handler 'cannot be its own' -d 1
	survive run_exec 'left before the end'
}

case_ring() {
	start_honest
	survive ring_noise 'broke the rules of the shared ring' -d 1
	survive ring_lengths 'broke the rules of the shared ring' -d 1
	survive ring_head_back 'broke the rules of the shared ring'
	survive ring_head_far 'broke the rules of the shared ring' -d 1
	survive ring_cut 'samples' -d 1
	! grep -q 'not sealed' "$here/attacker" || fail "the ring's file could be cut"
}

# The attacker floods the second of the recording's two events; the honest JVM allocates nothing.
case_classes() {
	start_honest
	survive flood_classes 'agent records refused' -e cpu=2ms,alloc
}

# Whether a table becomes full in this time depends on the machine; unit tests prove that it is reported.
case_flood() {
	start_honest
	survive flood_samples 'more than its samples can need|without a sample'
	survive flood_one_thread 'more than its samples can need'
	survive flood_standalone 'agent records refused'
	survive flood_standalone 'agent records refused' --engine ctimer
	survive flood_classes 'agent records refused' # nobody has requested them
	survive flood_methods 'samples' -d 4
	survive flood_code 'samples' -d 4
	survive flood_inlining 'samples'
	survive flood_threads 'samples' -d 4
	survive flood_heaps 'tables of their JVM were full'
	survive flood_stacks 'samples' -d 4
	survive flood_everything 'samples' -d 4
}

# A layout and an endless stack on which each step of the walk takes as long as possible.
case_walk() {
	local ns runs samples until
	[ "$(uname -m)" = x86_64 ] || skip "the forged frames are of x86-64"
	need_bpf
	need_root
	start_attacker walk_long
	jvm= start_record --agent always -p "$attacker" -d 60 -i 10ms -o text=full -f "$here/out"
	until=$(($(cpu_ticks "$attacker") + ticks_per_second))
	until [ "$(cpu_ticks "$attacker")" -ge $until ] || ! kill -0 "$recorder" 2>/dev/null; do
		sleep 0.1
	done
	end_record INT
	expect_status 0
	read -r ns runs <<<"$(sed -nE 's/^BPF time +: ([0-9]+) ns a run \(([0-9]+) runs.*/\1 \2/p' "$here/out")"
	samples=$(sed -nE 's/^samples +: //p' "$here/out")
	expect "samples" "${samples:-0}" '>=' 5
	expect "us a sample" "$((ns * runs / samples / 1000))" '<' 12000 # 5000, and what the hypervisor takes
	grep -q 'stacks cut: the walk took too long' "$here/stderr" || fail "not said: $(cat "$here/stderr")"
	expect_alive "$attacker"
	end_attacker
}

case_end() {
	start_honest
	survive run_close 'left before the end'
	survive run_noise 'malformed message'
	survive stop_silence 'did not confirm the end'
}

# ---- what the attacker's user may do to duet, and duet to the user --------------------------------

# A process of user $1 that answers no attach request. Its pid is $attacker.
start_silent() { # UID [PROGRAM]
	local program=${2:-$hostile}
	cp -f /bin/true "$here/libjvm.so"
	chmod 755 "$here/libjvm.so"
	setpriv --reuid="$1" --regid="$1" --clear-groups "$program" "$here/libjvm.so" attach_silence \
		>"$here/attacker" 2>&1 </dev/null &
	jvm=$! attacker=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
}

# Sets $child to the process that works for attach_once, when it runs as user $1.
find_child() { # UID
	local end=$((SECONDS + 10))
	until child=$(pgrep -P "$attaching" -u "$1") && ! grep -q "^CapPrm:.*[1-9a-f]" "/proc/$child/status"; do
		[ $SECONDS -lt $end ] || fail "$2"
		sleep 0.01
	done
}

start_attach() { # TIMEOUT_MS; in a process group of its own
	setsid "$DUET_BUILD/tests/system/attach_once" "$attacker" "$1" >"$here/stdout" 2>&1 &
	attaching=$!
	jvms+=("$attaching")
}

case_child_stopped() {
	need_root
	start_silent 54321
	start_attach 8000 # by then a busy machine has run the child
	find_child 54321 'no child without capabilities'
	setpriv --reuid=54321 --regid=54321 --clear-groups kill -STOP "$child" || fail "it cannot be stopped"
	timeout 30 tail -f --pid="$attaching" /dev/null || fail "it waits for a child that was stopped"
	expect_contains "$here/stdout" 'the child does not end'
	[ ! -e "/proc/$child" ] || fail "the child is still there: $(proc_state "$child")"
}

# duet reads a file of options named by a user's process with that user's rights.
case_option_files_of_root() {
	local mode
	need_root
	echo '-XX:+DisableAttachMechanism' >"$here/options"
	for mode in 644 600; do
		chmod $mode "$here/options"
		JDK_JAVA_OPTIONS=-XX:Flags=$here/options start_silent 54321
		rm -f "/tmp/.java_pid$attacker" # otherwise the options have no effect
		timeout 30 "$DUET_BUILD/tests/system/attach_once" "$attacker" 2500 >"$here/stdout" 2>&1
		kill -KILL "$attacker"
		[ $mode = 644 ] || break
		expect_contains "$here/stdout" 'DisableAttachMechanism'
	done
	expect_lacks "$here/stdout" 'DisableAttachMechanism'
}

as_stranger() {
	setpriv --reuid=54321 --regid=54321 --clear-groups "$@"
}

# Other things that users may do to their own processes: only this attach fails, in time, and no process is left.
case_child_tormented() {
	local torment
	need_root
	start_silent 54321
	for torment in "kill -TSTP" "kill -TTIN" "kill -KILL" "kill -SEGV" "kill -ALRM" "kill -TERM" "kill -64" \
			"prlimit --cpu=0:0 --pid" "prlimit --nofile=0:0 --as=0:0 --fsize=0:0 --pid" "chrt -i -p 0" \
			"taskset -pc 0" "renice 19" "kill -CONT"; do
		start_attach 2500
		find_child 54321 'no child without capabilities'
		# shellcheck disable=SC2086 # words
		as_stranger $torment "$child" >/dev/null 2>"$here/torment" || fail "$torment: $(cat "$here/torment")"
		! as_stranger cat "/proc/$child/environ" >/dev/null 2>&1 || fail "the child can be looked into"
		timeout 30 tail -f --pid="$attaching" /dev/null || fail "$torment: it waits for ever"
		grep -qE 'does not (end|answer)|ended early|is it hung|interrupted|cannot' "$here/stdout" ||
			fail "$torment: $(cat "$here/stdout")"
		echo "# $torment: $(cat "$here/stdout")"
		[ ! -e "/proc/$child" ] || fail "$torment: the child is still there: $(proc_state "$child")"
		[ "$(proc_state "$attacker")" != Z ] || fail "$torment: the target died"
	done
}

# Kills, stops or freezes the child and its group at random moments of its life.
case_child_tormented_at_any_time() {
	local torment i
	need_root
	start_silent 54321
	for torment in KILL STOP TERM HUP TTOU QUIT PIPE USR1 KILL STOP; do
		start_attach 2500
		until child=$(pgrep -P "$attaching" -u 54321); do
			kill -0 "$attaching" 2>/dev/null || fail "no child of user 54321"
		done
		for ((i = 0; i < 25; i++)); do
			as_stranger kill -s $torment "$child" -- "-$attaching" 2>/dev/null
			[ $torment != STOP ] || as_stranger kill -CONT "$child" 2>/dev/null
			sleep "0.00$((RANDOM % 10))"
		done
		! as_stranger perl -e 'exit(syscall(101, 0x4206, $ARGV[0], 0, 0) < 0)' "$child" 2>/dev/null ||
			fail "$torment: the child can be traced"
		timeout 30 tail -f --pid="$attaching" /dev/null || fail "$torment: it waits for ever"
		grep -qE 'does not (end|answer)|ended early|is it hung|interrupted|cannot' "$here/stdout" ||
			fail "$torment: $(cat "$here/stdout")"
		echo "# $torment: $(cat "$here/stdout")"
		[ ! -e "/proc/$child" ] || fail "$torment: the child is still there: $(proc_state "$child")"
		[ "$(proc_state "$attacker")" != Z ] || fail "$torment: the target died"
	done
}

after_case() {
	[ ${#jvms[@]} = 0 ] || kill -KILL "${jvms[@]}"
	wait
	rm -rf /tmp/.duet-54321-*-"${attacker:-0}" # left by a child that its owner killed
} 2>/dev/null

# On hosts with cgroup v1 a user who owns a freezer cgroup can freeze processes in it; no signal ends a frozen one.
case_child_frozen() {
	need_root
	make_freezer 54321 freezer freezer.state
	start_silent 54321
	start_attach 2500
	find_child 54321 'no child without capabilities'
	as_stranger sh -c 'echo "$1" >"$2/tasks" && echo FROZEN >"$2/freezer.state"' sh "$child" "$freezer" ||
		skip "it cannot be moved"
	timeout 30 tail -f --pid="$attaching" /dev/null || fail "it waits for a child that is frozen"
	expect_contains "$here/stdout" 'does not end|is it hung'
}

# The owner freezes it: before the attach, during it, when names are asked for, and repeatedly.
case_frozen() {
	local when honest frozen started stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	need_bpf
	need_root
	make_freezer 65534 cgroup2 cgroup.freeze
	start_honest
	honest=$jvm
	JVM_AS=("${stranger[@]}")
	start_jvm "$(any_jdk)" workload.Many
	frozen=$jvm
	echo "$frozen" >"$freezer/cgroup.procs" || skip "it cannot be moved"
	for when in before during asked storm; do
		started=$SECONDS
		[ $when != before ] || freeze
		"$duet" record -v --agent always -p "$frozen,$honest" -d 3 -i 2ms -t -o collapsed -f "$here/out" \
			>"$here/stdout" 2>"$here/stderr" </dev/null &
		recorder=$!
		freeze_$when
		end_record
		thaw
		expect_status 0 "$when"
		expect "$when: seconds" $((SECONDS - started)) '<' 60
		grep "pid=$honest\];\[busy" "$here/out" >"$here/honest"
		expect_share "$when: joined of the honest JVM's" "$(matching "$here/honest" 'workload/')" '>=' 95
		[ $when = storm ] || expect_contains "$here/stderr" 'frozen|does not answer|attach socket|confirm|10 s'
		expect_alive "$frozen" "after $when"
	done
}

freeze() {
	"${stranger[@]}" sh -c 'echo 1 >"$1/cgroup.freeze"' sh "$freezer" || fail "it cannot be frozen"
}

freeze_before() {
	:
}

freeze_during() {
	sleep 0.2 # more or less
	freeze
}

freeze_asked() {
	wait_for_agent "$frozen"
	sleep 0.3
	freeze
}

freeze_storm() {
	local i
	for ((i = 0; i < 40; i++)); do
		freeze
		sleep 0.05
		thaw
		sleep 0.05
	done
}

# Names of another user's process, thread and code, in every format that people or browsers read.
case_names_are_clean() {
	local evil=$'\033[2Je\302\233\342\200\256\r"<b>;\\' format
	local unclean='.{0,20}([\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae])'
	need_bpf
	need_root
	# shellcheck disable=SC2016
	setpriv --reuid=54321 --regid=54321 --clear-groups perl -e '
		open my $comm, ">", "/proc/self/comm"; print $comm $ARGV[0]; close $comm;
		print "READY\n"; $| = 1; print ""; alarm 120; 1 while 1' "$evil" >"$here/attacker" 2>&1 &
	jvm=$! attacker=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
	for format in collapsed text flamegraph; do
		record -p "$attacker" --no-attach -t -d 300ms -i 1ms -o "$format" -f "$here/out.$format"
		expect_status 0 "$format"
		LC_ALL=C grep -aoP "$unclean" "$here/out.$format" >"$here/unclean" &&
			fail "$format: $(head -n 1 "$here/unclean" | cat -v)"
		! grep -q '"e[^"]*"<b>' "$here/out.flamegraph" 2>/dev/null || fail "a name can be markup"
	done
	expect_contains "$here/out.collapsed" '\?\[2Je'
	record --no-attach --comm "$(cat "/proc/$attacker/comm")" -d 300ms -i 1ms -o collapsed -f "$here/out"
	expect_status 0 "--comm"
	! LC_ALL=C grep -qP '\x1b|\xc2\x9b' "$here/stderr" "$here/out" || fail "--comm lets escapes through"
}

# A JVM in its own time namespace, without rights outside: the halves of its samples are paired nevertheless.
case_namespaces_of_a_stranger() {
	local outer
	need_bpf
	need_root
	unshare -U -r -T true || skip "no user or time namespaces"
	JVM_AS=(setpriv --reuid=54321 --regid=54321 --clear-groups
		unshare -U -r -n -C -i -u -T --monotonic 100000 --boottime 200000 --fork --kill-child)
	start_jvm "$(any_jdk)" workload.Checksum
	outer=$jvm
	until jvm=$(pgrep -P "$outer" java); do kill -0 "$outer" || fail "no JVM"; done
	warm_up 1
	record_cpu 1 -p "$jvm" -i 1ms --signals always -o collapsed -f "$here/out"
	expect_share "joined" "$(reported joined)" '>=' 97
	expect_share "of known methods" "$(matching "$here/out" 'workload/Checksum')" '>=' 80
	record_cpu 1 -p "$jvm" -i 1ms --engine ctimer -o collapsed -f "$here/out"
	expect_share "of known methods, by timer" "$(matching "$here/out" 'workload/Checksum')" '>=' 80
}

# Root of a container is not root of the host, and the child that works with its rights has no more than these.
case_child_of_root_has_no_rights() {
	need_root
	start_silent 0
	start_attach 5000
	find_child 0 'the child of a target of root keeps capabilities'
	wait "$attaching"
	expect_contains "$here/stdout" 'does not answer'
}

case_list_is_clean() {
	need_root
	cp "$hostile" "$here/e"$'\033[2J\302\233'
	start_silent 54321 "$here/e"$'\033[2J\302\233'
	run_duet list
	expect_status 0
	expect_contains "$here/stdout" "^ +$attacker .* e\?\[2J"
	! LC_ALL=C grep -q $'\033\\|\302\233' "$here/stdout" || fail "duet list lets terminal escapes through"
}

# The agent of a JVM in a user namespace with the host's network: every user without an id there looks like the host's
# root.
case_agent_of_a_user_namespace() {
	local client=("$DUET_BUILD/tests/system/agent_client" "duet-test-$$") library
	local stranger secret=0123456789abcdef0123456789abcdef
	need_root
	unshare -U true || skip "no user namespaces"
	library=$here/libduet.so
	cp "$DUET_BUILD/libduet.so" "$library"
	JVM_AS=(setpriv --reuid=54321 --regid=54321 --clear-groups unshare -U -r env DUET_SECRET=$secret)
	JVM_OPTS=("-agentpath:$library=control=duet-test-$$,wait=0")
	start_jvm "$(any_jdk)" workload.Idle 2
	! tr '\0' '\n' <"/proc/$jvm/cmdline" | grep -q $secret || fail "the secret can be read by all"
	for stranger in 65534 12345; do
		! timeout 5 setpriv --reuid=$stranger --regid=$stranger --clear-groups \
			"${client[@]}" 00000000000000000000000000000000 0.1 ctimer 10000000 >"$here/stranger" 2>&1 ||
			fail "user $stranger has the agent: $(cat "$here/stranger")"
	done
	timeout 5 "${client[@]}" $secret 0.1 ctimer 10000000 >"$here/stdout" 2>&1 ||
		fail "the loader did not get in: $(cat "$here/stdout")"
	expect_alive "$jvm"
}

# The clock is set back by an hour while the start of a JVM waits for a loader: it waits no longer for that.
case_clock_that_steps() {
	JVM_AS=(env DUET_SECRET=0123456789abcdef0123456789abcdef LD_PRELOAD="$workloads/libclock_ahead.so")
	JVM_OPTS=("-agentpath:$DUET_BUILD/libduet.so=control=duet-test-$$,wait=300")
	local from=${EPOCHREALTIME/./}
	start_jvm "$(any_jdk)" workload.Idle 2
	expect "the start took, ms" $(((${EPOCHREALTIME/./} - from) / 1000)) '<' 8000
}

# Files about other users' processes are for their owner alone, and only the daemon may hold its lock.
case_files_are_private() {
	need_bpf
	need_root
	record --host --no-attach -d 200ms -f "$here/out.txt"
	expect_status 0
	[ "$(stat -c %a "$here/out.txt")" = 600 ] || fail "the host's profile: $(stat -c %A "$here/out.txt")"
	record --host --no-attach -d 200ms --group daemon -f "$here/out.txt"
	[ "$(stat -c '%a %G' "$here/out.txt")" = '640 daemon' ] || fail "--group: $(stat -c '%A %G' "$here/out.txt")"
	run_duet daemon --config /nonexistent --lock "$here/lock"
	[ "$(stat -c %a "$here/lock")" = 600 ] || fail "the daemon's lock: $(stat -c %A "$here/lock")"
}

run_cases "$@"
