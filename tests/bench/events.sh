#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table what events other than CPU time add to what they watch, each in a JVM that does nothing
# else. The native functions are called with and without their hooks by turns, within one process; the others by turns
# with and without a recording.
#   ROUNDS=3 WINDOW=3 (seconds of each turn) JDK=HOME WORKLOADS="malloc mutex enter trace"
. "$(dirname "$0")/lib.sh"

profiler=duet interval=added
settings=("duet added")

# Notes the numbers that the workload itself prints while it is recorded, in ps.
note_extra() { # "FIGURE..." WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	local figure column=2 figures=$1
	JVM_FLAGS=(-Dextra=true)
	record_gated "${@:2}"
	for figure in $figures; do
		note "$figure" "$(calculate "$(jvm_said EXTRA $column) / 1000")"
		column=$((column + 1))
	done
}

bench_malloc() {
	note_extra "malloc free" workload.NativeMemory 10 -- -e nativemem=512k
}

bench_mutex() {
	note_extra mutex workload.NativeLocks 1 100 -- -e nativelock=10us
}

# Sets $told to the median of the numbers that the workload prints in the next window.
measure() { # KEY
	local before
	before=$(wc -l <"$jvm_out")
	sleep "$window"
	told=$(tail -n +$((before + 2)) "$jvm_out" | awk -v key="$1" '$1 == key { print $2 }' | sort -n |
		awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }')
	[ -n "$told" ] || die "$1 was not printed within $window s"
}

# Sets $before, $during and $after, by turns in one JVM that runs on.
turn() { # KEY RECORD-OPTIONS...
	sleep 1
	measure "$1"
	before=$told
	start_taps -p "$jvm" "${@:2}"
	measure "$1"
	during=$told
	end_record INT
	[ "$status" = 0 ] || die "duet failed: $(cat "$here/stderr")"
	sleep 1
	measure "$1"
	after=$told
}

bench_enter() {
	start_jvm "$jdk" workload.Handover
	turn HANDOVER -e lock=10us
	note enter "$(calculate "$during - ($before + $after) / 2")"
}

bench_trace() {
	start_jvm "$jdk" workload.TracedCost
	turn RATE --trace 'workload.TracedCost.work:1ms'
	note trace "$(calculate "100 - 200 * $during / ($before + $after)")"
	note calls "$(calculate "($before + $after) / 2000")"
}

trap end_bench EXIT
for ((round = 1; round <= rounds; round++)); do
	for kind in ${WORKLOADS:-malloc mutex enter trace}; do
		progress "$kind, round $round of $rounds"
		"bench_$kind"
		kill -KILL "$jvm" 2>/dev/null
	done
done
progress ""
describe_host
head_row "recorded"
figure_rows <<-'END'
	malloc %.2f malloc() of 64 bytes, nativemem=512k, ns
	free %.2f free() of it, ns
	mutex %.2f a mutex that nobody holds, nativelock=10us, ns
	enter %.0f from leaving synchronized code to who waits for it, lock=10us, ns
	trace %.2f of the throughput, trace=METHOD:1ms, %
	calls %.2f where the method is called so often, million a second
END
