#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table what it takes a Java thread to set the trace and span that it works for, and to make a
# span: without the library, with it, and while a JFR file with spans is written. A write to a volatile field, and a
# look at the clock, of which a span that is recorded needs two, are measured in the same runs.
#   ROUNDS=3 JDK=HOME
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so
rounds=${ROUNDS:-3}

# The least of what a JVM has measured, of each kind of call.
one_run() { # JVM-OPTIONS...
	local name ns
	while read -r _ name ns; do
		note "$name" "$ns"
	done < <("$jdk/bin/java" -Xmx256m -Dends=true "$@" -Xbootclasspath/a:"$DUET_BUILD/duet-api.jar" \
		-cp "$workloads" workload.TraceContexts cost | grep '^COST')
}

none() {
	one_run
}

library() {
	one_run -agentpath:"$library"
}

recording() {
	one_run -agentpath:"$library=start,event=cpu,interval=10ms,file=$scratch/out.jfr"
}

trap end_bench EXIT
kind=span interval=once
settings=("none once" "library once" "recording once")
for ((round = 1; round <= rounds; round++)); do
	progress "round $round of $rounds"
	for profiler in none library recording; do
		"$profiler"
	done
done
progress ""
describe_host
head_row "ns of a call"
figure_rows <<-'END'
	volatile-write %.1f write to a volatile field
	clock %.1f System.nanoTime()
	set-context %.1f TraceContext.set()
	set-context-kept %.1f the same, of an object that was kept
	span %.1f Span.start() and end()
	span-if-profiled %.1f Span.start() and endIfProfiled()
END
