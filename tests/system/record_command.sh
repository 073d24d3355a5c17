#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# `duet record -- COMMAND`: the command is profiled from its first instruction; its streams and exit code are untouched.
. "$(dirname "$0")/lib.sh"

java_command() {
	java=("$(any_jdk)/bin/java" -cp "$workloads" "$@")
}

case_output_untouched() {
	java_command workload.Checksum 3
	record -d 60 -o collapsed -f "$here/out" -- "${java[@]}"
	expect_status 0
	tail -n 1 "$here/stdout" | grep -qx SOUND || fail "stdout ends with: $(tail -n 1 "$here/stdout")"
	expect "lines that are not the program's" "$(grep -cvE '^(READY|ROUNDS [0-9]+|SOUND)$' "$here/stdout")" '==' 0
	expect_contains "$here/out" 'workload/Checksum\.(inJava|main)'
}

# Byte for byte what an unprofiled run writes, blanks and all, on both streams.
case_streams_are_identical() {
	java_command
	"${java[@]}" -version >"$here/plain.out" 2>"$here/plain.err"
	timeout 60 "$duet" record -o collapsed -f "$here/out" -- "${java[@]}" -version \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	cmp -s "$here/plain.out" "$here/stdout" ||
		fail "stdout differs: $(diff "$here/plain.out" "$here/stdout" | head -n 3)"
	while IFS= read -r line; do
		grep -qxF -- "$line" "$here/stderr" || fail "stderr lacks: $line"
	done <"$here/plain.err"
}

# Prints the capabilities of a process, and whether it has no_new_privs and a filter of system calls.
rights_of() { # PID
	awk '$1 == "CapEff:" || $1 == "NoNewPrivs:" || $1 == "Seccomp:" { printf "%s ", $2 }' "/proc/$1/status"
}

expect_text() { # WHAT GOT WANT
	[ "$2" = "$3" ] || fail "$1: $2, not $3"
}

# The loader, its helper, their supervisor and parsers keep what SECURITY.md says; the command has what we have.
case_rights_are_given_up() {
	local at mine openers=0
	need_bpf
	need_root
	mine=$(rights_of $$)
	start_record -d 60 --agent never -o collapsed -f "$here/out" -- sleep 60
	for at in $(pgrep -g "$(cut -d ' ' -f 5 /proc/$$/stat)"); do
		case $(cat "/proc/$at/comm") in
		duet) # none to change users and roots, for modules, devices, networks, clocks
			expect "rights of the loader" "$((0x$(rights_of "$at" | cut -d ' ' -f 1) & 0xac73bd0))" == 0
			expect_text "walls of the loader" "$(rights_of "$at" | cut -d ' ' -f 2-3)" "1 2"
			;;
		duet-reader)
			expect "rights of a helper" "$((0x$(rights_of "$at" | cut -d ' ' -f 1) & ~0x10000280004))" == 0
			openers=$((openers + ($(rights_of "$at" | cut -d ' ' -f 3) == 2)))
			;;
		duet-parser) expect_text "rights of a parser" "$(rights_of "$at")" "0000000000000000 1 2 " ;;
		sleep) expect_text "rights of the command" "$(rights_of "$at")" "$mine" ;;
		esac
	done
	expect "openers with walls" "$openers" == 1
	end_record INT
}

nice_values() { # COMMAND...
	"$@" record -d 60 --agent never -o collapsed -f "$here/out" -- \
		sh -c 'echo $(ps -o ni= -p $$,$PPID | sort -n)' 2>"$here/stderr"
}

# A busy machine must not delay the loader. The command is none of its own, and what the user has set remains.
case_nice_values() {
	need_bpf
	need_root
	[ "$(nice)" = 0 ] || skip "the nice value here is $(nice)"
	expect_text "duet and the command" "$(nice_values "$duet")" "-10 0"
	expect_text "duet and the command, both started with 5" "$(nice_values nice -n 5 "$duet")" "5 5"
}

case_first_instruction() {
	need_bpf
	java_command workload.Checksum 2
	record -i 1ms -o collapsed -f "$here/out" -- "${java[@]}"
	expect_status 0
	expect_contains "$here/out" 'ld-linux|_dl_|dl_main|JLI_|JavaMain|execve'
	expect_contains "$here/out" 'java/lang/'
	expect_contains "$here/out" 'workload/Checksum\.'
}

# Five commands that end within 200 ms of CPU time. Stacks are cut until the loader knows the command's own file; it
# knows the C library before.
case_short_commands() {
	local i
	need_bpf
	for i in 1 2 3 4 5; do
		# shellcheck disable=SC2016 # $i is the inner shell's
		record -i 1ms -o collapsed -f "$here/out.$i" -- bash -c 'for ((i = 0; i < 60000; i++)); do :; done'
		expect_status 0
	done
	cat "$here"/out.? >"$here/out"
	expect_share "of their stacks from the entry on" "$(matching "$here/out" '^_start;')" '>=' 65
}

# Waits until the command has worked for a while. Its pid is $child.
start_demo() {
	start_record -i 5ms -o collapsed -f "$here/out" -- "${java[@]}"
	local end=$((SECONDS + 60))
	until child=$(pgrep -P "$recorder" -x java); do # other children of duet have other names
		[ $SECONDS -lt $end ] || fail "no command after 60 s: $(cat "$here/stderr")"
		sleep 0.05
	done
	jvms+=("$child")
	jvm=$child wait_for_line "$here/stdout" '^READY' 60
	sleep 1
}

case_command_killed() {
	java_command shop.Demo
	start_demo
	kill -KILL "$child"
	end_record
	expect_status 137
	expect_file "$here/out"
	expect_contains "$here/out" 'shop/Pricing'
}

case_command_fails() {
	java_command no.such.Class
	record -d 50 -o collapsed -f "$here/out" -- "${java[@]}"
	expect_status 1
	expect_contains "$here/stderr" 'no.such.Class'
	expect_file "$here/out"
}

# The status is the command's, if the recording ends with it.
case_exit_status() {
	need_bpf
	record -o collapsed -f "$here/out" -- sh -c 'exit 42'
	expect_status 42
	record -o collapsed -f "$here/out" -- sh -c 'kill -TERM $$'
	expect_status 143
	record -d 1 -o collapsed -f "$here/out" -- sh -c 'sleep 5; exit 42'
	expect_status 0 "a recording that ends before its command"
	record -o collapsed -f /dev/full -- sh -c 'while [ $((i += 1)) -lt 300000 ]; do :; done; exit 42'
	expect_status 1 "a recording that cannot be written"
	DUET_AS=(perl -e '$SIG{CHLD} = "IGNORE"; exec @ARGV')
	record -d 20 -o collapsed -f "$here/out" -- sh -c 'exit 42'
	expect_status 42 "a parent that ignores its children"
}

# What a command leaves behind is named, and recorded on if -d says how long.
case_left_behind() {
	need_bpf
	local started=$SECONDS leave='(exec timeout 20 "$0" 1 20) & echo $! >"$1"; exit 3' left=$here/left
	record -o collapsed -f "$here/out" -- sh -c "$leave" "$workloads/busy" "$left"
	kill "$(cat "$left")"
	expect_status 3
	expect_contains "$here/stderr" 'sh has ended and left .*[0-9]+ \(busy\).* -d TIME goes on'
	record -d 2 -i 1ms -o collapsed -f "$here/out" -- sh -c "$leave" "$workloads/busy" "$left"
	kill "$(cat "$left")"
	expect_status 3
	expect_contains "$here/stderr" 'sh has ended and left .*[0-9]+ \(busy\).* recorded until -d is over'
	expect "seconds" $((SECONDS - started)) '<' 20
	expect "samples" "$(total "$here/out")" '>' 50
	record -d 60 -o collapsed -f "$here/out" -- sh -c '(exec sleep 1) & exit 3'
	expect_status 3 "when they end before the time"
	expect "seconds" $((SECONDS - started)) '<' 40
}

case_interrupt() {
	java_command shop.Demo
	start_demo
	end_record INT
	expect_status 0
	expect_file "$here/out"
	expect_contains "$here/out" 'shop/Pricing'
}

case_not_java() {
	need_bpf
	record -i 1ms -o collapsed -f "$here/out" -- bash -c 'for ((i = 0; i < 100000; i++)); do :; done'
	expect_status 0
	expect "lines that say so" "$(grep -c 'bash is not java: kernel and native frames' "$here/stderr")" '==' 1
	expect_contains "$here/out" ';execute_command|;main;'
}

case_becomes_java() {
	need_bpf
	java_command workload.Checksum 3
	record -i 2ms -o collapsed -f "$here/out" -- bash -c 'for ((i = 0; i < 9999; i++)); do :; done; exec "$@"' \
		bash "${java[@]}"
	expect_status 0
	expect_contains "$here/out" 'workload/Checksum\.'
}

# Without BPF a JVM that the command may become would not be noticed: the command is not started.
case_not_java_by_timer() {
	record --engine ctimer -o collapsed -f "$here/out" -- bash -c 'echo begun'
	expect_refusal 1 'bash is not java: the ctimer engine.*--engine bpf'
	[ ! -e "$here/out" ] || fail "an output file was written"
}

case_no_such_command() {
	record -d 1 -o collapsed -f "$here/out" -- /no/such/java -version
	expect_refusal 1 '/no/such/java'
	[ ! -e "$here/out" ] || fail "an output file was written"
}

case_nothing_after_the_dashes() {
	record -d 1 --
	expect_refusal 2 'command|--'
}

run_cases "$@"
