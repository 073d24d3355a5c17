#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# --holders: who held the lock during each part of each wait. The workload's threads write down who had which lock when.
. "$(dirname "$0")/lib.sh"

# BPF sees releases from the start of the recording on. The agent takes waits since it was attached, which may be long
# before on a busy machine.
releases_are_seen() {
	grep -qsE '^(tp_name|raw_tracepoint):.*sched_waking$' "/proc/$recorder/fdinfo"/*
}
gate_waits=releases_are_seen

# Prints how much of the waiting time that the workload knows is told of the same pair of threads, in %.
right() { # FILE
	awk 'FNR == NR { if ($1 == "PAIR") { want[$2 " " $3] = $4; all += $4 } next }
		/\[held by\]/ {
			waiter = $1
			sub(/^\[/, "", waiter)
			weight = $NF
			sub(/ [0-9]+$/, "")
			sub(/.*;/, "")
			told[waiter " " $0] += weight
		}
		END {
			for (pair in want)
				sum += told[pair] < want[pair] ? told[pair] : want[pair]
			printf "%.2f\n", all ? 100 * sum / all : 0
		}' "$jvm_out" "$1"
}

expect_holders() { # FILE PATTERN-OF-HOLDERS
	expect "waiting time under its holder, %" "$(right "$1")" '>=' 99
	grep -E '^.phil-.*[[]held by[]]' "$1" >"$here/held"
	expect "of which with the holder's stack, %" \
		"$(share "$here/held" "\\[held by\\];.*futex.*;$2.*run.*;phil-.")" '>=' "${stacks:-99}"
	grep '^.phil-' "$1" >"$here/waits"
	expect "waiting time with a holder, %" "$(share "$here/waits" '\[held by\]')" '>=' 98
	expect_lacks "$here/stderr" 'refused|dropped|without a name'
}

# Before JDK 24, the first thread that waits looks again by itself, after 1 ms and then after longer times: when it then
# takes the lock while it is awake, nobody has woken it, and only the name of the holder is known.
jdk_case_philosophers_with_monitors() {
	local stacks
	need_bpf
	is_jdk 24 || stacks=50
	record_gated workload.Holders monitor 300 -- -e lock --holders -t
	expect_holders "$here/out.collapsed" '.*workload/Holders[$]Philosopher.monitor;'
	expect_contains "$here/out.collapsed" 'Philosopher.monitor;workload.Holders[$]Fork_.i.;\[held by\];'
}

# Who is given the lock on the way to sleep, while another thread has the CPU, has not slept: nobody has woken that
# thread, and only the name of the holder is known. On a busy machine one such wait may be 2 % of the time.
jdk_case_philosophers_with_locks() {
	local stacks=95
	need_bpf
	record_gated workload.Holders lock 300 -- -e lock --holders -t
	expect_holders "$here/out.collapsed" '.*ReentrantLock.unlock;workload/Holders[$]Philosopher.lock;'
}

jdk_case_philosophers_with_mutexes() {
	need_bpf
	record_gated workload.Holders native 300 -- -e nativelock --holders -t
	expect_holders "$here/out.collapsed" '.*workload/Holders.drop;workload/Holders[$]Philosopher.mutex;'
}

jdk_case_one_keeper_and_three_who_wait() {
	need_bpf
	record_gated workload.Holders monitor 300 keeper -- -e lock,wall --holders --total -t
	expect_holders "$here/out.collapsed" '.*workload/Holders[$]Philosopher.monitor;'
}

# A wait in parts is several samples, in each format that can be read.
jdk_case_files() {
	local format
	need_bpf
	taps_format=duet record_gated workload.Holders monitor 300 keeper -- -e lock --holders
	run_duet convert --total "$here/out.duet" "$here/want.collapsed"
	expect_status 0
	for format in html jfr pb.gz otlp; do
		run_duet convert "$here/out.duet" "$here/again.$format"
		expect_status 0
		run_duet convert --total "$here/again.$format" "$here/again.collapsed"
		expect_status 0
		expect "ns in $format" "$(total "$here/again.collapsed")" == "$(total "$here/want.collapsed")"
	done
}

# A JFR file has the thread that held the monitor, and the stack of the one that waited alone.
jdk_case_flight_recorder() {
	need_bpf
	local taps_format=jfr known all
	[ -x "$jdk/bin/jfr" ] || skip "no jfr in $jdk"
	record_gated workload.Holders monitor 100 -- -e lock --holders
	jfr print --stack-depth 64 --events jdk.JavaMonitorEnter "$here/out.jfr" >"$here/events" ||
		fail "jfr does not read the file"
	all=$(grep -c '^jdk.JavaMonitorEnter' "$here/events")
	known=$(grep -c 'previousOwner = "phil-' "$here/events")
	expect "waits" "$all" '>' 200
	expect_share "with the thread that held the monitor" "$known $all" '>=' 95
	expect "with the monitor's address" "$(grep -c 'address = 0x0*[1-9A-F]' "$here/events")" == "$all"
	expect_lacks "$here/events" 'held by|futex'
	expect_holders_read_back
}

# What duet reads from its file is what it has recorded.
expect_holders_read_back() {
	run_duet convert "$here/out.jfr" "$here/back.collapsed"
	expect_status 0
	expect_share "of the waiting time with the holder" \
		"$(matching "$here/back.collapsed" ';[[]held by[]];.*phil-.')" '>=' 95
	expect_share "and its stack, which a monitor taken while awake has not before JDK 24" \
		"$(matching "$here/back.collapsed" ';[[]held by[]];.*Philosopher.run.*;phil-.')" '>=' 60
}

case_usage() {
	run_duet record -e cpu --holders -p $$ -d 1
	expect_refusal 2 'add -e lock or -e nativelock'
	run_duet record -e lock --holders --engine ctimer -p $$ -d 1
	expect_refusal 2 'does not see who releases a lock'
}

run_cases "$@"
