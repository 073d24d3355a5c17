#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# record --continuous and duet daemon: windows without a gap, links, rotation, full disks, reloads.
. "$(dirname "$0")/lib.sh"

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	[ -z "${recorder:-}" ] || kill -KILL "$recorder"
	[ -z "${reader:-}" ] || kill -KILL "$reader"
	[ -z "${small:-}" ] || umount "$small"
}

spinning=spin.$$ # no other process has this name

# Starts a child that spins under the name $spinning as soon as $here/go exists. Its pid is $spinner.
spin() {
	perl -e '$0 = $ARGV[0]; select(undef, undef, undef, 0.05) until -e $ARGV[1]; 1 while 1' $spinning "$here/go" \
		>/dev/null 2>&1 </dev/null &
	spinner=$!
	jvms+=($spinner)
	wait_for 20 grep -qx $spinning "/proc/$spinner/comm"
}

# Prints the CPU time of the process in ns.
cpu_ns() { # PID
	cut -d ' ' -f 1 "/proc/$1/schedstat"
}

resident_kb() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

# Prints the files of windows, oldest first, without the links.
windows() { # FOLDER EXTENSION
	find "$1" -maxdepth 1 -type f -name "profile_20*.$2" 2>/dev/null | sort -V
}

has_windows() { # FOLDER EXTENSION COUNT
	[ "$(windows "$1" "$2" | wc -l)" -ge "$3" ]
}

start_daemon() { # ARGS...
	"$duet" daemon "$@" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
}

# A reader that opens the links while they are replaced always gets a whole file.
read_links() { # FOLDER
	exec perl -e '
		my %whole = ("last_profile.collapsed" => qr/ \d+\n\z/, "last_profile.col" => qr/\A# \{.*\}\n/,
			"last_flamegraph.html" => qr/<\/html>\s*\z/);
		$| = 1;
		while (1) {
			for my $link (keys %whole) {
				open(my $file, "<", "$ARGV[0]/$link") or print("torn: no $link\n"), next;
				print(join("", <$file>) =~ $whole{$link} ? "whole\n" : "torn $link\n");
			}
			select(undef, undef, undef, 0.005);
		}' "$1" >"$here/read" 2>&1
}

# Two processes spin from before their first sample until they are stopped: the windows, one recording beside them and
# the scheduler count the same CPU time. The scheduler does not count the time of interrupts and of the hypervisor.
case_windows_are_the_whole() {
	local pids=() pid truth=0 file col sum=0 full=0 out=$here/out whole
	need_bpf
	"$duet" record --comm $spinning --no-attach -i 500us -d 60 -f "$here/whole.collapsed" 2>/dev/null &
	whole=$!
	jvms+=($whole)
	start_record --comm $spinning --no-attach --continuous --window 1s -i 500us -f "$out" \
		-o collapsed,col,flamegraph
	for _ in 1 2; do
		spin
		pids+=("$spinner")
		truth=$((truth - $(cpu_ns "$spinner") / 500000))
	done
	touch "$here/go"
	wait_for 20 has_windows "$out" html 3 # each window has its links by then
	read_links "$out" &
	reader=$!
	sleep 3
	kill -STOP "${pids[@]}"
	sleep 0.2
	for pid in "${pids[@]}"; do
		truth=$((truth + $(cpu_ns "$pid") / 500000))
	done
	kill "$reader"
	kill "$whole"
	wait "$reader" "$whole" 2>/dev/null
	reader=
	end_record TERM
	expect_status 0
	recorder=
	while read -r file; do
		col=$(sed -E 's/(T..)-(..)-(..)(.*)[.]collapsed$/\1:\2:\3\4.col/' <<<"$file") # gProfiler's name
		[ "$(total "$file")" = "$(total <(tail -n +2 "$col"))" ] || fail "formats differ: $file"
		sum=$((sum + $(total "$file")))
		full=$((full + 1))
	done < <(windows "$out" collapsed)
	expect "windows" $full '>=' 5
	expect_near "samples of all windows, by CPU time" $sum $truth $((truth / 20))
	whole=$(total "$here/whole.collapsed")
	expect_near "samples of all windows, by one recording" $sum "$whole" $((whole / 10))
	[ "$sum" = "$(reported_samples)" ] ||
		fail "a sample is in no window or in two: $sum in all; $(grep 'samples in' "$here/stderr")"
	expect_lacks "$here/stderr" 'arrived when it was already written'
	expect "reads of the links" "$(grep -c whole "$here/read")" '>=' 50
	expect_lacks "$here/read" torn
	expect_lacks "$out/last_profile.col" secret
}

# The loader gets too little CPU time to empty the ring in one step: a window waits for its samples that are still in
# the ring.
case_a_loader_behind() {
	local count
	need_bpf
	for ((count = 0; count < 3; count++)); do
		spin
		taskset -cp 0 "$spinner" >/dev/null
	done
	start_record --comm $spinning --no-attach --continuous --window 1s -i 200us -d 60 -f "$here/out" -o collapsed
	taskset -cp 0 "$recorder" >/dev/null
	touch "$here/go"
	kill -STOP "$recorder"
	sleep 2
	renice 19 "$recorder" >/dev/null
	kill -CONT "$recorder"
	sleep 2
	renice 0 "$recorder" >/dev/null
	wait_for 20 has_windows "$here/out" collapsed 3
	end_record INT
	expect_status 0
	expect_lacks "$here/stderr" 'arrived when it was already written'
}

# All CPUs are busy, so each has this many samples in each window. A virtual machine's host may have stopped a CPU in
# one window; a gap between windows would show in all.
# A length of three windows makes three windows, and not one more with the last milliseconds.
case_length_of_some_windows() {
	need_bpf
	spin
	record --comm $spinning --no-attach --continuous --window 1s -d 3 -f "$here/out" -o collapsed
	expect_status 0
	expect "windows" "$(windows "$here/out" collapsed | wc -l)" '==' 3
	expect_contains "$here/stderr" '→ 3 windows in '
}

case_windows_have_no_gap() { # alone
	local cpus file count=0 full=0 samples want
	need_bpf
	cpus=$(nproc --all) want=$((cpus * 1000))
	for ((count = 0; count < cpus; count++)); do
		spin
	done
	touch "$here/go"
	record --host --no-attach --continuous --window 1s -i 1ms -d 6 -f "$here/out" -o collapsed
	expect_status 0
	count=0
	while read -r file; do
		samples=$(total "$file")
		echo "# samples of a window: $samples (about $want)"
		is_near "$samples" $want $((want / 50)) && full=$((full + 1))
		count=$((count + 1))
	done < <(windows "$here/out" collapsed | head -n -1)
	expect "whole windows" $count '>=' 5
	expect "of them without a gap" $full '>=' $((count - 1))
}

# The last window is shorter. The limits remove only files with names that duet gives.
case_rotation() {
	local out=$here/out
	need_bpf
	mkdir "$out"
	echo mine | tee "$out/profile_2020-01-01T00:00:00.hprof" "$out/profile_x.col" "$out/notes" >/dev/null
	ln -s notes "$out/profile_2020-01-01T00:00:00.col"
	echo old >"$out/profile_2020-01-01T00:00:01.col"
	spin
	touch "$here/go"
	start_record --comm $spinning --no-attach --continuous --window 1s -f "$out" --keep-files 4 -o col,flamegraph
	wait_for 20 has_windows "$out" col 2
	sleep 3
	end_record TERM
	expect_status 0
	recorder=
	expect "files kept" "$(find "$out" -type f -name 'profile_20*' ! -name '*.hprof' | wc -l)" '<=' 4
	expect "files kept of the newest window" "$(windows "$out" html | wc -l)" '>=' 2
	[ "$(cat "$out/profile_2020-01-01T00:00:00.hprof" "$out/profile_x.col" "$out/notes")" = $'mine\nmine\nmine' ] ||
		fail "files that are not duet's were touched"
	[ -L "$out/profile_2020-01-01T00:00:00.col" ] || fail "a link was removed"
	[ ! -e "$out/profile_2020-01-01T00:00:01.col" ] || fail "the oldest is still there"
	[ "$(readlink "$out/last_profile.col")" = "$(basename "$(windows "$out" col | tail -n 1)")" ] ||
		fail "the link does not lead to the newest"
}

# A folder of windows is an input: the windows of a time, cut at it. Its index has a link to each file.
# Prints when the window started, and when its last sample was taken, in ns.
times_of() { # PERF
	awk '$2 == "start:" { print "start", $3 }
		$1 != "#" && $3 ~ /^[0-9]+[.][0-9]+:$/ { gsub(/[.:]/, "", $3); last = $3 }
		END { print "sample", last }' "$1"
}

case_folder_and_index() {
	local out=$here/out middle file parts=0
	need_bpf
	record -e cpu -i 1ms --continuous --window 1s -d 4 -f "$out" -- "$workloads/busy" 1 4
	expect_status 0
	grep -o 'href="[^"]*"' "$out/index.html" | sed 's/href="[.]\///; s/"//' | sort >"$here/linked"
	(cd "$out" && printf '%s\n' profile_*) | sort >"$here/files"
	expect_same "$here/linked" "$here/files"
	run_duet convert "$out" "$here/all.collapsed"
	expect_status 0
	run_duet convert "$out"/profile_*.duet "$here/each.collapsed"
	expect_same "$here/all.collapsed" "$here/each.collapsed"
	expect "samples" "$(total "$here/all.collapsed")" '>' 100
	for file in "$out"/profile_*.duet; do
		run_duet convert "$file" "$here/window.perf"
		times_of "$here/window.perf"
	done >"$here/times"
	expect "windows that start before the last sample of another" \
		"$(awk '$1 == "start" && $2 < last { n++ } { last = $2 } END { print n + 0 }' "$here/times")" == 0
	middle=$(sed -nE '2s/.*T(..)-(..)-(..)[.]duet/\1:\2:\3/p' "$here/files")
	for part in "--to=$middle" "--from=$middle"; do
		run_duet convert "$part" "$out" "$here/part.collapsed"
		expect_status 0
		expect "samples $part" "$(total "$here/part.collapsed")" '>' 0
		parts=$((parts + $(total "$here/part.collapsed")))
	done
	expect "samples of both parts" $parts == "$(total "$here/all.collapsed")"
	run_duet convert --from 2020-01-01 --to 2020-01-02 "$out" "$here/none.html"
	expect_refusal 1 'no window of this time: it has windows from'
	run_duet convert "$here" "$here/none.html"
	expect_refusal 1 'no window in the format duet or jfr'
}

case_sigterm_writes_the_last_window() {
	need_bpf
	spin
	touch "$here/go"
	start_record --comm $spinning --no-attach --continuous --window 1h -i 1ms -f "$here/out" -o collapsed
	end_record TERM
	expect_status 0
	recorder=
	expect "windows" "$(windows "$here/out" collapsed | wc -l)" == 1
	expect "samples" "$(total "$here/out/last_profile.collapsed")" '>' 20
}

# A full disk is reported once, and older windows stay whole. Room again is reported once, and windows are written
# again.
case_full_and_vanished_disk() {
	local before
	need_bpf
	need_root
	small=$here/small
	mkdir "$small"
	mount -t tmpfs -o size=256k duet-test "$small" 2>/dev/null || { small= && skip "no tmpfs can be mounted"; }
	spin
	touch "$here/go"
	start_record --comm $spinning --no-attach --continuous --window 1s -f "$small" -o flamegraph
	wait_for 20 has_windows "$small" html 1
	before=$(windows "$small" html | head -n 1)
	dd if=/dev/zero of="$small/fill" bs=1k 2>/dev/null
	wait_for 20 grep -q 'could not be written: No space' "$here/stderr"
	sleep 2.5
	[ "$(grep -c 'could not be written' "$here/stderr")" = 1 ] || fail "said more than once: $(cat "$here/stderr")"
	tail -n 1 "$before" | grep -q '</html>' || fail "an older window is damaged"
	rm "$small/fill"
	wait_for 20 grep -q 'written again' "$here/stderr"
	umount -l "$small"
	rmdir "$small"
	small=
	wait_for 20 grep -q 'could not be written: No such file' "$here/stderr"
	mkdir "$here/small"
	wait_for 20 has_windows "$here/small" html 1
	end_record TERM
	expect_status 0
	recorder=
	expect_contains "$here/stderr" 'samples lost with windows that could not be written'
}

case_daemon_reloads() {
	need_bpf
	spin
	touch "$here/go"
	printf '%s\n' "file = $here/a" "comm = $spinning" 'window = 1s' 'no-attach = yes' >"$here/conf"
	start_daemon --config "$here/conf" --lock "$here/lock"
	wait_for 20 has_windows "$here/a" duet 1 # the default
	run_second
	printf '%s\n' "file = $here/b" "comm = $spinning" '' 'widow = 1s' >"$here/conf"
	kill -HUP "$recorder"
	wait_for 20 grep -q 'stays in force' "$here/stderr"
	expect_contains "$here/stderr" "$here/conf:4: unknown word 'widow': did you mean window"
	wait_for 20 has_windows "$here/a" duet $(($(windows "$here/a" duet | wc -l) + 2))
	[ ! -e "$here/b" ] || fail "a broken configuration was used"
	printf '%s\n' "file = $here/c" 'window = 2s' 'no-attach = yes' "comm = $spinning" 'output = text' >"$here/conf"
	kill -HUP "$recorder"
	wait_for 20 has_windows "$here/c" txt 2
	expect_lacks "$here/stderr" 'samples in' # the recording continues
	expect_contains "$here/c/last_profile.txt" '^[0-9]+ samples of .* in [0-9.]+ s, '
	printf '%s\n' "file = $here/b" "comm = $spinning" 'window = 1s' 'no-attach = yes' 'freq = 500' 'output = col' \
		>"$here/conf"
	kill -HUP "$recorder"
	wait_for 20 has_windows "$here/b" col 2
	expect_contains "$here/b/last_profile.col" '"sampling_frequency": 500'
	end_record TERM
	expect_status 0
	recorder=
}

# A second daemon ends with one sentence, and the first one continues.
run_second() {
	local said
	said=$("$duet" daemon --config "$here/conf" --lock "$here/lock" 2>&1)
	[ $? = 1 ] || fail "a second daemon ran"
	[ "$(wc -l <<<"$said")" = 1 ] || fail "more than a sentence: $said"
	grep -q "another duet daemon.*process $recorder" <<<"$said" || fail "the sentence does not say who: $said"
	kill -0 "$recorder" || fail "the first daemon is gone"
}

case_configurations_are_checked() {
	local line
	for line in 'x' 'window = 0' 'pid = 1' 'output = svg' 'window = 10ms' 'all-user = maybe' 'file = ' \
		'event = none'; do
		printf '%s\n' '# a comment' '' "$line" >"$here/conf"
		run_duet daemon --config "$here/conf" --check
		expect_refusal 2 "$here/conf:3: "
	done
	printf '%s\n' 'freq = 99' '; another' 'interval = 1ms' >"$here/conf"
	run_duet daemon --config "$here/conf" --check
	expect_refusal 2 "$here/conf:3: "
	printf '%s\n' 'freq = 99' 'freq = 98' >"$here/conf"
	run_duet daemon --config "$here/conf" --check
	expect_refusal 2 "$here/conf:2: .*twice, first in line 1"
	printf '%s\n' 'window = 30s' "file = $here" >"$here/conf" # in any order
	run_duet daemon --config "$here/conf" --check
	expect_status 0
	run_duet daemon --config "$(dirname "$0")/../../user/packaging/duet.conf" --check
	expect_status 0
	run_duet daemon --config "$here/none" --check
	expect_refusal 2 'No such file'
}

# JVMs run one after the other; the methods of the first keep their names in later windows.
case_jvms_come_and_go() {
	local all=$here/all
	need_bpf
	cat >"$here/jvms" <<-END
		for class in Shares TwoBusy Shares; do
			: >$here/said # the last one's DONE
			$(any_jdk)/bin/java -Xmx64m -cp $workloads workload.\$class 2 >$here/said &
			until grep -q DONE $here/said; do
				sleep 0.1
			done
			kill -KILL \$!
			wait
		done
	END
	timeout 90 "$duet" record -v --continuous --window 1s -i 1ms -f "$here/out" -o collapsed -- sh "$here/jvms" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect_status 0
	windows "$here/out" collapsed | xargs cat >"$all"
	[ "$(total "$all")" = "$(reported_samples)" ] ||
		fail "a sample is in no window or in two"
	expect "share of Shares" "$(share "$all" 'workload/Shares\.(fifty|thirty|twenty)')" '>=' 20
	expect "share of TwoBusy" "$(share "$all" 'workload/TwoBusy\.')" '>=' 10
	expect "share without a name" "$(share "$all" 'unknown_method')" '<=' 1
}

# Short processes follow each other: their mappings, names and rows are freed with them.
case_memory_is_flat() {
	local early late
	need_bpf
	bash -c 'while :; do /bin/true; /bin/true; /bin/true; sleep 0.001; done' >/dev/null 2>&1 &
	jvms+=($!)
	start_record --host --no-attach --continuous --window 1s -i 2ms -f "$here/out" --keep-files 40
	wait_for 40 has_windows "$here/out" duet 6
	early=$(resident_kb "$recorder")
	sleep 9
	late=$(resident_kb "$recorder")
	expect "kB of memory, 9 windows after it was $early" "$late" '<=' $((early * 115 / 100 + 2048))
	end_record TERM
	expect_status 0
	recorder=
}

# In a folder that all may write to, another user moves the windows' folder away again and again, and has links to a
# folder of root's, a folder of his own with such a link, or a pipe in its place. The first time he waits for a window
# that meets it.
case_folder_is_replaced_all_the_time() {
	need_bpf
	need_root
	chmod 755 "$here"
	mkdir -m 777 "$here/all"
	mkdir -m 700 "$here/roots"
	echo kept >"$here/roots/profile_2020-01-01_00-00-00.collapsed"
	touch -d 2020-01-01 "$here/roots"
	spin
	touch "$here/go"
	# shellcheck disable=SC2016 # for the inner shell
	setpriv --reuid=61234 --regid=61234 --clear-groups bash -c 'cd "$1/all"; i=0
		until [ -e out ]; do sleep 0.1; done
		sleep 1
	while [ -e "$1/go" ]; do
		mv out away$i
		case $((i % 4)) in
		0) ln -s ../roots out ;;
		1) mkdir -m 777 out; ln -s ../../roots/passwd out/last_profile.collapsed ;;
		2) mkfifo out ;;
		3) ln -s /proc/self/fd out ;;
		esac
		until [ $i -gt 0 ] || [ ! -e "$1/go" ] || grep -qs "could not be written" "$1/stderr"; do
			sleep 0.1
		done
		sleep 0.$((RANDOM % 4))
		rm -rf out || mv out rest$i
		mv away$i out
		sleep 0.$((RANDOM % 7))
		i=$((i + 1))
	done; echo $i' bash "$here" >"$here/rounds" 2>/dev/null &
	jvms+=($!)
	timeout --kill-after=1 60 "$duet" record -v --comm $spinning --no-attach --continuous --window 1s \
		--keep-files 2 -d 8 -f "$here/all/out" -o collapsed >"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect "exit code" $status '<=' 1 # the last window may be one that could not be written
	rm "$here/go"
	wait "${jvms[-1]}"
	expect "times that the folder was replaced" "$(cat "$here/rounds")" '>=' 5
	expect "files in root's folder" "$(find "$here/roots" -type f | wc -l)" == 1
	expect "mode of root's folder" "$(stat -c %a "$here/roots")" == 700
	expect "last change of root's folder" "$(stat -c %Y "$here/roots")" == "$(date -d 2020-01-01 +%s)"
	expect_contains "$here/stderr" 'a window could not be written: '
}

run_cases "$@"
