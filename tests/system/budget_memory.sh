#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
#
# --max-memory holds, whatever is profiled, and loses no CPU time. The same recording without a limit takes more memory,
# which shows that the load is hostile enough.
. "$(dirname "$0")/lib.sh"

peak_memory=$DUET_BUILD/tests/system/peak_memory
limit_mb=40
interval_us=613 # no multiple of what else ticks

# The most RAM the recorder ever had, as the kernel reports it to its parent, is in $peak_kb, its CPU time in $cpu_ms.
record_peak() { # OPTIONS...
	timeout --kill-after=5 90 "$peak_memory" "$here/peak" "$duet" record -v "$@" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect_status 0
	read -r peak_kb cpu_ms <"$here/peak"
}

# Sanitizers take RAM of their own, which the limit does not count.
expect_ram() { # OPERATOR KB
	is_sanitized || expect "kB of RAM" "$peak_kb" "$@"
}

# Expects that FILE accounts for a whole number of ticks, hardly more than there were samples, and that their sum is the
# CPU time, as precisely as a machine with other load shows it.
expect_all_cpu_time() { # FILE ns
	local samples told ticks
	samples=$(reported_samples)
	told=$(awk '{ sum += $NF } END { printf "%.0f\n", sum }' "$1")
	ticks=$((told / (interval_us * 1000)))
	[ "$told" = $((ticks * interval_us * 1000)) ] || fail "$told ns are told of, of $samples samples"
	expect "ticks told of, of $samples samples" "$ticks" '>=' "$samples"
	expect "ticks told of, of $samples samples" "$ticks" '<=' $((samples + samples / 100))
	expect_near "CPU time told of, in percent of what the kernel counted" $((100 * told / $2)) 100 20
}

workload_cpu() {
	awk '$1 == "CPU" { print $2 }' "$here/stdout"
}

crowd() { # stacks|processes CPU_SECONDS OPTIONS...
	local kind=$1 seconds=$2
	shift 2
	rm -f "$here/out.collapsed"
	record_peak -i ${interval_us}us --total -o collapsed -f "$here/out.collapsed" "$@" \
		-- "$workloads/crowd" "$kind" "$seconds"
	expect_all_cpu_time "$here/out.collapsed" "$(workload_cpu)"
}

# Records again with the limit that the message of duet names as sufficient.
case_many_stacks() {
	local would_do
	need_bpf
	crowd stacks 2
	expect "kB of RAM without a limit" "$peak_kb" '>' $((limit_mb * 1024))
	crowd stacks 2 --max-memory ${limit_mb}m
	expect_ram '<' $((limit_mb * 1024))
	expect_lacks "$here/stdout" LIMITED
	expect_contains "$here/out.collapsed" '\[too_many_stacks\]'
	expect_contains "$here/stderr" 'lost: [0-9]+ stacks not kept: --max-memory'
	expect_lacks "$here/stderr" 'out of memory'
	expect "percent of the time has its stack" "$(share "$here/out.collapsed" 'spin')" '>' 10
	would_do=$(sed -n 's/.* about \([0-9]*\) MB are enough/\1/p' "$here/stderr")
	expect "MB that would do" "$would_do" '>' $limit_mb
	crowd stacks 2 --max-memory "${would_do}m"
	expect_lacks "$here/stderr" '--max-memory'
}

# ---- figures about duet itself ---------------------------------------------------------------------

status_bytes() { # PART
	sed -n "s/^ *\([0-9]*\)  bytes of RAM, by part: $1\$/\1/p" "$here/status"
}

# Prints the recorder's own pages and its pages of files. Its mappings of BPF maps and rings are counted elsewhere.
own_bytes() {
	awk '/^[0-9a-f]+-/ { is_own = !/anon_inode:bpf-map|memfd:duet-ring/ } is_own && $1 == "Rss:" { sum += $2 }
		END { print sum * 1024 }' "/proc/$recorder/smaps"
}

# Descriptors of files that are being read may be closed before cat reads them.
maps_bytes() {
	{ cat "/proc/$recorder/fdinfo"/* 2>/dev/null || true; } |
		awk '/^pos:/ { is_map = 0 } /^map_type:/ { is_map = 1 } is_map && $1 == "memlock:" { sum += $2 }
			END { print sum + 0 }'
}

# Prints the sum of both processes' shares in the pages of one memfd: each page counts once.
rings_bytes() { # PID of the JVM
	awk '/^[0-9a-f]+-/ { is_ring = /memfd:duet-ring/ } is_ring && $1 == "Pss:" { sum += $2 }
		END { print sum * 1024 }' "/proc/$1/smaps" "/proc/$recorder/smaps"
}

# duet measures once a second: pages may appear or disappear between its measurement and this one.
is_told_truly() { # PID of the JVM
	"$duet" status "$recorder" >"$here/status" 2>&1 || fail "no status: $(cat "$here/status")"
	own=$(own_bytes)
	maps=$(maps_bytes)
	rings=$(rings_bytes "$1")
	is_near $(($(status_bytes heap) + $(status_bytes files))) "$own" $((1 << 20)) &&
		is_near "$(status_bytes maps)" "$maps" $((1 << 18)) &&
		is_near "$(status_bytes rings)" "$rings" $((1 << 18))
}

# Each page counts once.
jdk_case_the_kernel_counts_the_same() {
	local own maps rings end=$((SECONDS + 15))
	need_bpf
	start_jvm "$jdk" workload.Mixed
	start_record --agent always -p "$jvm" -d 30 -i 1ms --max-memory 64m -o collapsed -f "$here/out"
	until is_told_truly "$jvm"; do
		[ $SECONDS -lt $end ] || fail "own pages $own, maps $maps, rings $rings; duet says: $(
			grep 'by part' "$here/status" | grep RAM | tr -s ' \n' ' ')"
		sleep 0.1
	done
	end_record INT
	expect "bytes of rings" "$rings" '>' 4096
	expect "bytes of all parts" "$((own + maps + rings))" '<' $((64 << 20))
}

case_many_processes() {
	need_bpf
	crowd processes 2 -t --max-memory ${limit_mb}m
	expect_ram '<' $((limit_mb * 1024))
	expect_lacks "$here/stderr" 'out of memory'
}

# There is no room on disk for the timeline either.
case_no_disk() {
	need_bpf
	export TMPDIR=$here/missing
	crowd stacks 2 --max-memory ${limit_mb}m
	expect_ram '<' $((limit_mb * 1024))
	expect_lacks "$here/stderr" 'out of memory'
}

# The limit also holds for the child that writes a window.
case_windows() {
	need_bpf
	record_peak --continuous --window 1s -i ${interval_us}us --max-memory ${limit_mb}m -f "$here/windows" \
		-o flamegraph -- "$workloads/crowd" stacks 5 5
	expect "windows" "$(find "$here/windows" -type f | wc -l)" '>=' 4
	expect_ram '<' $((limit_mb * 1024))
	expect_lacks "$here/stderr" 'out of memory|could not be written'
}

# A JVM that loads and compiles new classes all the time.
jdk_case_many_methods() {
	need_bpf
	JVM_IN=$here/in
	mkfifo "$JVM_IN"
	sleep 60 >"$JVM_IN" &
	jvms+=($!)
	start_jvm "$jdk" workload.Storm classes code threads
	record_peak -p "$jvm" -d 4 -i 1ms --total --max-memory ${limit_mb}m -o collapsed -f "$here/out.collapsed"
	expect_alive "$jvm"
	expect_ram '<' $((limit_mb * 1024))
	expect_lacks "$here/stderr" 'out of memory'
}

# ---- many JVMs ----------------------------------------------------------------------------------

# JVMs read from outside: each page counts once. The recorder maps the rings, so they are left out.
all_kb() {
	awk '/^[0-9a-f]+-/ { is_own = !/anon_inode:bpf-map/ } is_own && $1 == "Rss:" { sum += $2 } END { print sum }' \
		"/proc/$recorder/smaps"
}

# Prints the most memory that is seen until the JVMs $pids together have used this much CPU time.
watch_memory() { # CPU_SECONDS
	local kb pid ticks until=-1
	peak_kb=0
	while :; do
		ticks=0
		for pid in "${pids[@]}"; do
			ticks=$((ticks + $(cpu_ticks "$pid")))
		done
		[ $until -ge 0 ] || until=$((ticks + $1 * ticks_per_second))
		kb=$(($(all_kb) + $(maps_bytes) / 1024))
		peak_kb=$((kb > peak_kb ? kb : peak_kb))
		[ $ticks -lt $until ] || return 0
		sleep 0.5
	done
}

# JVMs with 16,500 methods each, at 100 Hz, within the default limit of a host. DUET_LONG=1: ten JVMs, for a minute.
case_large_jvms() { # apart
	local i pids=()
	need_bpf
	for ((i = 0; i < (${DUET_LONG:-0} ? 10 : 3); i++)); do
		JVM_PATIENCE=100 start_jvm "$(any_jdk)" workload.Many 1500 600
		pids+=("$jvm")
	done
	jvm=
	start_record --host --continuous --window 10s -i 10ms -d 300 -v -o col -f "$here/windows"
	watch_memory $((${DUET_LONG:-0} ? 60 : 4))
	end_record INT
	expect_status 0
	expect "kB of RAM and of BPF's maps" "$peak_kb" '<=' $((128 << 10))
	expect_share "joined" "$(reported joined)" '>=' 99.9
	expect_lacks <(cat "$here/windows"/profile_*.col) '\[(unknown_method|unknown_code|too_many_stacks)\]'
}

wait_for_jvms() { # COUNT, since the first
	local end=$((SECONDS + 60 + $1 * 5))
	until [ "$(grep -c ^DONE "$here/jvms")" -ge "$1" ]; do
		[ $SECONDS -lt $end ] || fail "$(grep -c ^DONE "$here/jvms") JVMs have ended after $SECONDS s"
		sleep 0.2
	done
}

# JVMs that end soon after their start, one after the other: the last ones cost no more memory than the first. Tables
# change their size during the first ones. DUET_LONG=1: two minutes of them.
case_jvms_come_and_go() { # apart
	local first pids=()
	need_bpf
	# shellcheck disable=SC2016 # $@ is the inner shell's
	setsid bash -c 'while "$@"; do :; done' bash "$(any_jdk)/bin/java" -Xmx64m -XX:TieredStopAtLevel=1 -Dends=true \
		-cp "$workloads" workload.Many 100 1 >"$here/jvms" 2>&1 &
	jvms+=($!)
	start_record --host --continuous --window 2s -i 5ms -d 600 -o col -f "$here/windows"
	wait_for_jvms 4
	first=$(($(all_kb) + $(maps_bytes) / 1024))
	wait_for_jvms $((${DUET_LONG:-0} ? 100 : 9))
	expect "kB of RAM and of BPF's maps" $(($(all_kb) + $(maps_bytes) / 1024)) '<=' $((first + (first >> 2)))
	kill -KILL -- "-${jvms[-1]}"
	end_record INT
	expect_status 0
	expect_share "joined" "$(reported joined)" '>=' 99
	cat "$here/windows"/profile_*.col | grep -v '^#' >"$here/stacks"
	expect_lacks "$here/stacks" '\[too_many_stacks\]'
	# Methods that a JVM ran last have no name if it ends before it was asked.
	expect_share "without a name" "$(matching "$here/stacks" '\[unknown_(method|code)\]')" '<=' 5
}

# ---- libraries ----------------------------------------------------------------------------------

# Makes copies of one library in $here/libraries, each with other unwind rows.
make_libraries() { # small|large COUNT
	local i
	mkdir "$here/libraries"
	for ((i = 100; i < 100 + $2; i++)); do
		copy_library "$1" "$i" "$here/libraries/$i.so"
	done
}

# Starts a process that maps all of them. Its pid is $jvm.
start_libraries() { # small|large COUNT
	make_libraries "$@"
	map_libraries
	expect "libraries" "$(grep -c "r-xp.*$here/libraries" "/proc/$jvm/maps")" '>=' "$2"
}

map_libraries() { # FILE... or all
	jvm_out=$here/libraries.out
	rm -f "$jvm_out" # the last one's READY
	[ $# -gt 0 ] || set -- "$here/libraries"/*.so
	"$workloads/libraries" "$@" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 30
}

# A recording beside 100 large libraries keeps its limits: the memory of the loader, with the part of the BPF maps that
# it maps, and its CPU time before the first sample, which is nearly all of its CPU time.
case_a_hundred_libraries() {
	need_bpf
	start_libraries small 100
	record_peak --engine bpf --no-attach -v -p "$jvm" -d 3 -i 1ms -o collapsed -f "$here/out"
	sed -n 's/^duet: debug: first sample/# first sample/p' "$here/stderr"
	expect "files with rows" "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" '==' 100
	expect_ram '<' $((128 * 1024))
	expect "ms of CPU time" "$cpu_ms" '<' 2000
	expect_lacks "$here/stderr" 'lost: .*(ring|user stacks|files)'
	expect "percent of the time has its stack" "$(share "$here/out" 'main;library_work( |;)')" '>' 99
}

# The libraries are mapped one by one and read while samples arrive: the ring must not become full in that time.
case_a_hundred_libraries_come() {
	need_bpf
	start_libraries small 100
	kill "$jvm"
	record_peak --engine bpf --no-attach -v -d 5 -i 1ms -o collapsed -f "$here/out" \
		-- sh -c 'timeout 4 "$@"; :' sh "$workloads/libraries" "$here/libraries"/*.so
	expect "files with rows" "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" '==' 100
	expect_ram '<' $((128 * 1024))
	expect_lacks "$here/stderr" 'lost: .*(ring was full|files)'
	expect "percent of the time has its stack" "$(share "$here/out" 'main;library_work( |;)')" '>' 60
}

longest_step_ms() {
	"$duet" status "$recorder" | sed -n 's/^ *\([0-9.e-]*\)  longest time .* without a look .*/\1/p' |
		awk '{ print 1000 * $1 }'
}

# Rows of large files are made in steps, between which the loader reads the rings and serves the agents.
case_rings_are_read_meanwhile() {
	local end=$((SECONDS + 40)) files=30 rows_ms
	need_bpf
	start_libraries large "$files"
	for _ in 1 2; do
		sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &
		jvms+=("$!") # ended with the case
	done
	start_record --comm libraries --no-attach -v -i 5ms -d 60 -o collapsed -f "$here/out"
	until [ "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" -ge "$files" ]; do
		[ $SECONDS -lt $end ] || fail "rows of $files files are not made: $(cat "$here/stderr")"
		sleep 0.1
	done
	rows_ms=$(awk -v of="$here/libraries" 'index($0, "unwind rows of " of) { sum += $(NF - 1) } END { print sum }' \
		"$here/stderr")
	expect "ms of the longest step, while rows were made for $rows_ms ms" "$(longest_step_ms)" '<' \
		"$(awk -v ms="$rows_ms" 'BEGIN { print ms / 3 }')"
	end_record INT
	expect_status 0
}

# Copies of the same file, as in several containers, share one table. Each copy is read, because only its rows show that
# they are equal.
case_copies_of_one_library() {
	local i
	need_bpf
	start_libraries large 1
	kill "$jvm"
	for i in {1..40}; do
		cp "$here/libraries/100.so" "$here/libraries/copy$i.so"
	done
	record_peak --engine bpf --no-attach -v -d 6 -i 1ms -o collapsed -f "$here/out" \
		-- sh -c 'timeout 5 "$@" || true' sh "$workloads/libraries" "$here/libraries"/*.so
	expect "files read" "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" '==' 41
	expect "percent of the time has its stack" "$(share "$here/out" 'main;library_work( |;)')" '>' 60
	expect_lacks "$here/stderr" 'lost: .*files'
}

# More libraries than the tables hold: those without room are reported once, read once however many processes map them,
# and cost no memory. On a busy machine one library may replace another each second, if no sample used it.
case_more_libraries_than_fit() {
	local first
	need_bpf
	start_libraries large 40
	first=$jvm
	map_libraries
	record_peak --engine bpf --no-attach -v -p "$first,$jvm" -d 3 -i 1ms -o collapsed -f "$here/out"
	expect_ram '<' $((128 * 1024))
	expect "files read, also again" "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" '<=' 44
	expect "files without room" "$(sed -n 's/.*lost: \([0-9]*\) files walked by frame pointer.*/\1/p' \
		"$here/stderr")" '<' 40
	expect_lacks "$here/stderr" 'lost: .*ring was full'
}

# When rows are missing, rows that nobody has used for 5 s make room. Tables are filled in the order of addresses, so
# the libraries mapped first are filled last.
case_the_libraries_that_work() {
	need_bpf
	make_libraries large 40
	map_libraries "$here/libraries"/10[012].so -- "$here/libraries"/10[3-9].so "$here/libraries"/1[1-3]?.so
	record_peak --engine bpf --no-attach -v --total -p "$jvm" -d 15 -i 5ms -o collapsed -f "$here/out"
	expect "files read" "$(grep -c "[0-9]* unwind rows of $here/libraries" "$here/stderr")" '==' 43
	expect_ram '<' $((128 * 1024))
	expect "percent of the time has its stack" "$(share "$here/out" 'main;library_work( |;)')" '>' 60
	expect_lacks "$here/stderr" 'lost: .*ring was full'
}

case_too_little_is_refused() {
	record --max-memory 1m -d 1 -p $$
	expect_refusal 2 'max-memory: 1 MiB is too little, at least 32m'
	record --max-memory 1x -d 1 -p $$
	expect_refusal 2 'number above 0'
}

run_cases "$@"
