#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
# Ways in which a profiler that sends signals could harm the application. None of them may happen.
. "$(dirname "$0")/lib.sh"

# JDK 21 and later announce every agent that is attached; nothing else may be on the JVM's stderr.
expect_no_complaint() {
	local other
	other=$(grep -vE '^WARNING: (A JVM TI agent|If a serviceability tool|Dynamic loading of agents)' "$jvm_out.err")
	[ -z "$other" ] || fail "the JVM complained: $(head -n 3 <<<"$other")"
}

# Sums in Java and native code are right before, while and after they are sampled at 1 kHz.
jdk_case_results_stay_right() {
	need_bpf
	JVM_OPTS=("-Dgate=$here/gate" "-Dend=$here/end")
	start_jvm "$jdk" workload.Checksum
	start_record --agent always -p "$jvm" -d 60 -i 500us -o collapsed -f "$here/out"
	touch "$here/gate"
	warm_up 1
	end_record INT
	expect_status 0
	expect "samples" "$(total "$here/out")" '>=' 500
	touch "$here/end"
	wait_for_line "$jvm_out" '^SOUND' 30
	wait "$jvm" || fail "the JVM ended with $?: $(tail -n 3 "$jvm_out" "$jvm_out.err")"
	jvms=()
	expect_no_complaint
}

# poll, epoll_wait and nanosleep are not restarted after a handler: the application must not see EINTR.
jdk_case_no_eintr() {
	need_bpf
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$jdk" workload.SystemCalls 4
	start_record --agent always -p "$jvm" -d 60 -i 500us -o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 30
	end_record INT
	expect_status 0
	expect "poll interrupted" "$(jvm_said EINTR 2)" '==' 0
	expect "epoll_wait interrupted" "$(jvm_said EINTR 3)" '==' 0
	expect "nanosleep interrupted" "$(jvm_said EINTR 4)" '==' 0
	expect "samples" "$(total "$here/out")" '>=' 50
}

expect_no_eintr() { # PHASE
	local kind column=2
	for kind in poll select epoll_wait nanosleep futex read recv socket_read send accept semtimedop sigtimedwait \
		io_getevents epoll_pwait2 io_uring_enter futex_waitv connect msgrcv pause; do
		column=$((column + 1))
		expect "$kind interrupted, phase $1" \
			"$(awk -v phase="$1" -v column=$column '
				$1 == "EINTR" && $2 == phase { print $column }' "$jvm_out")" '==' 0
	done
}

# Waits of 1 ms, with the clock alone, and then with the time off CPU and who ends it: no signal ends one.
jdk_case_no_wait_is_cut_short() {
	need_bpf
	local phase=0 events
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$jdk" workload.WaitingCalls 4000 2
	for events in "-e cpu=500us" "-e cpu=500us,offcpu=100us --wakers"; do
		phase=$((phase + 1))
		# shellcheck disable=SC2086 # several words
		start_record --signals always -p "$jvm" -d 60 $events --total -o collapsed -f "$here/out.$phase"
		touch "$here/gate$phase"
		wait_for_line "$jvm_out" "^WAITS $phase" 30
		end_record INT
		expect_status 0
		expect_no_eintr $phase
		expect "waits" "$(awk -v phase=$phase '$1 == "WAITS" && $2 == phase { print $3 }' "$jvm_out")" '>' 2000
	done
	expect_contains "$here/out.offcpu.2" 'WaitingCalls.waits;.*[[]woken by[]];'
}

# fork and exec in the JVM: a child has no handler, a signal would kill it.
jdk_case_children() {
	need_bpf
	start_jvm "$jdk" workload.Spawner
	record --agent always -p "$jvm" -d 5 -i 1ms -o collapsed -f "$here/out"
	expect_status 0
	sleep 0.5
	expect_alive "$jvm"
	expect_lacks "$jvm_out" WRONG
	expect "children" "$(jvm_said SPAWNED)" '>=' 5
}

# The JVM itself becomes another program, which has no handler, while its threads are sampled.
case_exec() {
	need_bpf
	local round
	for round in 1 2 3 4 5; do
		JVM_OPTS=("-Dgate=$here/gate$round")
		start_jvm "$(any_jdk)" workload.SystemCalls exec /bin/sh -c \
			'echo BECAME; i=0; while [ $i -lt 1500000 ]; do i=$((i+1)); done; echo LIVED'
		start_record --agent always -p "$jvm" -d 6 -i 1ms -o collapsed -f "$here/out"
		touch "$here/gate$round"
		wait_for_line "$jvm_out" '^LIVED' 20
		wait "$jvm" || fail "round $round: the new program ended with $?"
		end_record
		expect_status 0
	done
	jvms=()
}

# Threads end after their signal was sent and before it was delivered.
jdk_case_thread_churn() {
	need_bpf
	start_jvm "$jdk" workload.Churn
	record --agent always -p "$jvm" -d 6 -i 1ms -o collapsed -f "$here/out"
	expect_status 0
	expect_alive "$jvm"
	expect_contains "$here/out" 'workload/Churn\.live'
	expect_no_complaint
}

case_thread_churn_ctimer() {
	start_jvm "$(any_jdk)" workload.Churn
	record -p "$jvm" -d 5 -i 1ms --engine ctimer -o collapsed -f "$here/out"
	expect_status 0
	expect_alive "$jvm"
}

# The JVM shuts down and frees its tables while signals are delivered: its exit code stays 0.
# Ends the JVM when it has been sampled for a while, however long the attach took.
exit_while_recorded() { # HOME RECORD-OPTIONS...
	local home=$1 commands
	shift
	JVM_IN=$here/in
	[ -p "$JVM_IN" ] || mkfifo "$JVM_IN"
	exec {commands}<>"$JVM_IN"
	start_jvm "$home" workload.Storm
	start_record --agent always -p "$jvm" -d 60 -i 1ms -o collapsed -f "$here/out" "$@"
	echo "exit 0" >&"$commands"
	exec {commands}>&-
	wait "$jvm" || fail "round $round: exit code $?: $(tail -n 3 "$jvm_out" "$jvm_out.err")"
	end_record
	expect_status 0
	expect_file "$here/out"
}

jdk_case_jvm_exit() {
	need_bpf
	local round
	for round in 1 2 3; do
		exit_while_recorded "$jdk"
	done
	jvms=()
}

case_jvm_exit_ctimer() {
	local round
	for round in 1 2 3; do
		exit_while_recorded "$(any_jdk)" --engine ctimer
	done
	jvms=()
}

# The agent's threads start and end; Java threads that reuse its stack still find their guard pages.
jdk_case_stack_overflow() {
	local round
	JVM_OPTS=(-Xint)
	JVM_IN=$here/in
	mkfifo "$JVM_IN"
	exec {commands}<>"$JVM_IN"
	start_jvm "$jdk" workload.Storm overflow
	for round in 1 2 3 4 5 6 7 8 9 10 11 12; do
		record -p "$jvm" -d 1 -e wall --engine ctimer -o collapsed -f "$here/out"
		expect_status 0 "round $round"
	done
	echo "ask 1" >&"$commands"
	wait_for_line "$jvm_out" '^SOUND 1' 30
}

# Native code whose stack looks like interpreter frames: no method that it invented is followed, with either engine.
jdk_case_words_like_frames() {
	record_crafted spin -Xint
}

# The same with the address of compiled code, which does not show how large its frame is.
jdk_case_words_like_compiled_frames() {
	record_crafted spin -Xcomp -XX:CompileCommand=quiet -XX:CompileCommand=compileonly,workload.Crafted::*
}

# The same with random words of all kinds, drawn from the true stack of the thread: interpreter, compiled code, its
# adapters, the entry from C, methods, constant pools.
jdk_case_words_of_all_kinds() {
	record_crafted shuffle
}

# Words of a stack with deoptimized frames, on JDK 21 and later in a virtual thread: its continuation's entry, too.
jdk_case_words_of_deoptimized_frames() {
	record_crafted shift
}

record_crafted() { # WORDS JAVA-OPTIONS...
	local engine words=$1 JVM_OPTS=("${@:2}")
	[ -e "$workloads/libcrafted.so" ] || skip "x86-64 only"
	need_bpf
	start_jvm "$jdk" workload.Crafted 60 "$words"
	for engine in bpf ctimer; do
		record -p "$jvm" -d 1 -i 1ms --engine "$engine" -o collapsed -f "$here/out"
		expect_alive "$jvm" "after $engine"
		expect_status 0
		expect "samples" "$(total "$here/out")" '>=' 10
		expect_contains "$here/out" 'workload_Crafted_spin|workload_Crafted_shuffle|libcrafted'
	done
}

# A JVM that runs JFR's or another profiler's SIGPROF handler keeps it.
case_sigprof_is_left_alone() {
	start_jvm "$(any_jdk)" workload.Checksum
	local before
	before=$(grep -E '^Sig(Cgt|Ign)' "/proc/$jvm/status")
	start_record --agent always -p "$jvm" -d 4 -i 1ms -o collapsed -f "$here/out"
	local bit=$((16#$(awk '/^SigCgt/ { print $2 }' "/proc/$jvm/status") >> 26 & 1))
	local was=$((16#$(awk '/^SigCgt/ { print $2 }' <<<"$before") >> 26 & 1))
	end_record
	expect "SIGPROF handled" "$bit" '==' "$was"
}

caught() { # SIGNAL: does the JVM have a handler for it?
	local mask
	mask=$(awk '$1 == "SigCgt:" { print $2 }' "/proc/$jvm/status")
	[ $((0x$mask >> ($1 - 1) & 1)) = 1 ]
}

# A signal that threads block, to wait for it with sigwait(), has its default disposition, but is not free.
case_signals_that_are_waited_for() {
	local first end
	need_bpf
	first=$(($(kill -l RTMIN) + 4)) # the agent uses it if no process has a handler for it
	# shellcheck disable=SC2016
	JVM_AS=(perl -MPOSIX -e '
		my $first = shift;
		sigprocmask(SIG_BLOCK, POSIX::SigSet->new($first, $first + 1)) or die;
		exec @ARGV' "$first")
	start_jvm "$(any_jdk)" workload.Mixed
	start_record --agent always -p "$jvm" -d 60 -i 1ms -o collapsed -f "$here/out"
	end=$((SECONDS + 20))
	until caught "$first" || caught $((first + 1)) || caught $((first + 2)) || [ $SECONDS -ge $end ]; do
		sleep 0.05
	done
	caught "$first" && fail "signal $first is blocked, and was taken"
	caught $((first + 1)) && fail "signal $((first + 1)) is blocked, and was taken"
	caught $((first + 2)) || fail "signal $((first + 2)) was not taken"
	end_record INT
	expect_status 0
}

run_cases "$@"
