#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Threads that sleep over the end of a recording or of a window: each is there with all its time, once.
. "$(dirname "$0")/lib.sh"

need_offcpu() {
	need_bpf
	"$duet" check 2>&1 | grep -qE 'yes +time off CPU' || skip "this kernel has no hook for sleeps"
}

start_parked() { # ARGS...
	jvm_out=$here/parked.out
	"$workloads/parked" "$@" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
}

# Prints "THREADS LEAST MOST": the number of threads of this name, and the sums of those with the least and the most.
sums() { # FILE NAME
	awk -v name="$2" 'match($0, "\\[" name "[^ ]*") { sum[substr($0, RSTART, RLENGTH)] += $NF }
		END { for (thread in sum) {
				threads++
				least = threads == 1 || sum[thread] < least ? sum[thread] : least
				most = sum[thread] > most ? sum[thread] : most
			}
			printf "%d %.0f %.0f\n", threads, least, most }' "$1"
}

# Expects that each of the threads has the same time, which is that of the recording or of the window.
expect_all() { # FILE NAME COUNT MS
	local threads least most
	read -r threads least most < <(sums "$1" "$2")
	expect "threads in $(basename "$1")" "$threads" == "$3"
	expect "time of the one with the least, % of the most" "$(awk "BEGIN { print 100 * $least / $most }")" '>=' 99.9
	expect_near "time of each, ms" "$(awk "BEGIN { print $most / 1000000 }")" "$4" "$(($4 / 10))"
}

# How long the recording took, in ms: it ends late where others want the CPU.
recorded_ms() {
	sed -nE 's/.* samples in ([0-9]+)\.([0-9]) s .*/\1\200/p' "$here/stderr"
}

case_over_the_whole() {
	need_offcpu
	start_parked 1000
	record --no-attach -p $jvm -e offcpu --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	expect_all "$here/out" parked_ 1000 "$(recorded_ms)"
	for name in in_poll in_read in_futex; do
		grep -F ";$name;" "$here/out" >"$here/in"
		expect "threads $name" "$(wc -l <"$here/in")" '>=' 333
		expect "of which whole, %" "$(share "$here/in" '\];\[idle\];(__)?clone[0-9]*;.*;waits;in_')" '>=' 99.9
	done
	expect_contains "$here/out" ';in_poll;.*;\[poll\] '
	expect_contains "$here/out" ';in_read;.*;\[pipe\] '
	expect_contains "$here/out" ';in_futex;.*;\[futex\] '
	expect_contains "$here/stderr" 'lost: nothing'
	expect_lacks "$jvm_out" INTERRUPTED
}

# Each window has exactly its length of each thread, wherever a sleep begins and ends.
case_over_windows() {
	need_offcpu
	local file count=0
	start_parked 50
	record --no-attach --continuous -p $jvm -e offcpu --total -t --window 1 -d 4500ms \
		-o collapsed -f "$here/windows"
	expect_status 0
	for file in $(find "$here/windows" -type f -name 'profile_20*' | sort -V | head -n 4); do
		expect_all "$file" parked_ 50 1000
		count=$((count + 1))
	done
	expect "windows" $count == 4
	expect_lacks "$jvm_out" INTERRUPTED
}

# A part of a sleep that was reported at an edge is not reported again when the thread wakes.
case_told_once() {
	need_offcpu
	local told said
	record --no-attach --continuous -e offcpu --total -t --window 1 -o collapsed -f "$here/windows" \
		-- "$workloads/parked" 20 700 4
	expect_status 0
	cat $(find "$here/windows" -type f -name 'profile_20*') | grep -F '[napping_' >"$here/told"
	told=$(total "$here/told")
	said=$(awk '/^napping_/ { sum += $2 } END { print sum }' "$here/stdout")
	expect_near "time in all windows, % of what the threads have measured" \
		"$(awk "BEGIN { print 100 * $told / $said }")" 100 1
	expect "stacks with the thread's entry, %" "$(share "$here/told" '\];(__)?clone[0-9]*;.*;naps;')" '>=' 99.5
	expect_lacks "$here/told" '\[idle\]'
}

# The same of threads that have slept since before the recording, and wake in the second window.
case_asleep_before() {
	need_offcpu
	local file count=0
	start_parked 20 1700 30
	sleep 0.3
	record --no-attach --continuous -p $jvm -e offcpu --total -t --window 1 -d 4500ms \
		-o collapsed -f "$here/windows"
	expect_status 0
	for file in $(find "$here/windows" -type f -name 'profile_20*' | sort -V | head -n 4); do
		expect_all "$file" napping_ 20 1000
		count=$((count + 1))
	done
	expect "windows" $count == 4
	expect_contains "$here/stderr" 'lost: nothing'
}

# A read of this thread's stack hangs until the reader is killed. The recording continues, and has the other thread.
case_stack_that_hangs() {
	need_offcpu
	local from=$SECONDS
	start_parked trap
	! grep -q REFUSED "$jvm_out" || skip "the kernel refuses userfaultfd(2)"
	record --no-attach -p $jvm -e offcpu --total -t -d 1 -o collapsed -f "$here/out"
	expect_status 0
	expect "seconds that it took" $((SECONDS - from)) '<=' 20
	expect_all "$here/out" parked_ 1 "$(recorded_ms)"
	expect_contains "$here/stderr" 'not read: a file system or process did not answer|could not be read'
}

jdk_case_java() {
	need_offcpu
	start_jvm "$jdk" workload.Idle 200
	record -p "$jvm" -e offcpu --total -t -d 2 -o collapsed -f "$here/out"
	expect_status 0
	expect_all "$here/out" idle- 200 "$(recorded_ms)"
	grep -F '[idle-' "$here/out" >"$here/idle"
	expect "stacks with the thread's entry, %" "$(share "$here/idle" \
		'\];\[idle\];(__)?clone[0-9]*;.*Thread.run;.*CountDownLatch.await;.*Support.park;.*\[futex\] ')" '>=' 99
}

run_cases "$@"
