#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Other events than CPU time: the counts are what the workload has done, in the functions that did it.
. "$(dirname "$0")/lib.sh"

record_events() { # EVENTS WORKLOAD-ARGUMENTS...
	local events=$1
	shift
	rm -f "$here"/out* "$here/gate" "$here/events.out"
	jvm_out=$here/events.out
	"$workloads/events" "$here/gate" "$@" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record --no-attach -p "$jvm" -e "$events" --total -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
	# Short parts in the dynamic linker and at the exit may be walked by frame pointers.
	expect "stacks with a loss" "$(sed -n 's/.*lost: \([0-9]*\) .*/\1/p' "$here/stderr" | sort -n | tail -n 1 |
		grep . || echo 0)" '<=' 20
}

amount() { # FILE PATTERN
	local both
	both=$(matching "$1" "$2")
	echo "${both% *}"
}

# Each page is touched once. A machine short of memory may evict a page and read it again. After a run that the
# hypervisor has interrupted for long, BPF rests for as long: the faults of that time are counted by the next sample,
# which may be in the other function.
case_page_faults() {
	local rested
	need_bpf
	record_events page-faults faults 20000
	rested=$((80001 - $(reported_samples)))
	rested=$((rested > 0 ? rested : 0))
	expect "faults that are no sample of their own" "$rested" '<=' 4000
	expect_near "faults in one_page" "$(amount "$here/out.collapsed" 'main;.*one_page')" 20000 $((20 + rested))
	expect_near "faults in three_pages" "$(amount "$here/out.collapsed" 'main;.*three_pages')" 60000 \
		$((60 + rested))
}

# Each page that is touched for the first time is 4 KiB.
case_resident_memory() {
	need_bpf
	record_events rss=64k faults 20000
	expect_near "MB in one_page and three_pages" \
		"$(awk "BEGIN { print $(amount "$here/out.collapsed" 'one_page|three_pages') / 1e6 }")" 327.7 10
}

# The workload maps 4 MiB for every 256 rounds.
case_address_space() {
	need_bpf
	record_events mmap=1 faults 20480
	expect "bytes" "$(amount "$here/out.collapsed" 'main;.*mmap')" '==' $((80 * 4 << 20))
}

# One fault in 7 on average: 80,000 faults give 11,400 samples, whose share has an error of 0.6 %; five times that is 3
# %.
case_page_faults_seldom() {
	need_bpf
	record_events page-faults=7 faults 20000
	expect "samples" "$(grep -oE '[0-9]+ samples in' "$here/stderr" | head -n 1)" '<' 20000
	expect_near "faults" "$(amount "$here/out.collapsed" 'one_page|three_pages')" 80000 800
	expect_near "of them in one_page, %" "$(share "$here/out.collapsed" one_page)" 25 3
}

# Two threads fault in turn: a fixed step would sample only one of them.
expect_turns() { # INTERVAL
	local ping pong told
	record_events "context-switches=$1" switches 20000
	ping=$(jvm_said SWITCHES) pong=$(jvm_said SWITCHES 3)
	grep ';p[io]ng' "$here/out.collapsed" >"$here/pipe"
	told=$(total "$here/pipe")
	expect "switches of both, as the threads say" $((ping + pong)) '>=' 20000
	expect_near "switches of both, one sample for $1" "$told" $((ping + pong)) $(((ping + pong) / 50 + 50))
	expect_near "of them in ping, %" \
		"$(share "$here/pipe" ';ping')" \
		"$(awk -v one="$ping" -v other="$pong" 'BEGIN { print 100 * one / (one + other) }')" 5
}

case_context_switches() {
	need_bpf
	expect_turns 1
	expect_turns 2
	expect "of them in the kernel's pipe, %" "$(share "$here/pipe" 'pipe_(read|write)_.k..*schedule_.k.')" '>' 25
}

# The samples' CPU time is between what the thread has used and the time for which it had a CPU, in which the hypervisor
# may have run something else. Chance allows for n ticks of a thread that has a CPU for a part p of the time five times
# sqrt(n (1 - p)), and 1 %.
expect_cpu_time() { # INTERVAL_NS
	local burnt wall had told by
	burnt=$(jvm_said BURNT) wall=$(jvm_said BURNT 3) had=$(jvm_said BURNT 4)
	told=$(total "$here/out.collapsed")
	by=$(awk -v burnt="$burnt" -v wall="$wall" -v interval="$1" 'BEGIN {
		n = burnt / interval
		print 1 + 500 * sqrt(n * (burnt < wall ? 1 - burnt / wall : 0) + 1) / n }')
	told=$(awk -v told="$told" -v burnt="$burnt" 'BEGIN { print 100 * told / burnt }')
	expect "CPU time that samples tell of, % of what was used" "$told" '>=' "$(awk "BEGIN { print 100 - $by }")"
	expect "the same" "$told" '<=' "$(awk "BEGIN { print 100 * $had / $burnt + $by }")"
}

# The clock's ticks are neither lost nor counted twice beside some 100,000 runs a second for another event.
case_cpu_time_beside_another() {
	need_bpf
	record_events cpu=997us,page-faults storm 4
	# There are fewer than 800,000 where a fault and its sample take more than the 5 us between two.
	expect "page faults, as the program says" "$(jvm_said FAULTS)" '>' 40000
	expect_near "page faults" "$(amount "$here/out.page-faults.collapsed" one_page)" "$(jvm_said FAULTS)" \
		$(($(jvm_said FAULTS) / 20))
	expect_cpu_time 997000
}

# The clock's ticks interrupt the program that takes the other event's sample. Both samples stay whole: all system calls
# have the one stack that makes them, and no stack has parts of both functions.
case_system_calls_beside_the_clock() {
	need_bpf
	record_events cpu=97us,syscalls calls 100000
	# No sample counts the events of a rest at the end, see page_faults.
	expect_near "system calls" "$(amount "$here/out.syscalls.collapsed" ';ask;')" 100000 2000
	expect "different stacks of them" "$(grep -c ';ask;' "$here/out.syscalls.collapsed")" '==' 1
	expect_contains "$here/out.syscalls.collapsed" ';main;(run;)?(calls;)?(ask;){61}syscall [0-9]*$'
	expect_lacks "$here/out.syscalls.collapsed" ';burn[; ]|_\[k\]'
	expect_cpu_time 97000
	expect_lacks "$here/out.collapsed" ';ask;.*;burn[; ]|;burn;.*;ask[; ]'
	grep -E '_bpf_trace_sys_enter|bpf_trace_run' "$here/out.collapsed" | grep ';ask;' >"$here/inside"
	expect "ticks within the other program" $(($(total "$here/inside") / 97000)) '>' 100
	expect_lacks <(grep -vE 'main;(run;)?(calls;)?(ask;){61}syscall;' "$here/inside") .
	grep ';burn[; ]' "$here/out.collapsed" >"$here/burn"
	expect_share "ticks in the function that computes with all its callers" \
		"$(matching "$here/burn" ';main;(run;)?(calls;)?(burn;)*burn( |;[^;]*_.k.)')" '>=' 99.9
}

# One in 7 on average. Up to 13 events a CPU, those since its last sample, are missing at the end.
case_system_calls_seldom() {
	need_bpf
	record_events syscalls=7 calls 20000
	expect "samples" "$(grep -oE '[0-9]+ samples in' "$here/stderr" | head -n 1)" '<' 20000
	expect_near "system calls" "$(amount "$here/out.collapsed" ';ask;')" 20000 $((13 * $(nproc)))
}

# A recording of several events has a file for each, or one with all of them.
case_files() {
	need_bpf
	record -e cpu=1ms,page-faults -o collapsed,text=full -f "$here/out" -- "$workloads/events" "$here" faults 2000
	expect_status 0
	expect_file "$here/out.collapsed"
	expect_file "$here/out.page-faults.collapsed"
	expect_contains "$here/out.full.txt" '^event +: cpu every 1 ms, page-faults every 1$'
	expect_contains "$here/out.full.txt" '^=== cpu: [0-9]+ ns, [0-9]+ samples? ===$'
	expect_contains "$here/out.full.txt" '^=== page-faults: [0-9]+ page-faults, [0-9]+ samples ===$'
	run_duet record -e cpu,page-faults -o collapsed -d 1 -p $$
	expect_refusal 2 'give -f FILE'
}

# A thread that is switched out is never signalled: its system call would end with EINTR. The walk gives its Java
# frames.
jdk_case_java_frames() {
	need_bpf
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.SystemCalls 3
	start_record -p "$jvm" -e context-switches --signals always -d 60 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	[ "$(jvm_said EINTR) $(jvm_said EINTR 3) $(jvm_said EINTR 4)" = '0 0 0' ] ||
		fail "system calls were interrupted: $(grep ^EINTR "$jvm_out")"
	expect_share "switches in the native method that have its Java caller" \
		"$(grep 'Java_workload_SystemCalls_interrupted' "$here/out.collapsed" >"$here/native"
			matching "$here/native" 'SystemCalls.main.*SystemCalls.interrupted')" '>=' 99
	expect "switches in the native method" "$(total "$here/native")" '>' 100
}

# No call is interrupted, whatever other events do. At a million calls a second, the samples that are left out in favour
# of the thread are counted by the next one.
jdk_case_java_system_calls() {
	need_bpf
	local calls
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.SystemCalls 2
	start_record -p "$jvm" -e cpu=1ms,syscalls --signals always -d 60 -o collapsed --total -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	[ "$(jvm_said EINTR) $(jvm_said EINTR 3) $(jvm_said EINTR 4)" = '0 0 0' ] ||
		fail "system calls were interrupted: $(grep ^EINTR "$jvm_out")"
	calls=$(jvm_said CALLS)
	grep 'Java_workload_SystemCalls_interrupted' "$here/out.syscalls.collapsed" >"$here/native"
	expect_near "system calls of the native method" "$(total "$here/native")" "$calls" $((calls / 50))
	expect_share "of them with the method's Java caller" \
		"$(matching "$here/native" 'SystemCalls.main.*SystemCalls.interrupted')" '>=' 99
}

run_cases "$@"
