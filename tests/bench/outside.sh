#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table what a JVM notices of a recording that reads it from outside: the same work, a run of
# javac, by turns with and without one that begins with the JVM. The recording samples each 10 ms and has no agent.
#   ROUNDS=10 INTERVAL=10ms JDK=HOME
. "$(dirname "$0")/lib.sh"

rounds=${ROUNDS:-10}
interval=${INTERVAL:-10ms}
mapfile -t sources < <(grep -L one.profiler tests/workloads/*.java)
TIMEFORMAT='%U %S'

# Compiles the workloads. Sets $cpu to the seconds of CPU time of the JVM, its compilers and collectors among them, and
# $pause and $longest to the ms of all its safepoints and of the longest.
compile() {
	local seconds
	seconds=$( { time "$jdk/bin/javac" -J-Xlog:safepoint:file="$scratch/safepoints" -proc:none -nowarn \
		-d "$scratch" -cp "$workloads" "${sources[@]}" >"$scratch/javac.log" 2>&1; } 2>&1) ||
		die "javac: $(cat "$scratch/javac.log")"
	cpu=$(calculate "${seconds/ / + }")
	read -r pause longest < <(sed -n 's/.*Total: *\([0-9]*\) ns.*/\1/p' "$scratch/safepoints" |
		awk '{ sum += $1 } $1 > most { most = $1 } END { print sum / 1e6, most / 1e6 }')
}

note_compile() {
	compile
	note cpu_ms "$(calculate "1000 * $cpu")"
	note pause "$pause"
	note longest "$longest"
}

# Runs three times, the second one recorded.
one_turn() {
	local before with
	profiler=without note_compile
	before=$cpu
	start_record --host --no-attach -i "$interval" -o collapsed -f "$scratch/out"
	profiler=duet note_compile
	with=$cpu
	end_record INT
	[ "$status" = 0 ] || die "duet failed: $(cat "$scratch/stderr")"
	profiler=duet note methods \
		"$(sed 's/ [0-9]*$//' "$scratch/out" | tr ';' '\n' | grep '^com/sun/tools/' | sort -u | wc -l)"
	profiler=without note_compile
	profiler=duet note ratio "$(calculate "2 * $with / ($before + $cpu)")"
	profiler=without note ratio "$(calculate "$cpu / $before")"
}

[ -x "$jdk/bin/javac" ] || die "no javac in $jdk"
trap end_bench EXIT
kind=javac
settings=("duet $interval" "without $interval")
compile # reads the files into the page cache
for ((round = 1; round <= rounds; round++)); do
	progress "round $round of $rounds"
	one_turn
done
progress ""
describe_host | sed 's, of [0-9]* s:,:,'
head_row "javac, read from outside"
figure_rows <<-'END'
	cpu_ms %.0f CPU time of the JVM, ms
	ratio %.3f the same, divided by that of the runs before and after; without: the last by the first
	pause %.1f all its safepoints, ms
	longest %.2f the longest of them, ms
	methods %.0f methods of the compiler met
END
