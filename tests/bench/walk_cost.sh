#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table the mean time of BPF's programs for a sample of a stack of 60 compiled Java frames, by the
# kernel's own statistics:
#   ROUNDS=5 BEFORE=/path/to/another/duet (measured in turn with this one, in the same JVM)
. "$(dirname "$0")/lib.sh"

[ -z "${BEFORE:-}" ] || [ -x "$BEFORE" ] || die "no program $BEFORE"
rounds=${ROUNDS:-5}
perf_event=7 # BPF_PROG_TYPE_PERF_EVENT: the programs that walk
stats_before=$(cat /proc/sys/kernel/bpf_stats_enabled) # end_bench() restores it
trap end_bench EXIT

# The programs' runs for ticks of other processes count, too: they are short, and equal for both.
measure() { # NAME PROGRAM
	local ns samples
	duet=$2 start_record -p "$jvm" -i 1ms -d 600 -o collapsed -f "$scratch/profile"
	sleep 3
	read -r ns _ < <(program_times $perf_event)
	end_record INT
	samples=$(sed -n 's/^duet: \([0-9]*\) samples in .* s (engine.*/\1/p' "$scratch/stderr")
	[ "${samples:-0}" -gt 0 ] && [ "$ns" -gt 0 ] || die "no samples, or no statistics of BPF programs"
	calculate "$ns / $samples" >>"$scratch/ns.$1"
}

JVM_OPTS=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.Deep::down')
start_jvm "$jdk" workload.Deep 57
sleep 5
echo 1 >/proc/sys/kernel/bpf_stats_enabled
for ((round = 0; round < rounds; round++)); do
	progress "60 frames, round $((round + 1)) of $rounds"
	[ -z "${BEFORE:-}" ] || measure before "$BEFORE"
	measure now "$duet"
done
progress ""
describe_host
echo
echo "| mean time in BPF of a sample of 60 frames, ns | median (least to most) |"
echo "|---|---|"
[ -z "${BEFORE:-}" ] || echo "| $("$BEFORE" --version | head -n 1) in $BEFORE | $(spread %.0f "$scratch/ns.before") |"
echo "| this build | $(spread %.0f "$scratch/ns.now") |"
