#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 7200
# Starting and stopping an event again and again leaves nothing in a JVM: code, constants, metaspace, memory, threads,
# descriptors, mappings.
. "$(dirname "$0")/lib.sh"

cycles=${CYCLES:-1000}
events=(cpu alloc=64k live=64k lock=10us wait=10us nativemem=64k leak=64k nativelock=10us exceptions gc safepoint
	class-load compilation 'workload.Kept$Target.plain' java.lang.Runtime.freeMemory
	'trace:workload.Kept$Target.plain:1ms')

anonymous_kb() {
	awk '/^Anonymous/ { print $2 }' "/proc/$jvm/smaps_rollup"
}

# Prints the pieces of code of one native method, the constants, the bytes of metaspace, and what the kernel counts.
what_is_kept() {
	local token=${EPOCHREALTIME/./}
	echo "$token" >&"$commands"
	wait_for_line "$jvm_out" "^KEPT .* $token\$" 60
	echo "$(sed -n "s/^KEPT \(.*\) $token\$/\1/p" "$jvm_out") $(find "/proc/$jvm/fd" -mindepth 1 | wc -l)" \
		"$(grep -cvE '^(C[12] CompilerThre|GC Thread#|Sweeper)' <(cat "/proc/$jvm"/task/*/comm 2>/dev/null))" \
		"$(grep -cE 'duet|memfd' "/proc/$jvm/maps") $(anonymous_kb)"
}

# Old forms of a class that was changed stay until the JVM next unloads classes, and then make room for new ones: so the
# JVM collects every now and then, as it does by itself when metaspace has grown by some MB.
start_and_stop() { # EVENT CYCLES
	local left
	for ((left = $2; left > 0; left -= 50)); do
		"$DUET_BUILD/tests/system/agent_cycles" "$jvm" "$1" $((left < 50 ? left : 50)) \
			>"$here/stdout" 2>"$here/stderr" || fail "$1: $(cat "$here/stdout" "$here/stderr")"
		expect_alive "$jvm" "after $1"
		wait_for 30 sh -c "! grep -q memfd:duet /proc/$jvm/maps"
		what_is_kept >"$here/kept"
	done
}

# The first cycles make what stays once in a JVM: the helper class, its constants, memory that is used again.
leaves_nothing() { # EVENT FIRST-CYCLES CYCLES KB-OF-METASPACE KB-OF-MEMORY
	local before after
	start_and_stop "$1" "$2"
	before=($(<"$here/kept"))
	start_and_stop "$1" "$3"
	after=($(<"$here/kept"))
	echo "# $1: ${before[*]} | ${after[*]}"
	expect "pieces of code of one native method, $1" "${after[0]}" '<=' "${before[0]}"
	expect "constants, $1" "${after[1]}" == "${before[1]}"
	expect "bytes of metaspace, $1" "${after[2]}" '<=' $((before[2] + $4 * 1024))
	expect "descriptors, $1" "${after[3]}" '<=' "${before[3]}"
	expect "threads, $1" "${after[4]}" '<=' $((before[4] + 1)) # the JVM itself starts one now and then
	expect "mappings, $1" "${after[5]}" '<=' "${before[5]}"
	expect "KB of memory, $1" "${after[6]}" '<=' $((before[6] + $5))
}

start_kept() {
	local asked_for=java.base/jdk.internal
	need_jdk 12 "class by which a program sees its constants"
	mkfifo "$here/in"
	exec {commands}<>"$here/in"
	JVM_OPTS=(-Xms64m -Xmx64m -XX:+AlwaysPreTouch -XX:+UseSerialGC -XX:+EnableDynamicAgentLoading
		-XX:TieredStopAtLevel=1 --add-exports "$asked_for.access=ALL-UNNAMED"
		--add-exports "$asked_for.reflect=ALL-UNNAMED")
	JVM_IN=$here/in start_jvm "$jdk" workload.Kept
}

# The JVM itself keeps some 300 bytes of each attach: what it knows of its agents.
jdk_case_each_event() {
	local event
	start_kept
	for event in "${events[@]}"; do
		leaves_nothing "$event" 200 "$cycles" 64 3072
	done
	expect_lacks "$jvm_out" WRONG
}

# What grew in each recording would have grown by more than the tolerance.
jdk_case_some_events() {
	local event
	start_kept
	for event in lock=10us exceptions 'trace:workload.Kept$Target.plain:1ms' java.lang.Runtime.freeMemory; do
		leaves_nothing "$event" 3 12 512 4096
	done
	expect_lacks "$jvm_out" WRONG
}

run_cases "$@"
