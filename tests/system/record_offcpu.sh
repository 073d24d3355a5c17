#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Time off CPU: the sums are what the threads themselves have measured, in the functions in which they waited.
. "$(dirname "$0")/lib.sh"

need_offcpu() {
	need_bpf
	"$duet" check 2>&1 | grep -qE 'yes +time off CPU' || skip "this kernel has no hook for sleeps"
}

record_sleeps() { # EVENTS SECONDS [RECORD-OPTIONS...]
	rm -f "$here"/out* "$here/gate"
	jvm_out=$here/sleeps.out
	"$workloads/sleeps" "$here/gate" "$2" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record --no-attach -p "$jvm" -e "$1" "${@:3}" --total -t -d 100 -o collapsed \
		-f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
}

# Prints the recorded time of the threads whose name begins with NAME, as a percentage of their measured time.
told_of_said() { # FILE NAME
	grep -F "[$2" "$1" | awk -v name="$2" 'NR == FNR { told += $NF; next }
		index($1, name) == 1 { said += $2 }
		END { print said ? 100 * told / said : 0 }' - "$jvm_out"
}

expect_sum() { # FILE NAME PERCENT
	expect_near "$2, % of what it has measured" "$(told_of_said "$1" "$2")" 100 "$3"
}

# The rest of the thread's sleeps, outside of the function, is a wait for a CPU.
expect_state() { # FILE THREAD PATTERN PERCENT
	grep -F "[$2 " "$1" | grep -v '\[runnable\]' >"$here/thread"
	expect "sleeps of $2 with \"$3\", %" "$(share "$here/thread" "$3")" '>=' "$4"
}

expect_uninterrupted() {
	expect "calls that a signal interrupted" \
		"$(awk 'NF == 3 { sum += $3 } END { print sum + 0 }' "$jvm_out")" '==' 0
}

# At an interval of 0.3 ms most sleeps are recorded with their exact length.
case_sums_and_states() {
	need_offcpu
	local name
	record_sleeps offcpu=300us 6
	for name in in_nanosleep in_poll in_select in_epoll in_lock in_pipe in_socket in_turns; do
		expect_sum "$here/out.collapsed" $name 2
	done
	expect_state "$here/out.collapsed" in_nanosleep \
		';waits;in_nanosleep;.*nanosleep_.k.;\[sleep\] ' 99
	expect_state "$here/out.collapsed" in_poll ';in_poll;.*;\[poll\] ' 99
	expect_state "$here/out.collapsed" in_select ';in_select;.*;\[poll\] ' 99
	expect_state "$here/out.collapsed" in_epoll ';in_epoll;.*;\[epoll\] ' 99
	expect_state "$here/out.collapsed" in_lock ';in_lock;.*;\[futex\] ' 99
	expect_state "$here/out.collapsed" in_pipe ';in_pipe;.*;\[pipe\] ' 99
	expect_state "$here/out.collapsed" in_socket ';in_socket;.*;\[socket\] ' 99
	if [ "$(jvm_said in_fault)" != 0 ]; then # otherwise the kernel refuses userfaultfd(2)
		expect_sum "$here/out.collapsed" in_fault 2
		expect_state "$here/out.collapsed" in_fault ';in_fault;.*;\[page fault\] ' 99
	fi
	grep -F '[in_turns ' "$here/out.collapsed" >"$here/turns"
	expect "turns on a CPU, runnable, %" "$(share "$here/turns" '\[runnable\] ')" '>=' 99
	grep -E '\[in_' "$here/out.collapsed" >"$here/threads"
	expect "stacks with the thread's entry, %" \
		"$(share "$here/threads" '\];(__)?clone[0-9]*;.*;waits(;|$)')" '>=' 99.9
	expect_lacks "$here/out.collapsed" 'bpf_'
	expect_uninterrupted
}

# The same threads by one of the kernel's hooks.
record_at_hook() { # HOOK [RECORD-OPTIONS...]
	"$duet" check 2>&1 | grep -qE "yes +hook $1\$" || skip "this kernel has no hook $1"
	record_sleeps offcpu=300us 5 --off-cpu-hook "$1" "${@:2}"
	expect_uninterrupted
}

expect_sums_and_stacks() {
	local name
	for name in in_nanosleep in_poll in_select in_epoll in_lock in_pipe in_socket; do
		expect_sum "$here/out.collapsed" "$name" 3
		expect_state "$here/out.collapsed" "$name" ";waits;$name;" 98
	done
	grep -E '\[in_' "$here/out.collapsed" >"$here/threads"
	expect "stacks with the thread's entry, %" \
		"$(share "$here/threads" '\];(__)?clone[0-9]*;.*;waits(;|$)')" '>=' 99
}

# Threads that wait in no system call: for a CPU, and for a page if the kernel lets a program serve page faults.
expect_other_waits() { # PERCENT
	expect_sum "$here/out.collapsed" in_turns "$1"
	grep -F '[in_turns ' "$here/out.collapsed" >"$here/turns"
	expect "turns on a CPU, %" "$(share "$here/turns" ';waits(;in_turns)?(;.*_\[k\])?;\[runnable\] ')" '>=' 98
	[ "$(jvm_said in_fault)" != 0 ] || return 0
	expect_sum "$here/out.collapsed" in_fault "$1"
	expect_state "$here/out.collapsed" in_fault ';in_fault;.*;\[page fault\] ' 98
}

case_hook_rseq_update() {
	need_offcpu
	record_at_hook rseq_update
	expect_sums_and_stacks
	expect_other_waits 3
	expect_state "$here/out.collapsed" in_poll ';in_poll;.*;\[poll\] ' 98
	expect_state "$here/out.collapsed" in_lock ';in_lock;.*;\[futex\] ' 98
}

case_hook_finish_task_switch() {
	need_offcpu
	record_at_hook finish_task_switch
	expect_sums_and_stacks
	expect_other_waits 3
}

case_hook_sys_exit() {
	need_offcpu
	record_at_hook sys_exit
	expect_sums_and_stacks
	expect_other_waits 10 # chosen when they begin, so that their lengths make noise
	expect_state "$here/out.collapsed" in_poll ';in_poll;.*;\[poll\] ' 98
}

# Threads that have not registered rseq take their samples at the next hook, from the first of them on.
case_threads_without_rseq() {
	need_offcpu
	GLIBC_TUNABLES=glibc.pthread.rseq=0 record_at_hook rseq_update
	expect_sums_and_stacks
	expect_other_waits 10
}

# As before Linux 6.4, where the state of threads is in a hash.
case_state_by_tid() {
	need_offcpu
	record_at_hook sched_exit_tp --pairing interval
	expect_sums_and_stacks
	expect_other_waits 3
	record_at_hook rseq_update --pairing interval
	expect_sums_and_stacks
	expect_other_waits 3
	run_duet record -p $$ -e cpu --off-cpu-hook sys_exit -d 1
	expect_refusal 2 'off-cpu-hook is about the time off CPU'
}

# Sleeps shorter than the interval are sampled at random. The sum of 70 to 90 s has a standard deviation below 0.7 s; 3
# % is four times that.
case_sum_at_the_default() {
	need_offcpu
	record_sleeps offcpu 8
	expect_sum "$here/out.collapsed" in_ 4
	expect_lacks "$here/stderr" 'pc or sp had changed'
}

# The clock's ticks interrupt the program that samples the sleeps.
case_beside_the_clock() {
	need_offcpu
	record_sleeps cpu=97us,offcpu=300us 5
	expect_sum "$here/out.offcpu.collapsed" in_nanosleep 2
	expect_sum "$here/out.offcpu.collapsed" in_turns 2
	expect_lacks "$here/out.collapsed" '\[(runnable|sleep|futex)\]'
	grep -F '[in_turns ' "$here/out.collapsed" >"$here/turns"
	expect "ticks of the threads that compute in their function, %" \
		"$(share "$here/turns" ';waits(;in_turns)?(;|$| |;.*_.k. )')" '>=' 99
	grep -E '\[in_' "$here/out.offcpu.collapsed" >"$here/threads"
	expect "stacks with the thread's entry, %" \
		"$(share "$here/threads" '\];(__)?clone[0-9]*;.*;waits(;|$)')" '>=' 99.9
	expect_uninterrupted
}

# Of 8 sleeps of in_nanosleep one takes 10 to 25 ms, and the others 0.2 to 3.2 ms.
case_lengths() {
	need_offcpu
	local part sum=0
	for part in 9ms.. ..9ms; do
		record_sleeps offcpu=100us 4 --off-cpu $part
		told=$(told_of_said "$here/out.collapsed" in_nanosleep)
		expect "time of the sleeps of $part, %" "$told" '>=' 25
		sum=$(awk "BEGIN { print $sum + $told }")
	done
	expect_near "both parts together, %" "$sum" 100 12
	record --no-attach -p $$ -e offcpu --off-cpu 2s..1s -d 1
	expect_status 2
	expect_contains "$here/stderr" 'the first length is longer'
}

# Threads that wait for work are idle, whoever gives it to them; those that wait within their work are not.
jdk_case_idle_pools() {
	need_offcpu
	start_jvm "$jdk" workload.Pools
	record -p "$jvm" -e offcpu=300us --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	grep -v '\[runnable\]' "$here/out" >"$here/waits"
	grep -E '^\[(idle-|ForkJoin)' "$here/waits" >"$here/idle"
	expect "time of threads that wait for work, s" "$(awk "BEGIN { print $(total "$here/idle") / 1e9 }")" '>=' 9
	expect "of which idle, %" "$(share "$here/idle" '\];\[idle\];')" '>=' 98
	grep -E '^\[waits-' "$here/waits" >"$here/busy"
	expect "time of threads that wait in their work, s" \
		"$(awk "BEGIN { print $(total "$here/busy") / 1e9 }")" '>=' 3
	expect "of which idle, %" "$(share "$here/busy" '\];\[idle\];')" '<=' 1
}

# Adds to $took the microseconds that so many turns of two threads take.
ping_pong() { # ROUNDS
	local from
	rm -f "$here/gate" "$here/turns.out"
	"$workloads/events" "$here/gate" switches "$1" >"$here/turns.out" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/turns.out" '^READY' 10
	from=${EPOCHREALTIME/./}
	touch "$here/gate"
	wait_for_line "$here/turns.out" '^DONE' 60
	took=$((took + ${EPOCHREALTIME/./} - from))
}

# Measures with and without duet in turn. An idle machine keeps 90 % of the throughput.
case_cost() { # alone
	need_offcpu
	local without=0 with=0 took round
	for round in 1 2 3; do
		took=0
		ping_pong 200000
		without=$((without + took))
		start_record --host -e offcpu -d 100 -o collapsed -f "$here/out.$round"
		took=0
		ping_pong 200000
		with=$((with + took))
		end_record INT
	done
	expect "throughput that is kept, %" "$(awk -v a=$without -v b=$with 'BEGIN { print 100 * a / b }')" '>=' 70
}

# Threads that sleep before the recording begins count from its beginning.
case_from_the_beginning() {
	need_offcpu
	sleep 4 &
	jvm=$!
	record -p $jvm -e offcpu --total -d 30 -o collapsed -f "$here/out"
	expect "sleep that the recording saw, ns" "$(total "$here/out")" '>=' 1000000000
	expect "the same" "$(total "$here/out")" '<=' 4000000000
	expect_contains "$here/out" 'nanosleep.*;\[sleep\] '
}

# Processes that are chosen by their name are prepared for the walk before the first sleep is sampled.
case_by_name() {
	need_offcpu
	cp "$workloads/sleeps" "$here/named-$$"
	touch "$here/gate"
	"$here/named-$$" "$here/gate" 60 >"$here/sleeps.out" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/sleeps.out" '^READY' 10
	record --comm "named-$$" -e offcpu=300us -d 1 -o collapsed -f "$here/out"
	expect_status 0
	expect "samples" "$(total "$here/out")" '>=' 300
	expect_lacks "$here/stderr" 'stacks? cut'
}

jdk_case_java() {
	need_offcpu
	local name
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Sleeps 6
	start_record -p "$jvm" -e offcpu=300us --signals always --total -t -d 100 \
		-o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	for name in inSleep inPark inWait inMonitor inSocket; do
		expect_sum "$here/out.collapsed" $name 2
		expect_state "$here/out.collapsed" $name \
			"Thread.run.*;workload/Sleeps.waits.*;workload/Sleeps.$name[;_].*;\\[(futex|socket|poll)\\] " 98
	done
	grep -E '\[in(Sleep|Park|Wait|Monitor|Socket) ' "$here/out.collapsed" >"$here/threads"
	expect "stacks with the thread's entry, %" \
		"$(share "$here/threads" '\];(__)?clone[0-9]*;.*Thread.run')" '>=' 99
}

run_cases "$@"
