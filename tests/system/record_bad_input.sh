#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Every error is reported in one sentence with its cause and what to do. The JVM is never harmed.
. "$(dirname "$0")/lib.sh"

# Sets $native to its pid.
start_native() {
	bash -c 'while :; do :; done' &
	native=$!
	jvms+=("$native")
}

# The agent's timers give no samples of a process that is not a JVM; BPF does.
case_not_a_jvm() {
	start_native
	record -p "$native" -d 1 --engine ctimer -f "$here/out"
	expect_refusal 1 "process $native \(bash\) is not a JVM.*ctimer.*--engine bpf"
	[ ! -e "$here/out" ] || fail "an output file was written"
}

expect_line() { # PATTERN
	expect "lines that say so" "$(grep -cE "$1" "$here/stderr")" '==' 1
	expect_lacks "$here/stderr" 'warning|error'
}

case_not_a_jvm_under_bpf() {
	need_bpf
	start_native
	record -p "$native" -d 1 -i 1ms -o collapsed -f "$here/out"
	expect_status 0
	expect_line "process $native \(bash\) is not a JVM: kernel and native frames only"
	expect_contains "$here/out" ';execute_command|;main;|_\[k\]'
	run_duet -d 1 -i 1ms -o collapsed -f "$here/out" "$native"
	expect_status 0 "the short form"
	expect_file "$here/out"
}

case_jvms_and_others() {
	need_bpf
	start_native
	local first=$native
	start_native
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$first,$jvm,$native" -d 1 -i 2ms -o collapsed -f "$here/out"
	expect_status 0
	expect_line "processes $first \(bash\), $native \(bash\) are not JVMs: kernel and native frames only"
	expect_contains "$here/out" 'shop/Pricing'
	expect_contains "$here/out" "^\[bash pid=$first\]"
	expect_contains "$here/out" "^\[bash pid=$native\]"
}

case_jvms_and_others_by_timer() {
	start_native
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$native,$jvm" -d 1 -i 2ms --engine ctimer -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/stderr" "process $native \(bash\) is not a JVM, and left out"
	expect_contains "$here/out" 'shop/Pricing'
}

# The other events are recorded.
case_event_of_nobody() {
	need_bpf
	start_native
	record -p "$native" -e cpu=1ms,alloc,lock -d 1 -o collapsed -f "$here/out"
	expect_status 0
	expect_line "process $native \(bash\) is not a JVM: .* frames only, and no samples of alloc, lock$"
	expect_file "$here/out"
}

# Short-lived programs may have the name during the recording.
case_name_of_nobody() {
	need_bpf
	record --comm "slep-$$" -d 1 -o collapsed -f "$here/out"
	expect_refusal 1 "nothing was recorded: no process of the name 'slep-$$'"
	[ ! -e "$here/out" ] || fail "an output file was written"
	cp "$(command -v sleep)" "$here/sleep-$$"
	"$here/sleep-$$" 60 &
	jvms+=($!)
	start_record --comm "slep-$$" -i 1ms -d 60 -o collapsed -f "$here/out"
	expect_contains "$here/stderr" "'slep-$$' \(did you mean sleep-$$\?\): the recording waits for one"
	bash -c "printf '%s' 'slep-$$' >/proc/self/comm; for ((i = 0; i < 100000; i++)); do :; done"
	end_record INT
	expect_status 0
	expect_file "$here/out"
}

# A process that becomes a JVM during the recording has Java frames from then on.
case_becomes_a_jvm() {
	need_bpf
	jvm_out=$here/jvm.0
	bash -c 'until [ -e "$0" ]; do :; done; exec "$@"' "$here/go" "$(any_jdk)/bin/java" -Xmx256m -cp "$workloads" \
		shop.Demo >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	"$duet" record -p "$jvm" -d 60 -i 2ms -o collapsed -f "$here/out" 2>"$here/stderr" &
	recorder=$!
	wait_for_line "$here/stderr" 'is not a JVM' 30
	: >"$here/go"
	wait_for_line "$jvm_out" '^READY' 60
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + 2))
	end_record INT
	expect_status 0
	expect_contains "$here/out" 'shop/Pricing'
}

case_kernel_thread() {
	need_bpf
	[ "$(cat /proc/2/comm 2>/dev/null)" = kthreadd ] || skip "no kernel threads are seen here"
	record -p 2 -d 1 -o collapsed -f "$here/out"
	expect_status 0
	expect_line 'process 2 \(kthreadd\) is a kernel thread: kernel frames only'
	record -p 2 -d 1 --all-user -o collapsed -f "$here/out"
	expect_refusal 1 'process 2 \(kthreadd\) is a kernel thread.*--all-user'
}

# The process that started it has executed a program that waits for no child.
case_zombie() {
	local zombie
	bash -c '(until grep -q sleep /proc/$$/comm; do :; done) & echo $! >"$0"; exec sleep 60' "$here/pid" &
	jvms+=($!)
	until zombie=$(cat "$here/pid" 2>/dev/null) && [ "$(proc_state "${zombie:-0}")" = Z ]; do
		sleep 0.05
	done
	record -p "$zombie" -d 1 -o collapsed -f "$here/out"
	expect_refusal 1 "process $zombie has ended.*zombie"
}

case_thread_instead_of_a_process() {
	local thread
	start_jvm "$(any_jdk)" shop.Demo
	thread=$(find "/proc/$jvm/task" -mindepth 1 -maxdepth 1 ! -name "$jvm" -printf '%f\n' | head -n 1)
	record -p "$thread" -d 1 -o collapsed -f "$here/out"
	expect_refusal 1 "$thread is a thread of process $jvm: give -p $jvm"
}

case_attach_disabled() {
	JVM_OPTS=(-XX:+DisableAttachMechanism)
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 2 --engine ctimer -f "$here/out"
	expect_refusal 1 'DisableAttachMechanism|agentpath'
	expect_alive "$jvm"
}

case_attach_disabled_under_bpf() {
	need_bpf
	JVM_OPTS=(-XX:+DisableAttachMechanism)
	start_jvm "$(any_jdk)" shop.Demo
	record_cpu 1 -p "$jvm" -o collapsed -f "$here/out"
	expect_lacks "$here/stderr" 'DisableAttachMechanism|agentpath|native frames only'
	expect_contains "$here/out" 'shop/Pricing'
	record --agent always -p "$jvm" -d 2 -o collapsed -f "$here/out"
	expect_contains "$here/stderr" 'DisableAttachMechanism|agentpath'
	expect_alive "$jvm"
}

# What needs no agent is recorded without one.
case_no_agent_no_alloc() {
	need_bpf
	JVM_OPTS=(-XX:+DisableAttachMechanism)
	start_jvm "$(any_jdk)" shop.Demo
	record_cpu 1 -p "$jvm" -e cpu=2ms,alloc -o collapsed -f "$here/out"
	expect_contains "$here/stderr" 'DisableAttachMechanism.* are read from outside, no samples of alloc'
	expect_contains "$here/out" 'shop/Pricing'
	record -p "$jvm" -e alloc,lock -d 1 -o collapsed -f "$here/none"
	expect_refusal 1 'DisableAttachMechanism'
	[ ! -e "$here/none" ] || fail "an output file was written"
}

# The library that would be attached finds no room.
case_full_tmp() {
	need_bpf
	need_root
	[[ $DUET_BUILD != /tmp/* ]] || skip "the build is below /tmp, which the JVM does not see"
	JVM_OPTS=(-XX:-UsePerfData)
	# shellcheck disable=SC2016 # for the inner shell
	JVM_AS=(unshare --mount sh -c 'for place in /tmp /dev/shm /var/tmp /run; do
		mount -t tmpfs -o size=40k tmpfs $place; done; exec "$@"' sh)
	start_jvm "$(any_jdk)" shop.Demo
	record_cpu 1 -p "$jvm" -e cpu=2ms,alloc -o collapsed -f "$here/out"
	expect_contains "$here/stderr" "JVM $jvm.* read from outside, no samples of alloc"
	expect_contains "$here/out" 'shop/Pricing'
	expect_alive "$jvm"
}

case_suspended_jvm() {
	start_jvm "$(any_jdk)" shop.Demo
	kill -STOP "$jvm"
	local started=$SECONDS
	record -p "$jvm" -d 2 --engine ctimer -f "$here/out"
	kill -CONT "$jvm"
	expect_status 1
	expect_contains "$here/stderr" 'stopped|suspended|SIGSTOP|SIGCONT'
	expect "seconds until it gave up" $((SECONDS - started)) '<=' 20
	sleep 1
	expect_alive "$jvm"
}

# The JVM believes that its attach listener runs; a second attach finds no socket file.
case_attach_socket_deleted() {
	start_jvm "$(any_jdk)" shop.Demo
	record --agent always -p "$jvm" -d 1 -o collapsed -f "$here/first"
	expect_status 0
	rm -f "/tmp/.java_pid$jvm"
	record --agent always -p "$jvm" -d 1 -o collapsed -f "$here/second"
	if [ "$status" != 0 ]; then
		expect_refusal 1 "java_pid|attach"
	fi
	expect_alive "$jvm"
}

# A JVM of another user and with that pid has left such a socket: HotSpot cannot remove it.
case_attach_socket_of_someone_else() {
	need_root
	start_jvm "$(any_jdk)" shop.Demo
	: >"/tmp/.java_pid$jvm"
	record -p "$jvm" -d 1 --engine ctimer -o collapsed -f "$here/out"
	rm -f "/tmp/.java_pid$jvm"
	expect_refusal 1 "java_pid$jvm, which .* belongs to another user.* remove it"
	expect_alive "$jvm"
}

case_no_permission() {
	need_root
	start_jvm "$(any_jdk)" shop.Demo
	chmod 777 "$here"
	DUET_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	record -p "$jvm" -d 1 -f "$here/out"
	expect_refusal 1 'permission|not permitted|another user|user'
	expect_alive "$jvm"
}

# The error is found before the JVM is attached to.
case_output_unwritable() {
	start_jvm "$(any_jdk)" shop.Demo
	local started=$SECONDS
	record -p "$jvm" -d 10 -f /nonexistent/folder/out.html
	expect_refusal 1 '/nonexistent/folder'
	expect "seconds" $((SECONDS - started)) '<' 10
	record -p "$jvm" -d 10 -f /
	expect_refusal 1 '/'
}

case_disk_full() {
	need_root
	start_jvm "$(any_jdk)" shop.Demo
	mkdir "$here/small"
	mount -t tmpfs -o size=16k tmpfs "$here/small" || skip "cannot mount a tmpfs"
	record -p "$jvm" -d 3 -i 1ms -f "$here/small/out.html"
	local left
	left=$(ls -A "$here/small")
	umount "$here/small"
	expect_status 1
	expect_contains "$here/stderr" 'small/out.html.*No space left'
	[ -z "$left" ] || fail "left on the full disk: $left"
	expect_alive "$jvm"
}

# A write to /dev/full fails with ENOSPC only when the buffer is flushed.
case_disk_full_at_the_end() {
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 1 -o collapsed -f /dev/full
	expect_status 1
	expect_contains "$here/stderr" '/dev/full.*No space left'
}

case_small_limits() {
	need_bpf
	need_plain "they take more of the stack"
	local format
	for format in html duet jfr collapsed; do
		(
			ulimit -s 128
			record -e cpu -d 1 -f "$here/out.$format" -- "$workloads/busy" 1 0.3
			exit "$status"
		) || fail "with a stack of 128 kB: $? $(cat "$here/stderr")"
		expect_file "$here/out.$format"
	done
	(
		ulimit -f 8
		record -e cpu -d 1 -f "$here/large.html" -- "$workloads/busy" 1 0.3
		exit "$status"
	) && fail "a page of 8 kB"
	expect_contains "$here/stderr" 'large.html.*File too large.*ulimit -f'
	expect_no_leftover "$here/large.html"
	start_jvm "$(any_jdk)" shop.Demo
	(
		ulimit -f 20
		record -p "$jvm" -d 1 -o collapsed -f "$here/out.collapsed"
		exit "$status"
	) || fail "the size of files is limited: $(cat "$here/stderr")"
	expect_contains "$here/stderr" 'the shared ring is larger than a file may be: raise ulimit -f'
	expect_lacks "$here/stderr" 'ended early'
}

# Nobody can free space for a reader that has ended.
case_closed_pipe() {
	need_bpf
	"$duet" record -e cpu -d 1 -o jfr -- "$workloads/busy" 1 1 2>"$here/stderr" | true
	expect_contains "$here/stderr" 'stdout could not be written: Broken pipe'
	expect_lacks "$here/stderr" 'free some space'
}

case_interval() {
	local bad
	for bad in 0 0ms -1 1parsec 99999999999999999999 1ns 100d; do
		record -p $$ -d 1 -i "$bad"
		[ "$status" = 1 ] || [ "$status" = 2 ] || fail "-i $bad: exit code $status"
		grep -qE "interval|-i " "$here/stderr" || fail "-i $bad: $(cat "$here/stderr")"
	done
}

case_frequency_and_duration() {
	local bad
	for bad in '--freq 0' '--freq -3' '--freq 99999999999' '-d 0' '-d -1' '-d soon' '-j 0' '-j many'; do
		# shellcheck disable=SC2086
		record -p $$ -d 1 $bad
		expect_refusal 2 "$(cut -d ' ' -f 1 <<<"$bad" | tr -d -)|${bad#* }"
	done
	record -p $$ -d 1 --freq 100001
	expect_refusal 2 "freq '100001': .* from 1 to 100000"
}

# A JVM has one agent at a time, and any number of duets that read it from outside.
case_second_duet() {
	start_jvm "$(any_jdk)" shop.Demo
	start_record --agent always -p "$jvm" -d 90 -o collapsed -f "$here/first"
	local first=$recorder
	cp "$here/stderr" "$here/stderr.first"
	record --agent always -p "$jvm" -d 1 -o collapsed -f "$here/second"
	expect_contains "$here/stderr" 'another|already|busy'
	if "$duet" check 2>&1 | grep -q '^bpf: ready'; then
		record_cpu 1 -p "$jvm" -o collapsed -f "$here/third"
		expect_contains "$here/third" 'shop/Pricing'
	fi
	recorder=$first
	end_record INT
	expect_status 0 "the first duet"
	expect_contains "$here/first" 'shop/Pricing'
	expect_alive "$jvm"
}

case_second_duet_ctimer() {
	start_jvm "$(any_jdk)" shop.Demo
	start_record --agent always -p "$jvm" -d 90 -o collapsed -f "$here/first"
	record -p "$jvm" -d 1 --engine ctimer -o collapsed -f "$here/second"
	expect_refusal 1 'another|already|busy'
	end_record INT
	expect_status 0 "the first duet"
}

# The target ends between the two times that duet reads it.
case_target_dies_at_once() {
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 5 -o collapsed -f "$here/out" &
	local duet_job=$!
	kill -KILL "$jvm"
	wait $duet_job
	[ ! -e "$here/out" ] || expect "lines that are no stack" "$(grep -cvE ' [1-9][0-9]*$' "$here/out")" '==' 0
}

run_cases "$@"
