#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Sleeps that end in unusual ways, many sleepers, and other clocks: the sums are what the threads themselves have
# measured.
. "$(dirname "$0")/lib.sh"

need_offcpu() {
	need_bpf
	"$duet" check 2>&1 | grep -qE 'yes +time off CPU' || skip "this kernel has no hook for sleeps"
}

# Records all processes of the workload by a name that no other run of it has. Its output is in $here/said.
record_odd() { # exits|execs|forks
	local name
	name=odd.$(basename "$here")
	cp "$workloads/odd_sleeps" "$here/$name"
	start_record --comm "$name" --no-attach -e offcpu=1ms --total -t -d 100 -o collapsed -f "$here/out"
	"$here/$name" "$1" 1500 >"$here/said" || fail "the workload failed"
	sleep 0.5
	end_record INT
	expect_status 0
}

# Expects that the time recorded in a function is what the threads have measured.
expect_time() { # FUNCTION
	local told said
	told=$(grep -E ";(run|main);$1;" "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')
	said=$(awk -v name="$1" '$1 == name { print $2 / 1e9 }' "$here/said")
	expect_near "time in $1, s" "$told" "$said" "$(awk "BEGIN { print 0.02 * $said }")"
}

case_threads_that_exit_asleep() {
	need_offcpu
	record_odd exits
	expect_time in_old
}

# A process executes another program while its threads sleep; then those of that program do.
case_exec_between() {
	need_offcpu
	record_odd execs
	expect_time in_old
	expect_time in_new
}

case_fork_between() {
	need_offcpu
	record_odd forks
	expect_time in_old
	expect_time in_child
}

is_leaderless() { # PID
	grep -q '^State:.Z' "/proc/$1/status"
}

# The first thread of the process has ended: it has neither memory nor files in /proc, and the others live on.
case_first_thread_ended() {
	need_offcpu
	local name option
	name=odd.$(basename "$here")
	cp "$workloads/odd_sleeps" "$here/$name"
	"$here/$name" leaves 60000 >"$here/said" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for 10 is_leaderless "$jvm"
	for option in "-p $jvm" "--comm $name" --host; do
		# shellcheck disable=SC2086
		record $option --no-attach -e wall --total -t -d 2 -o collapsed -f "$here/all"
		expect_status 0
		grep -F "$name" "$here/all" >"$here/out"
		expect_near "${option%% *}: time in in_old, s" \
			"$(grep -F ';run;in_old;' "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')" \
			"$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr" | awk '{ print 20 * $1 }')" 2
		expect_lacks "$here/out" '\[unmapped\]'
	done
}

# Signals without a handler make the threads repeat their calls: their stacks are the same, and their pc is not. The
# hook is one that older kernels have, too.
case_stopped_between() {
	need_offcpu
	"$duet" check 2>&1 | grep -qE "yes +hook rseq_update\$" || skip "this kernel has no hook rseq_update"
	"$workloads/parked" 10 300 8 >"$here/said" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/said" '^READY' 10
	start_record --no-attach -p "$jvm" -e offcpu --off-cpu-hook rseq_update --total -t -d 3 \
		-o collapsed -f "$here/out"
	for _ in 1 2 3 4 5; do
		kill -STOP "$jvm"
		sleep 0.1
		kill -CONT "$jvm"
		sleep 0.25
	done
	end_record
	expect_status 0
	expect_lacks "$here/stderr" 'pc or sp had changed'
	expect_near "time of the threads, s" \
		"$(grep -F '[napping_' "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')" \
		"$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr" | awk '{ print 10 * $1 }')" 1.5
	grep -F '[napping_' "$here/out" >"$here/naps"
	expect "stacks with the thread's entry, %" \
		"$(share "$here/naps" '\];(\[idle\];)?(__)?clone[0-9]*;.*;naps;')" '>=' 99
}

# Each of many threads has all its time.
expect_parked() { # THREADS
	local threads least most seconds
	"$workloads/parked" "$1" >"$here/parked" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/parked" '^READY' 30
	record --no-attach -p "$jvm" -e wall --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/stderr" 'lost: nothing'
	seconds=$(sed -nE 's/.* samples in ([0-9.]+) s .*/\1/p' "$here/stderr")
	read -r threads least most < <(awk '
		match($0, "\\[parked_[^ ]*") { sum[substr($0, RSTART, RLENGTH)] += $NF / 1e9 }
		END { for (thread in sum) {
				threads++
				least = threads == 1 || sum[thread] < least ? sum[thread] : least
				most = sum[thread] > most ? sum[thread] : most
			}
			print threads + 0, least + 0, most + 0 }' "$here/out")
	expect "threads" "$threads" == "$1"
	expect_near "time of the one with the least, s" "$least" "$seconds" 0.2
	expect_near "time of the one with the most, s" "$most" "$seconds" 0.2
	expect_lacks "$here/parked" INTERRUPTED
}

case_five_thousand() {
	need_offcpu
	expect_parked 5000
}

case_twenty_thousand() {
	need_offcpu
	[ "$(cat /proc/sys/kernel/pid_max)" -gt 30000 ] || skip "fewer thread ids"
	[ "$(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo)" -gt 4000000 ] || skip "less than 4 GB of memory"
	expect_parked 20000
}

# Threads that wait for a block device, by read(2) and by io_uring. Each sleep of 100 us or more has its exact length,
# but a switch of threads is a part of it that the kernel counts as CPU time: 20 us for each of some 5,000.
case_a_block_device() {
	need_offcpu
	local name told said
	"$workloads/disk_waits" "$here/data" 3 >"$here/said" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/said" '^READY\|^no direct' 60
	grep -q '^no direct' "$here/said" && skip "the file system of $here has no direct reads"
	start_record --no-attach -p "$jvm" -e offcpu=100us --total -t -d 100 -o collapsed -f "$here/out"
	touch "$here/data.gate"
	wait_for_line "$here/said" '^DONE' 60
	end_record
	expect_status 0
	for name in in_direct in_uring; do
		said=$(awk -v name="$name" '$1 == name { print $2 / 1e9 }' "$here/said")
		[ "$said" ] || continue
		told=$(grep -F "[$name " "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')
		expect_near "time off CPU of $name, s" "$told" "$said" "$(awk "BEGIN { print 0.03 * $said + 0.1 }")"
		grep -F "[$name " "$here/out" | grep -v '\[runnable\]' >"$here/blocked"
		expect "of the time blocked as io in its function, %" \
			"$(share "$here/blocked" ";$name;.*_\\[k\\];\\[io\\] ")" '>=' 95
	done
}

# A process whose clocks differ from the host's, as after it was moved from another machine.
case_clocks_of_a_namespace() {
	need_offcpu
	need_root
	local name told said outer
	unshare --time --monotonic 500000 --boottime 700000 --fork "$workloads/sleeps" "$here/gate" 4 >"$here/said" &
	outer=$! jvm=$!
	jvms+=("$outer")
	wait_for_line "$here/said" '^READY' 10
	jvm=$(pgrep -P "$outer")
	jvms+=("$jvm")
	[ "$(readlink "/proc/$jvm/ns/time")" != "$(readlink /proc/self/ns/time)" ] || skip "no time namespaces"
	start_record --no-attach -p "$jvm" -e offcpu=300us --total -t -d 100 -o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$here/said" '^DONE' 60
	end_record
	expect_status 0
	for name in in_nanosleep in_poll in_lock in_turns; do
		said=$(awk -v name="$name" 'index($1, name) == 1 { sum += $2 } END { print sum / 1e9 }' "$here/said")
		told=$(grep -F "[$name" "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')
		expect_near "time of $name, s" "$told" "$said" "$(awk "BEGIN { print 0.02 * $said }")"
	done
}

run_cases "$@"
