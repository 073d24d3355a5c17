#!/bin/bash
# SPDX-License-Identifier: MIT
# The words of `duet convert` and `duet diff`, patterns, pipes, and the command line of async-profiler's converter.
. "$(dirname "$0")/lib.sh"

expect_lines() { # FILE LINES...
	local file=$1
	shift
	diff <(printf '%s\n' "$@") "$file" >"$here/difference" || fail "$(cat "$here/difference")"
}

# Two events, two threads, four seconds: $here/a.perf
make_text() {
	local leaf=$'\t1 leaf (x)\n' call=$'\t1 a/B.call (/tmp/perf-1.map)\n' main=$'\t1 main (x)\n'
	printf '%s %s: 1000 %s:\n%s\n' \
		't 1/2' 100.0 cpu-clock "$leaf$call$main" 't 1/2' 101.0 cpu-clock "$leaf$call$main" \
		'u 1/3' 102.0 cpu-clock "$leaf$main" 't 1/2' 103.0 cpu-clock "$call$main" \
		't 1/2' 104.0 faults "$main" >"$here/a.perf"
}

convert() {
	run_duet convert "$@"
	expect_status 0
}

# Nothing but the stacks comes out of a pipe, and "-" is stdin.
case_pipes() {
	make_text
	"$duet" convert -e cpu-clock "$here/a.perf" -o collapsed 2>/dev/null | LC_ALL=C sort >"$here/stdout"
	expect_lines "$here/stdout" 'main;a/B.call 1' 'main;a/B.call;leaf 2' 'main;leaf 1'
	"$duet" convert - -o duet <"$here/a.perf" 2>/dev/null | "$duet" convert --cpu - -o collapsed 2>/dev/null |
		LC_ALL=C sort >"$here/twice"
	expect_lines "$here/twice" 'main;a/B.call 1' 'main;a/B.call;leaf 2' 'main;leaf 1'
	run_duet convert - - - -o collapsed
	expect_refusal 1 'stdin can be read once'
	run_duet convert "$here/a.perf"
	expect_refusal 2 'usage'
	"$duet" convert "$here/a.perf" - -o collapsed >"$here/first" 2>"$here/told"
	expect_lines "$here/first" 'main;a/B.call 1' 'main;a/B.call;leaf 2' 'main;leaf 1'
	grep -q 'stdout has only cpu-clock, the first of .* events' "$here/told" || fail "$(cat "$here/told")"
}

# Starts a conversion that waits for the end of its input: $pid, and the child that reads, $boxed.
begin_held() { # OUT
	[ -p "$here/held" ] || mkfifo "$here/held"
	exec 3<>"$here/held"
	echo 'main;one 1' >&3
	"$duet" convert "$here/held" "$1" 3>&- 2>"$here/stderr" &
	pid=$!
	wait_for 20 find_boxed
}

find_boxed() {
	local child
	for child in $(pgrep -P "$pid"); do
		grep -q '^Seccomp:.2' "/proc/$child/status" 2>/dev/null && boxed=$child && return
	done
	return 1
}

has_ended() { # PID
	[ ! -e "/proc/$1" ] || grep -q '^State:.Z' "/proc/$1/status"
}

end_held() { # -> $status
	status=0
	wait "$pid" || status=$?
	exec 3>&-
	wait_for 20 has_ended "$boxed"
	expect_no_leftover "$here/out.txt"
	[ ! -e "$here/out.txt" ] || fail "out.txt was written"
}

# Who reads the recording has no rights, and no descriptors but the input's, the socket's and a standard error that is
# nobody's. Whoever kills it, or duet, finds no file.
case_box() {
	need_plain "seccomp's filter"
	begin_held "$here/out.txt"
	grep -E '^(Cap(Prm|Eff|Inh)|NoNewPrivs)' "/proc/$boxed/status" >"$here/rights"
	expect_lines "$here/rights" CapInh:$'\t'0000000000000000 CapPrm:$'\t'0000000000000000 \
		CapEff:$'\t'0000000000000000 NoNewPrivs:$'\t'1
	[ "$(find "/proc/$boxed/fd" -type l | wc -l)" = 5 ] || fail "$(ls -l "/proc/$boxed/fd")"
	[ "$(readlink "/proc/$boxed/fd/2")" = /dev/null ] || fail "stderr is $(readlink "/proc/$boxed/fd/2")"
	kill -KILL "$boxed"
	end_held
	expect_status 1
	expect_contains "$here/stderr" 'held: .* signal 9'
	begin_held "$here/out.txt"
	kill -TERM "$pid"
	end_held
	expect_status 143
	expect_contains "$here/stderr" 'duet: ended by SIGTERM'
	begin_held "$here/out.txt"
	kill -TERM "$boxed"
	end_held
	expect_status 143
}

# A pattern stands for the files that match it. A file whose name looks like one is itself.
case_patterns() {
	echo 'main;one 1' >"$here/in-1.collapsed"
	echo 'main;two 2' >"$here/in-2.collapsed"
	echo 'main;odd 4' >"$here/in-[12].collapsed"
	convert "$here/in-?.collapsed" "$here/out.collapsed"
	expect_lines "$here/out.collapsed" 'main;one 1' 'main;two 2'
	convert "$here/in-[12].collapsed" "$here/out.collapsed"
	expect_lines "$here/out.collapsed" 'main;odd 4'
	run_duet convert "$here/none-*.collapsed" "$here/out.html"
	expect_refusal 1 'no file matches'
	[ ! -e "$here/out.html" ] || fail "out.html was written"
	run_duet diff --no-normalize "$here/in-?.collapsed" "$here/in-1.collapsed" -o collapsed
	expect_status 0
	expect_lines "$here/stdout" 'main;one 1 1' 'main;two 2 0'
	convert "$here/in-?.collapsed" "$here/one.jfr"
	cp "$here/one.jfr" "$here/two.jfr"
	run_duet convert "$here"/*.jfr # the output is forgotten
	expect_refusal 2 'exists and would be replaced'
	cmp -s "$here/one.jfr" "$here/two.jfr" || fail "two.jfr was replaced"
}

# Each word changes what it names, and nothing else.
case_words() {
	local cpu=(convert --cpu "$here/a.perf" -o collapsed)
	make_text
	run_duet "${cpu[@]}" --skip 1
	expect_lines "$here/stdout" 'a/B.call 1' 'a/B.call;leaf 2' 'leaf 1'
	run_duet "${cpu[@]}" --skip 1 -t
	expect_lines "$here/stdout" '[t tid=2];a/B.call 1' '[t tid=2];a/B.call;leaf 2' '[u tid=3];leaf 1'
	run_duet "${cpu[@]}" --classify
	expect_lines "$here/stdout" '[compiled];main;a/B.call 1' '[native];main;a/B.call;leaf 2' '[native];main;leaf 1'
	run_duet "${cpu[@]}" --grain 2
	expect "samples" "$(total "$here/stdout")" == 4
	awk '$NF % 2 { exit 1 }' "$here/stdout" || fail "not in steps of 2: $(cat "$here/stdout")"
	run_duet "${cpu[@]}" --regex -I 'a/B\.c.*'
	expect_lines "$here/stdout" 'main;a/B.call 1' 'main;a/B.call;leaf 2'
	run_duet "${cpu[@]}" --regex -X '.*call'
	expect_lines "$here/stdout" 'main;leaf 1'
	run_duet "${cpu[@]}" -I '*nosuch*'
	expect_refusal 1 "nothing is left to write: no stack has a frame that matches -I '\*nosuch\*'"
	run_duet convert -X '*' "$here/a.perf" "$here/none.html"
	expect_refusal 1 "nothing is left to write: every stack has a frame that matches -X '\*'"
	run_duet convert --span nosuch "$here/a.perf" "$here/none.html"
	expect_refusal 1 'nothing is left to write: no sample has a span'
	run_duet diff --regex -I nosuch "$here/a.perf" "$here/a.perf" "$here/none.html"
	expect_refusal 1 'nothing is left to write: no stack has a frame'
	[ ! -e "$here/none.html" ] || fail "a file was written for nothing"
	run_duet "${cpu[@]}" --regex -X '(unclosed'
	expect_refusal 2 'not a regular expression'
	run_duet "${cpu[@]}" --from 1s --to 2.5s
	expect_lines "$here/stdout" 'main;a/B.call;leaf 1' 'main;leaf 1'
	run_duet convert --alloc "$here/a.perf" -o collapsed
	expect_refusal 1 '--alloc: the recording has cpu-clock, faults'
	run_duet convert --cpu -e faults "$here/a.perf" -o collapsed
	expect_refusal 2 'exclude each other'
	convert --highlight 'a/B' --minwidth 60 --cpu "$here/a.perf" "$here/a.html"
	expect_contains "$here/a.html" '"highlight":"a/B"'
	expect_contains "$here/a.html" '^"depth":\[1,1\]' # leaf has half of the samples
}

# Files in other compressions are named, with the program that unpacks them.
case_other_compressions() {
	printf '\x28\xb5\x2f\xfd\x04\x00' >"$here/a.pb.zst"
	run_duet convert "$here/a.pb.zst" -o text
	expect_refusal 1 'a.pb.zst: compressed with zstd, not gzip: unpack it first .zstd -d.'
	printf '\xfd7zXZ\x00' >"$here/a.xz"
	run_duet convert "$here/a.xz" -o text
	expect_refusal 1 'compressed with xz, not gzip'
}

# async-profiler's converter, by name and by word.
case_jfrconv() {
	local word
	make_text
	ln -s "$duet" "$here/jfrconv"
	"$duet" convert "$here/a.perf" "$here/a.jfr" 2>/dev/null || fail "a.jfr was not written"
	(cd "$here" && ./jfrconv --cpu a.jfr && ./jfrconv a.jfr a.collapsed && mkdir folder &&
		./jfrconv -o pb.gz a.jfr folder && "$duet" jfrconv --diff a.jfr a.jfr folder && ./jfrconv -h >usage) \
		2>"$here/why" || fail "$(cat "$here/why")"
	expect_contains "$here/a.html" 'id="profiles"'
	expect_lines "$here/a.collapsed" 'main;a/B.call_[j] 1' 'main;a/B.call_[j];leaf 2' 'main;leaf 1'
	convert -e cpu-clock "$here/folder/a.pb.gz" "$here/b.collapsed"
	expect_lines "$here/b.collapsed" 'main;a/B.call 1' 'main;a/B.call;leaf 2' 'main;leaf 1'
	expect_contains "$here/folder/a.diff.html" '^"diff":\{"normalize":false'
	expect_contains "$here/usage" '--nativemem'
	run_duet jfrconv --cpu -I '.*call' -r -o collapsed "$here/a.jfr" -
	expect_status 0
	expect_lines "$here/stdout" 'main;a/B.call_[j] 1' 'main;a/B.call_[j];leaf 2'
	run_duet jfrconv --state d,sleeping -o collapsed "$here/a.jfr" -
	expect_status 0
	cmp -s "$here/stdout" "$here/a.collapsed" || fail "CPU time is not in the state default"
	run_duet jfrconv --state r -o collapsed "$here/a.jfr" -
	expect_status 0
	expect_contains "$here/stderr" 'no samples were selected'
	run_duet jfrconv --state awake "$here/a.jfr"
	expect_refusal 2 '--state awake: the states are runnable, sleeping and default'
	for word in wall lock nativemem leak; do # which the recording lacks
		run_duet jfrconv "--$word" -o collapsed "$here/a.jfr" "$here/$word.collapsed"
		expect_status 0
		expect_contains "$here/stderr" 'no samples were selected'
		[ -e "$here/$word.collapsed" ] && [ ! -s "$here/$word.collapsed" ] ||
			fail "$word has samples, or no file"
	done
	run_duet jfrconv --latency 5 "$here/a.jfr"
	expect_refusal 1 'the recording has no spans and no traced calls'
}

run_cases "$@"
