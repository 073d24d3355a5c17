#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 900
#
# A process that poses as a JVM with its agent and attacks the loader through everything they share, beside an honest
# JVM. The loader ends in time, stays small, names the problem, and the honest JVM's samples stay joined.
. "$(dirname "$0")/lib.sh"

hostile=$DUET_BUILD/tests/system/hostile_agent
memory_cap_kb=$((256 << 10))

# The attacker runs as nobody: it must gain nothing from a loader that is root. Its pid is $attacker.
start_attacker() { # ATTACK
	cp -f /bin/true "$here/libjvm.so"
	chmod 755 "$here/libjvm.so"
	# A socket that a dead JVM of this pid left could not be removed by nobody.
	sh -c 'rm -f "/tmp/.java_pid$$"; exec "$@"' sh setpriv --reuid=65534 --regid=65534 --clear-groups \
		"$hostile" "$here/libjvm.so" "$1" >"$here/attacker" 2>&1 </dev/null &
	attacker=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
}

end_attacker() {
	kill -KILL "$attacker" 2>/dev/null
	wait "$attacker" 2>/dev/null
	rm -f "/tmp/.java_pid$attacker"
}

# The most memory process $1 ever held, in kB; asked until it ends, for 40 s at most.
peak_memory() {
	local peak=0 now end=$((SECONDS + 40))
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

# Records the attacker and the honest JVM; the most memory is in $peak, seconds in $took. $least is an eighth of the
# samples that the honest JVM's CPU time was good for, as a share of the whole time that the loader was there: the
# machine may be busy, and ctimer's timers expire with the kernel's ticks only, every 4 ms where the interval is 2.
record_both() { # RECORD-OPTIONS...
	local started=$SECONDS begin ticks seconds=2
	begin=$(milliseconds) ticks=$(cpu_ticks "$jvm")
	[[ " $* " != *" -d 4 "* ]] || seconds=4
	"$duet" record -p "$attacker,$jvm" -d 2 -i 2ms -t -o collapsed -f "$here/out" "$@" \
		>"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	peak=$(peak_memory "$recorder")
	end_record
	took=$((SECONDS - started))
	ticks=$(($(cpu_ticks "$jvm") - ticks))
	least=$((ticks * 1000 / ticks_per_second * seconds * 1000 / ($(milliseconds) - begin) / 2 / 8))
}

# The attack runs; nobody but the attacker suffers, and the report has a sentence about it.
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
	expect "$attack: seconds" "$took" '<' 20
	expect_alive "$jvm" "after $attack"
	[ "$(proc_state "$attacker")" != Z ] || fail "$attack: the attacker was killed: $(cat "$here/attacker")"
	end_attacker
}

start_honest() {
	need_bpf
	need_root
	start_jvm "$(any_jdk)" workload.TwoBusy 600
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
	survive hello_close 'closed the control socket during the handshake'
	survive hello_noise 'malformed message'
	survive hello_twice 'out of turn'
	survive hello_version 'malformed message'
	survive hello_without_end 'malformed message'
	survive hello_descriptors 'samples'
}

case_started() {
	start_honest
	survive started_silence 'did not answer for 10 s'
	survive started_close 'closed the control socket during the handshake'
	survive started_noise 'malformed message'
	survive started_twice 'out of turn'
	survive started_escapes '\?\[2J'
}

# A signal or handler that is not the agent's own is refused before BPF hears of it.
case_signals() {
	start_honest
	survive started_kill 'cannot be its own'
	survive started_stop 'cannot be its own'
	survive started_signal_0 'cannot be its own'
	survive started_signal_65 'malformed message'
	survive started_default_handler 'cannot be its own'
	survive started_ignoring_handler 'cannot be its own'
	survive run_exec 'left before the end'
}

case_ring() {
	start_honest
	survive ring_noise 'broke the rules of the shared ring'
	survive ring_lengths 'broke the rules of the shared ring'
	survive ring_head_back 'broke the rules of the shared ring'
	survive ring_head_far 'broke the rules of the shared ring'
	survive ring_cut 'samples'
	! grep -q 'not sealed' "$here/attacker" || fail "the ring's file could be cut"
}

# Whether a table gets full in this time depends on the machine; that it is said then is for unit tests.
case_flood() {
	start_honest
	survive flood_samples 'more than its samples can need|without a sample'
	survive flood_one_thread 'more than its samples can need'
	survive flood_standalone 'agent records refused'
	survive flood_standalone 'agent records refused' --engine ctimer
	survive flood_methods 'samples' -d 4
	survive flood_code 'samples' -d 4
	survive flood_inlining 'samples'
	survive flood_threads 'samples' -d 4
	survive flood_heaps 'tables of their JVM were full'
	survive flood_stacks 'samples' -d 4
	survive flood_everything 'samples' -d 4
}

case_end() {
	start_honest
	survive run_close 'left before the end'
	survive run_noise 'malformed message'
	survive stop_silence 'did not confirm the end'
}

run_cases "$@"
