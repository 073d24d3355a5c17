#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Time that Java threads wait for locks, or to be notified: as much as the waiting thread itself measures, in the right
# method, with the class of what it waits for.
. "$(dirname "$0")/lib.sh"

# Time in which a thread spins before the JVM reports its wait is missing. Every wait of the workload is longer than the
# interval.
rounds=40
tolerance=8

# Checks a wait: its time is between the two that the workload prints. On a busy machine, a thread may have no CPU
# before and after a wait, so its own clock is an upper bound.
expect_told() { # METHOD NS COLUMN
	expect "ns of $1" "$2" '<=' $(($(jvm_said WAITED "$3") * 102 / 100))
	expect "ns of $1" "$2" '>=' $(($(jvm_said LEAST "$3") * (100 - tolerance) / 100))
}

# Checks one lock: the time that the thread waited for it, and that its stacks have no other lock.
expect_lock() { # FILE METHOD CLASS COLUMN
	local told all
	told=$(matching "$1" "Waits[.]waitForAll;workload/Waits[.]$2;$3_.i. ")
	all=$(matching "$1" "Waits[.]waitForAll;workload/Waits[.]$2;")
	expect_told "$2" "${told% *}" "$4"
	expect_share "of them of its class" "${told% *} ${all% *}" ">=" 100
}

expect_locks() { # FILE
	expect_lock "$1" one 'workload[.]Waits[$]One' 2
	expect_lock "$1" two 'workload[.]Waits[$]Two' 3
	expect_lock "$1" four 'int\[\]' 4
	expect_lacks "$here/stderr" 'refused|dropped'
}

expect_truth() { # FILE
	expect_locks "$1"
	expect_share "walks to the end of Java's frames" "$(reported walked)" '>=' 99
}

jdk_case_waits_and_classes() {
	need_bpf
	record_gated workload.Waits $rounds -- -e lock -t
	expect_truth "$here/out.collapsed"
	expect_share "of the thread that waits" "$(matching "$here/out.collapsed" '^.waiter tid=.*waitForAll')" '>=' 90
}

# Checks one kind of wait in Parks: its time, and that all of it has the class.
expect_park() { # FILE METHOD CLASS COLUMN
	local told all
	told=$(matching "$1" "Parks[.]waitFor;workload/Parks[.]$2;.*;$3_.i. ")
	all=$(matching "$1" "Parks[.]waitFor;workload/Parks[.]$2;")
	expect_told "$2" "${told% *}" "$4"
	expect_share "of them of its class" "${told% *} ${all% *}" ">=" 100
}

expect_locks_that_park() { # FILE
	expect_park "$1" lock 'java[.]util[.]concurrent[.]locks[.]ReentrantLock[$]NonfairSync' 2
	expect_park "$1" write 'java[.]util[.]concurrent[.]locks[.]ReentrantReadWriteLock[$]NonfairSync' 3
	expect_park "$1" permit 'java[.]util[.]concurrent[.]Semaphore[$]NonfairSync' 4
	expect_lacks "$1" 'Parks[.](object|condition|queue|latch|waitForEver);'
}

expect_notices() { # FILE
	local queue='java[.]util[.]concurrent[.]locks[.]AbstractQueuedSynchronizer[$]ConditionObject' lasted
	expect_park "$1" object 'java[.]lang[.]Object' 5
	expect_park "$1" condition "$queue" 6
	expect_park "$1" queue "$queue" 7
	expect_park "$1" latch 'java[.]util[.]concurrent[.]CountDownLatch[$]Sync' 8
	expect_lacks "$1" 'Parks[.](lock|write|permit);'
	expect_lacks "$1" 'duet agent'
	# Checks the thread that is never notified: it waits until the end of the recording.
	lasted=$(matching "$1" "Parks[.]waitForEver;.*$queue")
	expect "ns of the wait that does not end" "${lasted% *}" '>=' $(($(jvm_said LASTED) * 95 / 100))
}

# The JVM ends after the recording and reports nothing.
jdk_case_locks_that_park() {
	record_gated workload.Parks 12 -- -e lock,wait -t --total
	expect_locks_that_park "$here/out.collapsed"
	expect_notices "$here/out.wait.collapsed"
	expect_lacks "$jvm_out" 'arning|Re-registering'
	expect_lacks "$here/stderr" 'refused|dropped'
}

jdk_case_waits_beside_cpu() {
	record_gated workload.Parks 12 -- -e cpu=1ms,wait -t --total --engine ctimer
	expect_notices "$here/out.wait.collapsed"
	expect_lacks "$here/out.wait.collapsed" 'Parks[.](lock|write|permit);'
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
	expect_locks "$here/out.collapsed"
	expect_share "of the virtual thread, from its entry on" \
		"$(matching "$here/out.collapsed" '^.waiter.*VirtualThread[.]run;.*waitForAll')" '>=' 90
	expect_lacks "$here/out.collapsed" 'frames_on_heap'
}

# Checks one kind of wait in VirtualParks, to 1 %. The program's clock also has the time from when it is read until the
# thread is parked. On a busy machine, that is a turn of another thread, 4 ms and more, so the waits are long.
expect_virtual() { # FILE METHOD CLASS COLUMN
	local told
	told=$(matching "$1" "VirtualThread[.]run;.*VirtualParks[.]$2;.*$3 ")
	expect_near "ns of $2" "${told% *}" "$(jvm_said WAITED "$4")" $(($(jvm_said WAITED "$4") / 100))
}

# Prints the time from the last change of one file to that of another.
ns_between() { # FILE FILE
	echo $(($(stat -c %.9Y "$2" | tr -d .) - $(stat -c %.9Y "$1" | tr -d .)))
}

# Most of these threads have no carrier while they wait. A sleep of a virtual thread is a park without an object.
jdk_case_virtual_threads_that_park() {
	local leaf='java[.]util[.]concurrent[.]' file lasted
	local queue="${leaf}locks[.]AbstractQueuedSynchronizer[$]ConditionObject_.i."
	need_jdk 21 "virtual threads"
	record_gated workload.VirtualParks 20 1 300 -- -e lock,wait --total --engine ctimer
	file=$here/out.collapsed
	expect_virtual "$file" lock "${leaf}locks[.]ReentrantLock[$]NonfairSync_.i." 2
	expect_virtual "$file" write "${leaf}locks[.]ReentrantReadWriteLock[$]NonfairSync_.i." 3
	expect_virtual "$file" permit "${leaf}Semaphore[$]NonfairSync_.i." 4
	expect_virtual "$file" monitor 'int\[\]_.i.' 5
	file=$here/out.wait.collapsed
	expect_virtual "$file" object 'java[.]lang[.]Object_.i.' 6
	expect_virtual "$file" condition "$queue" 7
	expect_virtual "$file" queue "$queue" 8
	expect_virtual "$file" latch "${leaf}CountDownLatch[$]Sync_.i." 9
	expect_virtual "$file" sleep 'java/lang/Thread[.]sleep;.*' 10
	lasted=$(matching "$file" "VirtualParks.waitForEver;.*$queue")
	expect "ns of the wait that does not end" "${lasted% *}" '>=' "$(jvm_said LASTED)"
	expect "ns of the same" "${lasted% *}" '<=' $(($(jvm_said LASTED) + $(ns_between "$jvm_out" "$file")))
	expect_lacks "$file" 'frames_on_heap'
	expect_lacks "$here/stderr" 'refused|dropped|not shown'
}

# Threads wait for a lock all the time while recordings begin and end, and JNI is checked.
jdk_case_start_and_stop() {
	JVM_OPTS=(-Xcheck:jni)
	start_jvm "$jdk" workload.Locks
	for _ in $(seq 12); do
		record -e lock=1,wait --total --engine ctimer -d 0.3 -p "$jvm" -o collapsed -f "$here/out.collapsed"
		expect_status 0
		expect "ns of waiting" "$(total "$here/out.collapsed")" '>' 0
		expect_share "for the lock" \
			"$(matching "$here/out.collapsed" 'Locks.fight;java[.]lang[.]Object_.i. ')" '>=' 99
	done
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI'
}

# The callbacks of a wait in native code that has many local references: JNI's checks take these for the callbacks' own.
jdk_case_in_native_code() {
	local told
	JVM_FLAGS=(-Xcheck:jni -Dreferences=true)
	record_gated workload.NativeLocks 1 100 -- -e lock --engine ctimer
	told=$(matching "$here/out.collapsed" 'NativeLocks[.]refer;.*java[.]lang[.]Object_.i. ')
	expect "ns of waiting" "${told% *}" '>' 100000000
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
