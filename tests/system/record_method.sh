#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Calls of Java methods, by instrumenting them: as many as the workload makes, in the right method, by thread.
. "$(dirname "$0")/lib.sh"

# Calls of one method, by both threads: the second calls it twice as often as the first.
expect_calls() { # METHOD OF-THE-FIRST [FILE]
	local first second file=${3:-$here/out.collapsed}
	first=$(matching "$file" "^.first .*;workload/Calls[$]$1 ")
	second=$(matching "$file" "^.second .*;workload/Calls[$]$1 ")
	expect "calls of $1 by the first thread" "${first% *}" == "$2"
	expect "calls of $1 by the second thread" "${second% *}" == $((2 * $2))
}

# The agent waits for the loader: all classes that are loaded have been instrumented by then.
agent_waits() {
	local comm
	for comm in $(grep -lsx 'duet agent' "/proc/$jvm/task"/*/comm); do
		! grep -qsE '^(7|73) ' "${comm%comm}syscall" || return 0
	done
	return 1
}

# record_gated, but the gate opens when all is instrumented.
record_instrumented() { # WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	gate_waits=agent_waits record_gated "$@"
}

expect_sound_jvm() {
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING|Error|Re-registering'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI|Error'
	expect_lacks "$here/stderr" 'refused|dropped'
}

expect_all_calls() {
	expect_calls 'Target.plain' 200
	expect_calls 'Target.<init>' 200
	expect_calls 'Target.many' 100
	expect_calls 'Target.recursive' 400
	expect_calls 'Target.throwing' 100
	expect_calls 'Target.looping' 100
	expect_calls 'Target.locked' 100
	expect_calls 'Late.called' 100 "$here/out.workload_Calls_Late_called.collapsed"
}

# Late is loaded while it is recorded.
jdk_case_every_call() {
	JVM_FLAGS=(-Xverify:all -Xcheck:jni)
	record_instrumented workload.Calls 100 -- -e 'workload.Calls$Target.*,workload.Calls$Late.called' -t
	expect_all_calls
	expect "calls in all" "$(total "$here/out.collapsed")" == $((300 * 12))
	expect "SUM as without" "$(jvm_said SUM)" == 155910
	expect_share "walks to the end of Java's frames" "$(reported walked)" '>=' 99
	expect_sound_jvm
}

jdk_case_by_signature() {
	local target='workload.Calls$Target'
	record_instrumented workload.Calls 100 -- -t \
		-e "$target.plain(ILjava/lang/String;)I,$target.<init>(J),$target.many(I)V"
	expect_calls 'Target.plain' 100
	[ ! -s "$here/out.workload.Calls\$Target.many(I)V.collapsed" ] || fail "a wrong signature has calls"
	expect "SUM as without" "$(jvm_said SUM)" == 155910
}

jdk_case_beside_cpu() {
	record_instrumented workload.Calls 100 -- -e 'workload.Calls$Target.plain,cpu=1ms' -t --engine ctimer
	expect_calls 'Target.plain' 200
	expect_sound_jvm
}

# Native methods: one whose compiled code calls its function, one without a function so far, one of a class that is
# loaded later, and one of the platform. They get their arguments.
jdk_case_native_methods() {
	local class=workload.NativeCalls
	JVM_FLAGS=(-Xcheck:jni)
	record_instrumented workload.NativeCalls 2000 -- --engine ctimer \
		-e "$class.many,$class.length,$class\$Late.twice,java.lang.Runtime.gc"
	expect "calls of many" "$(total "$here/out.collapsed")" == 2000
	expect_share "from where it is called" \
		"$(matching "$here/out.collapsed" 'NativeCalls[.]callMany;workload/NativeCalls[.]many ')" '>=' 100
	expect "calls of length" "$(total "$here/out.workload_NativeCalls_length.collapsed")" == 2000
	expect "calls of twice" "$(total "$here/out.workload_NativeCalls_Late_twice.collapsed")" == 2000
	expect "calls of gc" "$(total "$here/out.java_lang_Runtime_gc.collapsed")" == 1
	expect "SUM" "$(jvm_said SUM)" == $((2000 * 1015 + 15 * 1999 * 1000 + 2000 * 4 + 1999 * 2000))
	expect_sound_jvm
	expect_lacks "$here/stderr" 'instrumented'
}

# One in 10, however they are distributed.
jdk_case_one_in_n() {
	record_instrumented workload.Calls 1000 -- -e 'workload.Calls$Target.recursive=10' --total
	expect "calls of recursive" "$(total "$here/out.collapsed")" == 12000
	expect_contains "$here/stderr" '^duet: 1200 samples'
}

jdk_case_virtual_threads() {
	need_jdk 21 "virtual threads"
	record_instrumented workload.Calls 100 virtual -- -e 'workload.Calls$*.*' -t
	expect_calls 'Target.recursive' 400
	expect_share "with the frames of a virtual thread" \
		"$(matching "$here/out.collapsed" 'Continuation.*Calls.callAll')" '>=' 99
	expect_sound_jvm
}

# Classes of the JDK, loaded before and while it is recorded, some of which the JVM itself runs.
jdk_case_patterns() {
	local pattern
	JVM_FLAGS=(-Xverify:all)
	for pattern in '*.*' '*.<init>' 'java.lang.*.<init>' 'java.lang.Thread.<in*'; do
		record_instrumented workload.Calls 30 -- -e "$pattern=100"
		expect "SUM with $pattern" "$(jvm_said SUM)" == 20705
		expect "calls of $pattern" "$(total "$here/out.collapsed")" '>' 0
		expect_sound_jvm
		kill "$jvm"
	done
}

# Every class of java.base can be verified with its methods instrumented.
jdk_case_verified() {
	need_jdk 9 "modules"
	JVM_FLAGS=(-Xverify:all)
	record_instrumented workload.Everything -- -e '*.*=1000000'
	expect "classes that were linked" "$(jvm_said LINKED)" '>' 5000
	expect "classes that were refused" "$(jvm_said LINKED 3)" == 0
}

# After each recording the code is as it was, and nothing of it is in the next one.
jdk_case_start_and_stop() {
	local before method other
	JVM_OPTS=(-Xcheck:jni)
	start_jvm "$jdk" workload.Changed
	wait_for_line "$jvm_out" '^CODE' 10
	before=$(jvm_said CODE)
	for i in $(seq 20); do
		method=step other=other
		[ $((i % 2)) = 0 ] || method=other other=step
		record -e "workload.Changed.$method" --engine ctimer -d 0.3 -p "$jvm" \
			-o collapsed -f "$here/out.collapsed"
		expect_status 0
		expect "calls of $method" "$(total "$here/out.collapsed")" '>' 0
		expect_lacks "$here/out.collapsed" "Changed.$other"
	done
	sleep 0.5
	expect "the code after all" "$(jvm_said CODE)" == "$before"
	grep '^CODE' "$jvm_out" | sort -u | grep -qv "$before" || fail "the code was never another one"
	expect_sound_jvm
}

case_usage() {
	local text
	for text in 'Foo.' '.foo' 'Foo.b*r' 'F*o.bar' 'Foo.bar(I' 'Foo.bar(X)V' 'Foo.bar(I)Vx' \
		"Foo.$(printf '%600s' | tr ' ' x)"; do
		run_duet record -e "$text" -p $$ -d 1
		expect_refusal 2 "not of the form|no signature|at most"
	done
	run_duet record -e 'Foo.bar=0' -p $$ -d 1
	expect_refusal 2 'above 0'
	run_duet record -e Foo.bar --no-attach -p $$ -d 1
	expect_refusal 2 'comes from the agent'
	run_duet list
	grep -q 'CLASS.METHOD.*calls' "$here/stdout" || fail "duet list has no methods: $(cat "$here/stdout")"
}

# Calls of a native method are counted, but not timed; a method that is not there has no calls.
jdk_case_nothing_to_count() {
	local method
	record_instrumented workload.Calls 10 -- --trace java.lang.System.nanoTime \
		-e 'java.lang.Runtime.gc,no.such.Class.method,workload.Calls.nosuch'
	expect "calls" "$(total "$here/out.collapsed")" == 0
	expect_contains "$here/stderr" '1 methods or classes not instrumented: native'
	for method in java[.]lang[.]Runtime[.]gc no[.]such[.]Class[.]method workload[.]Calls[.]nosuch; do
		expect_contains "$here/stderr" "$method: no call was recorded"
	done
	expect "SUM as without" "$(jvm_said SUM)" == 4551
}

# Some calls of such a method are not seen, whether it is native or not. This is told of each.
jdk_case_intrinsic() {
	need_jdk 9 "marks of intrinsic methods"
	record_instrumented workload.Calls 10 -- \
		-e 'java.lang.Math.abs(J)J,java.lang.System.nanoTime,workload.Calls$Target.plain' -t
	expect_contains "$here/stderr" 'lost: 2 intrinsic methods: calls that'
	expect_calls 'Target.plain' 20 "$here/out.workload_Calls_Target_plain.collapsed"
	expect_sound_jvm
}

run_cases "$@"
