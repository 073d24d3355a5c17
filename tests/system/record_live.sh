#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 120
# Bytes of objects that are still in use at the end, by the method that allocated them; other objects are not counted.
. "$(dirname "$0")/lib.sh"

bytes_of() { # FILE METHOD
	echo "$(matching "$1" "workload/Live[.]$2;byte\\[\\]_.i. ")"
}

# 5000 objects stay: five times as many as the limit of other profilers. All are sampled.
jdk_case_what_stays() {
	local told
	need_jdk 11 "sampling of allocations"
	record_gated workload.Live 50000 -- -e live=1k --engine ctimer
	told=$(bytes_of "$here/out.collapsed" keep)
	expect_near "bytes that stay" "${told% *}" "$(jvm_said BYTES)" $(($(jvm_said BYTES) / 100))
	told=$(bytes_of "$here/out.collapsed" drop)
	expect "bytes that do not" "${told% *}" == 0
	expect_lacks "$here/stderr" 'refused|dropped'
	expect_alive "$jvm"
}

# Each event has its own interval: of 500 MB about every 100,000th byte makes a sample of alloc. 5000 err by 1.4 %.
jdk_case_beside_alloc() {
	local told want
	need_jdk 11 "sampling of allocations"
	JVM_FLAGS=(-Xcheck:jni)
	record_gated workload.Live 25000 -- -e alloc=100k,live=2k --engine ctimer
	told=$(bytes_of "$here/out.collapsed" drop)
	want=$(jvm_said BYTES 3)
	expect_near "bytes allocated" "${told% *}" "$want" $((want * 8 / 100))
	told=$(bytes_of "$here/out.live.collapsed" keep)
	want=$(jvm_said BYTES 2)
	expect_near "bytes that stay" "${told% *}" "$want" $((want / 100))
	expect_lacks "$jvm_out" 'FATAL|WARNING.*JNI'
}

run_cases "$@"
