#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Allocations that BPF samples where HotSpot's threads take new buffers: the bytes of each site and class are those that
# the workload has by construction, on JDK 8, and with --tlab on others.
. "$(dirname "$0")/lib.sh"

megabytes=8000

# Records a JVM whose allocations BPF samples. The gate opens when the probes are there. Each 16 kB make a sample: of
# 8 GB, the smallest part that is compared, 9 %, has 45,000 samples, whose sum has an error of 0.5 %. 2 % is four times
# that: one run of two thousand fails. With a sample for each buffer of 8 kB, BPF would leave many to the next one, so
# that half of the CPU is left to the thread; objects that are seen soon after others then get too little.
record_probed() { # WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	local workload=()
	while [ "$1" != -- ]; do
		workload+=("$1")
		shift
	done
	shift
	rm -f "$here"/out* "$here/gate"
	JVM_OPTS=(-Dgate="$here/gate" -XX:-ResizeTLAB -XX:TLABSize=8k ${JVM_FLAGS[@]+"${JVM_FLAGS[@]}"})
	start_jvm "$jdk" "${workload[@]}"
	"$duet" record -v -p "$jvm" "$@" --total -d 600 -o collapsed -f "$here/out.collapsed" \
		>"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -q "its allocations are probed" "$here/stderr"
	sleep 0.5
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
}

# Each object that never fits into the rest of a buffer has a call of its own. What is called in a pause of BPF
# (sample_pause()) is left to the next sample. On a busy machine that was up to 0.21 %.
expect_large() {
	local told said
	told=$(matching "$here/out.collapsed" 'Sums[$]Work[.]large;char')
	said=$(awk '$2 == "large" { print $4 }' "$jvm_out")
	expect_near "bytes of large objects" "${told% *}" "$said" $((said / 100))
}

expect_truth() {
	expect_large
	expect_sums "$here/out.collapsed" $megabytes '^[^;]*;.*workload/Sums.Work.run;workload/Sums.Work.one;'
	expect_near "bytes in all" "$(total "$here/out.collapsed")" $((megabytes << 20)) $(((megabytes << 20) / 50))
	expect_share "walks to the thread's entry" "$(reported walked)" '>=' 99.9
	expect_contains "$here/stderr" 'read: 1 JVMs from outside, 0 by an agent'
}

jdk_case_sums() {
	need_bpf
	need_jdk 11 "symbols of HotSpot in these JDKs"
	record_probed workload.Sums $megabytes -- -e alloc=16k --tlab --agent never
	expect_truth
}

# Arrays of 32 kB fit into a buffer of 8 kB only if the thread gets a new one that is made larger for them.
jdk_case_outside_of_buffers() {
	local outside inside
	need_bpf
	need_jdk 11 "symbols of HotSpot in these JDKs"
	record_probed workload.Sums 400 -- -e alloc=1 --tlab --agent never
	expect_contains "$here/out.collapsed" ';long\[\]_\[i\]'
	outside=$(matching "$here/out.collapsed" ';char\[\]_\[k\]')
	inside=$(matching "$here/out.collapsed" ';char\[\]_\[i\]')
	expect_share "of char[] outside" "${outside% *} $((${outside% *} + ${inside% *}))" '>=' 95
}

# Beside CPU time and locks, which come from an agent.
jdk_case_beside_others() {
	need_bpf
	need_jdk 11 "symbols of HotSpot in these JDKs"
	record_probed workload.Sums $megabytes 2 -- -e cpu=5ms,alloc=16k,lock --tlab
	expect_sums "$here/out.alloc.collapsed" $megabytes 'Sums.Work.run;'
	expect "CPU time, in ns" "$(total "$here/out.collapsed")" '>' 50000000
}

# The first byte of the function that is probed, in the JVM's memory.
probed_byte() {
	local library=$jdk/lib/server/libjvm.so base at
	base=$(awk '/libjvm[.]so/ { sub(/-.*/, ""); print; exit }' "/proc/$jvm/maps")
	at=$(readelf -Ws "$library" | awk '/AllocTracer27send_allocation_in_new_tlab/ { print $2; exit }')
	dd if="/proc/$jvm/mem" bs=1 skip=$((16#$base + 16#$at)) count=1 2>/dev/null | od -An -tx1
}

# The JVM's code is as before when the recording has ended, also by SIGKILL.
jdk_case_nothing_stays() {
	local before
	need_bpf
	need_jdk 11 "symbols of HotSpot in these JDKs"
	start_jvm "$jdk" workload.Allocations 100000
	before=$(probed_byte)
	[ -n "$before" ] || skip "this JVM's memory cannot be read"
	for _ in 1 2 3; do
		"$duet" record -v -p "$jvm" -e alloc=64k --tlab -d 100 -o collapsed -f "$here/out.collapsed" \
			>"$here/stdout" 2>"$here/stderr" &
		recorder=$!
		wait_for 60 grep -q "its allocations are probed" "$here/stderr"
		# shellcheck disable=SC2016 # for eval
		wait_for 10 eval '[ "$(probed_byte)" != "$before" ]'
		end_record KILL
		# shellcheck disable=SC2016 # for eval
		wait_for 10 eval '[ "$(probed_byte)" = "$before" ]'
		expect_alive "$jvm"
	done
}

# ---- JDK 8, in a root file system of its own: its libjvm.so has names in a debug file alone ----

need_jdk_8() {
	local home folder
	need_bpf
	tree=$(timeout 90 "$(dirname "$0")/../matrix/root_tree.sh" sid 8 2>"$here/fetched") ||
		skip "JDK 8 cannot be had: $(tail -n 1 "$here/fetched")"
	mount -t proc proc "$tree/proc" && mount -t tmpfs tmpfs "$tree/tmp" || skip "no mounts here"
	for folder in "$workloads" "$here"; do
		mkdir -p "$tree$folder" && mount --bind "$folder" "$tree$folder"
	done
	for home in "$tree"/usr/lib/jvm/java-8-openjdk-*/jre; do jdk=${home#"$tree"}; done
	JVM_AS=(chroot "$tree")
}

# Code of C1 gives a thread a new buffer without a call of HotSpot, with the collectors whose eden it can use, unless
# FastTLABRefill is off.
with_collectors() { # COLLECTOR...
	local collector
	need_jdk_8
	for collector; do
		JVM_FLAGS=(-XX:+Use${collector}GC -XX:-FastTLABRefill)
		record_probed workload.Sums $megabytes -- -e alloc=16k
		expect_truth
		kill "$jvm"
	done
}

case_jdk_8() { # apart
	megabytes=2000
	with_collectors Parallel
}

case_jdk_8_other_collectors() { # apart
	with_collectors Serial G1 ConcMarkSweep
}

case_jdk_8_as_a_command() { # apart
	need_jdk_8
	mount --bind "$DUET_BUILD" "$tree$(mkdir -p "$tree$DUET_BUILD" && echo "$DUET_BUILD")"
	mount --bind /sys "$tree/sys"
	chroot "$tree" "$duet" record -e cpu=5ms,alloc=64k --total -o collapsed -f "$here/out.collapsed" -- \
		"$jdk/bin/java" -Dends=true -cp "$workloads" workload.Sums 1000 >"$here/stdout" 2>"$here/stderr"
	expect "exit code" $? == 0
	expect_contains "$here/out.alloc.collapsed" 'Sums.Work.longs;long\[\]_\[i\]'
	expect_share "of the sites" "$(matching "$here/out.alloc.collapsed" 'Sums.Work.one;')" '>=' 90
}

# One sentence says what is missing; CPU time is recorded.
case_no_symbols() { # apart
	need_jdk_8
	mount -t tmpfs tmpfs "$tree/usr/lib/debug"
	JVM_OPTS=()
	start_jvm "$jdk" workload.TwoBusy
	record -e cpu=1ms,alloc -d 2 -p "$jvm" -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect "sentences" "$(grep -c 'no samples of alloc: its libjvm.so has no symbols' "$here/stderr")" == 1
	expect "CPU time" "$(total "$here/out.collapsed")" '>' 0
}

# What BPF sees is the call before the object exists, so nothing tells later whether it is still in use.
case_jdk_8_live() { # apart
	need_jdk_8
	JVM_OPTS=()
	start_jvm "$jdk" workload.TwoBusy
	record -e cpu=1ms,live -d 2 -p "$jvm" -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect_contains "$here/stderr" 'live: a JVM before JDK 11 does not show the objects that it allocates'
	expect "CPU time" "$(total "$here/out.collapsed")" '>' 0
}

case_usage() {
	run_duet record -e cpu --tlab -p $$ -d 1
	expect_refusal 2 'tlab is about allocations: add -e alloc'
	run_duet record -e alloc --tlab --engine ctimer -p $$ -d 1
	expect_refusal 2 'tlab needs the bpf engine'
	run_duet record -e alloc --agent never -p $$ -d 1
	expect_refusal 2 'alloc comes from the agent'
}

run_cases "$@"
