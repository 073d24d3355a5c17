#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1500
# JVMs and native processes that wake each other and end at the edges of windows, for MINUTES (1). What is kept of those
# that have ended, for samples of those that have not, must not be freed too early: make test-sanitized sees that.
. "$(dirname "$0")/lib.sh"

minutes=${MINUTES:-1}
pipes=4
nodes=() # pids of the JVMs, by their number

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	pkill -KILL -P $BASHPID
}

# A JVM reads its own pipe, and writes to the next one's. Half of them live for some moments only.
start_node() { # NUMBER
	local homes next=$((($1 + 1) % pipes))
	mapfile -t homes < <(jdks)
	"${homes[$1 % ${#homes[@]}]}/bin/java" -Xmx64m -XX:TieredStopAtLevel=1 -Xshare:auto -cp "$workloads" \
		workload.Relay "$here/pipe.$1" "$here/pipe.$next" $((20000 + $1)) $((20000 + next)) \
		$((RANDOM % 2 ? 60000 : RANDOM % 3000)) >>"$here/said" 2>>"$here/said.err" </dev/null &
	nodes[$1]=$!
}

# Sleeps until it is woken, a number of times, then ends at once.
start_native() {
	head -c $((1 + RANDOM % 40)) "$here/pipe.$((RANDOM % pipes))" >/dev/null &
}

# Readers answer late, so that samples wait for names while processes end.
hold_readers() { # SIGNAL
	pkill "-$1" -x duet-outside
}

windows() {
	find "$here/out" -name 'profile_20*.duet' | wc -l
}

# Returns when the next window has been written, which is when what has ended is looked for.
await_window() {
	local before=$1 until=$((SECONDS + 60))
	until [ "$(windows)" -gt "$before" ]; do
		[ $SECONDS -lt $until ] || fail "no window within a minute; duet said: $(tail -n 3 "$here/stderr")"
		kill -0 "$recorder" 2>/dev/null || fail "duet ended: $(tail -n 3 "$here/stderr")"
		sleep 0.02
	done
}

# One JVM is killed just after a window's edge, with those that it has woken.
turn() { # NUMBER
	local i
	hold_readers STOP
	for i in 1 2 3 4 5 6; do
		start_native
	done
	await_window "$(windows)"
	kill -KILL "${nodes[$1 % pipes]}" 2>/dev/null
	sleep 0.$((RANDOM % 9))
	[ $(($1 % 3)) != 0 ] || hold_readers CONT
	for ((i = 0; i < pipes; i++)); do
		kill -0 "${nodes[i]}" 2>/dev/null || start_node $i
	done
}

# What duet counts for itself: a window each second from the first to the last.
expect_every_window() {
	local from last
	read -r from last < <(find "$here/out" -name 'profile_20*.duet' -printf '%f\n' | sort -V |
		sed -E 's/profile_(....)-(..)-(..)T(..)-(..)-(..).*/\1-\2-\3 \4:\5:\6/' | sed -n '1p;$p' |
		while read -r when; do date -d "$when" +%s; done | paste -s -d ' ')
	expect "windows from the first to the last" "$(windows)" '>=' $((last - from))
	expect_lacks "$here/stderr" 'could not be written|when it was already written|out of memory'
}

case_edges_of_windows() { # apart
	local i until=$((SECONDS + minutes * 60))
	need_bpf
	need_root # which gives the case process ids of its own
	for ((i = 0; i < pipes; i++)); do
		mkfifo "$here/pipe.$i"
		exec {fd}<>"$here/pipe.$i"
	done
	start_record --host --continuous --window 1s -e cpu=10ms,offcpu=100us,lock=100us --wakers --holders \
		-o duet -f "$here/out"
	for ((i = 0; i < pipes; i++)); do
		start_node $i
	done
	for ((i = 0; SECONDS < until; i++)); do
		turn $i
	done
	hold_readers CONT
	end_record INT
	expect_status 0
	expect_every_window
	expect_lacks "$here/said" WRONG
	expect "JVMs that were ready" "$(grep -c READY "$here/said")" '>=' "$minutes"
}

run_cases "$@"
