#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# .duet files and duet convert: equal to direct output, readable after the recorder was killed, parts and sums.
. "$(dirname "$0")/lib.sh"

convert() {
	run_duet convert "$@"
}

# shellcheck disable=SC2317 # called at the end of each case
after_case() {
	! mountpoint -q "$here/small" || umount -l "$here/small"
}

samples_of() { # FILE.duet OPTIONS...
	convert "$@" - -o collapsed
	expect_status 0
	total "$here/stdout"
}

# Records once in every format, then converts the .duet file to each of them with the same options of style.
record_and_convert() { # RECORD-OPTIONS...
	local file
	mkdir "$here/direct" "$here/made"
	record ${style[@]+"${style[@]}"} -f "$here/direct/a.duet" -f "$here/direct/a.html" \
		-f "$here/direct/a.collapsed" -f "$here/direct/a.col" -f "$here/direct/a.txt" \
		-f "$here/direct/a.full.txt" "$@"
	expect_status 0
	for file in html collapsed col txt full.txt; do
		convert ${style[@]+"${style[@]}"} "$here/direct/a.duet" "$here/made/a.$file"
		expect_status 0
	done
	mv "$here/direct/a.duet" "$here"
	for file in "$here/direct"/*; do
		expect_same "$file" "$here/made/$(basename "$file")"
	done
}

# Two events, several processes.
case_same_as_written_at_once() {
	need_bpf
	local style=()
	record_and_convert -e cpu,page-faults -i 1ms -- bash -c 'for i in 1 2 3; do ls -lR /usr/lib >/dev/null; done'
	expect "files: col and collapsed have one for each event" "$(find "$here/made" -type f | wc -l)" == 7
	[ "$(samples_of "$here/a.duet" --event page-faults)" = "$(total "$here/made/a.page-faults.collapsed")" ] ||
		fail "--event has other samples than the recording"
	"$duet" convert - - -o collapsed -e cpu <"$here/a.duet" >"$here/piped" || fail "no pipe: $?"
	expect_same "$here/piped" "$here/made/a.collapsed"
	convert "$here/a.duet" "$here/again.duet"
	convert "$here/again.duet" "$here/again.html"
	expect_same "$here/again.html" "$here/made/a.html"
}

case_same_of_a_jvm() {
	start_jvm "$(any_jdk)" shop.Demo
	warm_up 2
	local style=(-t -s -a -l -g -j 40 --total --lines --reverse -I '*Pricing*' -X 'shop/Journal.*' --title x)
	record_and_convert -p "$jvm" -d 2 -i 1ms
	expect_contains "$here/made/a.collapsed" 'Pricing'
}

# ---- the recorder's end ----

# Waits until the file has this many samples; prints their number.
wait_for_samples() { # FILE COUNT
	local end=$((SECONDS + 60)) count=0
	until [ "$count" -gt "$2" ]; do
		[ $SECONDS -lt $end ] || fail "$count samples in $1 after 60 s: $(cat "$here/stderr")"
		sleep 0.2
		[ -e "$1" ] || continue
		count=$("$duet" convert "$1" - -o collapsed -e cpu 2>"$here/why_not" | total /dev/stdin)
	done
	echo "$count"
}

# The file has all samples but those of the last seconds.
case_killed_recorder() {
	local first last killed
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	start_record -p "$jvm" -i 1ms -d 90 -f "$here/out.duet"
	first=$(wait_for_samples "$here/out.duet" 0) || exit
	last=$(wait_for_samples "$here/out.duet" "$first") || exit
	expect "samples before the end" "$last" '>' "$first"
	kill -KILL "$recorder"
	killed=$(date +%s)
	wait "$recorder" 2>/dev/null
	recorder=
	convert "$here/out.duet" "$here/out.full.txt"
	expect_status 0
	expect_contains "$here/stderr" 'out.duet: the recording was cut short'
	expect_contains "$here/out.full.txt" '^incomplete +: the recording was cut short'
	expect_contains "$here/out.full.txt" 'shop\.Pricing'
	expect_contains "$here/out.full.txt" '^command +: duet record'
	expect "age of the last chunk" $((killed - $(stat -c %Y "$here/out.duet"))) '<=' 5
	expect_no_leftover "$here/out.duet"
}

# The recorder is killed at any moment of its end: the file keeps what it had, and a finished file is whole.
case_killed_at_the_end() {
	local turns i before cut=0
	need_bpf
	start_jvm "$(any_jdk)" workload.Shares 90
	for turns in 0 300 1000 2000 4000 8000; do
		rm -f "$here/out.duet"
		start_record -p "$jvm" -i 1ms -d 90 -f "$here/out.duet"
		before=$(wait_for_samples "$here/out.duet" 0) || exit
		kill -INT "$recorder"
		for ((i = 0; i < turns; i++)); do :; done
		kill -KILL "$recorder" 2>/dev/null
		wait "$recorder" 2>/dev/null
		recorder=
		expect "samples, killed $turns turns after the end" "$(samples_of "$here/out.duet")" '>=' "$before"
		if grep -q 'was cut short' "$here/stderr"; then
			cut=$((cut + 1))
		else
			convert "$here/out.duet" "$here/out.full.txt"
			expect_contains "$here/out.full.txt" '^walked +: '
		fi
	done
	expect "of 6 recordings, cut short" "$cut" '>' 0
	expect_alive "$jvm"
}

case_full_disk() {
	local end=$((SECONDS + 60)) samples rescued
	need_root
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	mkdir "$here/small"
	mount -t tmpfs -o size=400k tmpfs "$here/small" || skip "cannot mount a tmpfs"
	start_record -p "$jvm" -i 2ms -d 90 -f "$here/small/out.duet"
	samples=$(wait_for_samples "$here/small/out.duet" 0) || exit
	head -c 1M /dev/zero >"$here/small/filler" 2>/dev/null
	until grep -q 'nothing more is written' "$here/stderr"; do
		[ $SECONDS -lt $end ] || fail "nothing was said of the full disk: $(cat "$here/stderr")"
		sleep 0.2
	done
	rm "$here/small/filler"
	end_record INT
	cp "$here/small/out.duet" "$here/cut.duet"
	umount "$here/small"
	expect_status 1
	expect_contains "$here/stderr" 'small/out.duet.*No space left'
	rescued=$(sed -n 's/.*was written to \([^ ]*-out.duet\) instead/\1/p' "$here/stderr")
	expect_file "$rescued"
	mv "$rescued" "$here/rescued.duet"
	expect "samples on the full disk" "$(samples_of "$here/cut.duet" -e cpu)" '>=' "$samples"
	expect_contains "$here/stderr" 'was cut short'
	expect "samples elsewhere" "$(samples_of "$here/rescued.duet" -e cpu)" '>' "$samples"
	expect_lacks "$here/stderr" 'was cut short'
}

# ---- JFR ----

# Killed at any moment, the recorder leaves chunks that the JDK and duet read alike, up to the last seconds.
jdk_case_killed_recorder_of_jfr() {
	local first last turns
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	need_bpf
	start_jvm "$jdk" shop.Demo
	for turns in 0 3000; do
		start_record -p "$jvm" -i 1ms -d 90 --chunksize 256k -f "$here/out.jfr"
		first=$(wait_for_samples "$here/out.jfr" 0) || exit
		last=$(wait_for_samples "$here/out.jfr" "$first") || exit
		expect "samples before the end" "$last" '>' "$first"
		[ "$turns" = 0 ] || kill -INT "$recorder"
		for ((i = 0; i < turns; i++)); do :; done
		kill -KILL "$recorder" 2>/dev/null
		wait "$recorder" 2>/dev/null
		recorder=
		expect "samples" "$(samples_of "$here/out.jfr" -e cpu)" '>=' "$last"
		expect "jdk.ExecutionSample" "$(jfr_count "$here/out.jfr" jdk.ExecutionSample)" == \
			"$(total "$here/stdout")"
		jfr print --events ExecutionSample "$here/out.jfr" >"$here/print" 2>"$here/why" ||
			fail "jfr print: $(cat "$here/why")"
		expect "samples that are printed" "$(grep -c '^jdk.ExecutionSample' "$here/print")" == \
			"$(total "$here/stdout")"
		expect_contains "$here/print" 'shop\.Pricing'
		expect_no_leftover "$here/out.jfr"
	done
}

# By size and by time; the whole file has every sample of the .duet beside it.
jdk_case_chunks_of_jfr() {
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	need_bpf
	start_jvm "$jdk" shop.Demo
	record -p "$jvm" -i 1ms -d 11 --chunktime 1s -f "$here/time.jfr" -f "$here/out.duet"
	expect_status 0
	record -p "$jvm" -i 50us -d 4 --chunksize 1 -f "$here/size.jfr"
	expect_status 0
	end_jvm
	expect "ExecutionSample" "$(jfr_count "$here/time.jfr" jdk.ExecutionSample)" == "$(samples_of "$here/out.duet")"
	expect "chunks of 5 s" "$(jfr_count "$here/time.jfr" Chunks:)" == 3
	expect "ExecutionSample" "$(jfr_count "$here/time.jfr" jdk.ExecutionSample)" == "$(samples_of "$here/time.jfr")"
	expect "ExecutionSample" "$(jfr_count "$here/size.jfr" jdk.ExecutionSample)" == "$(samples_of "$here/size.jfr")"
	expect "chunks of 256 kB" "$(jfr_count "$here/size.jfr" Chunks:)" '>' 1
}

# The file on the full disk has the whole chunks; a pipe has everything.
case_full_disk_of_jfr() {
	local end=$((SECONDS + 60)) samples
	need_root
	need_bpf
	start_jvm "$(any_jdk)" shop.Demo
	mkdir "$here/small"
	mount -t tmpfs -o size=400k tmpfs "$here/small" || skip "cannot mount a tmpfs"
	start_record -p "$jvm" -i 1ms -d 90 -f "$here/small/out.jfr"
	samples=$(wait_for_samples "$here/small/out.jfr" 0) || exit
	head -c 1M /dev/zero >"$here/small/filler" 2>/dev/null
	until grep -q 'nothing more is written' "$here/stderr"; do
		[ $SECONDS -lt $end ] || fail "nothing was said of the full disk: $(cat "$here/stderr")"
		sleep 0.2
	done
	end_record INT
	cp "$here/small/out.jfr" "$here/cut.jfr"
	umount "$here/small"
	expect_status 1
	expect "samples on the full disk" "$(samples_of "$here/cut.jfr")" '>=' "$samples"
	rm -f "$(sed -n 's/.*was written to \([^ ]*-out.jfr\) instead/\1/p' "$here/stderr")"
	"$duet" record -v -p "$jvm" -i 1ms -d 3 -o jfr 2>"$here/stderr" | cat >"$here/pipe.jfr"
	expect "samples in a pipe" "$(samples_of "$here/pipe.jfr")" '>' 100
}

# A recording that fails before it starts leaves the old file alone.
case_old_file_stays() {
	echo old >"$here/out.duet"
	record -p 999999999 -d 1 -f "$here/out.duet"
	expect_status 1
	[ "$(cat "$here/out.duet")" = old ] || fail "the old file is gone"
	expect_no_leftover "$here/out.duet"
}

# Output made from a recording that is private is private too.
case_private_stays_private() {
	need_root
	need_bpf
	umask 022
	record --host --no-attach -d 1 -f "$here/host.duet"
	expect_status 0
	convert "$here/host.duet" "$here/host.txt"
	expect "mode of the recording" "$(stat -c %a "$here/host.duet")" == 600
	expect "mode of what is made from it" "$(stat -c %a "$here/host.txt")" == 600
}

# ---- parts and sums ----

# Three seconds of bash at least, a pause, and three of yes.
case_parts_of_a_recording() {
	need_bpf
	local half all
	record -i 1ms -f "$here/out.duet" -- bash -c 'end=$((SECONDS + 4)); while [ $SECONDS -lt $end ]; do :; done
		sleep 1; timeout 3 yes >/dev/null; true'
	expect_status 0
	all=$(samples_of "$here/out.duet")
	half=$(samples_of "$here/out.duet" --to 2s)
	expect_share "of bash in the first two seconds" "$(matching "$here/stdout" '^.bash pid')" '>=' 98
	expect "the rest" "$(samples_of "$here/out.duet" --from 2s)" == $((all - half))
	[ "$(samples_of "$here/out.duet" --from 0 --to -0)" = "$all" ] || fail "0 to -0 is not all of it"
	samples_of "$here/out.duet" --from -1s >/dev/null
	expect_share "of bash in the last second" "$(matching "$here/stdout" '^.bash pid')" '<=' 2
	convert "$here/out.duet" "$here/part.txt" --from 1s --to 2s
	expect_contains "$here/part.txt" '^part: 1.000 s to 2.000 s of the recording'
}

case_windows_add_up() {
	need_bpf
	local file sum=0
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -i 1ms --continuous --window 2s -d 5 -o duet,collapsed -f "$here/windows"
	expect_status 0
	for file in "$here"/windows/profile_*.duet; do
		expect_same "${file%.duet}.collapsed" <("$duet" convert "$file" - -o collapsed)
		sum=$((sum + $(total "${file%.duet}.collapsed")))
	done
	convert "$here"/windows/profile_*.duet "$here/all.collapsed"
	expect_status 0
	expect "samples of all windows" "$(total "$here/all.collapsed")" == "$sum"
	cat "$here"/windows/profile_*.collapsed | sed -E 's/ ([0-9]+)$/\t\1/' |
		awk -F '\t' '{ sum[$1] += $2 } END { for (stack in sum) print stack " " sum[stack] }' |
		LC_ALL=C sort >"$here/sum"
	LC_ALL=C sort "$here/all.collapsed" >"$here/sorted"
	expect_same "$here/sum" "$here/sorted"
}

# ---- errors ----

case_wrong_files() {
	local file
	mkdir "$here/folder"
	: >"$here/empty"
	echo "no profile at all" >"$here/text"
	printf '\x89duet\r\n\x1a' >"$here/begun"
	printf '\x89duet\r\n\x1a\x09\0\0\0\x10\0\0\0' >"$here/newer"
	for file in folder empty text begun newer absent; do
		convert "$here/$file" "$here/out.html"
		expect_refusal 1 "$file: "
		[ ! -e "$here/out.html" ] || fail "$file: something was written"
	done
	expect_contains "$here/stderr" 'absent: .*No such file'
}

case_wrong_usage() {
	echo >"$here/there.duet"
	convert
	expect_refusal 2 'IN… OUT'
	convert "$here/only.duet"
	expect_refusal 2 'IN… OUT'
	convert "$here/in.duet" "$here/there.duet"
	expect_refusal 2 'there.duet exists'
	convert "$here/in.duet" "$here/out" -o papyrus
	expect_refusal 2 'papyrus'
	convert "$here/in.duet" "$here/out" --from soon
	expect_refusal 2 'from.*soon'
	convert "$here/in.duet" "$here/out" --by colour
	expect_refusal 2 'by.*colour'
	convert "$here/in.duet" "$here/out" --pid 1
	expect_refusal 2 'unknown option'
}

run_cases "$@"
