#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# --wakers: which thread ended each wait, in pairs of threads whose waker is known.
. "$(dirname "$0")/lib.sh"

need_wakers() {
	need_bpf
	"$duet" check 2>&1 | grep -qE 'yes +who ends the time off CPU' || skip "this kernel does not tell who wakes"
}

launch=()

record_pairs() { # SECONDS RECORD-OPTIONS...
	rm -f "$here"/out* "$here/gate"
	jvm_out=$here/wakers.out
	"${launch[@]}" "$workloads/wakers" "$here/gate" "$1" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record --no-attach -p "$jvm" "${@:2}" -t -d 100 -o collapsed,duet,text=full -f "$here/out.collapsed" \
		-f "$here/out.duet" -f "$here/out.txt"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
}

# Checks the waits of a thread in this function: the last one lasts over the end, the others have their waker.
expect_waker() { # FILE THREAD FUNCTION WAKER
	grep -F "[$2 " "$1" | grep -F ";$3;" | grep -E '\[(futex|pipe|eventfd|socket|sleep)\]' >"$here/waits"
	expect_share "waits of $2 with a waker" "$(matching "$here/waits" '\\[woken by\\]')" '>=' 95
	grep -F '[woken by]' "$here/waits" >"$here/woken"
	expect_share "of which by $4" "$(matching "$here/woken" "\\\\[woken by\\\\];(.*;)?$4 ")" '>=' 99.9
}

expect_pairs() { # FILE
	local kind
	for kind in futex pipe eventfd udp tcp; do
		expect_waker "$1" in_$kind in_$kind by_$kind
		expect_waker "$1" by_$kind naps '\[timer\]'
	done
}

# A program rests after a run that took long, as when the machine's host took the CPU away meanwhile. The sleeps that it
# misses are told.
expect_few_rests() {
	local missed
	grep -E 'lost: [0-9]' "$here/stderr" >"$here/lost"
	expect "other losses" "$(grep -vc 'sleeps without their waker: .* because of the load$' "$here/lost")" '==' 0
	missed=$(sed -nE 's/.*lost: ([0-9]+) sleeps without.*/\1/p' "$here/lost")
	expect "wakers missed, of 1,000 samples" \
		"$(reported_samples | awk -v missed="${missed:-0}" \
			'{ print missed * 1000 / $1 }')" '<=' 10
}

case_pairs() {
	need_wakers
	record_pairs 5 -e offcpu=100us --wakers
	expect_pairs "$here/out.collapsed"
	expect_contains "$here/out.collapsed" ';\[woken by\];.*futex_wake.*;by_futex;wakes;.*;by_futex '
	expect_contains "$here/out.collapsed" ';\[woken by\];.*net_rx_action.*udp_sendmsg.*;by_udp;wakes;.*;by_udp '
	expect_contains "$here/out.txt" 'in_futex  <-  by_futex$'
	expect_few_rests
	"$duet" convert "$here/out.duet" -o collapsed -t "$here/again" 2>"$here/stderr" || fail "cannot be converted"
	sort "$here/out.collapsed" >"$here/sorted"
	sort "$here/again" | cmp -s - "$here/sorted" || fail "the file of duet's format has other stacks"
}

# Records beside the clock, whose ticks interrupt the programs, and with all time.
case_all_time() {
	need_wakers
	record_pairs 4 -e wall=200us --wakers
	expect_pairs "$here/out.collapsed"
}

# Calls of 1 to 25 ms in poll, select, epoll_wait, nanosleep, read, recv and for locks: no signal ends one.
case_no_call_is_interrupted() {
	need_wakers
	jvm_out=$here/sleeps.out
	"$workloads/sleeps" "$here/gate" 4 >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record --no-attach -p "$jvm" -e cpu=200us,offcpu=300us --wakers --total -t -d 100 \
		-o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
	expect "calls that a signal interrupted" \
		"$(awk 'NF == 3 { sum += $3 } END { print sum + 0 }' "$jvm_out")" '==' 0
	expect_contains "$here/out.offcpu" '\[woken by\];.*;[a-z_]* [0-9]*$'
}

# The kernel hands packets of the loopback device over to another CPU than the sender's. Threads there send others all
# the time, and their system calls deliver both: they are not the wakers.
case_packets_on_another_cpu() {
	local network=(unshare --net --mount) kind steer
	need_wakers
	steer='mount -t sysfs sysfs /sys && ip link set lo up && echo 2 >/sys/class/net/lo/queues/rx-0/rps_cpus'
	[ "$(nproc)" -ge 2 ] && "${network[@]}" bash -c "$steer" 2>"$here/why_not" || skip "cannot steer packets"
	steer+=' && { timeout 8 taskset -c 1 "$@" >/dev/null & exec taskset -c 0 "$@"; }'
	launch=("${network[@]}" bash -c "$steer" -)
	record_pairs 4 -e offcpu=100us --wakers
	for kind in udp tcp; do
		expect_waker "$here/out.collapsed" in_$kind in_$kind '\[softirq\]'
	done
}

# Sleeps shorter than the interval are chosen when they end: each that was chosen has its waker.
case_chosen_at_random() {
	need_wakers
	record_pairs 5 -e wakeup
	expect_pairs "$here/out.collapsed"
}

# The waker is a process that is not profiled: the stack has its name and its kernel frames.
case_a_stranger() {
	need_wakers
	mkfifo "$here/pipe"
	(while read -r _; do :; done) <"$here/pipe" &
	jvm=$!
	jvms+=("$jvm")
	exec 9>"$here/pipe"
	start_record --no-attach -p "$jvm" -e offcpu=100us --wakers -d 100 -o collapsed -f "$here/out"
	for _ in 1 2 3 4 5; do
		/bin/echo word >&9
		sleep 0.1
	done
	end_record INT
	exec 9>&-
	expect_status 0
	expect "waits" "$(total "$here/out")" '>=' 4
	grep '\[woken by\]' "$here/out" >"$here/waits"
	expect "ended by echo, %" "$(share "$here/waits" '\[pipe\];\[woken by\];.*pipe_write.*;echo ')" '>=' 99
}

case_without_sleeps() {
	record -p $$ -e cpu --wakers -d 1
	expect_status 2
	expect_contains "$here/stderr" 'add -e offcpu or -e wall'
}

jdk_case_java() {
	need_wakers
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Sleeps 5
	start_record -p "$jvm" -e offcpu=300us --wakers -t -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	grep -F '[inMonitor ' "$here/out.collapsed" | grep ';workload/Sleeps.inMonitor' |
		grep -v '\[runnable\]' >"$here/waits"
	expect "waits for the monitor" "$(total "$here/waits")" '>=' 100
	# Before JDK 24, the first thread that waits looks again by itself, after 1 ms and then after longer times.
	! is_jdk 24 && grep -v '\[timer\]' "$here/waits" >"$here/ended" && mv "$here/ended" "$here/waits"
	expect "ended by its owner, in Java, %" \
		"$(share "$here/waits" '\[woken by\];.*;workload/Sleeps.endsWaits.*Thread.run.*;endsWaits ')" '>=' 98
}

run_cases "$@"
