#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Time that Java threads wait for locks: as much as the waiting thread itself measures, in the right method, with the
# class of the lock.
. "$(dirname "$0")/lib.sh"

# What the JVM spins before it tells of a wait is missing. Every wait of the workload is longer than the interval.
rounds=40
tolerance=8

# One lock: how long the thread waited for it, and that no other lock is told of there.
expect_lock() { # FILE METHOD CLASS COLUMN
	local told all want
	told=$(matching "$1" "Waits[.]waitForAll;workload/Waits[.]$2;$3_.i. ")
	all=$(matching "$1" "Waits[.]waitForAll;workload/Waits[.]$2;")
	want=$(jvm_said WAITED "$4")
	expect_near "ns of $2" "${told% *}" "$want" $((want * tolerance / 100))
	expect_share "of them of its class" "${told% *} ${all% *}" ">=" 100
}

expect_truth() { # FILE
	expect_lock "$1" one 'workload[.]Waits[$]One' 2
	expect_lock "$1" two 'workload[.]Waits[$]Two' 3
	expect_lock "$1" four 'int\[\]' 4
	expect_share "walks to the end of Java's frames" "$(reported walked)" '>=' 99
	expect_lacks "$here/stderr" 'refused|dropped'
}

jdk_case_waits_and_classes() {
	need_bpf
	record_gated workload.Waits $rounds -- -e lock -t
	expect_truth "$here/out.collapsed"
	expect_share "of the thread that waits" "$(matching "$here/out.collapsed" '^.waiter tid=.*waitForAll')" '>=' 90
}

jdk_case_beside_cpu_and_alloc() {
	local events=cpu=1ms,lock
	[ "$(sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "$jdk/release")" -lt 11 ] || events+=,alloc=4k
	record_gated workload.Waits $rounds -- -e $events --engine ctimer
	expect_truth "$here/out.lock.collapsed"
	expect "CPU time, in ns" "$(total "$here/out.collapsed")" '>' 1000000
	expect_lacks "$here/out.collapsed" 'Waits[$]One_.i. '
}

jdk_case_virtual_threads() {
	need_jdk 21 "virtual threads"
	record_gated workload.Waits $rounds virtual -- -e lock -t --engine ctimer
	expect_truth "$here/out.collapsed"
	expect_share "of the virtual thread" \
		"$(matching "$here/out.collapsed" '^.waiter.*Continuation.*waitForAll')" '>=' 90
}

# Threads wait for a lock all the time while recordings begin and end, and JNI is checked.
jdk_case_start_and_stop() {
	JVM_OPTS=(-Xcheck:jni)
	start_jvm "$jdk" workload.Locks
	for _ in $(seq 12); do
		record -e lock=1 --total --engine ctimer -d 0.3 -p "$jvm" -o collapsed -f "$here/out.collapsed"
		expect_status 0
		expect "ns of waiting" "$(total "$here/out.collapsed")" '>' 0
		expect_share "for the lock" \
			"$(matching "$here/out.collapsed" 'Locks.fight;java[.]lang[.]Object_.i. ')" '>=' 99
	done
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI'
}

case_usage() {
	run_duet record -e lock --no-attach -p $$ -d 1
	expect_refusal 2 'lock comes from the agent'
	run_duet record -e lock=2s -p $$ -d 1
	expect_refusal 2 'from 1 ns to 1 s'
	run_duet list
	grep -q 'lock .*synchronized' "$here/stdout" || fail "duet list has no lock: $(cat "$here/stdout")"
}

run_cases "$@"
