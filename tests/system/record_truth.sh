#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 700
# What duet counts is compared with the truth: the kernel's CPU accounting, and workloads with known shares.
. "$(dirname "$0")/lib.sh"

# Records the workload while its gate is open. The recording is $here/out, in the collapsed format.
record_gated() { # HOME INTERVAL CLASS ARGS... (RECORD_OPTS: array of further options)
	local home=$1 interval=$2
	shift 2
	JVM_OPTS+=("-Dgate=$here/gate")
	start_jvm "$home" "$@"
	start_record -p "$jvm" -d 120 -i "$interval" ${RECORD_OPTS[@]+"${RECORD_OPTS[@]}"} -o collapsed -f "$here/out"
	local before
	before=$(cpu_ticks "$jvm")
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	ticks=$(($(cpu_ticks "$jvm") - before))
	sleep 0.3
	end_record INT
	expect_status 0
	expect_file "$here/out"
}

# ---- all of the CPU time ---------------------------------------------------------------------------

# Waits until ticks are delivered: by BPF's events, by timers, or by the handler of setitimer(). duet's own wait for -p
# takes longer.
start_sampling() { # ENGINE OPTIONS...
	local signals end=$((SECONDS + 30))
	"$duet" record -v --engine "$@" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	until has_ticks "$recorder" "$jvm" || ((0x${signals:-0} & 1 << 26)); do
		kill -0 "$recorder" 2>/dev/null || fail "duet record ended at once: $(cat "$here/stderr")"
		[ $SECONDS -lt $end ] || fail "no ticks within 30 s: $(cat "$here/stderr")"
		sleep 0.05
		signals=$(awk '/^SigCgt/ { print $2 }' "/proc/$jvm/status")
	done
	ticks=$(cpu_ticks "$jvm")
	sleep 0.2
}

# The samples have the CPU time that the threads' own clocks show, within one percent and chance. BPF samples CPUs: for
# a thread that has a CPU for a part p of the time, n ticks deviate by at most sqrt(n (1 - p)), and each thread has a
# part of a tick too much or too little at its end. Five deviations are exceeded once in a million runs. Timers follow
# the threads; setitimer() follows the process as a whole, whose window is known to some 50 ms.
expect_burnt() { # ENGINE INTERVAL_NS THREADS
	local burnt wall told pattern='^\\[busy' percent=1
	burnt=$(jvm_said BURNT) wall=$(jvm_said BURNT 3)
	[ "$1" = bpf ] || wall=0
	[ "$1" != itimer ] || { burnt=$((ticks * 1000000000 / ticks_per_second)) pattern=. percent=3; }
	told=$(matching "$here/out" "$pattern")
	expect_near "CPU time that samples of $1 every $2 ns tell of, % of what $3 threads have burnt" \
		"$(awk -v told="${told% *}" -v burnt="$burnt" 'BEGIN { printf "%.2f", 100 * told / burnt }')" 100 \
		"$(awk -v n="$((burnt / $2))" -v threads="$3" -v wall="$wall" -v burnt="$burnt" -v cpus="$(nproc)" \
			-v percent=$percent 'BEGIN {
			idle = wall ? 1 - burnt / wall / (threads < cpus ? threads : cpus) : 0
			printf "%.2f", percent + 500 * sqrt(n * (idle > 0 ? idle : 0) + threads / 4) / n }')"
}

# Intervals are no multiples of the kernel's own tick: threads begin and end their turns with it.
expect_all_sampled() { # ENGINE INTERVAL_US THREADS COMMAND...
	local engine=$1 us=$2 threads=$3
	shift 3
	rm -f "$here/gate"
	"$@"
	start_sampling "$engine" -p "$jvm" -d 60 -i "${us}us" -t --total ${RECORD_OPTS[@]+"${RECORD_OPTS[@]}"} \
		-o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	ticks=$(($(cpu_ticks "$jvm") - ticks))
	end_record INT
	expect_status 0
	expect_burnt "$engine" $((us * 1000)) "$threads"
	kill "$jvm"
}

busy_native() { # THREADS SECONDS
	jvm_out=$here/busy.out
	rm -f "$jvm_out" # the last one's READY
	"$workloads/busy" "$1" "$2" "$here/gate" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
}

busy_jvm() { # THREADS SECONDS
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$(any_jdk)" workload.TwoBusy "$2" "$1"
}

case_cpu_time_bpf() {
	need_bpf
	expect_all_sampled bpf 101 2 busy_jvm 2 0.7
	expect_all_sampled bpf 997 4 busy_jvm 4 0.5
	expect_all_sampled bpf 9973 2 busy_jvm 2 1.5
}

case_cpu_time_bpf_native() {
	need_bpf
	RECORD_OPTS=(--no-attach)
	expect_all_sampled bpf 101 4 busy_native 4 0.4
	expect_all_sampled bpf 997 2 busy_native 2 1
	expect_all_sampled bpf 997 16 busy_native 16 0.2
	expect_all_sampled bpf 9973 2 busy_native 2 1.5
}

case_cpu_time_beside_others() {
	need_bpf
	"$workloads/busy" 2 30 >/dev/null &
	jvms+=($!)
	RECORD_OPTS=(--no-attach)
	expect_all_sampled bpf 101 2 busy_native 2 0.7
	expect_all_sampled bpf 997 4 busy_native 4 0.4
	RECORD_OPTS=()
	expect_all_sampled ctimer 997 4 busy_jvm 4 0.4
}

case_cpu_time_ctimer() {
	expect_all_sampled ctimer 101 2 busy_jvm 2 0.7
	expect_all_sampled ctimer 997 4 busy_jvm 4 0.5
	expect_all_sampled ctimer 9973 2 busy_jvm 2 1.5
}

# Engine perf, for users who may open perf events that see the kernel, as root.
need_perf() {
	"$duet" check | grep -q '^perf: ready' || skip "perf events are refused"
}

case_cpu_time_perf() {
	need_perf
	expect_all_sampled perf 101 2 busy_jvm 2 0.7
	expect_all_sampled perf 997 4 busy_jvm 4 0.4
	expect_all_sampled perf 9973 2 busy_jvm 2 1.5
}

case_cpu_time_itimer() {
	expect_all_sampled itimer 101 2 busy_jvm 2 0.7
	expect_all_sampled itimer 997 4 busy_jvm 4 0.4
	expect_all_sampled itimer 9973 2 busy_jvm 2 1.5
}

# ---- shares ----------------------------------------------------------------------------------------

# Shares of the time of the three methods alone: the workload also reads its clock between them, and the JVM has threads
# of its own. With 15,000 samples a share of one half has an error of 0.4 %, and of 2 % once in a million runs.
expect_shares() { # [TOLERANCE]
	local column=2 method
	expect "samples in one of the three, %" "$(share "$here/out" 'Shares\\.(fifty|thirty|twenty)')" '>=' 80
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
	record_gated "$jdk" 200us workload.Shares 3
	expect_shares
	expect_near "the workload's own 50" "$(jvm_said SHARES 2)" 50 1
}

jdk_case_shares_inlined() {
	need_bpf
	record_gated "$jdk" 200us workload.Shares 3
	expect_shares
}

jdk_case_shares_interpreted() {
	need_bpf
	JVM_OPTS=(-Xint)
	record_gated "$jdk" 200us workload.Shares 3 20000
	expect_shares
}

# Each sample of a virtual thread has the name of that thread, on any carrier. Each kind of thread works in a method of
# its own. Shared code is compiled before the first turn (-Xbatch): otherwise, on a busy machine, the compiler runs
# during the turns.
expect_virtual_shares() { # ALPHA BETA UNNAMED: patterns of their labels
	local method
	need_bpf
	JVM_OPTS+=(--add-opens java.base/java.lang=ALL-UNNAMED
		-Xbatch -XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.TwoBusy::spin')
	RECORD_OPTS=(-t --agent "${AGENT:-always}")
	record_gated "$jdk" 100us workload.VirtualShares
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
	expect_near "share of alpha" "$(share "$here/virtual" "$alpha")" "$(jvm_said SHARES 2)" 2
	expect_near "share of both beta" "$(share "$here/virtual" "$beta")" "$(jvm_said SHARES 3)" 2
	expect_near "share of those without a name" "$(share "$here/virtual" "$unnamed")" "$(jvm_said SHARES 4)" 2
}

# With this collector references cannot be followed: it is known that a virtual thread is mounted, but not its name.
jdk_case_shares_of_virtual_threads_with_zgc() {
	local all='^\\[virtual threads\\];'
	need_jdk 25 "ids with ZGC"
	JVM_OPTS=(-XX:+UseZGC)
	expect_virtual_shares "$all" "$all" "$all"
}

# Names of virtual threads without an agent.
jdk_case_shares_of_virtual_threads_read_from_outside() {
	local alpha='^\\[alpha virtual=[0-9]+\\];' beta='^\\[beta virtual\\];' unnamed='^\\[virtual threads\\];'
	need_jdk 25 "addresses of the entry"
	AGENT=never
	expect_virtual_shares "$alpha" "$beta" "$unnamed"
}

# Carriers look for the next virtual thread to run, which is much of the work if these threads do little.
jdk_case_carriers_keep_their_own() {
	need_jdk 21 "virtual threads"
	need_bpf
	start_jvm "$jdk" workload.Virtual 1 100
	warm_up 4
	record --agent always -p "$jvm" -d 5 -i 500us -t -o collapsed -f "$here/out"
	expect_status 0
	grep 'ForkJoinPool\.runWorker' "$here/out" | grep -vE 'VirtualThread|Continuation' >"$here/own"
	grep 'TwoBusy\.spin' "$here/out" >"$here/work"
	expect_share "own code under the carriers" "$(matching "$here/own" '^\\[ForkJoinPool-1-worker-')" '>=' 90
	expect_share "work under virtual threads" "$(matching "$here/work" '^\\[virtual-[01] virtual=')" '>=' 97
	expect_alive "$jvm"
}

case_shares_ctimer() {
	RECORD_OPTS=(--engine ctimer)
	# Short rounds: rounds of 2 ms would run in step with the kernel's ticks, at which these timers expire.
	record_gated "$(any_jdk)" 5ms workload.Shares 12 20000
	expect_shares 3 # a fifth of the samples of the other cases
}

case_shares_perf() {
	need_perf
	RECORD_OPTS=(--engine perf)
	record_gated "$(any_jdk)" 500us workload.Shares 3
	expect_shares
}

case_kernel_share() {
	need_bpf
	expect_kernel_share
}

case_kernel_share_perf() {
	need_perf
	RECORD_OPTS=(--engine perf)
	expect_kernel_share
}

expect_kernel_share() {
	RECORD_OPTS+=(-t)
	record_gated "$(any_jdk)" 1ms workload.FileIo 4
	# The workload knows its own thread only, and its system calls, not the interrupts that a busy machine brings.
	# Of 4,000 samples a third is in calls: their share errs by 0.75 %. What sampling takes counts as CPU time of
	# the calls too, and no tick falls there: 1.7 % at most on a machine whose caches others use.
	grep '^\[main ' "$here/out" >"$here/main"
	local in_calls untold
	in_calls=$(share "$here/main" '(do_syscall_64|el0_svc)_\\[k\\]')
	# No tick comes while the hypervisor runs something else, but the thread's clock goes on. That may all be in
	# calls.
	untold=$(awk -v told="$(total "$here/main")" -v all="$(jvm_said SYSTEM 3)" \
		'BEGIN { untold = 100 - 1e8 * told / all; printf "%.2f", (untold > 0 ? untold : 0) }')
	expect "CPU time without a tick, %" "$untold" '<=' 30
	expect_near "samples in system calls, %" "$in_calls" "$(jvm_said SYSTEM)" \
		"$(awk "BEGIN { print 4.5 + $untold }")"
}

# The threads end before a profiler could open a timer for them. Starting and ending them is most of the other work.
jdk_case_threads_of_100_us() {
	need_bpf
	RECORD_OPTS=(-t -v)
	record_gated "$jdk" 200us workload.ShortThreads 3
	expect_share "CPU time seen, ticks" "$(($(total "$here/out") * ticks_per_second / 5000)) $ticks" '>=' 85
	grep '^\[short-' "$here/out" >"$here/short"
	expect_share "with a root" "$(matching "$here/short" ';(__)?clone3?;')" '>=' 90
	grep 'java/lang/Thread\.run;.*ShortThreads' "$here/short" >"$here/java"
	expect_share "samples in Java, of what they burnt there" \
		"$(total "$here/java") $(($(jvm_said THREADS 2) / 2))" '>=' 80
}

run_cases "$@"
