#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table the cost of -e offcpu and -e wall and the errors of their sums:
#   ROUNDS=3 (of alternating measurements) RUNS=10 (for the bias; 0: none)
#   BEFORE=/path/to/another/duet (whose cost of a switch and of threads that wait is measured in turn with this one's)
#   MEASURE="throughput switches all_parked sums" (some of these)
. "$(dirname "$0")/lib.sh"

runs=${RUNS:-10}
quietly=(chrt -f 1) # a recorder that mostly sleeps is not held up by others, and finds more of its memory in the caches
"${quietly[@]}" true 2>/dev/null || quietly=()
[ -z "${BEFORE:-}" ] || [ -x "$BEFORE" ] || die "no program $BEFORE"
stats_before=$(cat /proc/sys/kernel/bpf_stats_enabled) # end_bench() restores it
trap 'kill ${empty_program:-} 2>/dev/null; end_bench' EXIT

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

# Prints the context switches of all CPUs, those to and from the idle thread included.
context_switches() {
	awk '/^ctxt/ { print $2 }' /proc/stat
}

# Sets took_ns and took_runs to what the recorder's programs take while two threads take turns, and switches.
measure_programs() {
	local before_ns before
	switches=$(context_switches)
	read -r before_ns before < <(program_times)
	turn_about 1 300000
	read -r took_ns took_runs < <(program_times)
	switches=$(($(context_switches) - switches))
	took_ns=$((took_ns - before_ns)) took_runs=$((took_runs - before))
	[ "$took_runs" -gt 0 ] || die "no statistics of BPF programs"
}

# Sets empty_ns to what the kernel's statistics themselves take of a run.
measure_statistics() {
	"$DUET_BUILD/tests/bench/empty_program" >"$scratch/empty" &
	empty_program=$!
	jvm=$empty_program recorder=$empty_program
	wait_for_line "$scratch/empty" '^READY' 10
	measure_programs
	empty_ns=$(calculate "$took_ns / $took_runs")
	{ kill "$empty_program" && wait "$empty_program"; } 2>/dev/null
	empty_program=
}

# Measures the time in ns that duet's programs take for a context switch of any thread of the host.
measure_switch() { # NAME PROGRAM
	duet=$2 start_offcpu
	measure_programs
	end_record INT
	calculate "($took_ns - $took_runs * $empty_ns) / $switches" >>"$scratch/switch.$1"
	calculate "$took_runs / $switches" >>"$scratch/runs.$1"
}

measure_switches() {
	local round
	echo 1 >/proc/sys/kernel/bpf_stats_enabled
	for ((round = 0; round < rounds; round++)); do
		progress "cost of a switch, round $((round + 1)) of $rounds"
		measure_statistics
		echo "$empty_ns" >>"$scratch/empty_ns"
		[ -z "${BEFORE:-}" ] || measure_switch before "$BEFORE"
		measure_switch now "$duet"
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

# Prints the CPU time in ns of a process, of its threads and of its children so far.
cpu_time_of() { # PID
	local pid
	for pid in "$1" $(cat "/proc/$1/task/$1/children"); do
		cat /proc/"$pid"/task/*/schedstat
	done | awk '{ sum += $1 } END { printf "%.0f\n", sum }'
}

# Sets cost_s to the CPU time of a recording of this many threads that wait without end, without its first two seconds,
# which take the same for any number but some ms, and vary by more than what is measured here.
cost_of_parked() { # THREADS PROGRAM
	local before started_ns
	"$workloads/parked" "$1" >"$scratch/parked" &
	jvm=$!
	jvms=($jvm)
	wait_for_line "$scratch/parked" '^READY' 10
	children_time
	before=$cpu_s
	"${quietly[@]}" "$2" record --no-attach -p $jvm -e wall -t -d 10 -o collapsed -f "$scratch/profile" \
		2>/dev/null &
	recorder=$!
	sleep 2
	started_ns=$(cpu_time_of $recorder)
	wait $recorder
	children_time
	cost_s=$(calculate "$cpu_s - $before - $started_ns / 1000000000")
	{ kill $jvm && wait $jvm; } 2>/dev/null # so that its time counts here
	jvms=()
}

measure_parked() { # NAME PROGRAM
	local few
	cost_of_parked 1 "$2"
	few=$cost_s
	cost_of_parked 1000 "$2"
	calculate "($cost_s - $few) * 10" >>"$scratch/parked.$1"
}

measure_all_parked() {
	local round
	for ((round = 0; round < rounds; round++)); do
		progress "threads that wait, round $((round + 1)) of $rounds"
		[ -z "${BEFORE:-}" ] || measure_parked before "$BEFORE"
		measure_parked now "$duet"
	done
}

# Prints the rows about what is measured of two programs.
rows() { # NAME WHOSE
	[ -e "$scratch/switch.$1" ] || [ -e "$scratch/parked.$1" ] || return 0
	echo "| a context switch in the programs$2, by the statistics without their own time, ns |" \
		"$(spread %.0f "$scratch/switch.$1") |"
	echo "| runs of programs for a context switch$2 | $(spread %.2f "$scratch/runs.$1") |"
	[ ! -e "$scratch/switch.$1" ] || awk '{ print $1 * 0.02 }' "$scratch/switch.$1" >"$scratch/switch.cpu"
	echo "| 200,000 switches a second$2, by that, % of a CPU | $(spread %.1f "$scratch/switch.cpu") |"
	echo "| 1,000 threads that wait for 10 s, more than one, -e wall after its start$2, % of a CPU |" \
		"$(spread %.2f "$scratch/parked.$1") |"
}

for part in ${MEASURE:-throughput switches all_parked sums}; do
	"measure_$part"
done
progress ""
describe_host
echo
echo "| time off CPU | median (least to most) |"
echo "|---|---|"
echo "| million switches a second of two pairs of threads without it | $(spread %.2f "$scratch/rate") |"
echo "| throughput that they keep with it, % | $(spread %.1f "$scratch/kept") |"
echo "| the same by their CPU time, % | $(spread %.1f "$scratch/kept_cpu") |"
echo "| the same with --wakers, % | $(spread %.1f "$scratch/kept_wakers") |"
[ ! -e "$scratch/empty_ns" ] ||
	echo "| a run of an empty program, by those statistics, ns | $(spread %.0f "$scratch/empty_ns") |"
rows before " before"
rows now ""
[ "$runs" = 0 ] ||
	echo "| error of the sum of all sleeps in $runs runs of 8 s, every 10 ms, % | $(spread %.2f "$scratch/error") |"
