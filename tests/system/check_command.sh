#!/bin/bash
# SPDX-License-Identifier: MIT
# The commands that only print something, and the exit codes of all commands.
. "$(dirname "$0")/lib.sh"

case_version() {
	run_duet version
	expect_status 0
	expect_contains "$here/stdout" '^duet [0-9]+\.[0-9]+'
	run_duet --version
	expect_status 0
	expect_contains "$here/stdout" '^duet [0-9]'
}

case_help() {
	local spelling
	for spelling in help --help -h; do
		run_duet $spelling
		expect_status 0 "duet $spelling"
		expect_contains "$here/stdout" 'record'
		expect_contains "$here/stdout" 'check'
		[ ! -s "$here/stderr" ] || fail "duet $spelling wrote to stderr"
	done
}

case_help_of_record() {
	local option
	run_duet record --help
	for option in -p --host --cgroup --container --comm -e -i -d -f -o -t; do
		expect_contains "$here/stdout" "(^|[ ,])$option\\b"
	done
	expect_contains "$here/stdout" '^  duet record .* -- java -jar'
	cp "$here/stdout" "$here/help"
	run_duet help record
	diff "$here/help" "$here/stdout" >/dev/null || fail "duet help record is not duet record --help"
	run_duet record --help=all
	expect_status 0
	for option in -p -e -i -d -f -o -t -j -s -g -a -l -I -X -v --host --freq --all-user --title --engine; do
		expect_contains "$here/stdout" "(^|[ ,])$option\\b"
	done
}

# What a command prints for --help fits a screen of 50 lines and 80 columns; --help=all has every option.
case_help_fits_a_screen() {
	local command long
	for command in record convert diff annotate daemon check list status version help complete; do
		run_duet $command --help
		[ "$(fold -w 80 "$here/stdout" | wc -l)" -le 50 ] || fail "duet $command --help is longer than a screen"
		cp "$here/stdout" "$here/short"
		run_duet complete $command
		long=$(cut -f 1 "$here/stdout" | grep -c '^--')
		run_duet $command --help=all
		[ "$(grep -cE '^  (-., |    )--' "$here/stdout")" = "$long" ] ||
			fail "duet $command --help=all lacks options"
		cmp -s "$here/short" "$here/stdout" ||
			expect_contains "$here/short" "^duet $command --help=all lists all $long options"
	done
	run_duet record --help=some
	expect_refusal 2 "--help 'some': all is accepted"
}

# Each command has --help, and refuses words that it does not take.
case_arguments_of_all() {
	local command
	for command in record convert diff daemon check list status version help; do
		run_duet $command --help
		expect_status 0 "duet $command --help"
		expect_contains "$here/stdout" "^usage: duet $command"
		expect_contains "$here/stdout" '^  -h, --help'
		expect_lacks "$here/stdout" '^(bpf|Events|duet [0-9])'
		run_duet $command --teapot
		expect_refusal 2 "unknown option '--teapot'"
	done
	for command in daemon check list version; do
		run_duet $command teapot
		expect_refusal 2 "'teapot': duet $command takes"
	done
	run_duet status 1 teapot
	expect_refusal 2 "'teapot': duet status takes the pid"
	run_duet status teapot
	expect_refusal 2 "'teapot' is not a process id"
	run_duet teapot
	expect_refusal 2 "unknown command 'teapot': duet help"
	run_duet recrod
	expect_refusal 2 "unknown command 'recrod': did you mean duet record"
}

case_list() {
	run_duet list
	expect_status 0
	expect_contains "$here/stdout" '\bcpu\b'
	expect_contains "$here/stdout" '^  CLASS[.]METHOD.*[*]$'
	expect_contains "$here/stdout" '^  trace:CLASS[.]METHOD.* or longer$'
}

# Commands, their options with help, and values; the same for the shell.
case_complete() {
	local word
	run_duet complete
	expect_contains "$here/stdout" $'^record\tprofile processes'
	run_duet complete record
	expect_contains "$here/stdout" $'^-e\t' && expect_contains "$here/stdout" $'^--event\t'
	expect_lacks "$here/stdout" '^(Target|-pid)'
	run_duet complete record -- -e
	expect_contains "$here/stdout" '^page-faults$'
	run_duet complete record -- --output
	expect_contains "$here/stdout" '^flamegraph$'
	run_duet complete record -- --title
	[ ! -s "$here/stdout" ] || fail "values of --title: $(cat "$here/stdout")"
	run_duet complete teapot
	expect_refusal 2 "unknown command 'teapot'"
}

case_complete_in_bash() {
	completed() { # WORDS...
		COMP_WORDS=("$duet" "$@") COMP_CWORD=$#
		COMPREPLY=()
		_duet "$duet"
		echo " ${COMPREPLY[*]} "
	}
	# shellcheck source=user/packaging/duet.bash
	. "$(dirname "$0")/../../user/packaging/duet.bash"
	[[ $(completed rec) == *" record "* ]] || fail "rec: $(completed rec)"
	[[ $(completed record --max-) == *" --max-memory --max-overhead "* ]] ||
		fail "--max-: $(completed record --max-)"
	[[ $(completed record -e cp) == " cpu cpu-migrations " ]] || fail "-e cp: $(completed record -e cp)"
	[[ $(completed daemon --ch) == " --check " ]] || fail "daemon --ch: $(completed daemon --ch)"
	[[ $(completed --eng) == *" --engine "* ]] || fail "--eng: $(completed --eng)"
}

# The manual explains every option.
case_manual_has_all_options() {
	local word manual
	manual=$(sed 's/\\-/-/g' "$(dirname "$0")/../../user/man/duet.1")
	for command in record convert diff daemon status; do
		run_duet complete "$command"
		while read -r word _; do
			[[ $manual == *"$word"* ]] || fail "duet(1) lacks $word of duet $command"
		done <"$here/stdout"
	done
}

# Each engine has one line, and an engine that is refused has a line that says what to change.
case_check() {
	local engine
	run_duet check
	[ "$status" = 0 ] || [ "$status" = 1 ] || fail "exit code $status"
	for engine in bpf ctimer itimer; do
		expect_contains "$here/stdout" "^ *$engine\\b"
	done
}

# Every event of the table is in one of the lines that say where BPF samples it; wall is in two.
case_check_events() {
	local hook event
	need_bpf
	run_duet check
	sed -nE 's/^  (by|at|not) [^:]*: / /p' "$here/stdout" | tr ' ' '\n' | sort >"$here/placed"
	for event in cpu offcpu wall wakeup page-faults io mmap alloc lock cycles; do
		grep -qx "$event" "$here/placed" || fail "$event is in no place"
	done
	hook=$(sed -nE 's/^  yes  hook (.*)/\1/p' "$here/stdout" | head -n 1)
	[ "$hook" ] || skip "this kernel has no hook for sleeps"
	expect_contains "$here/stdout" "^  at hook $hook[:,].* offcpu wall wakeup\$"
}

case_check_as_ordinary_user() {
	need_root
	DUET_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)
	"${DUET_AS[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	run_duet check
	expect_contains "$here/stdout" 'CAP_BPF|CAP_PERFMON|root'
	expect_contains "$here/stdout" '^ *ctimer\b'
}

case_no_arguments() {
	run_duet
	expect_status 0
	expect_contains "$here/stdout" '^usage: duet'
}

# A reader that closes the pipe does not make duet crash.
case_closed_pipe() {
	local status
	"$duet" record --help | head -n 1 >/dev/null
	status=${PIPESTATUS[0]}
	[ "$status" -lt 128 ] || [ "$status" = 141 ] || fail "died"
}

# What cannot be printed is an error, whoever prints it.
case_stdout_without_room() {
	local command
	for command in list help version 'record --help'; do
		# shellcheck disable=SC2086
		"$duet" $command >/dev/full 2>"$here/stderr" && fail "$command: exit code 0"
		expect_contains "$here/stderr" 'error: stdout could not be written'
	done
	"$duet" list >&- 2>"$here/stderr" && fail "closed: exit code 0"
	expect_contains "$here/stderr" 'stdout could not be written: .* it is closed; name a file'
}

run_cases "$@"
