#!/bin/bash
# SPDX-License-Identifier: MIT
# The classes of the objects whose methods vtable and itable stubs look for. The workload calls methods of four classes
# in turn, so each has a quarter of the samples.
. "$(dirname "$0")/lib.sh"

start_calls() {
	start_jvm "$jdk" workload.Receivers
	warm_up 2
}

# Prints the samples of stacks whose last frames are METHOD, the stub, and the class.
samples_of() { # FILE METHOD STUB CLASS
	awk -v end="Receivers.$2;$3;workload.Receivers\$$4_[i]" '
		{ stack = $0; sub(/ [0-9]+$/, "", stack) }
		substr(stack, length(stack) - length(end) + 1) == end { sum += $NF }
		END { print sum + 0 }' "$1"
}

expect_quarters() { # FILE METHOD STUB
	local class count sum=0
	for class in A B C D; do
		sum=$((sum + $(samples_of "$1" "$2" "$3" $class)))
	done
	expect "samples in $3" "$sum" '>' 25
	for class in A B C D; do
		count=$(samples_of "$1" "$2" "$3" $class)
		expect "samples of $class in percent of the $sum in $3" $((count * 100 / sum)) '>' 3
		expect "samples of $class in percent of the $sum in $3" $((count * 100 / sum)) '<' 60
	done
	expect "samples in $3 without a class" "$(grep -c ";$3 [0-9]*\$" "$1")" == 0
	expect "other classes above $3" "$(grep -E ";$3;[^;]*_\\[i\\] " "$1" | grep -vc 'Receivers\$[A-D]_')" == 0
}

jdk_case_quarters() {
	need_bpf
	start_calls
	run_duet record -p "$jvm" -d 4 -e cpu -i 1ms --receivers -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect_quarters "$here/out.collapsed" virtual 'vtable stub'
	expect_quarters "$here/out.collapsed" ofInterface 'itable stub'
	run_duet record -p "$jvm" -d 1 -e cpu -i 1ms -o collapsed -f "$here/plain.collapsed"
	expect_lacks "$here/plain.collapsed" '_\[i\]'
}

# Class pointers of 8 bytes, and those in compact headers, where the JVM has them.
jdk_case_headers() {
	local option
	need_bpf
	for option in -XX:-UseCompressedClassPointers -XX:+UseCompactObjectHeaders; do
		"$jdk/bin/java" $option -version >/dev/null 2>&1 || continue
		JVM_OPTS=($option)
		start_calls
		run_duet record -p "$jvm" -d 4 -e cpu -i 1ms --receivers -o collapsed -f "$here/out.collapsed"
		expect_status 0
		expect_quarters "$here/out.collapsed" virtual 'vtable stub'
		kill -KILL "$jvm"
	done
}

# The word of async-profiler; JFR files have the class as the leaf.
case_asprof() {
	need_bpf
	need_root
	jdk=$(any_jdk)
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_calls
	"$here/asprof" -d 4 -e cpu -i 1ms -F vtable -o jfr -f "$here/out.jfr" "$jvm" >"$here/stdout" 2>"$here/stderr" ||
		fail "asprof failed: $(cat "$here/stderr")"
	run_duet convert "$here/out.jfr" "$here/jfr.collapsed"
	expect_quarters "$here/jfr.collapsed" virtual 'vtable stub'
	"$here/asprof" -d 1 -e ctimer -F vtable -o collapsed "$jvm" >"$here/out.collapsed" 2>"$here/stderr" ||
		fail "timers refuse the word: $(cat "$here/stderr")"
	expect_lacks "$here/out.collapsed" '_\[i\]'
}

run_cases "$@"
