#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Exceptions of Java: as many as the workload creates, where it does, with their class.
. "$(dirname "$0")/lib.sh"

expect_created() { # METHOD CLASS COUNT
	local created
	created=$(matching "$here/out.collapsed" "Exceptions[.]main;workload/Exceptions[.]$1;(.*;)?$2_.i. ")
	expect "$2 of $1" "${created% *}" == "$3"
}

expect_all() { # ROUNDS
	expect_created state 'java[.]lang[.]IllegalStateException' "$1"
	expect_created own 'workload[.]Exceptions[$]Own' $(($1 / 2))
	expect_created own 'workload[.]Exceptions[$]Deeper' $(($1 / 2))
	expect_created index 'java[.]lang[.]ArrayIndexOutOfBoundsException' "$1"
	expect_created again 'java[.]lang[.]NullPointerException' "$1"
	expect_lacks "$here/out.collapsed" '<init>;'
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING|Error|Re-registering'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI|Error'
	expect_lacks "$here/stderr" 'refused|dropped|instrumented'
}

jdk_case_every_one() {
	JVM_FLAGS=(-XX:-OmitStackTraceInFastThrow -Xverify:all -Xcheck:jni)
	record_gated workload.Exceptions 200 -- -e exceptions
	expect_all 200
}

# Compiled code; with an engine that walks native code, too, the JVM's frames are above those of Java.
jdk_case_beside_cpu() {
	JVM_FLAGS=(-XX:-OmitStackTraceInFastThrow)
	record_gated workload.Exceptions 20000 -- -e exceptions,cpu=1ms --engine ctimer
	expect_all 20000
}

# The JVM compiles the agent's own method, too, which has a name.
jdk_case_beside_compilations() {
	need_bpf
	record_gated workload.Exceptions 20000 -- -e exceptions,compilation
	expect_contains "$here/out.compilation.collapsed" 'DuetProbe'
	expect_lacks "$here/out.compilation.collapsed" '\[unknown\]'
}

case_usage() {
	run_duet record -e exceptions=0 -p $$ -d 1
	expect_refusal 2 'above 0'
	run_duet list
	grep -q 'exceptions .*creates' "$here/stdout" || fail "duet list has no exceptions: $(cat "$here/stdout")"
}

run_cases "$@"
