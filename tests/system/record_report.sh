#!/bin/bash
# SPDX-License-Identifier: MIT
# What a user of a recording reads who does not ask for more: its end in one line, one total, and what to do next.
. "$(dirname "$0")/lib.sh"

# The program is a JVM's, so that the line has its name.
record_briefly() { # RECORD-OPTIONS...
	run_duet record "$@"
	expect_status 0
	cat "$here/stderr"
}

case_one_line() {
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	record_briefly -p "$jvm" -d 2 -i 1ms -f "$here/a.html" -f "$here/a.collapsed"
	# and how to have exact inlined methods, which depends on what is compiled
	expect "lines" "$(grep -vc 'the inlined methods in [0-9]* % of' "$here/stderr")" == 1
	expect_contains "$here/stderr" \
		"^duet: [0-9]+ samples of shop.Demo in [0-9.]+ s, .* % overhead → $here/a.html, $here/a.collapsed\$"
	run_duet record -v -p "$jvm" -d 1 -i 1ms -f "$here/a.html"
	expect_contains "$here/stderr" '^duet: [0-9]+ samples in [0-9.]+ s \(engine bpf\)$'
	expect_contains "$here/stderr" '^duet: walked: '
	expect_contains "$here/stderr" '^duet: lost: '
}

# A sleep is two samples if its thread waited for a CPU at the end: the same number is said and written.
case_one_total() {
	local said
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	record_briefly -p "$jvm" -d 2 -e wall=1ms -f "$here/a.txt" -f "$here/a.collapsed" -f "$here/a.duet"
	said=$(sed -nE 's/^duet: ([0-9]+) samples of .*/\1/p' "$here/stderr")
	expect "samples" "$said" '>' 100
	expect "samples of the file" "$(total "$here/a.collapsed")" == "$said"
	expect "samples of the report" "$(sed -nE '1s/^([0-9]+) samples of .*/\1/p' "$here/a.txt")" == "$said"
	"$duet" convert "$here/a.duet" -o text=full >"$here/a.full" || fail "no text=full"
	expect "samples of the recording" "$(sed -nE 's/^samples +: //p' "$here/a.full")" == "$said"
	expect "samples of its events" "$(sed -nE 's/^Total samples +: //p' "$here/a.full")" == "$said"
	expect_contains "$here/a.txt" 'threads that only waited for work, \[idle\]$'
	expect_lacks "$here/a.txt" '__futex_abstimed_wait_common|futex_do_wait'
}

# The advised interval has as many samples as was said; or more, as a busy machine is late to end a recording.
case_few_samples() {
	local interval promised
	need_bpf
	"$workloads/crowd" stacks 120 120 >/dev/null 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	record_cpu 1 -p "$jvm" -i 50ms --no-attach -o collapsed -f "$here/few"
	read -r interval promised < <(
		sed -nE 's/^duet: [0-9]+ samples are too few .*: -i ([0-9]+us|1ms) gives about ([0-9]+)$/\1 \2/p' \
			"$here/stderr")
	expect "samples promised" "$promised" '>=' 500
	record_cpu 1 -p "$jvm" -i "$interval" --no-attach -o collapsed -f "$here/many"
	expect "samples" "$(total "$here/many")" '>=' $((promised / 2))
	expect_lacks "$here/stderr" 'too few'
}

# A shorter interval does not help to see why a program does nothing.
case_idle() {
	need_bpf
	sleep 60 &
	jvm=$!
	jvms+=("$jvm")
	record_briefly -p "$jvm" -d 1.5 --no-attach -o collapsed -f "$here/out"
	expect_contains "$here/stderr" '^duet: it hardly used the CPU: -e wall shows what its threads wait for$'
	expect_lacks "$here/stderr" 'too few'
}

case_windows() {
	need_bpf
	record_briefly -p $$ -v -d 2 --no-attach --continuous --window 1s -f "$here/windows" -o collapsed
	expect_contains "$here/stderr" '^duet: debug: window 1: [0-9]+ samples? .*none lost'
	expect_contains "$here/stderr" '^duet: [0-9]+ samples? in .*, none lost, .* [0-9]+ windows? in '
	expect_contains "$here/stderr" "none lost, [0-9.]+ % overhead → 2 windows in $here/windows\$"
}

case_progress() {
	need_bpf
	command -v script >/dev/null || skip "no script(1)"
	script -qefc "$duet record -p $$ -d 2 --no-attach -o collapsed -f $here/out" /dev/null \
		>"$here/stderr" </dev/null
	expect_contains "$here/stderr" '[01] of 2 s, Ctrl-C ends; [0-9]+ samples'
}

run_cases "$@"
