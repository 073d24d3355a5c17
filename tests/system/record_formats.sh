#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Every format and every option that shapes it, on one running JVM.
. "$(dirname "$0")/lib.sh"

start_demo() {
	start_jvm "$(any_jdk)" shop.Demo
	warm_up 2
}

record_demo() { # OPTIONS...
	echo "# ${FUNCNAME[1]}: $*"
	record -p "$jvm" -d 1 -i 1ms "$@"
	expect_status 0
}

# Makes a recording of one JVM.
case_formats() {
	start_demo
	collapsed
	collapsed_by_extension
	whole_text
	text_on_stdout
	flamegraph
	several_formats
}

# Styles are those of a recording's file: record_file same_of_a_jvm proves that they are the same when it is recorded.
case_styles() {
	start_demo
	record -p "$jvm" -d 2 -i 1ms -f "$here/demo.duet"
	expect_status 0
	all_user
	without_the_verb
	end_jvm
	threads
	depth
	simple
	signatures
	annotate
	libraries
	include
	exclude
}

# Fails if the file has the secret; compressed files are unpacked.
expect_no_secret() { # FILE
	! { gzip -dc "$1" 2>/dev/null || cat "$1"; } | grep -aq "$secret" || fail "${1##*/} has the secret"
}

# What a JVM was started with has secrets. No format has them, nor the recorder's own command line; --no-redact keeps
# them, and then they are left out of what is made of the file.
case_redaction() {
	local format secret=hunter2hunter2
	local formats=(flamegraph text text=full collapsed col jfr pprof otlp otlp-json perf speedscope firefox
		chrometrace callgrind duet)
	need_bpf
	need_root
	JVM_OPTS=("-Dx.password=$secret" "-Ddb.url=jdbc:postgresql://u:$secret@h/db")
	start_jvm "$(any_jdk)" shop.Demo 300 --token "$secret" "https://u:$secret@h/" "--key=$secret"
	record -p "$jvm" -d 2 --proc 1 -f "$here/a.duet" -f "$here/a.jfr"
	expect_status 0
	for format in "${formats[@]}"; do
		run_duet convert -o "$format" "$here/a.duet" "$here/$format.out"
		expect_status 0
		expect_no_secret "$here/$format.out"
	done
	expect_no_secret "$here/a.jfr"
	run_duet convert --no-redact "$here/a.duet" "$here/b.jfr" # whatever is in the file
	expect_no_secret "$here/b.jfr"
	grep -aqF -- '-Dx.password=[redacted]' "$here/a.jfr" || fail "no command line"
	grep -aqF 'jdbc:postgresql://[redacted]@h/db' "$here/a.jfr" || fail "no property"
	grep -aqF -- '--token [redacted] https://[redacted]@h/ --key=[redacted]' "$here/a.jfr" || fail "no arguments"
	record -p "$jvm" -d 1 --no-redact -f "$here/kept.jfr"
	expect "lines with the secret" "$(grep -ac "$secret" "$here/kept.jfr")" '>' 0
	run_duet convert "$here/kept.jfr" "$here/again.jfr"
	expect_no_secret "$here/again.jfr"
	record -o text=full -f "$here/own" -- sh -c "sleep 0.2; # --token $secret"
	expect_contains "$here/own" 'command.*redacted'
	expect_no_secret "$here/own"
}

style() { # OPTIONS... -> $here/out
	echo "# ${FUNCNAME[1]}: $*"
	run_duet convert -o collapsed "$@" "$here/demo.duet" "$here/out"
	expect_status 0
}

collapsed() {
	record_demo -o collapsed -f "$here/demo.txt"
	expect "lines that are no stack" "$(grep -cvE '^[^;]+(;[^;]+)* [1-9][0-9]*$' "$here/demo.txt")" '==' 0
	expect "samples" "$(total "$here/demo.txt")" '>=' 20
	expect_contains "$here/demo.txt" 'shop/Pricing\.averages'
	expect_contains "$here/demo.txt" '_\[k\]'
	expect_no_leftover "$here/demo.txt"
}

collapsed_by_extension() {
	record_demo -f "$here/out.collapsed"
	expect "lines that are no stack" "$(grep -cvE ' [1-9][0-9]*$' "$here/out.collapsed")" '==' 0
}

whole_text() {
	record_demo -o text=full -f "$here/out"
	expect_contains "$here/out" '^--- Execution profile ---'
	expect_contains "$here/out" '^Total samples +: [1-9]'
	expect_contains "$here/out" '^--- [0-9]+ ns \([0-9.]+%\), [0-9]+ samples?$'
	expect_contains "$here/out" '^ +\[ 0\] '
	expect_contains "$here/out" 'shop\.Pricing\.'
	expect_contains "$here/out" '^--- Lost ---'
}

text_on_stdout() {
	record_demo -o text
	expect_contains "$here/stdout" '^[0-9]+ samples of shop.Demo in '
	expect_contains "$here/stdout" '^  +[0-9.]+ % +[0-9.]+ ms +[0-9.]+ % +[0-9.]+ ms +shop[.]'
	expect_contains "$here/stdout" '^  +[0-9.]+ % +[0-9.]+ ms +[^ ]+ < .*Worker.run'
	expect_contains "$here/stdout" '^  +[0-9.]+ % +[0-9.]+ ms +.cashier'
	expect "lines" "$(wc -l <"$here/stdout")" '<=' 60
	expect_lacks "$here/stderr" ' share '
}

flamegraph() {
	record_demo -f "$here/out.html" --title "the <title> & more"
	expect_contains "$here/out.html" '^<!DOCTYPE html>'
	expect_contains "$here/out.html" '</html>'
	expect_contains "$here/out.html" '(averages|discounted|cheapest)'
	expect_lacks "$here/out.html" '<title>[^<]*the <title>'
	expect_lacks "$here/out.html" '(src|href)="(https?:)?//'
}

case_col() {
	start_demo
	record_demo -f "$here/out.col"
	expect_contains "$here/out.col" '^# \{.*"application_metadata": \[null, \{"java_version": "[^"]+ VM [0-9]'
	expect_contains "$here/out.col" '"sampling_frequency": 1000\}$'
	expect "lines that are no stack" "$(tail -n +2 "$here/out.col" |
		grep -cvE '^1;[^;]*;java;appid: java: shop\.Demo(;[^;]+)+ [1-9][0-9]*$')" == 0
	expect_contains "$here/out.col" 'shop\.Pricing\.averages\([^;]*\)[^;]*_\[[j0i]\]'
	record -p "$jvm" -d 1 -i 2ms --col-version 1 -f "$here/old.col"
	expect "lines that are no stack" "$(tail -n +2 "$here/old.col" |
		grep -cvE '^java;appid: java: shop\.Demo(;[^;]+)+ [1-9][0-9]*$')" == 0
	record -p "$jvm" -d 1 --col-version 3 -f "$here/none.col"
	expect_refusal 2 'col-version 3'
}

# The build id is the one that readelf prints. The JVM's flags come from its counters, and from its arguments if it has
# no counters or they cut the flags off.
case_col_of_the_vm() {
	local options id flags
	command -v readelf >/dev/null || skip "no readelf"
	id=$(readelf -n "$(find -L "$(any_jdk)" -name libjvm.so | head -n 1)" 2>/dev/null | sed -n 's/.*Build ID: //p')
	flags='\{"name": "MaxHeapSize", "type": "unknown", "value": "268435456", '
	flags+='"origin": "non-default", "kind": \[\]\}'
	flags+='(, \{"name": "[A-W][^}]*\})*, \{"name": "UseSerialGC", "type": "bool", "value": "true",'
	for options in -XX:+UsePerfData -XX:-UsePerfData "-Dlong=$(printf '%02000d' 0)"; do
		JVM_OPTS=("$options" -XX:+UseSerialGC)
		start_jvm "$(any_jdk)" shop.Demo
		sleep 3 # a JVM without counters may just be too young for them
		record -p "$jvm" -d 2 -i 2ms -f "$here/out.col"
		expect_status 0
		expect_contains "$here/out.col" "\"libjvm_elfid\": ${id:+\"buildid:}${id:-null}"
		expect_contains "$here/out.col" "\"jvm_flags\": \\[$flags"
	done
	expect_lacks "$here/out.col" 'Dlong'
}

# Several events are in one file, or have a file each.
several_formats() {
	record_demo -o col,flamegraph,collapsed -f "$here/out.html"
	expect_file "$here/out.html"
	expect_file "$here/out.col"
	[ "$(total "$here/out.collapsed")" = "$(total <(tail -n +2 "$here/out.col"))" ] || fail "the formats differ"
	record -p "$jvm" -d 1 -o collapsed,text=full -f "$here/a" -f "$here/b"
	expect_contains "$here/b" '^Total samples'
	expect_lacks "$here/a" '^Total samples'
	record -p "$jvm" -d 1 -o collapsed,text
	expect_refusal 2 '2 formats and 0 files'
	record -p "$jvm" -d 1 -o col,svg -f "$here/none"
	expect_refusal 2 "unknown format 'svg'"
	record -p "$jvm" -d 1 -o col,col -f "$here/none"
	expect_refusal 2 'twice'
	record -p "$jvm" -d 1 --window 5s -f "$here/none"
	expect_refusal 2 'for --continuous'
}

case_file_name_patterns() {
	start_jvm "$(any_jdk)" shop.Demo
	local round
	for round in 1 2; do
		record -p "$jvm" -d 1 -o collapsed -f "$here/p%p-t%t-n%n.x"
		expect_status 0
		sleep 1
	done
	expect "files" "$(find "$here" -name "p$jvm-t*-n*.x" -size +0 | grep -cE 't[0-9][0-9-]*-n[0-9]+\.x$')" '==' 2
	[ -z "$(find "$here" -name '*%*')" ] || fail "a pattern was left: $(ls "$here")"
}

threads() {
	style -t
	expect_contains "$here/out" '^\[pricing tid=[0-9]+\];'
	expect_contains "$here/out" '^\[cashier-2 tid=[0-9]+\];'
	expect "stacks without a thread" "$(grep -cv '^\[' "$here/out")" '==' 0
}

depth() {
	style -j 5
	expect "deepest stack" "$(awk '{ sub(/ [0-9]+$/, ""); n = gsub(/;/, ";") + 1; if (n > max) max = n }
		END { print max }' "$here/out")" '<=' 6
	expect_contains "$here/out" '^\[truncated\];'
}

simple() {
	style -s
	expect_contains "$here/out" '(^|;)Pricing\.averages'
	expect_lacks "$here/out" 'shop/Pricing'
}

signatures() {
	style -g
	expect_contains "$here/out" 'shop/Till\.take\(IJ\)J'
}

annotate() {
	style -a
	expect_contains "$here/out" 'shop/[A-Za-z]+\.[a-z]+_\[j\]'
	expect_contains "$here/out" '_\[i\]'
}

libraries() {
	style -l
	expect_contains "$here/out" ';libz\.so[^;\`]*`|;libzip\.so`'
	expect_contains "$here/out" 'libjvm\.so`'
}

include() {
	style -I '*Pricing.averages*'
	expect "stacks that do not match" "$(grep -cv 'Pricing.averages' "$here/out")" '==' 0
	expect "samples" "$(total "$here/out")" '>=' 5
}

exclude() {
	style -X '*Archiver*' -X 'shop/Journal.*'
	expect_lacks "$here/out" 'shop/Archiver|shop/Journal\.'
	expect_contains "$here/out" 'shop/Pricing'
}

all_user() {
	record_demo --all-user -o collapsed -f "$here/out"
	expect_lacks "$here/out" '_\[k\]'
	expect "samples" "$(total "$here/out")" '>=' 20
}

# The spelling that async-profiler's users type: options, then the pid, no verb.
without_the_verb() {
	run_duet -d 1 -f "$here/out.html" "$jvm"
	expect_status 0
	expect_contains "$here/out.html" '(averages|discounted|cheapest)'
}

case_two_processes() {
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	local first=$jvm
	start_jvm "$(any_jdk)" workload.Locks
	record -p "$first,$jvm" -d 3 -i 2ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'shop/Pricing'
	expect_contains "$here/out" 'workload/Locks\.fight'
}

case_host() { # apart
	need_bpf
	start_jvm "$(any_jdk)" workload.TwoBusy 600
	start_jvm "$(any_jdk)" workload.Locks
	record --host -d 3 -i 2ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'workload/Locks\.fight'
	expect "processes" "$(cut -d ';' -f 1 "$here/out" | sort -u | wc -l)" '>=' 2
}

# Names with an emoji and a rare kanji, which class files and JVMTI encode in their own way: from outside, by the agent,
# by name on the command line, and in formats that are read again.
jdk_case_characters_above_ffff() {
	local class='workload/Kanji[$]😀' file
	need_bpf
	start_jvm "$jdk" workload.Kanji
	record -p "$jvm" -d 1 -i 1ms -t -f "$here/out.collapsed" -f "$here/out.jfr" -f "$here/out.pb.gz" \
		-f "$here/out.html"
	expect_status 0
	for file in jfr pb.gz html; do
		"$duet" convert -t "$here/out.$file" "$here/$file.collapsed" >"$here/stdout" 2>"$here/stderr" ||
			fail "$file: $(cat "$here/stderr")"
	done
	for file in out jfr pb.gz html; do
		expect_contains "$here/$file.collapsed" "𠮷 😀.*;$class[.]all;$class[.]𠮷[ _]"
		! grep -q '[?][?]' "$here/$file.collapsed" || fail "$file: $(head -c 300 "$here/$file.collapsed")"
	done
	record -p "$jvm" -d 1 --engine ctimer -t -e 'workload.Kanji$😀.𠮷' -f "$here/calls.collapsed"
	expect_status 0
	expect_contains "$here/calls.collapsed" "𠮷 😀.*;$class[.]all;$class[.]𠮷[ _]"
	is_jdk 11 || return 0
	record -p "$jvm" -d 1 --engine ctimer -t -e alloc=1k -f "$here/alloc.collapsed"
	expect_status 0
	expect_contains "$here/alloc.collapsed" "$class[.]𠮷;workload.Kanji[$]😀"
}

run_cases "$@"
