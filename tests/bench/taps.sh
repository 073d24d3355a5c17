#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table what is left of the throughput of a JVM that allocates much, and of one whose threads wait
# for locks, while CPU time, allocations and locks are recorded together: by duet and, with PEER, by async-profiler, by
# turns in one JVM.
#   PEER=/path/to/libasyncProfiler.so ROUNDS=5 WINDOW=3 JDK=HOME WORKLOADS="alloc lock"
. "$(dirname "$0")/lib.sh"

settings=("duet 10ms")
[ -z "${PEER:-}" ] || settings+=("peer 10ms")
read -ra kinds <<<"${WORKLOADS:-alloc lock}"

taps_start() {
	start_record -p "$jvm" -d 3600 -e cpu=10ms,alloc=512k,lock=10us -o jfr -f "$scratch/out.jfr"
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 1
}

duet_start() {
	taps_start
}

duet_stop() {
	end_record INT
	[ "$status" = 0 ] || die "duet failed: $(cat "$scratch/stderr")"
	note bytes "$(stat -c %s "$scratch/out.jfr")"
}

# Tells the library by the JVM's own command.
peer_do() { # ARGUMENTS
	"$jdk/bin/jcmd" "$jvm" JVMTI.agent_load "$PEER" "$1" >"$scratch/peer.log" 2>&1 &&
		grep -q 'return code: 0' "$scratch/peer.log" || die "the peer: $(cat "$scratch/peer.log")"
}

peer_start() {
	peer_do "\"start,event=cpu,interval=10ms,alloc=512k,lock=10us,jfr,file=$scratch/peer.jfr\""
	sleep 1
}

peer_stop() {
	peer_do stop
	note bytes "$(stat -c %s "$scratch/peer.jfr")"
}

# Sets $rate to the operations per CPU-second of the JVM in the next window, and $pace to those per second.
measure() {
	local before after began
	before=$(count_ops)
	began=$(date +%s%N)
	sleep "$window"
	after=$(count_ops)
	read -r rate pace < <(awk -v a="$before" -v b="$after" -v ns="$(($(date +%s%N) - began))" 'BEGIN {
		split(a, x)
		split(b, y)
		cpu = y[3] - x[3]
		print (cpu > 0 ? 1e9 * (y[2] - x[2]) / cpu : 0), 1e9 * (y[2] - x[2]) / ns }')
}

kept() { # BEFORE PROFILED AFTER
	awk -v n="$1" -v p="$2" -v m="$3" 'BEGIN { print (n + m > 0 ? 2 * p / (n + m) : 0) }'
}

# As in lib.sh, with both rates.
one_turn() {
	local before=$rate before_pace=$pace profiled profiled_pace
	"${profiler}_start"
	measure
	profiled=$rate
	profiled_pace=$pace
	"${profiler}_stop"
	sleep 1
	measure
	note ratio "$(kept "$before" "$profiled" "$rate")"
	note pace "$(kept "$before_pace" "$profiled_pace" "$pace")"
}

pace_table() {
	local kind setting
	head_row "throughput per second, 1 = unprofiled"
	for kind in "${kinds[@]}"; do
		printf '| %s |' "$kind"
		for setting in "${settings[@]}"; do
			printf ' %s |' "$(spread %.3f "$scratch/pace.$kind.${setting/ /.}")"
		done
		echo
	done
	echo
}

[ -z "${PEER:-}" ] || [ -r "$PEER" ] || die "no library $PEER"
bench_all
describe_host
throughput_table
pace_table
