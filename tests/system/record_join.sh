#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
# How many samples of Java threads are joined with their Java half, by the closing report, on every JDK.
. "$(dirname "$0")/lib.sh"

# Demo has every kind of frame; its Java threads are most of its samples.
expect_joined() { # PERCENT CPU_SECONDS RECORD-OPTIONS...
	local floor=$1
	shift
	need_bpf
	start_jvm "$jdk" shop.Demo
	warm_up 3 # the first seconds belong to the compilers
	record_cpu "$@" -p "$jvm" -v -o collapsed -f "$here/out"
	expect_file "$here/out"
	expect_share "joined" "$(reported joined)" '>=' "$floor"
	expect_alive "$jvm"
}

jdk_case_joined_100hz() {
	expect_joined 99.5 12 --freq 100
}

jdk_case_joined_2khz() {
	expect_joined 99 4 -i 500us
}

# One stack from the kernel to the thread's entry, with every kind of frame between.
jdk_case_one_stack() {
	need_bpf
	start_jvm "$jdk" shop.Demo
	warm_up 3
	record_cpu 1 -p "$jvm" -i 250us -a -t -o collapsed -f "$here/out"
	expect_contains "$here/out" \
		'^\[journal[^;]*;.*shop/Worker\.run_\[[0ij]\];.*shop/Journal\.append_\[[0ij]\];.*_\[k\] [0-9]+$'
	local compress='^\[archiver[^;]*;.*shop/Archiver\.compress_\[[0ij]\];'
	expect_contains "$here/out" "$compress"'.*/Deflater\.deflate[^;]*;[^/;]*(libz|deflate)[^;]*( [0-9]+$|;)'
	expect_contains "$here/out" '^\[pricing[^;]*;.*shop/Pricing\.averages_\[[0ij]\];.*java/util/stream/'
	expect_contains "$here/out" '^\[cashier-[123][^;]*;.*shop/Till\.take_\[[0ij]\]'
}

# Methods are compiled again, threads end and classes are loaded: samples are still joined.
jdk_case_joined_from_the_first_second() {
	need_bpf
	start_jvm "$jdk" shop.Demo
	record_cpu 4 -p "$jvm" -i 500us -v -o collapsed -f "$here/out"
	expect_share "joined" "$(reported joined)" '>=' 98
}

run_cases "$@"
