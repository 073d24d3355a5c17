#!/bin/bash
# SPDX-License-Identifier: MIT
# The CPU and the scheduling policy of samples: the workload is bound to one CPU, and has one policy.
. "$(dirname "$0")/lib.sh"

# Starts the workload on the last of the CPUs, with the policy SCHED_BATCH. Sets $cpu and $other.
start_bound() {
	cpu=$(($(nproc) - 1))
	other=$((cpu - 1))
	taskset -c "$cpu" chrt --batch 0 "$workloads/busy" 1 60 >"$here/busy" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/busy" '^READY' 10
}

need_two() {
	need_bpf
	[ "$(nproc)" -ge 2 ] || skip "there is one CPU"
	taskset -c "$(($(nproc) - 1))" true 2>/dev/null || skip "CPUs are not numbered from 0"
}

case_recorded() {
	need_two
	start_bound
	run_duet record -p "$jvm" -d 2 --no-attach --record-cpu --sched -t -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect "stacks without CPU, policy and thread" \
		"$(grep -cv "^\\[CPU-$cpu\\];\\[SCHED_BATCH\\];\\[busy tid=[0-9]*\\];" "$here/out.collapsed")" == 0
	expect "samples" "$(total "$here/out.collapsed")" '>' 5
	run_duet record -p "$jvm" -d 1 --no-attach --record-cpu -f "$here/out.jfr"
	run_duet convert "$here/out.jfr" "$here/jfr.collapsed"
	expect "stacks of a JFR file without the CPU" "$(grep -cv "^\\[CPU-$cpu\\];" "$here/jfr.collapsed")" == 0
	run_duet record -p "$jvm" -d 1 --no-attach -o collapsed -f "$here/out.collapsed"
	expect_lacks "$here/out.collapsed" 'CPU-|SCHED_'
}

case_chosen() {
	need_two
	start_bound
	run_duet record -p "$jvm" -d 2 --no-attach --target-cpu "$other" -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect "samples on another CPU" "$(total "$here/out.collapsed")" == 0
	run_duet record -p "$jvm" -d 2 --no-attach --target-cpu "$cpu" -o collapsed -f "$here/out.collapsed"
	expect "samples on its CPU" "$(total "$here/out.collapsed")" '>' 5
	run_duet record -p "$jvm" -d 1 --target-cpu x -o collapsed
	expect_refusal 2 'the number of one CPU'
	run_duet record -p "$jvm" -d 1 --engine ctimer --record-cpu -o collapsed
	expect_refusal 2 'record-cpu needs the bpf engine'
}

# The words of async-profiler.
case_asprof() {
	need_two
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_bound
	"$here/asprof" -d 2 -e cpu --record-cpu --target-cpu "$cpu" -o collapsed "$jvm" >"$here/out.collapsed" ||
		fail "asprof failed"
	expect "samples" "$(total "$here/out.collapsed")" '>' 5
	expect "stacks without the CPU" "$(grep -cv "^\\[CPU-$cpu\\];" "$here/out.collapsed")" == 0
	"$here/asprof" -d 1 -e ctimer --record-cpu "$jvm" >"$here/stdout" 2>"$here/stderr" &&
		fail "timers know no CPU"
	expect_contains "$here/stderr" 'record-cpu is only supported with perf_events'
}

run_cases "$@"
