#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Threads that wait for mutexes and read-write locks of native code: for as long as they measure themselves.
. "$(dirname "$0")/lib.sh"

waited_in() { # FILE FUNCTION LEAF
	local told
	told=$(matching "$1" "workload/NativeLocks.contend.*;wait_$2;(__)?pthread_$3 ")
	echo "${told% *}"
}

# 8 us more than the threads' own measure, each time: what the clock and the walk take.
expect_wait() { # WHAT GOT COLUMN
	local want
	want=$(jvm_said WAITED "$3")
	expect "$1, as the threads measure it" "$want" '>' 50000000
	expect_near "$1" "$2" "$want" $((want * 4 / 100))
}

expect_waits() { # FILE
	local told
	expect_wait "waits for a mutex" "$(waited_in "$1" mutex mutex_lock)" 2
	expect_wait "waits with a limit" "$(waited_in "$1" mutex_timed mutex_timedlock)" 3
	expect_wait "waits to read" "$(waited_in "$1" read rwlock_rdlock)" 4
	expect_wait "waits to write" "$(waited_in "$1" write rwlock_wrlock)" 5
	told=$(matching "$1" 'native_thread;.*wait_mutex;(__)?pthread_mutex_lock ')
	expect_wait "waits of threads without Java" "${told% *}" 6
	expect_lacks "$here/stderr" 'refused|dropped|full'
	expect_lacks "$1" 'libduet|hook_'
	expect "locks that are not as POSIX says" "$(jvm_said BROKEN)" == 0
}

jdk_case_waits() {
	record_gated workload.NativeLocks 60 2000 -- -e nativelock --engine ctimer
	expect_waits "$here/out.collapsed"
	expect "ps that a free lock costs more" "$(jvm_said EXTRA)" '<' 30000
	expect_alive "$jvm"
}

# Beside BPF, and at an interval that is longer than most waits: right on average.
jdk_case_beside_cpu() {
	need_bpf
	record_gated workload.NativeLocks 60 2000 -- --nativelock 50us --nativemem 64k --cpu -i 1ms
	expect_waits "$here/out.nativelock.collapsed"
}

# A thread that still waits at the end has waited up to there.
jdk_case_waits_over_the_end() {
	local told
	JVM_FLAGS=(-Dlong=true)
	record_gated workload.NativeLocks 1 1 -- --nativelock 1ms --engine ctimer
	told=$(matching "$here/out.collapsed" 'wait_mutex;(__)?pthread_mutex_lock ')
	expect "waits, in ns" "${told% *}" '>' 400000000
}

# Hooks come and go while threads wait.
jdk_case_start_and_stop() {
	JVM_OPTS=(-Dcycles=true -Xcheck:jni)
	start_jvm "$jdk" workload.NativeLocks
	wait_for_line "$jvm_out" '^HOOKED false' 60
	for _ in $(seq "${CYCLES:-6}"); do
		start_taps -p "$jvm" --nativelock 1us --nativemem 4k --engine ctimer
		: >"$jvm_out"
		wait_for_line "$jvm_out" 'HOOKED true' 60
		end_record INT
		expect_status 0
		expect "waits, in ns" "$(total "$here/out.collapsed")" '>' 0
		: >"$jvm_out"
		wait_for_line "$jvm_out" 'HOOKED false' 60
	done
	expect_alive "$jvm"
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI'
}

case_usage() {
	run_duet record --nativelock -1us -p $$ -d 1
	expect_refusal 2 '--nativelock -1us: a number above 0'
	run_duet record -e nativelock --no-attach -p $$ -d 1
	expect_refusal 2 'nativelock comes from the agent'
}

run_cases "$@"
