#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
# BPF's walk of deep Java stacks: it reaches the thread's entry at any depth, and has all frames that fit into a record.
# Also its walk of virtual threads, which have only some of their frames on the stack.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skip walk_deep: its limits were measured on x86-64 only"; exit 0; }

entries='^(__clone3|clone3|__clone|clone|_start|start_thread)(;| )'

record_deep() { # FRAMES INTERVAL OPTION...
	need_bpf
	start_jvm "$jdk" workload.Deep "$1"
	warm_up 2
	ticks_before=$(cpu_ticks "$jvm")
	record_cpu 2 -p "$jvm" -i "${@:2}" -v -o collapsed -f "$here/out"
	expect_share "walked to the entry" "$(reported walked)" '>=' 97
	expect_share "stacks rooted there" "$(matching "$here/out" "$entries")" '>=' 97
	expect_alive "$jvm"
}

# Prints "N M": of M samples at the deepest call, N have FRAMES frames of the recursion.
with_frames() { # FRAMES
	awk -v frames="$1" '/workload\/TwoBusy\.spin/ {
		n = $NF
		all += n
		if (gsub(/workload\/Deep\.down;/, "") == frames)
			hit += n
	} END { print hit + 0, all + 0 }' "$here/out"
}

expect_whole() { # FRAMES
	record_deep "$1" 10ms
	expect_share "with all frames" "$(with_frames "$1")" '>=' 97
	expect_share "truncated" "$(matching "$here/out" '\\[truncated\\]')" '<=' 0
}

# The middle of the stack is left out, and marked once.
expect_rooted() { # INTERVAL OPTION...
	local root='java/lang/Thread\.run;.*workload/Deep\.down;workload/Deep\.down;'
	local leaf=';\\[truncated\\];workload/Deep\.down;.*workload/TwoBusy\.spin'
	record_deep 10000 "$@"
	expect_share "truncated in the middle" "$(matching "$here/out" "$root.*$leaf")" '>=' 90
	expect_share "truncated twice" "$(matching "$here/out" '\\[truncated\\].*\\[truncated\\]')" '<=' 0
	grep -q 'lost: .* without their middle' "$here/stderr" || fail "not said: $(cat "$here/stderr")"
}

# AsyncGetCallTrace adds the frames for which the walk had no time: none may be missing, from the leaf to main().
expect_all() { # OPTION...
	start_jvm "$jdk" workload.Deep 10000
	record_cpu 2 -p "$jvm" -i 4ms -j 16384 -o collapsed -f "$here/out" "$@"
	expect "samples at the bottom" "$(with_frames 10000 | cut -d ' ' -f 2)" '>' 0
	expect_share "with all frames" "$(with_frames 10000)" '>=' 97
	expect_share "truncated" "$(matching "$here/out" '\\[truncated\\]')" '<=' 0
	expect_alive "$jvm"
}

jdk_case_all_frames() {
	need_bpf
	expect_all
}

jdk_case_all_frames_interpreted() {
	need_bpf
	JVM_OPTS=(-Xint)
	expect_all
}

jdk_case_all_frames_by_timer() {
	expect_all --engine ctimer
}

jdk_case_whole() {
	expect_whole 960
}

jdk_case_whole_interpreted() {
	JVM_OPTS=(-Xint)
	expect_whole 960
}

# No limit is checked, as machines differ: the figures are for the reader of the log.
jdk_case_cost_of_60_frames() {
	local median tail
	need_bpf
	JVM_OPTS=(-XX:CompileCommand=quiet '-XX:CompileCommand=exclude,workload.Mixed::i*'
		'-XX:CompileCommand=dontinline,workload.Mixed::c*')
	start_jvm "$jdk" workload.Mixed
	warm_up 2
	record_cpu 4 -p "$jvm" -i 1ms -o text=full -f "$here/out"
	read -r median tail <<<"$(sed -n \
		's/^BPF time.*: median \([0-9]*\) ns, 99 of 100 within \([0-9]*\) ns.*/\1 \2/p' "$here/out")"
	expect "ns of BPF a sample of 60 frames, median" "${median:-0}" '>' 0
	expect "ns that 99 of 100 keep within" "${tail:-0}" '>=' "$median"
	expect_share "walked to the entry" "$(reported walked)" '>=' 97
}

jdk_case_rooted() {
	expect_rooted 10ms
}

# A walk takes longer than the time between two ticks: ticks are left out, and the next sample counts them.
case_rooted_at_1_khz() {
	jdk=$(jdks | tail -n 1)
	local used_ms told_ms
	expect_rooted 1ms --total
	used_ms=$((($(cpu_ticks "$jvm") - ticks_before) * 1000 / ticks_per_second))
	# The CPU time of the attach and of writing the file is not part of it.
	told_ms=$(awk '{ ns += $NF } END { printf "%.0f", ns / 1e6 }' "$here/out")
	expect_share "ms of CPU time told" "$told_ms $used_ms" '>=' 70
}

jdk_case_rooted_interpreted() {
	JVM_OPTS=(-Xint)
	expect_rooted 10ms
}

jdk_case_rooted_c1() {
	JVM_OPTS=(-XX:TieredStopAtLevel=1)
	expect_rooted 10ms
}

# The frames on the heap are left out, and the carrier's frames follow, except while frames are copied back from the
# heap.
expect_virtual() { # ROUNDS ROOTED_PERCENT WORKING_PERCENT
	local root='java/util/concurrent/ForkJoinWorkerThread\.run;.*jdk/internal/vm/Continuation\.enterSpecial'
	local heap='\\[frames_on_heap\\];(workload/Virtual\.(down|forEver);)*'
	local leaf='workload/Virtual\.many;workload/TwoBusy\.spin'
	need_jdk 21 "virtual threads"
	need_bpf
	start_jvm "$jdk" workload.Virtual 300 "$1"
	sleep 4
	record --agent always -p "$jvm" -d 5 -i 1ms -v -o collapsed -f "$here/out"
	expect_status 0
	expect_share "walked to the entry" "$(reported walked)" '>=' "$2"
	expect_share "stacks rooted there" "$(matching "$here/out" "$entries")" '>=' "$2"
	expect_share "agreed" "$(reported agreed)" '>=' 95
	expect "below the carrier, %" "$(share "$here/out" "$entries.*$root;$heap$leaf")" '>=' "$3"
	expect_alive "$jvm"
}

jdk_case_virtual() {
	expect_virtual 1000000 95 85
}

jdk_case_virtual_interpreted() {
	JVM_OPTS=(-Xint)
	expect_virtual 100000 95 85
}

jdk_case_virtual_that_yields_often() {
	expect_virtual 2000 85 40
}

run_cases "$@"
