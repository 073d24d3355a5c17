#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table for how long libasyncProfiler.so holds a JVM: at its start, with -agentpath and without by
# turns, until main() runs and until the process has ended; and in execute("start,event=cpu"), for each start in one
# JVM. Then the CPU time that `duet record` takes from its start to its end, for a process that does nothing.
#   ROUNDS=10 STARTS=6 WINDOW=1 (seconds of each recording) JDK=HOME BEFORE=/path/to/another/duet (by turns with this)
. "$(dirname "$0")/lib.sh"

[ -z "${BEFORE:-}" ] || [ -x "$BEFORE" ] || die "no program $BEFORE"
library=$DUET_BUILD/libasyncProfiler.so
rounds=${ROUNDS:-10}
starts=${STARTS:-6}
window=${WINDOW:-1}

now_ms() {
	date +%s%3N
}

# Notes the time from exec to main(), and to the end of the process.
one_start() { # OPTIONS...
	local began ended main
	began=$(now_ms)
	main=$("$jdk/bin/java" -Xmx256m -Dends=true "$@" -cp "$workloads" workload.ProfilerCalls moment |
		sed -n 's/^main: //p')
	ended=$(now_ms)
	note main $((main - began))
	note end $((ended - began))
}

duet() {
	rm -f "$scratch/out.html"
	one_start -agentpath:"$library=start,event=cpu,file=$scratch/out.html"
	[ -s "$scratch/out.html" ] || die "the JVM has ended without its file"
}

nothing() {
	one_start
}

# Line by line: the first start hires the recorder, later ones find it.
note_calls() {
	local number=0 us
	"$jdk/bin/java" -Xmx256m -Dends=true -Djava.library.path="$DUET_BUILD" -cp "$workloads" \
		workload.ProfilerCalls cycles "$starts" $((window * 1000)) |
		sed -n 's/^start: \([0-9]*\) us$/\1/p' >"$scratch/calls"
	while read -r us; do
		number=$((number + 1))
		note "$([ $number = 1 ] && echo first || echo later)" "$(calculate "$us / 1000")"
	done <"$scratch/calls"
}

# Notes the CPU time of a recording of each kind. The process sleeps, so that nearly all of it is the start and the end.
note_recordings() { # PROFILER PROGRAM
	local event times
	profiler=$1
	for event in cpu offcpu wall; do
		times=$( { TIMEFORMAT='%U %S' && time "$2" record --no-attach -p "$idle" -e "$event" -d 100ms -o text \
			-f "$scratch/idle.txt" >"$scratch/stdout" 2>&1; } 2>&1) || die "$(cat "$scratch/stdout")"
		note "record_$event" "$(calculate "1000 * (${times/ / + })")"
	done
}

trap end_bench EXIT
kind=start interval=once
settings=("duet once" "nothing once")
for ((round = 1; round <= rounds; round++)); do
	progress "round $round of $rounds"
	for profiler in nothing duet; do
		"$profiler"
	done
done
profiler=duet
note_calls
sleep 1000 &
idle=$!
jvms+=("$idle") # ended with the bench
[ -z "${BEFORE:-}" ] || settings+=("before once")
for ((round = 1; round <= rounds; round++)); do
	progress "recordings, round $round of $rounds"
	[ -z "${BEFORE:-}" ] || note_recordings before "$BEFORE"
	note_recordings duet "$duet"
done
progress ""
describe_host
head_row "a JVM with libasyncProfiler.so"
figure_rows <<-'END'
	main %.0f until main() runs, ms
	end %.0f until the process has ended, ms
	first %.1f first execute("start,event=cpu"), ms
	later %.1f later ones, ms
	record_cpu %.0f CPU time of a short `duet record -e cpu` of an idle process, ms
	record_offcpu %.0f likewise, -e offcpu, ms
	record_wall %.0f likewise, -e wall, ms
END
