#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table the cost of -e offcpu and -e wall and the errors of their sums:
#   ROUNDS=3 (of alternating measurements) RUNS=10 (for the bias; 0: none)
. "$(dirname "$0")/lib.sh"

runs=${RUNS:-10}
stats_before=$(cat /proc/sys/kernel/bpf_stats_enabled) # end_bench() restores it
trap end_bench EXIT

# Sets cpu_s to the processor time of all programs that the shell has waited for.
children_time() {
	times >"$scratch/times"
	cpu_s=$(awk 'NR == 2 { gsub(/[ms]/, " "); print $1 * 60 + $2 + $3 * 60 + $4 }' "$scratch/times")
}

# Runs so many pairs of threads that take turns, and sets took_us, turns and the processor time that they took, cpu_s.
turn_about() { # PAIRS ROUNDS
	local pair from before
	rm -f "$scratch/gate" "$scratch"/turns.*
	children_time
	before=$cpu_s
	jvms=()
	for ((pair = 0; pair < $1; pair++)); do
		"$workloads/events" "$scratch/gate" switches "$2" >"$scratch/turns.$pair" &
		jvms+=($!)
		jvm=$!
		wait_for_line "$scratch/turns.$pair" '^READY' 10
	done
	from=${EPOCHREALTIME/./}
	touch "$scratch/gate"
	wait "${jvms[@]}"
	took_us=$((${EPOCHREALTIME/./} - from))
	children_time
	cpu_s=$(calculate "$cpu_s - $before")
	jvms=()
	turns=$(awk '/^SWITCHES/ { sum += $2 + $3 } END { print sum }' "$scratch"/turns.*)
}

start_offcpu() { # [RECORD-OPTIONS...]
	jvm=none
	start_record --host -e offcpu "$@" -d 600 -o collapsed -f "$scratch/profile"
}

# Throughput of two pairs with the event, as a percentage of that without it, round by round: by the clock, which tells
# something on an idle machine only, and by the processor time that they take. Likewise with --wakers, by that time.
measure_throughput() {
	local round without without_cpu
	for ((round = 0; round < rounds; round++)); do
		progress "turns of two pairs, round $((round + 1)) of $rounds"
		turn_about 2 400000
		without=$took_us
		without_cpu=$cpu_s
		calculate "$turns / $took_us" >>"$scratch/rate"
		start_offcpu
		turn_about 2 400000
		end_record INT
		calculate "100 * $without / $took_us" >>"$scratch/kept"
		calculate "100 * $without_cpu / $cpu_s" >>"$scratch/kept_cpu"
		start_offcpu --wakers
		turn_about 2 400000
		end_record INT
		calculate "100 * $without_cpu / $cpu_s" >>"$scratch/kept_wakers"
	done
}

# Prints the time in ns that a context switch takes in duet's programs.
measure_switch() {
	local round before_ns before after_ns after
	echo 1 >/proc/sys/kernel/bpf_stats_enabled
	for ((round = 0; round < rounds; round++)); do
		progress "cost of a switch, round $((round + 1)) of $rounds"
		start_offcpu
		read -r before_ns before < <(program_times)
		turn_about 1 300000
		read -r after_ns after < <(program_times)
		end_record INT
		[ "$after" -gt "$before" ] || die "no statistics of BPF programs"
		calculate "($after_ns - $before_ns) / $turns" >>"$scratch/switch"
	done
	echo "$stats_before" >/proc/sys/kernel/bpf_stats_enabled
}

# Prints the recorded time of threads that sleep in all ways, as a percentage of the time that they measure themselves.
measure_sums() {
	local run
	for ((run = 0; run < runs; run++)); do
		progress "sums, run $((run + 1)) of $runs"
		rm -f "$scratch/gate"
		"$workloads/sleeps" "$scratch/gate" 8 >"$scratch/said" &
		jvm=$!
		jvms=($jvm)
		wait_for_line "$scratch/said" '^READY' 10
		start_record --no-attach -p $jvm -e offcpu --total -t -d 100 -o collapsed -f "$scratch/told"
		touch "$scratch/gate"
		end_record
		jvms=()
		grep -F '[in_' "$scratch/told" | awk 'NR == FNR { told += $NF; next } NF == 3 { said += $2 }
			END { print 100 * told / said - 100 }' - "$scratch/said" >>"$scratch/error"
	done
}

# Prints the CPU time in s of a recording of this many threads that wait without end.
cost_of_parked() { # THREADS
	"$workloads/parked" "$1" >"$scratch/parked" &
	jvm=$!
	jvms=($jvm)
	wait_for_line "$scratch/parked" '^READY' 10
	TIMEFORMAT='%U %S'
	{ time "$duet" record --no-attach -p $jvm -e wall -t -d 10 -o collapsed -f "$scratch/profile" \
		2>/dev/null; } 2>"$scratch/time"
	kill $jvm
	jvms=()
	awk '{ print $1 + $2 }' "$scratch/time"
}

measure_parked() {
	local round few many
	for ((round = 0; round < rounds; round++)); do
		progress "threads that wait, round $((round + 1)) of $rounds"
		few=$(cost_of_parked 1)
		many=$(cost_of_parked 1000)
		calculate "($many - $few) * 10" >>"$scratch/parked_cost"
	done
}

measure_throughput
measure_switch
measure_parked
[ "$runs" = 0 ] || measure_sums
progress ""
describe_host
echo
echo "| time off CPU | median (least to most) |"
echo "|---|---|"
echo "| million switches a second of two pairs of threads without it | $(spread %.2f "$scratch/rate") |"
echo "| throughput that they keep with it, % | $(spread %.1f "$scratch/kept") |"
echo "| the same by their CPU time, % | $(spread %.1f "$scratch/kept_cpu") |"
echo "| the same with --wakers, % | $(spread %.1f "$scratch/kept_wakers") |"
echo "| a switch in the programs, by the kernel's statistics, ns | $(spread %.0f "$scratch/switch") |"
awk '{ print $1 * 0.02 }' "$scratch/switch" >"$scratch/switch.cpu"
echo "| 200,000 switches a second, by that, % of a CPU | $(spread %.1f "$scratch/switch.cpu") |"
echo "| 1,000 threads that wait for 10 s, more than one, -e wall, % of a CPU | $(spread %.2f "$scratch/parked_cost") |"
[ "$runs" = 0 ] ||
	echo "| error of the sum of all sleeps in $runs runs of 8 s, every 10 ms, % | $(spread %.2f "$scratch/error") |"
