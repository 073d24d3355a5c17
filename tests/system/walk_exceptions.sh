#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# BPF's walk while exceptions pass frames of all kinds: stacks begin in main(), and no level is missing.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skip walk_exceptions: x86-64 only"; exit 0; }

# Prints "N M": of M samples of main(), N have a wrong stack. A call stub belongs to the caller, which is in the stack
# twice.
out_of_order() { # FILE
	awk '/^\[(java|main) tid=/ {
		n = $NF
		all += n
		wrong = $0 !~ /workload\/Throws\.main/
		level = -1
		rest = $0
		while (match(rest, /Throws(\$Level)?\.level[0-9]+/)) {
			next_level = substr(rest, RSTART, RLENGTH)
			rest = substr(rest, RSTART + RLENGTH)
			sub(/.*level/, "", next_level)
			wrong = wrong || (next_level != level && next_level != level + 1)
			level = next_level + 0
		}
		hit += wrong * n
	} END { print hit + 0, all + 0 }' "$1"
}

expect_order() {
	need_bpf
	JVM_OPTS+=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.Throws*::level*')
	start_jvm "$jdk" workload.Throws 60
	sleep 2
	record -p "$jvm" -d 2 -i 100us -t -v -o collapsed -f "$here/out"
	expect_status 0
	expect_share "out of order" "$(out_of_order "$here/out")" '<=' 0.1
	expect_alive "$jvm"
}

jdk_case_c1() {
	JVM_OPTS=(-XX:TieredStopAtLevel=1)
	expect_order
}

jdk_case_c2() {
	JVM_OPTS=(-XX:-TieredCompilation)
	expect_order
}

jdk_case_interpreted() {
	JVM_OPTS=(-Xint)
	expect_order
}

# Without C2, which deoptimizes methods that are called in this way.
jdk_case_interpreted_between_compiled() {
	local level
	JVM_OPTS=(-XX:TieredStopAtLevel=1)
	for level in 1 4 8 10; do
		JVM_OPTS+=("-XX:CompileCommand=exclude,workload.Throws*::level$level")
	done
	expect_order
}

run_cases "$@"
