#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# -e wall: each thread is recorded with all of its time, once, and no thread is woken for that.
. "$(dirname "$0")/lib.sh"

need_offcpu() {
	need_bpf
	"$duet" check 2>&1 | grep -qE 'yes +time off CPU' || skip "this kernel has no hook for sleeps"
}

start_workload() { # PROGRAM ARGS...
	jvm_out=$here/workload.out
	"$workloads/$1" "${@:2}" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
}

# Prints "THREADS LEAST MEAN": of threads of this name, their number, and the time of the one with the least and of the
# mean, as a percentage of SECONDS.
times() { # FILE NAME SECONDS
	awk -v name="$2" -v seconds="$3" 'match($0, "\\[" name "[^]]*\\]") { sum[substr($0, RSTART, RLENGTH)] += $NF }
		END { for (thread in sum) {
				threads++
				all += sum[thread]
				least = threads == 1 || sum[thread] < least ? sum[thread] : least
			}
			print threads + 0, least / seconds / 1e7, threads ? all / threads / seconds / 1e7 : 0 }' "$1"
}

# Sets $whole to the length of the recording in s, the time of the thread that has most. It is what -d asked for at
# least, and ends before the events are closed, which takes long on a busy machine.
measure() { # FILE SECONDS
	whole=$(awk 'match($0, /\[[^]]* tid=[0-9]*\]/) {
			thread = substr($0, RSTART, RLENGTH)
			sum[thread] += $NF
			most = sum[thread] > most ? sum[thread] : most
		}
		END { print most / 1e9 }' "$1")
	expect "the time of the thread that has most, s" "$whole" '>=' "$(awk "BEGIN { print $2 - 0.01 }")"
	expect "the same" "$whole" '<=' \
		"$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr" | awk '{ print $1 + 0.06 }')"
}

# Threads that sleep in every way for moments, or share a CPU.
case_all_time_once() {
	need_offcpu
	local threads least mean seconds
	start_workload sleeps "$here/gate" 11
	touch "$here/gate"
	sleep 1
	record --no-attach -p "$jvm" -e wall=300us --total -t -d 5 -o collapsed -f "$here/out"
	expect_status 0
	measure "$here/out" 5
	seconds=$(awk '/\[sleeps tid=[0-9]*\];\[idle\];/ { sum += $NF } END { print sum / 1e9 }' "$here/out")
	expect_near "the main thread's time, which waits for the others, s" "$seconds" "$whole" 0.05
	read -r threads least mean < <(times "$here/out" in_ "$seconds")
	expect "threads" "$threads" '>=' 11
	expect_near "time of a thread on average, % of the recording" "$mean" 100 1
	read -r threads least mean < <(times "$here/out" in_nanosleep "$seconds")
	expect_near "time of a thread that sleeps, %" "$mean" 100 3
	read -r threads least mean < <(times "$here/out" in_turns "$seconds")
	expect_near "time of threads that share a CPU, %" "$mean" 100 2
	grep -F '[in_turns' "$here/out" >"$here/turns"
	expect "of which on a CPU, %" "$(share "$here/turns" '(in_turns|waits)(;.*_\[k\])? ')" '>=' 10
	wait_for_line "$jvm_out" '^DONE' 30
	expect "calls that a signal interrupted" \
		"$(awk 'NF == 3 { sum += $3 } END { print sum + 0 }' "$jvm_out")" '==' 0
}

# Threads that wait in many ways, without end: each has all of its time, and what it waits for.
case_kinds_of_waits() {
	need_offcpu
	start_workload kinds
	record --no-attach -p "$jvm" -e wall --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	expect_lacks "$jvm_out" ENDED
	expect "kinds" "$(grep -c ^KIND "$jvm_out")" '>=' 22
	measure "$here/out" 3
	local _kind name state
	while read -r _kind name state; do
		expect_near "time of $name in $state, s" \
			"$(grep -F "[$name tid=" "$here/out" | awk -v leaf=";$state " 'index($0, leaf) { sum += $NF }
				END { print sum / 1e9 }')" "$whole" 0.1
	done < <(grep ^KIND "$jvm_out")
	grep -F '[iou-' "$here/out" >"$here/workers" || return 0
	expect_lacks "$here/workers" 'unmapped'
	expect "io_uring's threads that wait for work, %" "$(share "$here/workers" '\[idle\];')" '==' 100
	expect_lacks "$here/stderr" 'stacks? cut'
}

# Prints the context switches of all threads of a process.
switches() { # PID
	cat "/proc/$1/task"/*/status | awk '/ctxt_switches/ { sum += $2 } END { print sum }'
}

cpu_of_recorder() { # prints the user and system time of the last command, in s
	awk '{ print $1 + $2 }' "$here/cpu"
}

# Returns true when all threads sleep. On a busy machine that takes a while.
is_quiet() { # PID
	local before
	before=$(switches "$1")
	sleep 1
	[ "$(switches "$1")" = "$before" ]
}

record_parked() { # THREADS
	local before after
	start_workload parked "$1"
	wait_for 30 is_quiet "$jvm"
	before=$(switches "$jvm")
	TIMEFORMAT='%U %S'
	{ time record --no-attach -p "$jvm" -e wall --total -t -d 5 -o collapsed -f "$here/out"; } 2>"$here/cpu"
	expect_status 0
	after=$(switches "$jvm")
	expect "context switches of $1 parked threads" $((after - before)) == 0
}

# No thread is woken. The cost of a thread is to find it and to walk its stack at the end.
case_parked() {
	need_offcpu
	local threads least mean few
	record_parked 1
	few=$(cpu_of_recorder)
	record_parked 1000
	measure "$here/out" 5
	read -r threads least mean < <(times "$here/out" parked_ "$whole")
	expect "threads" "$threads" == 1000
	expect_near "time of the one with the least, %" "$least" 100 2
	expect_near "time of a thread on average, %" "$mean" 100 2
	expect_contains "$here/stderr" 'lost: nothing'
	expect "CPU time for each of them, us" \
		"$(awk "BEGIN { print ($(cpu_of_recorder) - $few) * 1000 }")" '<=' 200
}

jdk_case_java() {
	need_offcpu
	local threads least mean
	start_jvm "$jdk" workload.Idle 100 busy
	record -p "$jvm" -e wall --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	measure "$here/out" 3
	read -r threads least mean < <(times "$here/out" idle- "$whole")
	expect "threads that wait" "$threads" == 100
	expect_near "time of the one with the least, %" "$least" 100 2
	read -r threads least mean < <(times "$here/out" main "$whole")
	expect_near "time of the one that computes, %" "$mean" 100 10
	grep -F '[main ' "$here/out" >"$here/main"
	expect "its time on a CPU, in Java, %" "$(share "$here/main" 'Idle.main;workload/TwoBusy.spin')" '>=' 90
}

run_cases "$@"
