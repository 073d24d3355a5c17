#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 700
# What duet counts against what is known another way: the kernel's CPU accounting, shares by construction.
. "$(dirname "$0")/lib.sh"

# Lets the workload run behind its gate while duet records it; the recording is $here/out, in collapsed form.
record_gated() { # HOME INTERVAL CLASS ARGS... (RECORD_OPTS: array of further options)
	local home=$1 interval=$2
	shift 2
	JVM_OPTS+=("-Dgate=$here/gate")
	start_jvm "$home" "$@"
	start_record -p "$jvm" -d 120 -i "$interval" ${RECORD_OPTS[@]+"${RECORD_OPTS[@]}"} -o collapsed -f "$here/out"
	local before busy_before began=$SECONDS
	before=$(cpu_ticks "$jvm") busy_before=$(busy_ticks)
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	ticks=$(($(cpu_ticks "$jvm") - before))
	others=$((100 * ($(busy_ticks) - busy_before - ticks) / ((SECONDS - began + 1) * ticks_per_second)))
	sleep 0.3
	end_record INT
	expect_status 0
	expect_file "$here/out"
}

# Of all CPUs, the hypervisor's share included.
busy_ticks() {
	awk '/^cpu / { print $2 + $3 + $4 + $7 + $8 + $9 }' /proc/stat
}

# samples x interval, as a percentage of utime + stime.
accounted() { # INTERVAL_MS
	awk -v samples="$(total "$here/out")" -v ms="$1" -v ticks="$ticks" -v hz="$ticks_per_second" \
		'BEGIN { printf "%.2f", 100 * samples * ms / 1000 / (ticks / hz) }'
}

# Interrupts on behalf of others are in the samples, not in utime and stime: on a busy machine the two part by
# some percent. Then it is tried again, and no verdict is better than a wrong one.
expect_all_accounted() { # ENGINE INTERVAL_MS TOLERANCE
	local part
	RECORD_OPTS=(--engine "$1")
	for _ in 1 2 3; do
		record_gated "$(any_jdk)" "$2ms" workload.TwoBusy 6
		kill "$jvm"
		rm "$here/gate"
		expect "CPU seconds" $((ticks / ticks_per_second)) '>=' 10
		part=$(accounted "$2")
		echo "# $part % of utime+stime, while others used $others % of a CPU"
		{ [ "$others" -ge 10 ] && ! is_near "$part" 100 "$3"; } || break
	done
	[ "$others" -lt 10 ] || is_near "$part" 100 "$3" || skip "the machine was busy: others used $others % of a CPU"
	expect_near "samples x $2 ms, % of utime+stime" "$part" 100 "$3"
}

case_cpu_time_bpf_1ms() {
	need_bpf
	expect_all_accounted bpf 1 2
}

case_cpu_time_ctimer_10ms() {
	expect_all_accounted ctimer 10 5
}

case_cpu_time_itimer_10ms() {
	expect_all_accounted itimer 10 5
}

# Of what the three use: the workload looks at its clock between them, and the JVM has threads of its own.
expect_shares() { # [TOLERANCE]
	local column=2 method
	expect "samples in one of the three, %" "$(share "$here/out" 'Shares\\.(fifty|thirty|twenty)')" '>=' 90
	grep -E 'Shares\.(fifty|thirty|twenty)' "$here/out" >"$here/three"
	for method in fifty thirty twenty; do
		expect_near "share of $method" "$(share "$here/three" "Shares.$method")" \
			"$(jvm_said SHARES $column)" "${1:-2}"
		column=$((column + 1))
	done
}

jdk_case_shares_50_30_20() {
	need_bpf
	# Not inlined, the three run the very same code: the shares are known without a clock.
	JVM_OPTS=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.Shares::*')
	record_gated "$jdk" 1ms workload.Shares 8
	expect_shares
	expect_near "the workload's own 50" "$(jvm_said SHARES 2)" 50 1
}

jdk_case_shares_inlined() {
	need_bpf
	record_gated "$jdk" 1ms workload.Shares 8
	expect_shares
}

jdk_case_shares_interpreted() {
	need_bpf
	JVM_OPTS=(-Xint)
	record_gated "$jdk" 1ms workload.Shares 8 20000
	expect_shares
}

# Samples of a virtual thread are its own, on whatever carrier. Each kind of thread works in a method of its own.
expect_virtual_shares() { # ALPHA BETA UNNAMED: patterns of their labels
	local method
	need_bpf
	JVM_OPTS+=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.TwoBusy::spin')
	RECORD_OPTS=(-t)
	record_gated "$jdk" 1ms workload.VirtualShares
	for method in alpha beta unnamed plain; do
		grep "VirtualShares\.$method;" "$here/out" >"$here/$method"
	done
	expect_share "alpha under its label" "$(matching "$here/alpha" "$1")" '>=' 98
	expect_share "beta under its label" "$(matching "$here/beta" "$2")" '>=' 98
	expect_share "those without a name under theirs" "$(matching "$here/unnamed" "$3")" '>=' 98
	expect_share "the platform thread under its own" "$(matching "$here/plain" '^\\[plain tid=[0-9]+\\];')" '>=' 98
	cat "$here/alpha" "$here/beta" "$here/unnamed" >"$here/virtual"
}

jdk_case_shares_of_virtual_threads() {
	local alpha='^\\[alpha virtual=[0-9]+\\];' beta='^\\[beta virtual\\];' unnamed='^\\[virtual threads\\];'
	need_jdk 21 "virtual threads"
	expect_virtual_shares "$alpha" "$beta" "$unnamed"
	expect_near "share of alpha" "$(share "$here/virtual" "$alpha")" 50 2
	expect_near "share of both beta" "$(share "$here/virtual" "$beta")" 30 2
	expect_near "share of those without a name" "$(share "$here/virtual" "$unnamed")" 20 2
}

# Whose references cannot be followed: it is known that a virtual thread is mounted, not its name.
jdk_case_shares_of_virtual_threads_with_zgc() {
	local all='^\\[virtual threads\\];'
	need_jdk 25 "ids with ZGC"
	JVM_OPTS=(-XX:+UseZGC)
	expect_virtual_shares "$all" "$all" "$all"
}

# Carriers find the next virtual thread to run, which is much of the work when those hardly do any.
jdk_case_carriers_keep_their_own() {
	need_jdk 21 "virtual threads"
	need_bpf
	start_jvm "$jdk" workload.Virtual 1 100
	sleep 3
	record -p "$jvm" -d 10 -i 1ms -t -o collapsed -f "$here/out"
	expect_status 0
	grep 'ForkJoinPool\.runWorker' "$here/out" | grep -vE 'VirtualThread|Continuation' >"$here/own"
	grep 'TwoBusy\.spin' "$here/out" >"$here/work"
	expect_share "own code under the carriers" "$(matching "$here/own" '^\\[ForkJoinPool-1-worker-')" '>=' 90
	expect_share "work under virtual threads" "$(matching "$here/work" '^\\[virtual-[01] virtual=')" '>=' 97
	expect_alive "$jvm"
}

case_shares_ctimer() {
	RECORD_OPTS=(--engine ctimer)
	record_gated "$(any_jdk)" 5ms workload.Shares 12
	expect_shares 3 # a fifth of the samples that the others have
}

case_kernel_share() {
	need_bpf
	RECORD_OPTS=(-t)
	record_gated "$(any_jdk)" 2ms workload.FileIo 10
	# The workload knows its own thread only, and its system calls, not the interrupts that a busy machine brings.
	# 2 ms: the agent's handler runs within what the workload times.
	grep '^\[main ' "$here/out" >"$here/main"
	local in_calls
	in_calls=$(share "$here/main" '(do_syscall_64|el0_svc)_\\[k\\]')
	expect_near "samples in system calls, %" "$in_calls" "$(jvm_said SYSTEM)" 3
}

# They end before a profiler could open a timer for them. Most of the rest is their making and their end.
jdk_case_threads_of_100_us() {
	need_bpf
	RECORD_OPTS=(-t -v)
	record_gated "$jdk" 1ms workload.ShortThreads 5
	expect_share "CPU time seen, ticks" "$(($(total "$here/out") * ticks_per_second / 1000)) $ticks" '>=' 85
	grep '^\[short-' "$here/out" >"$here/short"
	expect_share "with a root" "$(matching "$here/short" ';(__)?clone3?;')" '>=' 90
	grep 'java/lang/Thread\.run;.*ShortThreads' "$here/short" >"$here/java"
	local burnt_ms=$(($(jvm_said THREADS 2) / 10))
	expect_share "ms in Java, of what they burnt there" "$(total "$here/java") $burnt_ms" '>=' 80
}

run_cases "$@"
