#!/bin/bash
# SPDX-License-Identifier: MIT
# `duet annotate`: samples by source line, by index of the bytecode, by instruction.
. "$(dirname "$0")/lib.sh"

# Prints the samples of a class's methods, as callers too or only as leaves, from collapsed stacks.
samples_of() { # PATTERN
	"$duet" convert "$here/a.duet" -o collapsed 2>/dev/null | awk -v pattern="$1" '
		$0 ~ pattern { hit += $NF } { all += $NF } END { printf "%.2f\n", 100 * hit / all }'
}

# Prints the sum of the column self of the rows below the heading of a source file.
sum_of() { # FILE
	awk '/^[^ ]/ { inside = /\.java$/ } inside && $1 ~ /%$/ && $2 ~ /%$/ { sum += $1 }
		END { printf "%.2f\n", sum }' "$1"
}

# The sum of the lines is what ends in the class, and each line of source is that of the file, from a folder and a jar.
jdk_case_lines_of_a_class() {
	local line text sources=$PWD/tests/workloads
	need_bpf
	[ -x "$jdk/bin/jar" ] || skip "$jdk has no jar"
	start_jvm "$jdk" shop.Demo 300
	record_cpu 2 -p "$jvm" -e cpu -i 1ms -f "$here/a.duet"
	run_duet annotate --source "$sources" Till "$here/a.duet"
	expect_status 0
	cp "$here/stdout" "$here/from_folder"
	expect_contains "$here/from_folder" '^shop/Demo.java$'
	expect_near "self of all lines" "$(sum_of "$here/from_folder")" \
		"$(samples_of 'shop/Till[.][a-z]+ [0-9]+$')" 0.2
	expect_near "total of the class" "$(sed -nE 's/^Till: ([0-9.]+)%.*/\1/p' "$here/from_folder")" \
		"$(samples_of 'shop/Till[.]')" 0.01
	sed -nE 's/^.{16} +([0-9]+)  (.*)/\1 \2/p' "$here/from_folder" | grep -v '^[0-9]* *line ' >"$here/lines"
	expect "lines of source" "$(wc -l <"$here/lines")" '>' 5
	while read -r line text; do
		sed -n "${line}p" "$sources/Demo.java" | tr -s '\t ' ' ' | sed 's/^ //' >"$here/line"
		[ "$(cat "$here/line")" = "$(tr -s ' ' <<<"$text")" ] || fail "line $line is not: $text"
	done <"$here/lines"
	mkdir -p "$here/tree/module/shop"
	cp "$sources/Demo.java" "$here/tree/module/shop/"
	"$jdk/bin/jar" cf "$here/src.jar" -C "$here/tree" module || fail "jar: exit code $?"
	run_duet annotate --source "$here/src.jar" Till "$here/a.duet"
	expect_status 0
	diff "$here/stdout" "$here/from_folder" >"$here/difference" ||
		fail "a jar gives other lines: $(head -n 4 "$here/difference")"
	run_duet annotate --source "$here/tree" -f "$here/a.html" Till - <"$here/a.duet"
	expect_status 1 # stdin is empty in this test
	run_duet annotate --source "$here/tree" -f "$here/a.html" Till "$here/a.duet"
	expect_status 0
	expect_contains "$here/a.html" '<h2>shop/Demo.java</h2>'
	expect "rows with samples" "$(grep -c 'background' "$here/a.html")" '>' 1
	expect_contains "$here/from_folder" '^ +[0-9. %]+ +@[0-9]+  line [0-9]+$'
}

# Two loops, of which one takes three quarters of the time; the instructions are those of objdump on the file itself.
case_instructions() {
	local workload=$DUET_BUILD/workloads/instructions first second
	need_bpf
	command -v objdump >/dev/null || skip "there is no objdump"
	# shellcheck disable=SC2016 # for the inner shell, which allows a second of CPU time
	record --offsets -e cpu -i 1ms -f "$here/a.duet" -f "$here/a.jfr" -- sh -c 'ulimit -t 1; exec "$0"' "$workload"
	run_duet annotate --code "$workload" two_loops "$here/a.duet"
	expect_status 0
	sed -nE 's/^.{16} +\+0x([0-9a-f]+)  (.*)/\2/p' "$here/stdout" | sed 's/ *<.*//; s/0x[0-9a-f]*$//' >"$here/got"
	objdump -d --no-show-raw-insn --disassemble=two_loops "$workload" |
		sed -nE 's/^ +[0-9a-f]+:\t(.*)/\1/p' | sed 's/ *<.*//; s/[0-9a-f]*$//; s/0x$//' >"$here/want"
	sed -i 's/[0-9a-f]*$//' "$here/got"
	expect "instructions" "$(wc -l <"$here/want")" '>' 12
	cmp -s "$here/got" "$here/want" || fail "other instructions: $(diff "$here/got" "$here/want" | head -n 4)"
	# The first jump ends the first loop, the rest is the second.
	read -r first second < <(awk '$1 ~ /%$/ && /\+0x/ { sum[jumps > 0] += $1 } /\+0x.*(jne|b\.ne)/ { jumps++ }
		END { print sum[0] + 0, sum[1] + 0 }' "$here/stdout")
	expect "percent in both loops" "$(awk "BEGIN { print $first + $second }")" '>=' 70
	expect_near "of them in the first loop" "$(awk "BEGIN { print 100 * $first / ($first + $second) }")" 75 8
	cp "$here/stdout" "$here/of_duet"
	run_duet annotate --code "$workload" two_loops "$here/a.jfr"
	expect_status 0
	diff "$here/stdout" "$here/of_duet" >"$here/difference" || fail "JFR differs: $(head -n 4 "$here/difference")"
	run_duet annotate --code "$workload" -f "$here/a.html" main "$here/a.duet"
	expect_status 0
	expect_contains "$here/a.html" '<td>\+0x[0-9a-f]+</td><td>(call|bl) .*&lt;two_loops&gt;</td>'
	run_duet annotate --code "$0" --code "$DUET_BUILD/duet" two_loops "$here/a.duet"
	expect_status 0
	expect_contains "$here/stdout" '^ *[0-9.]+% +[0-9.]+% +\+0x[0-9a-f]+$'
	cp "$DUET_BUILD/duet" "$here/instructions"
	run_duet annotate --code "$here/instructions" two_loops "$here/a.duet"
	expect_status 0
	expect_contains "$here/stderr" 'has no function two_loops'
	run_duet annotate --code "$here/instructions.none/instructions" two_loops "$here/a.duet"
	expect_status 0
	expect_contains "$here/stderr" 'could not be read: No such file'
}

case_refusals() {
	echo 'main;a/B.run:7 3' >"$here/a.collapsed"
	run_duet annotate B "$here/a.collapsed"
	expect_status 0
	expect_contains "$here/stdout" '^100[.]00%  100[.]00%        7$'
	expect_contains "$here/stdout" '^B: 100.00% of 3 samples pass through it, 100.00% end in it'
	run_duet annotate Nothing "$here/a.collapsed"
	expect_refusal 1 'Nothing: no class, method or function of this name is in the samples$'
	run_duet annotate B
	expect_refusal 2 'takes a name and recordings'
	run_duet annotate --alloc B "$here/none"
	expect_refusal 1 'No such file'
	run_duet annotate --tail 5 B "$here/a.collapsed"
	expect_refusal 2 'belongs to --leak'
}

run_cases "$@"
