#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# JVMs whose stacks, code and structures are paged out again and again while they are sampled. BPF reads what is in
# memory and never waits. What it cannot read is cut, marked and counted, and never replaced by something else.
. "$(dirname "$0")/lib.sh"

page_out=$DUET_BUILD/tests/system/page_out
frames=3000 # of Java, on 50 pages

# shellcheck disable=SC2317 # by the trap
after_case() {
	[ -z "${paging:-}" ] || kill -KILL "$paging"
	[ -z "${swap:-}" ] || swapoff "$swap"
	rm -f ${swap:+"$swap"}
}

# Makes swap space: the host's, or a file. Other processes may use it meanwhile; their pages are read back at the end.
need_swap() {
	local folder
	[ -z "$(tail -n +2 /proc/swaps)" ] || return
	for folder in "$here" /var/tmp; do
		swap=$(mktemp "$folder/duet-swap.XXXXXX")
		fallocate -l 300M "$swap" && mkswap "$swap" && swapon "$swap" && return
		rm -f "$swap"
	done >/dev/null 2>"$here/swap"
	swap=
	skip "no swap, and none can be made: $(tail -n 1 "$here/swap")"
}

start_paging() { # PID...
	"$page_out" "$@" &
	paging=$!
	sleep 0.2
	kill -0 "$paging" 2>/dev/null || skip "this kernel puts no memory of others out"
}

# Expects that this many kB at least were paged out at one time.
expect_paged_out() { # PID
	local end=$((SECONDS + 20)) out=0
	until [ "$out" -gt 1000 ] || [ $SECONDS -ge $end ]; do
		sleep 0.02
		out=$(awk '/^VmSwap/ { print $2 }' "/proc/$1/status")
	done
	expect "kB of JVM $1 that are out of memory" "$out" '>' 1000
}

# Prints "N M": of M samples of the deep thread, N are right: whole, or marked where frames are missing.
right_stacks() {
	awk -v frames="$frames" '/workload.Deep|workload.TwoBusy/ {
		n = $NF; all += n; line = $0
		marked = line ~ /(^|;)\[[a-zA-Z]/
		leaf = line ~ /workload.TwoBusy\.spin/
		down = gsub(/workload.Deep\.down;/, "", line)
		ordered = $0 !~ /Deep\.down;.*Deep\.lambda|TwoBusy\.spin;.*Deep\./
		rooted = line ~ /java.lang.Thread\.run;.*workload.Deep\.lambda/
		if (ordered && down <= frames && (marked || rooted && (!leaf || down == frames)))
			right += n
		else
			print > "/dev/stderr"
	} END { print right + 0, all + 0 }' "$here/out" 2>"$here/wrong"
}

# The workload would have ended at a wrong sum.
expect_sums() {
	local rounds
	rounds=$(awk '/^ROUNDS/ { n = $2 } END { print n + 200 }' "$sums_out")
	jvm=$sums jvm_out=$sums_out
	wait_for_line "$sums_out" "^ROUNDS $rounds\$" 30
	expect_lacks "$sums_out" WRONG
}

record_paged_out() { # RECORD-OPTIONS...
	local ticks
	need_root
	need_swap
	start_jvm "$jdk" workload.Checksum
	sums=$jvm sums_out=$jvm_out
	start_jvm "$jdk" workload.Deep $frames
	warm_up 2
	start_record --agent always -p "$jvm,$sums" -i 2ms -d 90 -j 16384 -o collapsed -f "$here/out" "$@"
	wait_for_agent "$jvm"
	start_paging "$jvm" "$sums"
	expect_paged_out "$jvm"
	sleep 2
	kill -TERM "$paging"
	wait "$paging" 2>/dev/null
	ticks=$(cpu_ticks "$jvm")
	while [ "$(cpu_ticks "$jvm")" -lt $((ticks + ticks_per_second)) ]; do
		expect_alive "$jvm"
		sleep 0.1
	done
	end_record INT
	expect_status 0
	sed 's/^/# /' "$here/stderr"
	right=$(right_stacks)
	[ ! -s "$here/wrong" ] || cut -c 1-200 "$here/wrong" | sed 's/^/# wrong: /' | head -n 5
	expect_share "right, or marked" "$right" '>=' 100
	expect "of the deep thread" "${right#* }" '>=' 100
	expect_sums
}

expect_whole() {
	expect_share "whole" "$(matching "$here/out" 'Thread\.run;.*Deep\.lambda.*Deep\.down;workload.TwoBusy\.spin')" \
		'>=' 10
}

jdk_case_bpf() { # alone: swap belongs to the host
	need_bpf
	record_paged_out
	expect_whole
	expect_contains "$here/stderr" 'lost: [0-9]+ user stacks cut: stack memory could not be read'
}

# HotSpot does not read the pages with the frame sizes of its code, and so does not page them in; AsyncGetCallTrace
# would.
jdk_case_without_signals() { # alone: swap belongs to the host
	need_bpf
	record_paged_out --signals never
	expect_contains "$here/stderr" 'lost: [0-9]+ samples of Java threads not joined: no signal was sent'
}

jdk_case_by_timer() { # alone: swap belongs to the host
	record_paged_out --engine ctimer
	expect_whole
}

run_cases "$@"
