#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
# The callers of code that HotSpot's compilers do not generate: stubs and intrinsics.
. "$(dirname "$0")/lib.sh"

entries='^[^;]*;(__clone3|clone3|__clone|clone|start_thread)'

# Counts the samples of the main thread below any of main()'s methods: all of them, except those between the rounds.
expect_right_callers() { # STUB...
	local method='workload/Stubs\.(copies|objects|casts|virtuals|interfaces|checksums|clocks|strings|'
	method+='maths|digests|encodings|arrays)'
	need_bpf
	start_jvm "$jdk" workload.Stubs 60
	warm_up 2
	record_cpu 2 -p "$jvm" -i 500us -t -v -o collapsed -f "$here/out"
	grep -E '^\[main tid=' "$here/out" >"$here/main"
	expect "samples of the main thread" "$(total "$here/main")" '>=' 500
	expect_share "of them rooted" "$(matching "$here/main" "$entries")" '>=' 99
	method="workload/Stubs\\.main;.*$method"
	expect_share "of them in the right caller" "$(matching "$here/main" "$method")" '>=' 98
	for stub; do
		expect "of them in $stub" "$(share "$here/main" "$stub")" '>=' 0.3
	done
}

jdk_case_stubs_in_the_right_caller() {
	expect_right_callers copies virtuals interfaces checksums clocks strings maths digests encodings arrays
}

# Not inlined: C1 keeps no record for a call that is not a safepoint.
jdk_case_stubs_of_c1() {
	JVM_OPTS=(-XX:TieredStopAtLevel=1 -XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,workload.Stubs::*")
	expect_right_callers copies casts virtuals interfaces checksums clocks strings maths digests encodings arrays
}

# HotSpot makes some stubs when they are first called, maybe after the agent has reported all others.
jdk_case_stubs_from_the_start() {
	local method='workload/Stubs\.(virtuals|interfaces)'
	need_bpf
	record -d 20 -i 100us -t -v -o collapsed -f "$here/out" -- \
		"$jdk/bin/java" -Dends=true -cp "$workloads" workload.Stubs 5
	expect_status 0
	grep -E "^\[main tid=.*$method" "$here/out" >"$here/main"
	expect "samples in calls of many receivers" "$(total "$here/main")" '>=' 100
	expect_share "of them rooted" "$(matching "$here/main" "$entries")" '>=' 97
}

# Many stubs share a blob. Read from outside, without the JVM's own events about its code.
jdk_case_names_from_outside() {
	local of
	need_bpf
	start_jvm "$jdk" workload.Stubs 60
	warm_up 2
	record_cpu 3 --agent never -p "$jvm" -i 500us -o collapsed -f "$here/out"
	expect "samples in vtable stubs" "$(grep -c 'Stubs[.]virtuals;vtable stub ' "$here/out")" '>' 0
	expect "samples in itable stubs" "$(grep -c 'Stubs[.]interfaces;itable stub ' "$here/out")" '>' 0
	expect_lacks "$here/out" 'virtuals;itable|interfaces;vtable|vtable chunks'
	for of in 'copies;.*(jbyte|jint|jlong).*_arraycopy' 'checksums;.*updateBytesCRC32' 'digests;.*_implCompress'; do
		expect "samples of $of" "$(matching "$here/out" "Stubs[.]$of" | cut -d ' ' -f 1)" '>' 0
	done
	expect_lacks "$here/out" ';StubRoutines|;Stub Generator'
}

run_cases "$@"
