#!/bin/bash
# SPDX-License-Identifier: MIT
# --max-overhead: the cost that duet reports is what the kernel counts; the rate follows it; no weight is lost.
. "$(dirname "$0")/lib.sh"

outputs() {
	echo --total -f "$here/out.full.txt" -f "$here/out.collapsed"
}

crowd() { # SECONDS OPTIONS...
	local seconds=$1
	shift
	# shellcheck disable=SC2046 # words without blanks
	record $(outputs) "$@" -- "$workloads/crowd" stacks "$seconds" "$seconds"
	expect_status 0
}

fact() { # NAME
	sed -n "s/^$1 *: //p" "$here/out.full.txt"
}

# CPU time in ns of the process's first thread: the loader has no other.
loader_ns() { # PID
	cut -d ' ' -f 1 "/proc/$1/schedstat"
}

case_rate_follows_the_budget() {
	local ticks pending told slowest
	need_bpf
	need_plain "they take CPU time of the budget"
	crowd 6 -i 1ms --max-overhead 0.02
	expect "changes told of" "$(fact interval | wc -l)" '>=' 2
	expect "the same in words" "$(grep -c 'from now on' "$here/stderr")" '==' "$(fact interval | wc -l)"
	slowest=$(fact interval | sed 's/ from.*//; s/^cpu every //; s/^1 s$/1000 ms/; s/ ms//' | sort -n | tail -n 1)
	expect "ms of the slowest rate" "$slowest" '<=' 1000
	expect "ms of the slowest rate" "$slowest" '>' 4
	read -r ticks pending < <(fact ticks | sed 's/, of which \([0-9]*\).*/ \1/')
	expect "ticks" "$ticks" '>' 200
	told=$(awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$here/out.collapsed")
	[ "$told" = $(((ticks - pending) * 1000000)) ] || fail "$told ns are told of, of $ticks ticks without $pending"
}

case_no_budget_no_change() {
	need_bpf
	crowd 2 -i 1ms
	expect "changes" "$(fact interval | wc -l)" '==' 0
	crowd 2 -i 1ms --max-overhead 100
	expect "changes" "$(fact interval | wc -l)" '==' 0
}

# Perf events are held by BPF links or, before Linux 5.15, by descriptors.
wait_for_first_tick() {
	local end=$((SECONDS + 20))
	until grep -qsE '^link_type:.*perf$' "/proc/$recorder/fdinfo"/* || [ $SECONDS -ge $end ]; do
		sleep 0.05
	done
}

# Measures the loader's CPU time from outside, after the rate has settled and files have been read.
cost_while_running() { # OPTIONS...
	local before after start end
	# shellcheck disable=SC2046
	start_record -i 1ms $(outputs) "$@" -- "$workloads/crowd" stacks 10 10
	wait_for_first_tick
	sleep 3
	before=$(loader_ns "$recorder")
	start=$(date +%s%N)
	sleep 3
	after=$(loader_ns "$recorder")
	end=$(date +%s%N)
	end_record INT
	awk -v cpu=$((after - before)) -v wall=$((end - start)) -v cpus="$(nproc)" \
		'BEGIN { print 100 * cpu / wall / cpus }'
}

# The limit is half of what the same work costs without a limit, so no figure depends on the machine.
case_the_budget_holds() {
	local without limit with
	need_bpf
	without=$(cost_while_running)
	limit=$(awk -v all="$without" 'BEGIN { print all / 2 }')
	with=$(cost_while_running --max-overhead "$limit")
	expect "percent of the host's CPU without a limit" "$without" '>' 0
	expect "with one of $limit" "$with" '<' "$(awk -v limit="$limit" 'BEGIN { print 1.2 * limit }')"
}

# Files are mapped one by one, and their tables cost many times the limit: that must not reduce the sampling rate.
case_a_start_changes_nothing() {
	local i all once
	need_bpf
	mkdir "$here/libraries"
	for i in {100..129}; do
		copy_library large "$i" "$here/libraries/$i.so"
	done
	# shellcheck disable=SC2046
	record $(outputs) -i 5ms --max-overhead 3 -- timeout 4 "$workloads/libraries" "$here/libraries"/*.so
	expect_status 124 "timeout, which ended it"
	all=$(fact overhead | sed 's/ .*//')
	once=$(fact overhead | sed 's/.* //')
	expect "changes" "$(fact interval | wc -l)" '==' 0
	expect "percent of the host's CPU" "$all" '>' 3
	expect "of it, once for each file" "$once" '>' 1
}

# The factor between the interval that was in force 3.5 s after the first tick and the last one. What a sample costs
# depends on what else the machine does, so small changes may come at any time.
late_factor() {
	fact interval | awk '
		BEGIN { ms = 1 }
		{ sub(/^cpu every /, ""); ms = $1 * ($2 == "s" ? 1000 : 1) }
		/ from [0-9.]+ s on/ { at = $0; sub(/.* from /, "", at); if (at + 0 < 3.5) early = ms }
		END { early = early ? early : 1; print (ms > early ? ms / early : early / ms) }'
}

case_steady_within_seconds() {
	need_bpf
	crowd 8 -i 1ms --max-overhead 0.5
	expect "changes" "$(fact interval | wc -l)" '>=' 1
	expect "the first, in seconds" "$(sed -n 's/^interval *: .* from \([0-9.]*\) s on.*/\1/p' "$here/out.full.txt" |
		head -n 1)" '<' 2
	expect "factor between the rate after 3.5 s and the last rate" "$(late_factor)" '<=' 3
}

# Compares the cost up to the end of the recording: the file cannot contain what writing it takes.
case_own_cost_is_true() {
	local told start wall=0 ns=0
	need_bpf
	start=$(date +%s%N)
	# shellcheck disable=SC2046
	start_record -i 1ms $(outputs) -- "$workloads/crowd" stacks 6 6
	until pgrep -P "$recorder" -x crowd >"$here/child" || ! kill -0 "$recorder" 2>"$here/child"; do
		sleep 0.02
	done
	while pgrep -P "$recorder" -x crowd >"$here/child"; do
		ns=$(loader_ns "$recorder")
		wall=$(($(date +%s%N) - start))
		sleep 0.02
	done
	end_record
	expect_status 0
	told=$(fact overhead | sed 's/.*loader \([0-9.]*\).*/\1/')
	expect_near "percent of the CPU that the loader took, as it says" "$told" \
		"$(awk -v ns="$ns" -v wall="$wall" -v cpus="$(nproc)" 'BEGIN { print 100 * ns / wall / cpus }')" \
		"$(awk -v told="$told" 'BEGIN { print told / 4 }')"
}

case_wrong_use() {
	record --max-overhead 0 -d 1 -p $$
	expect_refusal 2 'above 0'
	record --max-overhead 1 --engine ctimer -d 1 -p $$
	expect_refusal 2 'needs the bpf engine'
}

run_cases "$@"
