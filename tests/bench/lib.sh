# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What the benches of live JVMs share. Each workload has one JVM, in which windows with and without a profiler
# alternate. Each window is compared with its two neighbours, so that a machine that becomes slower has no effect.
#
# A bench sources this file, sets
#   settings=("PROFILER INTERVAL"...)   kinds=(WORKLOAD...)
# calls bench_all and then the tables it wants. Figures of a setting are kept as one file of numbers each.
. "$(dirname "${BASH_SOURCE[0]}")/../system/lib.sh"

rounds=${ROUNDS:-3}
window=${WINDOW:-3} # seconds
jdk=${JDK:-$(any_jdk)}
asprof=(${ASPROF:+"$ASPROF"}) # a command, perhaps with chroot before it
JVM_AS=()
jvm_root= # root file system of the JVM, as we see it
jvms=()
here=$scratch
hz=$ticks_per_second

die() {
	echo "bench: $*" >&2
	exit 1
}

# An error in the helpers ends the whole bench, not a case.
fail() {
	die "$*"
}

end_bench() {
	[ ${#jvms[@]} = 0 ] || { kill -KILL "${jvms[@]}" && wait "${jvms[@]}"; } 2>/dev/null
	[ -z "${stats_before:-}" ] || echo "$stats_before" >/proc/sys/kernel/bpf_stats_enabled
	rm -rf "$scratch" "${safepoints:-$scratch}"*
}

progress() {
	[ ! -t 2 ] || printf '\r\033[K%s' "$*" >&2
}

# Prints "NS RUNS" of duet's programs, as the kernel counts them: of all, or of those of a type (enum bpf_prog_type).
program_times() { # [TYPE]
	local at
	for at in /proc/"$recorder"/fdinfo/*; do
		grep -Eqs "^prog_type:[[:space:]]*${1:-[0-9]+}$" "$at" &&
			awk '/^prog_id:/ { id = $2 } /^run_time_ns:/ { ns = $2 } /^run_cnt:/ { runs = $2 }
				END { print id, ns, runs }' "$at"
	done | sort -u | awk '{ ns += $2; runs += $3 } END { printf "%.0f %.0f\n", ns, runs }'
}

# ---- figures -------------------------------------------------------------------------------------

note() { # FIGURE NUMBER
	[ -z "${2:-}" ] || echo "$2" >>"$scratch/$1.$kind.$profiler.$interval"
}

calculate() { # EXPRESSION
	awk "BEGIN { print $1 }"
}

# "median (least to most)" of all numbers in the files; "-" when there are none.
spread() { # FORMAT FILE...
	local format=$1
	shift
	cat /dev/null "$@" 2>/dev/null | sort -g | awk -v f="$format" '{ v[NR] = $1 }
		END { if (!NR) { print "-"; exit }
		      m = NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2
		      printf((NR > 1 ? f " (" f " to " f ")\n" : f "\n"), m, v[1], v[NR]) }'
}

# ---- one window ----------------------------------------------------------------------------------

# A workload prints how many operations it has done and the CPU time that they took (Bench.java).
count_ops() {
	tail -n 1 "$jvm_out"
}

# Sets $rate to the operations per CPU-second of the next window.
measure() {
	local before after
	before=$(count_ops)
	sleep "$window"
	after=$(count_ops)
	rate=$(awk -v a="$before" -v b="$after" 'BEGIN { split(a, x); split(b, y)
		ns = y[3] - x[3]; print (ns > 0 ? 1e9 * (y[2] - x[2]) / ns : 0) }')
}

# ---- profilers -------------------------------------------------------------------------------------

# A profiler is a pair of functions. NAME_start INTERVAL returns when the profiler samples; NAME_stop ends it. The
# processes that run beside the JVM are watched in between.
watch() { # PID
	watched=$1
	watched_ticks=$(cpu_ticks "$1")
	watch_began=$(date +%s%N)
}

end_watch() {
	local ticks
	ticks=$(calculate "($(date +%s%N) - $watch_began) / 1e9 * $hz")
	note cpu "$(calculate "100 * ($(cpu_ticks "$watched") - $watched_ticks) / $ticks")"
	note rss "$(awk '/^VmHWM/ { print $2 / 1024 }' "/proc/$watched/status")"
}

descriptors() {
	find "/proc/$jvm/fd" -mindepth 1 | wc -l
}

duet_start() { # INTERVAL OPTION...
	local before
	before=$(descriptors)
	start_record -p "$jvm" -d 3600 -i "$1" -o text=full -f "$scratch/duet.txt" "${@:2}"
	note descriptors $(($(descriptors) - before))
	watch "$recorder"
}

duet_stop() {
	local samples
	end_watch
	end_record INT
	[ "$status" = 0 ] || die "duet failed: $(cat "$scratch/stderr")"
	samples=$(sed -n 's/^Total samples *: //p' "$scratch/duet.txt")
	note broken "$(awk -v n="$samples" '/  Java stacks not walked/ { lost += $1 } END { print 100 * lost / n }' \
		"$scratch/duet.txt")"
	note bpf_ns "$(sed -n 's/^BPF time.*: median \([0-9]*\) ns.*/\1/p' "$scratch/duet.txt")"
	note handler_ns "$(sed -n 's/^signal handler *: \([0-9]*\) ns.*/\1/p' "$scratch/duet.txt")"
	note first_ms "$(sed -n 's/.*first sample \([0-9]*\) ms.*/\1/p' "$scratch/stderr")"
	note first_cpu_ms "$(sed -n 's/.*first sample.* \([0-9]*\) ms of CPU.*/\1/p' "$scratch/stderr")"
	note joined "$(reported_joined)"
	note bytes "$(stat -c %s "$scratch/duet.txt")"
}

ctimer_start() {
	duet_start "$1" --engine ctimer
}

ctimer_stop() {
	duet_stop
}

asprof_do() {
	"${asprof[@]}" "$@" "$jvm" >"$scratch/asprof.log" 2>&1 || die "asprof: $(cat "$scratch/asprof.log")"
}

asprof_start() {
	local before
	before=$(descriptors)
	asprof_do start -e cpu -i "$1"
	sleep 2
	note descriptors $(($(descriptors) - before))
}

asprof_stop() {
	asprof_do stop -o collapsed -f /tmp/duet-bench.collapsed
	note bytes "$(stat -c %s "$jvm_root/tmp/duet-bench.collapsed")"
	note broken "$(share "$jvm_root/tmp/duet-bench.collapsed" \
		'(^|;)\\[(unknown|not_walkable|no_|GC_|deopt|safepoint|break)')"
	rm -f "$jvm_root/tmp/duet-bench.collapsed"
}

perf_start() {
	perf record -q -a -g -e cpu-clock -c "${1%ms}000000" -o "$scratch/perf.data" \
		>"$scratch/perf.log" 2>&1 </dev/null &
	recorder=$!
	sleep 2
	kill -0 "$recorder" 2>/dev/null || die "perf record: $(cat "$scratch/perf.log")"
	watch "$recorder"
}

perf_stop() {
	end_watch
	end_record INT
	note bytes "$(stat -c %s "$scratch/perf.data")"
	rm -f "$scratch/perf.data"
}

# ---- the alternation --------------------------------------------------------------------------------

# Prints the ms of the longest safepoint after line $1 of its log.
longest_safepoint() {
	tail -n "+$1" "$safepoints" | sed -n 's/.*Total: *\([0-9]*\) ns.*/\1/p' | sort -g | tail -n 1 |
		awk '{ print $1 / 1e6 }'
}

# Runs one profiled window between two that are not. $rate is that of the first and then that of the last.
one_turn() {
	local before=$rate profiled line
	line=$(($(wc -l <"$safepoints") + 1))
	"${profiler}_start" "$interval"
	measure
	profiled=$rate
	"${profiler}_stop"
	note safepoint "$(longest_safepoint "$line")"
	sleep 1
	measure
	note ratio "$(awk -v p="$profiled" -v n="$before" -v m="$rate" 'n + m > 0 { print 2 * p / (n + m) }' <<<'')"
}

# Workloads of other programs define start_KIND.
start_kind() {
	if declare -F "start_$kind" >/dev/null; then
		"start_$kind"
	else
		start_jvm "$jdk" workload.Bench "$kind"
	fi
}

one_kind() {
	local round setting
	safepoints=$jvm_root/tmp/duet-bench.safepoints.$$
	: >"$safepoints"
	JVM_OPTS=("-Xlog:safepoint:file=/tmp/duet-bench.safepoints.$$:uptime")
	progress "$kind: warming up"
	start_kind
	sleep "${WARM_SECONDS:-8}" # compiled by now
	measure
	for ((round = 1; round <= rounds; round++)); do
		for setting in "${settings[@]}"; do
			read -r profiler interval <<<"$setting"
			progress "$kind, round $round of $rounds: $profiler at $interval"
			one_turn
		done
	done
	kill -KILL "${jvms[@]}"
	wait "${jvms[@]}" 2>/dev/null
	jvms=()
	rm -f "$safepoints"*
}

bench_all() {
	[ -x "$duet" ] || die "no $duet: run make first"
	if [ -w /proc/sys/kernel/bpf_stats_enabled ]; then
		stats_before=$(cat /proc/sys/kernel/bpf_stats_enabled)
		echo 1 >/proc/sys/kernel/bpf_stats_enabled
	fi
	trap end_bench EXIT
	for kind in "${kinds[@]}"; do
		one_kind
	done
	progress ""
}

# ---- tables -----------------------------------------------------------------------------------------

describe_host() {
	echo "$(date +%Y-%m-%d), Linux $(uname -r), $(uname -m), $(nproc) CPUs," \
		"$("${JVM_AS[@]}" "$jdk/bin/java" -version 2>&1 | sed -n 2p)," \
		"$rounds rounds of $window s: median (least to most)"
	echo
}

head_row() { # TITLE
	local setting
	printf '| %s |' "$1"
	printf ' %s |' "${settings[@]/ / at }"
	printf '\n|---|'
	for setting in "${settings[@]}"; do
		printf -- '---|'
	done
	echo
}

throughput_table() {
	local kind setting
	head_row "throughput per CPU-second, 1 = unprofiled"
	for kind in "${kinds[@]}"; do
		printf '| %s |' "$kind"
		for setting in "${settings[@]}"; do
			printf ' %s |' "$(spread %.3f "$scratch/ratio.$kind.${setting/ /.}")"
		done
		echo
	done
	echo
}

# Prints a row for all workloads for each line "FIGURE FORMAT WORDS..." of the input.
figure_rows() {
	local figure format words setting
	while read -r figure format words; do
		printf '| %s |' "$words"
		for setting in "${settings[@]}"; do
			printf ' %s |' "$(spread "$format" "$scratch/$figure".*."${setting/ /.}")"
		done
		echo
	done
	echo
}

figure_table() {
	head_row "profiler"
	figure_rows <<-'END'
		cpu %.2f its process, % of one CPU
		rss %.0f its process, MB resident
		descriptors %.0f descriptors opened in the JVM
		joined %.2f joined, % of samples of JVM threads
		broken %.2f stacks with a failed walk, %
		bpf_ns %.0f ns a sample in BPF, median
		handler_ns %.0f ns a signal in the agent's handler
		first_ms %.0f ms from command to first sample
		first_cpu_ms %.0f ms of CPU time from command to first sample
		safepoint %.2f longest safepoint, ms
		bytes %.0f bytes written
	END
}
