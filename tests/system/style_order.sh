#!/bin/bash
# SPDX-License-Identifier: MIT
# Rules for the source itself: layers, licences, sizes, the top level.
. "$(dirname "$0")/lib.sh"
cd "$(dirname "$0")/../.." || exit 1

sources() { # ls-files PATTERN...: files under version control, or not yet but not ignored either
	git ls-files --cached --others --exclude-standard -- "$@" | sort -u | perl -lne 'print if -f'
}

# Scripts and make files whose name has no suffix.
scripts=(Makefile tests/run tests/fuzz/run '.ci/*')

none() { # WHAT LINES
	[ -z "$2" ] || fail "$1: $(head -n 5 <<<"$2" | tr '\n' ' ')"
}

# A folder may include those of a lower rank. Folders of one rank do not include each other.
user_rank() {
	case $1 in
	base) echo 1 ;;
	profile) echo 2 ;;
	readers | writers) echo 3 ;;
	proc) echo 4 ;;
	sym | unwind | event) echo 5 ;;
	attach | collect | reader | runtime) echo 6 ;;
	subject) echo 7 ;;
	join) echo 8 ;;
	jvms) echo 9 ;;
	limits | windows) echo 10 ;;
	status) echo 11 ;;
	session) echo 12 ;;
	cmd) echo 13 ;;
	recorder) echo 14 ;;
	asprof) echo 15 ;;
	main) echo 16 ;;
	esac
}

# Beside the folders are what all use, the interfaces of taps and engines, and what HotSpot calls.
agent_rank() {
	case $1 in
	safe_copy | sigsafe | libc_versions | locked | own_thread | memory) echo 1 ;;
	hotspot) echo 2 ;;
	tap.h | engine.h | options) echo 3 ;;
	jvm) echo 4 ;;
	peer) echo 5 ;;
	sample) echo 6 ;;
	engine | hook | method) echo 7 ;;
	wait) echo 8 ;;
	event) echo 9 ;;
	control) echo 10 ;;
	api) echo 11 ;;
	agent | c_api | java_api | sources | taps) echo 12 ;;
	esac
}

# These run for each of thousands of includes, so they start no process.
declare -A ranks=()

layer_of() { # VARIABLE PATH, below user/ or jvm-agent/
	case $2 in
	tap.h | engine.h) printf -v "$1" %s "$2" ;;
	*/*) printf -v "$1" %s "${2%%/*}" ;;
	*) printf -v "$1" %s "${2%.*}" ;;
	esac
}

rank_of() { # VARIABLE PROGRAM LAYER
	[ -n "${ranks[$2 $3]-}" ] || ranks["$2 $3"]=$("$2_rank" "$3")
	printf -v "$1" %s "${ranks[$2 $3]}"
}

against_order() { # PROGRAM FOLDER: prints the includes of a layer that is not lower
	local file include mine theirs my_rank their_rank
	while read -r file include; do
		[ -e "$2/$include" ] || continue # of libc, a library or headers/
		layer_of mine "${file#"$2"/}"
		layer_of theirs "$include"
		rank_of my_rank "$1" "$mine"
		rank_of their_rank "$1" "$theirs"
		[ "$2/$theirs" = "${file%.*}" ] || [[ $mine == "$theirs" && $include == */* ]] ||
			[ "$their_rank" -lt "$my_rank" ] ||
			# These files have one row, and no order among them.
			[[ $include != */* && $their_rank == "$my_rank" ]] ||
			echo "$file includes $include"
	done < <(sources "$2/*.c" "$2/*.h" | xargs grep -H '^#include "' /dev/null |
		sed 's/:#include "\([^"]*\)".*/ \1/')
}

case_include_order() {
	none "against the order of layers" "$(against_order user user)"
}

case_include_order_of_the_agent() {
	none "against the order of layers" "$(against_order agent jvm-agent)"
}

case_every_folder_has_a_rank() {
	local folder
	while read -r folder; do
		case $folder in
		user/*) [ -n "$(user_rank "$(basename "$folder")")" ] ;;
		*) [ -n "$(agent_rank "$(basename "$folder")")" ] ;;
		esac || fail "$folder has no place in the order of layers"
	done < <(sources 'user/*/*.c' 'jvm-agent/*/*.c' | cut -d / -f 1,2 | sort -u)
}

case_vmlinux_stays_in_bpf() {
	none "vmlinux.h outside of bpf/" "$(sources '*.c' '*.h' | grep -v '^bpf/\|^vmlinux/' |
		xargs grep -l '^#include.*vmlinux\.h')"
}

case_libbpf_stays_in_collect() {
	none "libbpf outside of user/collect/" "$(sources 'user/*' 'jvm-agent/*' | grep -v '^user/collect/' |
		xargs grep -lE '^#include.*(<bpf/|duet\.skel\.h)')"
}

# Files that open or read, and why it is not done for a process without a struct charge (proc/allowance.h).
may_open() {
	sed 's/ *#.*//' <<-'END'
		user/(base|profile|readers|writers|windows|cmd|recorder|asprof)/ # files of whoever runs duet
		user/main\.c
		user/proc/                           # makes charges, and reads who pays
		user/sym/(target_file|debug_file|perf_map)\.c # demand a charge, or are handed a descriptor
		user/sym/kallsyms\.c                 # the kernel's
		user/attach/                         # in a child, whose CPU time is charged
		user/reader/                         # in a reader, likewise
		user/collect/sleepers/sleeper_walk\.c # in the helper, for a charge
		user/collect/kernel/                 # the kernel's, as the next two
		user/collect/family_(ticks|sleeps)\.c
		user/collect/collector\.c
		user/jvms/(launch|flight_recording)\.c # of the command that is started
		user/subject/host\.c                 # the machine's, and what is charged there
		user/subject/(program|words|published)\.c # for a charge, and the list of processes
		user/join/sink\.c                    # the kernel's names of devices
		user/limits/budget\.c                # duet's own limits
	END
}

case_work_has_a_charge() {
	none "opens or reads for a process: take a struct charge, or add the file to may_open()" "$(sources 'user/*.c' |
		grep -vE "^($(may_open | tr -d '[:blank:]' | paste -s -d '|'))" |
		xargs grep -nE '\b(open|openat2?|fopen|opendir|pread|readlink(at)?|process_vm_readv|io_read_file)\(')"
	none "updates BPF's maps outside of the files that own them" "$(sources 'user/*.c' |
		grep -vE '^user/collect/(collector|programs|tables/(offers|unwind_tables))\.c' |
		xargs grep -nE '\bbpf_map_*(update|delete)[a-z_]*\(')"
}

# What a stranger writes is parsed in a box, or with his rights.
case_strangers_are_parsed_apart() {
	local parsers='hsperfdata_(string|number)|application_(find|from_[a-z]+)|spark_from_[a-z]+|vm_flags_add'
	parsers+='|published_parse'
	local may='attach/(hsperfdata|vm_options)|runtime/(application|vm_flags)|subject/(words|vitals|published)'
	none "parses what a JVM says of itself: only functions of parsers may (proc/helper.h)" "$(sources 'user/*.c' |
		grep -vE "^user/($may)\.c" | xargs grep -nE "\b($parsers)\(" |
		grep -v 'spark_from_properties(text.data, text.len, &answer->text)')"
}

# Files of the start, stop, dump and end of a recording that wait without a deadline of their own, and why they may.
may_wait() {
	sed 's/ *#.*//' <<-'END'
		user/attach/(attach|hotspot|place)\.c # in a child, which is killed after a deadline
		user/jvms/flight_recording\.c         # likewise, in work()
		user/recorder/report_file\.c          # likewise
		user/recorder/recording_child\.c      # in a child, until the recorder ends
		user/recorder/recorder_socket\.c      # connects a socket that does not block
		jvm-agent/api/start_recorder\.c       # for a child that does nothing but to start another one
	END
}

case_waits_have_a_deadline() {
	none "waits for another process: use signals_wait(), child_await_until() or MSG_DONTWAIT" "$(
		sources 'user/attach/*.c' 'user/recorder/*.c' 'user/asprof/*.c' 'user/jvms/*.c' 'jvm-agent/api/*.c' \
			'jvm-agent/control/*.c' 'jvm-agent/peer/*.c' |
			grep -vE "^($(may_wait | tr -d '[:blank:]' | paste -s -d '|'))" |
			xargs perl -0ne 'print "$ARGV: $1\n" while m/\b((?:connect|accept4?|recv(?:from|msg)?
				|send(?:to|msg)?|flock|waitpid|child_await)
				\((?![^;]*(?:MSG_DONTWAIT|SOCK_NONBLOCK|WNOHANG))[^;]*;
				|packet_receive\([^;]*,\s-1,[^;]*;)/xg')"
}

case_agent_is_alone() {
	local file include bad=
	while read -r file include; do
		[ -e "jvm-agent/$include" ] || [ -e "headers/$include" ] || bad+="$file includes $include"$'\n'
	done < <(sources 'jvm-agent/*.[ch]' | xargs grep -H '^#include "' | sed 's/:#include "\([^"]*\)".*/ \1/')
	none "the agent includes what is neither its own nor in headers/" "$bad"
}

case_headers_without_libc() {
	none "libc in headers/" "$(sources 'headers/*.h' | grep -v duet_types.h | xargs grep -H '^#include <')"
}

# The walk includes the contracts, never the reverse.
case_contracts_without_walk() {
	none "a contract includes the walk" "$(sources 'headers/*.h' | grep -v '^headers/walk/' |
		xargs grep -H '^#include "walk/')"
	none "the walk includes more than headers/" "$(sources 'headers/walk/*.h' |
		xargs grep -HE '^#include' | grep -vE '"(walk/[a-z0-9_]+|duet_[a-z]+)\.h"')"
}

case_licences() {
	none "no or another licence line" "$(sources '*.c' '*.h' '*.S' '*.sh' '*.java' '*.js' '*.mjs' "${scripts[@]}" |
		grep -v '^tests/fixtures/\|^vmlinux/' | xargs awk '
		BEGIN { gpl = "GPL-2.0-only( \\*/)?$"; both = "\\(GPL-2.0-only OR MIT\\)" }
		FNR == 1 { want = FILENAME ~ /^bpf\// ? gpl : FILENAME ~ /^headers\// ? both : "MIT"; bad[FILENAME] }
		FNR <= 3 && $0 ~ "SPDX-License-Identifier: .*" want { delete bad[FILENAME] }
		END { for (file in bad) print file }')"
}

# In headers/, which say how duet works. A name with _x stands for any.
case_named_files_exist() {
	local name bad= all
	all=$(sources '*.c' '*.h' | sed 's|^|/|; s|$|!|')
	while read -r name; do
		[[ $all == *"/$name!"* ]] || bad+="$name "
	done < <(grep -ohE '`[a-z0-9_/-]+\.[ch]`' headers/*.md headers/*/*.md | tr -d '`' | sort -u | grep -v '[_/]x\.')
	none "files that are named but do not exist" "$bad"
}

# Tables of data and the page's script have other limits.
case_file_length() {
	none "files of 700 lines and more" "$(sources '*.c' '*.h' | grep -v '^vmlinux/' | xargs wc -l |
		awk '$1 >= 700 && $2 != "total"')"
}

# A function ends with a brace in column 0; kernel style makes that reliable.
case_function_length() {
	none "functions of more than 80 lines" "$(sources '*.c' | xargs awk '
		FNR == 1 { start = 0 }
		/^\{/ { start = FNR }
		/^\}/ && start { if (FNR - start - 1 > 80) print FILENAME ":" start; start = 0 }')"
}

case_line_length() {
	none "lines of more than 120 columns" "$(sources '*.c' '*.h' '*.java' '*.sh' '*.bash' "${scripts[@]}" |
		grep -v '^vmlinux/\|^tests/fixtures/' | xargs awk '
		{
			tabs = split($0, part, "\t")
			column = 0
			for (i = 1; i < tabs; i++)
				column += length(part[i]) + 8 - (column + length(part[i])) % 8
			if (column + length(part[tabs]) > 120)
				print FILENAME ":" FNR
		}')"
}

# The loader, the agent and the BPF programs have no type and no global function of the same name.
names_of() { # types|functions FOLDER
	if [ "$1" = types ]; then
		sources "$2/*.[ch]" | xargs sed -nE 's/^(struct|enum|union) ([a-z_0-9]+) \{.*/\1 \2/p'
	else
		# memory.h: the loader compiles jvm-agent/hotspot/ with another one
		sources "$2/*.h" | grep -v '/memory\.h$' | xargs sed -nE -e 's/^[a-z].*[ *]([a-z_0-9]+)\(.*\);.*/\1/p' \
			-e 's/^[a-z][^(]*[ *]([a-z_0-9]+)\([^)]*$/\1/p'
		# a program of bpf/ is declared nowhere
		sources "$2/*.bpf.c" | xargs -r sed -nE 's/^int ([a-z_0-9]+)\(.*/\1/p'
	fi | sort -u
}

case_names_are_of_one_program() {
	local kind pair bad=
	for kind in types functions; do
		for pair in 'user jvm-agent' 'user bpf' 'jvm-agent bpf'; do
			bad+=$(comm -12 <(names_of $kind "${pair% *}") <(names_of $kind "${pair#* }"))
		done
	done
	none "names that two of the programs have" "$bad"
}

case_top_level() {
	local allowed='bpf|user|jvm-agent|headers|tests|vmlinux|Makefile|README\.md|LICENSE|CHANGELOG\.md|\..*'
	none "at the top level" "$(sources | cut -d / -f 1 | sort -u | grep -vxE "$allowed")"
}

# Further text belongs in headers/README.md, RESULTS.md or the log of git.
case_text_length() {
	local file most
	while read -r file most; do
		[ "$(wc -l <"$file")" -le "$most" ] || fail "$file has $(wc -l <"$file") lines, more than $most"
	done <<-'END'
		README.md 150
		CHANGELOG.md 60
		user/man/duet.1 2000
	END
	none "lines of more than 120 columns" "$(awk 'length > 120 && !/^!?\[|^\|/ { print FILENAME ":" FNR }' \
		README.md CHANGELOG.md headers/*.md)"
}

case_no_leftovers() {
	none "unfinished" "$(sources '*.c' '*.h' '*.sh' '*.java' '*.js' '*.md' Makefile |
		grep -v '^tests/system/style_order.sh$' | xargs grep -nwE 'TODO|FIXME|XXX|HACK' /dev/null)"
}

# Only main() ends the process of the loader; the agent never ends its process.
case_no_exit() {
	none "ends the process" "$(sources 'user/*.c' 'jvm-agent/*.c' | grep -v '^user/main.c$' |
		xargs grep -nE '(^|[^_a-z.])(exit|abort)\(' /dev/null)"
}

case_shell_syntax() {
	local file
	while read -r file; do
		bash -n "$file" 2>"$here/why" || exit 1
	done < <(sources '*.sh' '*.bash' "${scripts[@]}" | grep -vx Makefile)
}

run_cases "$@"
