#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# However a recording ends, its file is complete and the application unharmed.
. "$(dirname "$0")/lib.sh"

start_demo_record() {
	start_jvm "$(any_jdk)" "${@:-shop.Demo}"
	start_record -p "$jvm" -d 60 -i 5ms -f "$here/out.html"
}

expect_complete() { # MINIMUM-SAMPLES
	expect_file "$here/out.html"
	tail -c 200 "$here/out.html" | grep -q '</html>' || fail "the file is cut off"
	expect_no_leftover "$here/out.html"
}

ends_by_signal() {
	start_demo_record
	sleep 1
	end_record "$1"
	expect_status 0
	expect_complete
	expect_alive "$jvm"
}

case_sigint() {
	ends_by_signal INT
}

case_sigterm() {
	ends_by_signal TERM
}

# As nohup(1) starts it.
case_hangup_is_ignored() {
	trap '' HUP
	start_demo_record
	trap - HUP
	kill -HUP "$recorder"
	sleep 1
	kill -0 "$recorder" || fail "it ended: $(cat "$here/stderr")"
	end_record INT
	expect_status 0
	expect_complete
}

# Whoever ends a recording before its first sample learns that there is no file.
case_before_the_first_sample() {
	need_bpf
	local pause said=0
	start_jvm "$(any_jdk)" workload.Idle 60
	for pause in 0.05 0.1 0.2 0.3 0.4 0.6; do
		"$duet" record -p "$jvm" -d 60 -f "$here/out.html" 2>"$here/stderr" &
		recorder=$!
		sleep $pause
		end_record TERM
		[ "$status" != 0 ] || expect_file "$here/out.html"
		[ "$status" = 0 ] || expect_contains "$here/stderr" 'ended (before the first sample|by SIGTERM)'
		[ "$status" = 0 ] || [ ! -e "$here/out.html" ] || fail "a file without a recording"
		said=$((said + (status == 1)))
		rm -f "$here/out.html"
	done
	expect "recordings that had not begun" $said '>' 0
}

# Signals that nobody sends on purpose.
case_odd_signals() {
	local signo
	for signo in ALRM USR2 QUIT; do
		start_record -d 60 -i 5ms -f "$here/out.html" -- "$workloads/busy" 1 60
		end_record "$signo"
		kill "$(pgrep -f "^$workloads/busy 1 60")" 2>/dev/null
		expect_status 0
		expect_complete
		expect_contains "$here/stderr" "SIG$signo ends the recording"
		rm "$here/out.html"
	done
}

case_duration() {
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 3 -f "$here/out.html"
	expect_status 0
	local seconds
	seconds=$(sed -n 's/.* samples in \([0-9.]*\) s .*/\1/p' "$here/stderr")
	expect "seconds" "$seconds" '>=' 2.9
	expect "seconds" "$seconds" '<' 20 # 3, and what a busy machine adds; the default is 60
	expect_complete
	expect_alive "$jvm"
}

case_target_killed() {
	start_demo_record
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + 2)) # what has a name by then, keeps it
	sleep 1
	kill -KILL "$jvm"
	end_record
	expect_status 0
	expect_complete
	expect_contains "$here/out.html" '(averages|discounted|cheapest)'
}

case_target_exits() {
	start_demo_record shop.Demo 6
	end_record
	expect_status 0
	expect_complete
	expect_contains "$here/out.html" '(averages|discounted|cheapest)'
}

# The loader is killed: the JVM is not harmed, and the next recording works.
case_loader_killed() {
	start_jvm "$(any_jdk)" workload.Checksum
	start_record -p "$jvm" -d 60 -i 1ms -o collapsed -f "$here/out"
	sleep 1
	end_record KILL
	[ ! -e "$here/out" ] || fail "an incomplete file has the final name"
	sleep 1
	expect_alive "$jvm" "after the loader was killed"
	record -p "$jvm" -d 2 -i 1ms -o collapsed -f "$here/again"
	expect_status 0
	expect_contains "$here/again" 'workload/Checksum\.inJava'
	expect_alive "$jvm"
	expect_lacks "$jvm_out" WRONG
}

# The JVM is stopped by SIGSTOP: the recording ends on time with the samples that it has.
case_target_stopped() {
	start_jvm "$(any_jdk)" shop.Demo
	start_record -p "$jvm" -d 5 -o collapsed -f "$here/out"
	kill -STOP "$jvm"
	local started=$SECONDS
	end_record
	kill -CONT "$jvm"
	expect "seconds until it ended" $((SECONDS - started)) '<=' 30
	expect_status 0
	expect_file "$here/out"
	sleep 1
	expect_alive "$jvm"
}

case_second_interrupt_is_harmless() {
	start_demo_record
	kill -INT "$recorder"
	sleep 0.05
	kill -INT "$recorder" 2>/dev/null
	end_record
	expect_alive "$jvm"
	expect_no_leftover "$here/out.html"
}

run_cases "$@"
