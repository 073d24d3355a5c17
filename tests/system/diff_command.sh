#!/bin/bash
# SPDX-License-Identifier: MIT
# `duet diff A B OUT`: two profiles compared.
. "$(dirname "$0")/lib.sh"
make_profile=$DUET_BUILD/tests/system/flamegraph_profile

# Makes profiles of 100 and of 200 samples; "gone" is only in the first, "new" only in the second.
make_two() {
	local run='main;app/Main.run_[j];app/Main'
	printf '%s\n' "$run.hot_[j] 50" "$run.same_[j] 30" "$run.gone_[0];java/util/HashMap.get_[i] 20" \
		>"$here/a.collapsed"
	printf '%s\r\n' "$run.hot_[j] 120" "$run.same_[j] 60" "$run.new_[j] 20" >"$here/b.collapsed"
}

expect_text() { # FILE LINES...
	local file=$1
	shift
	diff <(printf '%s\n' "$@") "$file" >"$here/difference" || fail "$(cat "$here/difference")"
}

case_two_columns() {
	make_two
	run_duet diff "$here/a.collapsed" "$here/b.collapsed" "$here/out.folded"
	expect_status 0
	expect_text "$here/out.folded" 'main;app/Main.run;app/Main.gone;java/util/HashMap.get 40 0' \
		'main;app/Main.run;app/Main.hot 100 120' 'main;app/Main.run;app/Main.new 0 20' \
		'main;app/Main.run;app/Main.same 60 60'
	expect_contains "$here/stderr" "wrote $here/out.folded"
	run_duet diff --no-normalize -s -a -X '*hot' "$here/a.collapsed" "$here/b.collapsed" -
	expect_status 0
	expect_text "$here/stdout" 'main;Main.run_[j];Main.gone_[0];HashMap.get_[i] 20 0' \
		'main;Main.run_[j];Main.new_[j] 0 20' 'main;Main.run_[j];Main.same_[j] 30 60'
	[ ! -s "$here/stderr" ] || fail "said: $(cat "$here/stderr")"
}

case_page() {
	make_two
	run_duet diff --title 'before and after' "$here/a.collapsed" "$here/b.collapsed" "$here/out.html"
	expect_status 0
	expect_contains "$here/out.html" '"title":"before and after"'
	expect_contains "$here/out.html" '^"diff":\{"normalize":true,"unit":"samples","samples":100,'
	expect_no_leftover "$here/out.html"
	run_duet diff -o flamegraph --no-normalize "$here/a.collapsed" "$here/b.collapsed" -
	expect_status 0
	expect_contains "$here/stdout" '^"diff":\{"normalize":false,'
}

case_stdin() {
	make_two
	"$duet" diff - "$here/a.collapsed" - <"$here/a.collapsed" >"$here/stdout" || fail "exit code $?"
	expect_contains "$here/stdout" '^main;app/Main.run;app/Main.hot 50 50$'
	run_duet diff - - "$here/out.html"
	expect_refusal 2 'A and B are both stdin'
}

# A recording, and the same as collapsed stacks, which do not name the event.
case_recordings() {
	"$make_profile" 2000 "$here/a.duet" "$here/a.collapsed" || fail "flamegraph_profile: exit code $?"
	local b
	for b in a.duet a.collapsed; do
		run_duet diff "$here/a.duet" "$here/$b" -
		expect_status 0
		awk '$NF != $(NF - 1) { exit 1 }' "$here/stdout" || fail "a profile differs from itself: $b"
		[ "$(wc -l <"$here/stdout")" = "$(wc -l <"$here/a.collapsed")" ] || fail "stacks are missing: $b"
	done
	run_duet diff --total "$here/a.duet" "$here/a.collapsed" -
	expect_refusal 1 'weights are nanoseconds in .*a.duet and numbers in .*a.collapsed'
	run_duet diff -e teapot "$here/a.duet" "$here/a.duet" -
	expect_refusal 1 "--event teapot: not an event of both; $here/a.duet has cpu"
	run_duet diff --event cpu "$here/a.duet" "$here/a.duet" "$here/out.html"
	expect_status 0
	expect_contains "$here/out.html" '"losses":\[\[17,".*\(A\)"\],\[17,".*\(B\)"\]\]'
}

# Output made from a recording of other users' processes is readable for its owner alone.
case_private_stays_private() {
	need_root
	need_bpf
	umask 022
	make_two
	record --host --no-attach -d 1 -f "$here/host.duet"
	expect_status 0
	run_duet diff "$here/a.collapsed" "$here/host.duet" "$here/host.html"
	expect_status 0
	expect "mode of the page" "$(stat -c %a "$here/host.html")" == 600
	run_duet convert --group daemon "$here/host.duet" "$here/host.txt"
	expect "mode and group of a converted file" "$(stat -c '%a %G' "$here/host.txt")" == '640 daemon'
	run_duet convert --group teapot "$here/host.duet" "$here/other.txt"
	expect_refusal 2 "no group 'teapot'"
	run_duet diff "$here/a.collapsed" "$here/b.collapsed" "$here/out.html"
	expect "mode of another page" "$(stat -c %a "$here/out.html")" == 644
}

# Each error is one sentence, and no file is written.
case_refusals() {
	make_two
	local a=$here/a.collapsed b=$here/b.collapsed
	echo 'kept' >"$here/out.html"
	: >"$here/empty" && printf 'a;b 1\na;b\n' >"$here/bad.collapsed" && head -c 5000 /dev/urandom >"$here/random"
	run_duet diff "$a" "$here/empty" "$here/out.html"
	expect_refusal 1 'empty: the file is empty'
	run_duet diff "$here/bad.collapsed" "$b" "$here/out.html"
	expect_refusal 1 'bad.collapsed: line 2 is not a stack and a count'
	run_duet diff "$a" "$here/random" "$here/out.html"
	expect_refusal 1 'random: not a profile'
	run_duet diff "$a" "$here/absent" "$here/out.html"
	expect_refusal 1 'absent: cannot be read: No such file'
	run_duet diff "$a" "$b" "$here/absent/out.html"
	expect_refusal 1 'out.html could not be written: No such file'
	run_duet diff "$a" "$b" /dev/full -o collapsed
	expect_refusal 1 '/dev/full could not be written: No space left'
	run_duet diff "$a" "$b" "$here/out.jfr"
	expect_refusal 2 'written to OUT.html, OUT.collapsed or OUT.txt'
	run_duet diff -o jfr "$a" "$b" "$here/out.html"
	expect_refusal 2 '-o jfr: a difference is written as flamegraph, collapsed or text'
	run_duet diff --by teapot "$a" "$b" "$here/out.html"
	expect_refusal 2 "--by 'teapot'"
	run_duet diff "$a" "$b"
	expect_refusal 2 'duet diff takes two profiles and the file to write'
	[ "$(cat "$here/out.html")" = kept ] || fail "out.html was written"
	expect_no_leftover "$here/out.html"
	[ ! -e "$here/out.jfr" ] || fail "out.jfr was written"
}

run_cases "$@"
