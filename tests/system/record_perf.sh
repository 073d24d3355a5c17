#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 700
# Engine perf: perf events on an ordinary user's own threads, with kernel frames where the kernel allows them.
# CAP_PERFMON allows what kernel.perf_event_paranoid <= 1 allows everybody: so no setting of the host is changed here.
. "$(dirname "$0")/lib.sh"

# A user id without other processes on this host: the limits count all processes of a user.
uid=64123
powerless=(setpriv --reuid=$uid --regid=$uid --clear-groups --inh-caps=-all --bounding-set=-all)
with_perfmon=(setpriv --reuid=$uid --regid=$uid --clear-groups --inh-caps=-all,+perfmon,+syslog
	--ambient-caps=-all,+perfmon,+syslog --bounding-set=-all,+perfmon,+syslog)

# From here on, duet and the JVM may open perf events that see the kernel, but no BPF.
become_perfmon() {
	need_root
	"${with_perfmon[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	JVM_AS=("${with_perfmon[@]}") DUET_AS=("${with_perfmon[@]}")
	run_duet check
	grep -q '^perf: ready' "$here/stdout" || skip "perf events are refused: $(grep -A1 '^perf' "$here/stdout")"
}

become_powerless() {
	need_root
	"${powerless[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	[ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ] || skip "kernel.perf_event_paranoid allows perf events"
	JVM_AS=("${powerless[@]}")
}

# It is chosen without --engine, and SIGPROF stays free.
jdk_case_automatic() {
	become_perfmon
	expect_contains "$here/stdout" 'will use perf$'
	start_jvm "$jdk" workload.FileIo 60
	warm_up 2
	record_cpu 2 -p "$jvm" -i 2ms -v -o collapsed -f "$here/out"
	expect_contains "$here/stderr" 'using the perf engine, .*CAP_BPF'
	expect_contains "$here/stderr" 'engine perf'
	expect_contains "$here/out" 'workload/FileIo\..*;[a-z0-9_]*(syscall|SYSCALL|el0_svc)[a-z0-9_]*_\[k\];.*_\[k\] '
	expect_share "walked to the entry" "$(reported walked)" '>=' 97
	((0x$(awk '/^SigCgt/ { print $2 }' "/proc/$jvm/status") & 1 << 26)) && fail "SIGPROF has a handler"
	expect "perf events left" "$(count_perf_events "$jvm")" '==' 0
	expect_alive "$jvm"
}

minor_faults() {
	proc_stat "$jvm" 10
}

# The samples are as many as the kernel counts for the process, each in its method; allocations are recorded beside
# them.
jdk_case_page_faults() {
	local before
	become_perfmon
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Pages 14
	start_record -p "$jvm" -d 90 -e page-faults=10,alloc --total -v -o collapsed -f "$here/out.collapsed"
	before=$(minor_faults)
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	before=$(($(minor_faults) - before))
	end_record INT
	expect_status 0
	expect_contains "$here/stderr" 'using the perf engine'
	expect "page faults of the process" "$before" '>' 20000
	expect_near "page faults" "$(total "$here/out.collapsed")" "$before" $((before / 20))
	expect_near "percent of them in three()" "$(share "$here/out.collapsed" 'Pages[.]three')" 75 4
	expect_near "percent of them in one()" "$(share "$here/out.collapsed" 'Pages[.]one')" 25 4
	expect_share "walked to the entry" "$(reported walked)" '>=' 97
	expect "perf events left" "$(count_perf_events "$jvm")" '==' 0
	expect_alive "$jvm"
}

# Only perf events can count them. A signal at a context switch would end system calls.
case_other_events() {
	become_powerless
	DUET_AS=("${powerless[@]}")
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 1 -e page-faults -o collapsed -f "$here/none"
	expect_refusal 1 'CAP_BPF'
	for event in context-switches syscalls cpu,page-faults; do
		record -p "$jvm" -d 1 -e $event --engine perf -o collapsed -f "$here/none"
		expect_refusal 2 'engine perf samples cpu, wall, offcpu or page-faults'
	done
	record -p "$jvm" -d 1 -e page-faults --engine ctimer -o collapsed -f "$here/none"
	expect_refusal 2 'engine ctimer samples cpu, wall, offcpu, and events that the JVM reports'
}

case_all_user() {
	become_perfmon
	start_jvm "$(any_jdk)" workload.FileIo 60
	record_cpu 1 -p "$jvm" -i 2ms --all-user -o collapsed -f "$here/out"
	expect_contains "$here/out" 'workload/FileIo'
	expect_lacks "$here/out" '_\[k\]'
}

# Engine perf is not chosen if it may not see the kernel, as half of the CPU time would be missing. If the user asks for
# it, the message names the cause.
case_refused() {
	become_powerless
	DUET_AS=("${powerless[@]}")
	start_jvm "$(any_jdk)" shop.Demo
	run_duet check
	expect_contains "$here/stdout" '^perf: not available'
	expect_contains "$here/stdout" 'sysctl kernel.perf_event_paranoid=1'
	expect_contains "$here/stdout" 'will use ctimer$'
	record -p "$jvm" -d 1 --engine perf -o collapsed -f "$here/none"
	expect_refusal 1 'kernel.perf_event_paranoid is .*--engine ctimer'
	record_cpu 1 -p "$jvm" -o collapsed -f "$here/out"
	expect_contains "$here/stderr" 'using the ctimer engine'
	expect_contains "$here/stderr" 'perf engine is refused, too: kernel.perf_event_paranoid'
}

# duet may open perf events, the JVM may not: it uses timers, which is reported. If perf was asked for, that is an
# error.
case_refused_in_the_jvm() {
	become_powerless
	DUET_AS=("${with_perfmon[@]}")
	start_jvm "$(any_jdk)" shop.Demo
	record_cpu 1 -p "$jvm" -o text=full -f "$here/out"
	expect_contains "$here/stderr" "JVM $jvm: its ticks are timers, .*: kernel.perf_event_paranoid"
	expect_contains "$here/out" '^engine of others +: ctimer in 1 JVM'
	expect_contains "$here/out" 'shop'
	record -p "$jvm" -d 1 --engine perf -o collapsed -f "$here/none"
	expect_refusal 1 "JVM $jvm: kernel.perf_event_paranoid"
	expect_alive "$jvm"
}

# Threads that end close their descriptors.
jdk_case_thread_churn() {
	become_perfmon
	start_jvm "$jdk" workload.Churn
	record_cpu 3 -p "$jvm" -i 1ms -o collapsed -f "$here/out"
	expect_contains "$here/out" 'workload/Churn\.live'
	expect "perf events left" "$(count_perf_events "$jvm")" '==' 0
	expect_alive "$jvm"
}

# A quarter of the descriptors stays free for the JVM. Each thread without ticks is counted once.
case_few_descriptors() {
	local events
	become_perfmon
	JVM_AS=(prlimit --nofile=200:200 "${with_perfmon[@]}")
	start_jvm "$(any_jdk)" workload.Idle 300
	start_record -p "$jvm" -d 60 -o collapsed -f "$here/out"
	sleep 1
	events=$(count_perf_events "$jvm")
	end_record INT
	expect_status 0
	expect "perf events of 200 descriptors" "$events" '>=' 100
	expect "perf events of 200 descriptors" "$events" '<=' 150
	expect "threads not sampled" \
		"$(sed -nE 's/.*lost: ([0-9]+) threads not sampled.*/\1/p' "$here/stderr")" '<=' 400
	expect "perf events left" "$(count_perf_events "$jvm")" '==' 0
	expect_alive "$jvm"
}

# Above the user's limit on locked memory threads have ticks, but no kernel frames.
case_little_locked_memory() {
	local threads
	become_perfmon
	JVM_AS=(prlimit --memlock=0:0 "${with_perfmon[@]}")
	threads=$((2 * $(nproc) * $(cat /proc/sys/kernel/perf_event_mlock_kb) / 8))
	[ "$threads" -le 2000 ] || skip "the limit is above 2000 threads"
	start_jvm "$(any_jdk)" workload.Idle "$threads"
	start_record -p "$jvm" -d 60 -o collapsed -f "$here/out"
	sleep 1
	end_record INT
	expect_status 0
	expect "threads without kernel frames" \
		"$(sed -nE 's/.*lost: ([0-9]+) threads without kernel frames.*/\1/p' "$here/stderr")" '>' 0
	expect_lacks "$here/stderr" 'not sampled'
	expect_alive "$jvm"
}

# A user who may queue no more signals: the kernel would send SIGIO in place of a queued one, and end the JVM.
case_no_queued_signals() {
	become_perfmon
	JVM_AS=(prlimit --sigpending=0:0 "${with_perfmon[@]}")
	start_jvm "$(any_jdk)" workload.FileIo 60
	record_cpu 2 -p "$jvm" -i 1ms -o collapsed -f "$here/out"
	expect_contains "$here/out" 'workload/FileIo'
	expect_contains "$here/out" '_\[k\] '
	expect_alive "$jvm"
}

# The JVM becomes another program while its threads tick, also in execve().
case_exec() {
	become_perfmon
	local round
	for round in 1 2 3; do
		JVM_OPTS=("-Dgate=$here/gate$round")
		start_jvm "$(any_jdk)" workload.SystemCalls exec /bin/sh -c \
			'echo BECAME; i=0; while [ $i -lt 500000 ]; do i=$((i+1)); done; echo LIVED'
		start_record -p "$jvm" -d 60 -i 1ms -o collapsed -f "$here/out"
		touch "$here/gate$round"
		wait_for_line "$jvm_out" '^LIVED' 20
		wait "$jvm" || fail "round $round: the new program ended with $?"
		end_record
		expect_status 0
	done
	jvms=()
}

run_cases "$@"
