#!/bin/bash
# SPDX-License-Identifier: MIT
# The command line of async-profiler, with duet under its name.
. "$(dirname "$0")/lib.sh"

# run_asprof WORDS... -> $here/stdout, $here/stderr, $status
run_asprof() {
	timeout 60 "$here/asprof" "$@" >"$here/stdout" 2>"$here/stderr"
	status=$?
}

begin() {
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_jvm "$(any_jdk)" workload.Shares 90
}

recorder_of() { # PID
	ls "/run/duet-recorders/" 2>/dev/null | grep "^$1-"
}

has_used() { # PID TICKS
	[ "$(cpu_ticks "$1")" -ge "$2" ]
}

# Waits until the JVM has used so much more CPU time: a busy machine gives it little in a second.
let_work() { # TICKS
	wait_for 100 has_used "$jvm" $(($(cpu_ticks "$jvm") + $1))
}

# The workload spends 50, 30 and 20 % of its time in three methods. Of few samples, the shares are less exact.
expect_shares() { # FILE
	local name percent samples tolerance
	grep 'workload/Shares\.round;' "$1" >"$here/rounds"
	samples=$(total "$here/rounds")
	expect "samples of the workload" "$samples" '>' 30
	tolerance=$(awk -v n="$samples" 'BEGIN { print n < 480 ? 175 / sqrt(n) : 8 }')
	while read -r name percent; do
		expect_near "percent in $name" "$(share "$here/rounds" "workload/Shares\\.$name;")" "$percent" \
			"$tolerance"
	done <<-'END'
		fifty 50
		thirty 30
		twenty 20
	END
}

case_collect() {
	need_bpf
	need_root
	begin
	run_asprof -d 3 -i 1ms -o collapsed "$jvm"
	expect_status 0
	expect_shares "$here/stdout"
	expect_contains "$here/stderr" '^Profiling for 3 seconds$'
	expect_contains "$here/stderr" '^Done$'
	run_asprof -d 1 -i 1ms -f "$here/out.html" "$jvm"
	expect_status 0
	expect_contains "$here/out.html" '</html>'
	[ ! -s "$here/stdout" ] || fail "it printed $(head -n 1 "$here/stdout")"
	run_asprof -d 1 "$jvm"
	expect_contains "$here/stdout" '^--- Execution profile ---$'
	expect_contains "$here/stdout" '^Total samples'
	expect_contains "$here/stdout" 'workload.Shares.fifty'
	expect_alive "$jvm"
}

case_states() {
	need_bpf
	need_root
	begin
	run_asprof status "$jvm"
	expect_status 0
	expect_contains "$here/stdout" '^Profiler is not active$'
	run_asprof stop "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] Profiler has not started$'
	run_asprof start -e cpu -i 1ms "$jvm"
	expect_status 0
	expect_contains "$here/stderr" '^Profiling started$'
	run_asprof start "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] Profiler already started$'
	sleep 1
	let_work 50
	run_asprof status "$jvm"
	expect_contains "$here/stdout" '^Profiling is running for [1-9][0-9]* seconds$'
	run_asprof dump -o collapsed "$jvm"
	expect_status 0
	cp "$here/stdout" "$here/dumped"
	expect_shares "$here/dumped"
	let_work 20
	run_asprof stop -o collapsed "$jvm"
	expect_status 0
	cp "$here/stdout" "$here/stopped"
	expect "samples at the end" "$(total "$here/stopped")" '>' "$(total "$here/dumped")"
	run_asprof stop -o collapsed "$jvm" # what was collected last
	expect_status 0
	cmp "$here/stdout" "$here/stopped" || fail "the same recording has another report"
	run_asprof stop -f "$here/out.jfr" "$jvm"
	expect_status 0
	expect_file "$here/out.jfr"
	run_asprof resume -i 1ms "$jvm"
	let_work 20
	run_asprof stop -o collapsed "$jvm"
	expect "samples after resume" "$(total "$here/stdout")" '>' "$(total "$here/stopped")"
	run_asprof start "$jvm"
	run_asprof stop -o collapsed "$jvm"
	expect "samples of a new recording" "$(total "$here/stdout")" '<' "$(total "$here/stopped")"
}

# --cstack and -j choose what reports show of the same walk.
case_shapes_of_stacks() {
	need_bpf
	need_root
	begin
	run_asprof -d 1 -i 1ms -a -o collapsed "$jvm"
	expect_contains "$here/stdout" '^workload/Shares\.main_|^java/lang/Thread\.run_'
	expect_lacks "$here/stdout" 'JavaCalls::call_helper.*;workload/Shares'
	run_asprof -d 1 -i 1ms --cstack vmx -o collapsed "$jvm"
	expect_contains "$here/stdout" 'JavaCalls::call_helper.*;call_stub;.*workload/Shares'
	run_asprof -d 1 -i 1ms -a --cstack no -o collapsed "$jvm"
	expect_lacks "$here/stdout" 'call_stub|_\[0\]|_\[k\]'
	run_asprof -d 1 -i 1ms -j 2/1 -o collapsed "$jvm"
	expect_contains "$here/stdout" '^\[truncated\];[^;]+ [0-9]+$'
	expect_lacks "$here/stdout" ';.*;'
	run_asprof stop -o flamegraph -f "$here/out.html" "$jvm"
	expect_contains "$here/out.html" '^const cpool'
	expect_contains "$here/out.html" '^Array\(3\)$'
}

# Nothing is stopped for a file that cannot be written.
case_refusals() {
	need_bpf
	need_root
	begin
	run_asprof start "$jvm"
	run_asprof stop -f /no/such/folder/x.html "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] Could not open output file: /no/such/folder/x.html'
	run_asprof status "$jvm"
	expect_contains "$here/stdout" 'is running'
	run_asprof stop -o collapsed "$jvm"
	run_asprof -e nonsense "$jvm"
	expect_status 200
	expect_contains "$here/stderr" "^\[ERROR\] Unsupported event type: 'nonsense'"
	run_asprof -e $'non\e[31msense' "$jvm"
	expect_contains "$here/stderr" "Unsupported event type: 'non.\\[31msense'"
	expect_lacks "$here/stderr" $'\e'
	run_asprof -i 0 "$jvm"
	expect_status 100
	expect_contains "$here/stderr" '^\[ERROR\] Invalid interval$'
	run_asprof --nonsense "$jvm"
	expect_status 1
	expect_contains "$here/stderr" '^Unrecognized option: --nonsense$'
	run_asprof status 99999999
	expect_status 1
	expect_contains "$here/stderr" '^Process 99999999 not found$'
	run_asprof list "$jvm"
	expect_contains "$here/stdout" '^Perf events:$'
	expect_contains "$here/stdout" '^  cpu-clock$'
	run_asprof -d 0 -f '' --title '' -I '' -o collapsed "$jvm"
	expect_status 0
	run_asprof -d 1 -e '' "$jvm"
	expect_status 100
	expect_contains "$here/stderr" '^\[ERROR\] event must not be empty$'
	run_asprof -d 1 --begin no_such_function "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] Begin address not found'
	run_asprof
	expect_status 1
	expect_contains "$here/stdout" '^Usage: asprof'
	run_asprof -d 1 No_Such_Program
	expect_status 1
	expect_contains "$here/stderr" '^No Java process$'
}

# Several events in one file, by the words of the agent's arguments.
case_several_events() {
	need_bpf
	need_root
	begin
	run_asprof -d 2 -e cpu -i 1ms --wall 10ms -f "$here/%p.jfr" "$jvm"
	expect_status 0
	run_duet convert -e cpu "$here/$jvm.jfr" "$here/cpu.collapsed"
	expect_status 0
	expect_shares "$here/cpu.collapsed"
	run_asprof stop -o collapsed "$jvm" # the first event
	expect_status 0
	cp "$here/stdout" "$here/first"
	expect_shares "$here/first"
	run_asprof -d 1 -e cpu --wall 10ms -o collapsed "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'Only JFR output supports multiple events'
}

# A recording that ends by itself writes the file that its start named; so does one whose process dies.
case_files_of_the_start() {
	need_bpf
	need_root
	begin
	run_asprof start -i 1ms --timeout 1 -f "$here/timeout.collapsed" "$jvm"
	expect_status 0
	wait_for 20 test -s "$here/timeout.collapsed"
	run_asprof start -i 1ms --loop 1 -f "$here/loop-%n.collapsed" "$jvm"
	wait_for 30 test -s "$here/loop-2.collapsed"
	run_asprof stop "$jvm"
	run_asprof start -i 1ms -f "$here/killed.collapsed" "$jvm"
	let_work 50
	kill -KILL "$jvm"
	wait_for 20 test -s "$here/killed.collapsed"
	expect_shares "$here/killed.collapsed"
	wait_for 20 eval '[ -z "$(recorder_of "$jvm")" ]'
}

# Prints the time that is in no chunk of a file. Each chunk's header says when it begins, and how long it is.
ns_between_chunks() { # FILE
	perl -e 'local $/; $_ = <STDIN>;
		for (my $at = 0; $at < length; ) {
			my ($bytes, $begin_ns, $ns) = (unpack("x8 q>5", substr($_, $at, 48)))[0, 3, 4];
			$between += $begin_ns - $end_ns if $at;
			($at, $end_ns) = ($at + $bytes, $begin_ns + $ns);
		}
		printf "%d\n", $between' <"$1"
}

# A JFR file exists from the start on and grows by chunks in one inode, whatever the stop asks for.
case_jfr_of_the_start() {
	local inode bytes
	need_bpf
	need_root
	begin
	run_asprof start -i 1ms -f "$here/none/a.jfr" "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] Could not open Flight Recorder output file'
	run_asprof status "$jvm"
	expect_contains "$here/stdout" 'not active'
	run_asprof start -i 1ms -f "$here/a.jfr" "$jvm"
	expect_status 0
	inode=$(stat -c %i "$here/a.jfr") || fail "there is no file after the start"
	let_work 50
	run_asprof dump -o jfr "$jvm"
	expect_status 0
	[ ! -s "$here/stdout" ] || fail "the dump went to stdout"
	bytes=$(stat -c %s "$here/a.jfr")
	run_duet convert "$here/a.jfr" "$here/first.collapsed"
	expect_shares "$here/first.collapsed"
	for _ in 1 2 3; do run_asprof dump -o jfr "$jvm"; done
	let_work 20
	run_asprof stop "$jvm"
	expect_status 0
	expect_contains "$here/stdout" '^--- Execution profile ---$'
	[ "$(stat -c %i "$here/a.jfr")" = "$inode" ] || fail "the file is another one"
	[ "$(stat -c %s "$here/a.jfr")" -gt "$bytes" ] || fail "the stop has added nothing"
	[ "$(head -c "$bytes" "$here/a.jfr" | grep -c '^FLR')" = 1 ] || fail "the first chunk is another one"
	run_duet convert "$here/a.jfr" "$here/both.collapsed"
	expect_shares "$here/both.collapsed"
	[ "$(sum_of "$here/both.collapsed")" -gt "$(sum_of "$here/first.collapsed")" ] || fail "a chunk is lost"
	expect "ns between the chunks" "$(ns_between_chunks "$here/a.jfr")" == 0
	run_asprof start -o jfr -i 1ms -f "$here/b.jfr" "$jvm"
	let_work 50
	run_asprof stop -o jfr "$jvm"
	expect_status 0
	run_duet convert "$here/b.jfr" "$here/b.collapsed"
	expect_shares "$here/b.collapsed"
}

sum_of() { # FILE
	awk '{ sum += $NF } END { print sum + 0 }' "$1"
}

cpu_ms() {
	echo $((($(proc_stat "$jvm" 14) + $(proc_stat "$jvm" 15)) * 1000 / ticks_per_second))
}

# Windows of a loop have no gap between them, names from their begin, and the last one is written at the stop.
case_windows_of_a_loop() {
	local begun before after sum=0 names
	need_bpf
	need_root
	begin
	mkdir "$here/windows"
	begun=$(date +%Y%m%d-%H%M%S)
	run_asprof start -i 1ms --loop 1 -f "$here/windows/%t-%n.jfr" "$jvm"
	expect_status 0
	before=$(cpu_ms)
	names=("$here"/windows/*)
	[ "${#names[@]}" = 1 ] || fail "there are ${#names[@]} files at the start"
	[[ ! "$(basename "${names[0]}")" < "$begun" ]] || fail "the window is named ${names[0]}, begun at $begun"
	sleep 5
	after=$(cpu_ms)
	run_asprof stop "$jvm"
	expect_status 0
	names=("$here"/windows/*)
	[ "${#names[@]}" -ge 4 ] || fail "there are ${#names[@]} windows"
	for name in "${names[@]}"; do
		run_duet convert --cpu "$name" "$here/window.collapsed"
		sum=$((sum + $(sum_of "$here/window.collapsed")))
	done
	[ "$sum" -ge $(((after - before) * 97 / 100)) ] ||
		fail "$sum ms of $((after - before)) ms of CPU time are in ${#names[@]} windows"
}

# A file that is there keeps its mode, its links and its place.
case_file_in_place() { # apart
	local inode
	need_bpf
	need_root
	begin
	mkdir "$here/own"
	chmod 755 "$here/own"
	touch "$here/own/out.collapsed" "$here/mounted"
	chmod 600 "$here/own/out.collapsed"
	ln "$here/own/out.collapsed" "$here/own/link"
	inode=$(stat -c %i "$here/own/link")
	touch "$here/own/mounted"
	mount --bind "$here/mounted" "$here/own/mounted"
	run_asprof start -e cpu -i 1ms "$jvm"
	let_work 20
	run_asprof dump -o collapsed -f "$here/own/mounted" "$jvm"
	expect_status 0
	expect_contains "$here/mounted" 'workload/Shares'
	umount "$here/own/mounted"
	run_asprof stop -f "$here/own/out.collapsed" "$jvm"
	expect_status 0
	[ "$(stat -c '%a %h %i' "$here/own/out.collapsed")" = "600 2 $inode" ] ||
		fail "mode, links and inode: $(stat -c '%a %h %i' "$here/own/out.collapsed")"
	expect_contains "$here/own/link" 'workload/Shares'
}

# The place of the start's file is full at the end: the report is elsewhere, and is named where somebody listens.
case_full_place() { # apart
	local library=$DUET_BUILD/libasyncProfiler.so
	need_bpf
	need_root
	mkdir "$here/full"
	mount -t tmpfs -o size=64k tmpfs "$here/full"
	begin
	run_asprof start -e cpu -i 1ms -f "$here/full/a.collapsed" "$jvm"
	expect_status 0
	let_work 20
	head -c 100k /dev/zero >"$here/full/filler" 2>/dev/null
	end_jvm
	wait_for 20 test -s "/tmp/duet-$jvm-a.collapsed"
	grep -q workload/Shares "/tmp/duet-$jvm-a.collapsed" || fail "the report elsewhere has no samples"
	timeout 60 "$(any_jdk)/bin/java" -Dends=true -cp "$workloads" \
		-agentpath:"$library=start,event=cpu,interval=1ms,file=$here/full/b.collapsed" \
		workload.ProfilerCalls work 300 >"$here/stdout"
	expect_contains "$here/stdout" 'No space left on device; .* written to /tmp/duet-.*-b.collapsed instead'
	umount "$here/full"
}

# Windows of a second, for three.
case_loop_until_the_timeout() {
	need_bpf
	need_root
	begin
	run_asprof start -e cpu -i 1ms --loop 1s --timeout 3s -f "$here/out.%n.collapsed" "$jvm"
	expect_status 0
	wait_for 20 test -s "$here/out.2.collapsed"
	sleep 2
	run_asprof status "$jvm"
	expect_contains "$here/stdout" 'not active'
	[ ! -e "$here/out.4.collapsed" ] || fail "it goes on after its timeout"
}

# Releases have versions in their names, and older ones another name.
case_other_names() {
	local name
	ln -s "$DUET_BUILD/duet" "$here/asprof-4.5-linux-x64"
	ln -s asprof-4.5-linux-x64 "$here/ap"
	ln -s "$DUET_BUILD/duet" "$here/profiler.sh"
	ln -s "$DUET_BUILD/duet" "$here/jfrconv-2"
	for name in asprof-4.5-linux-x64 ap profiler.sh; do
		expect_contains <("$here/$name" --version) '^Async-profiler '
	done
	expect_contains <("$here/jfrconv-2" --help) 'jfrconv'
	ln -s "$DUET_BUILD/duet" "$here/other"
	expect_contains <("$here/other" --version) '^duet '
}

case_collect_until_the_process_exits() {
	need_bpf
	need_root
	begin
	(sleep 3 && kill -KILL "$jvm") &
	run_asprof -d 50 -i 1ms -o collapsed "$jvm"
	expect_status 0
	expect_contains "$here/stderr" '^Process exited$'
	expect_shares "$here/stdout"
}

case_another_user() {
	need_root
	begin
	kill "$jvm"
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start_jvm "$(any_jdk)" workload.Shares 60
	mkdir -m 700 "$here/own"
	chown 65534 "$here/own"
	chmod 755 "$here"
	setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_RUNTIME_DIR="$here/own" \
		"$here/asprof" -d 3 -i 1ms -o collapsed "$jvm" >"$here/stdout" 2>"$here/stderr"
	expect "exit code" $? == 0
	expect_shares "$here/stdout"
	run_asprof -d 2 -i 1ms -o collapsed "$jvm" # by root
	expect_status 0
	expect_shares "$here/stdout"
}

# Runs asprof as the user of the JVM.
as_user() { # WORDS...
	setpriv --reuid=65534 --regid=65534 --clear-groups env XDG_RUNTIME_DIR=/no/such "$here/asprof" "$@" \
		>"$here/stdout" 2>"$here/stderr"
	status=$?
}

# Root and the process's own user see one recording, whoever has started it. Others see none.
case_two_users() {
	local library=$here/alone.so
	need_bpf
	need_root
	begin
	kill "$jvm"
	cp "$DUET_BUILD/libasyncProfiler.so" "$library"
	chmod 755 "$here"
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start_jvm "$(any_jdk)" workload.Shares 60
	run_asprof start -i 1ms "$jvm"
	as_user status "$jvm"
	expect_contains "$here/stdout" '^Profiling is running for [0-9]* seconds$'
	as_user start "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'Profiler already started'
	let_work 50
	as_user dump -o collapsed "$jvm"
	expect_status 0
	expect_shares "$here/stdout"
	for _ in {1..400}; do
		as_user dump -o collapsed "$jvm"
		[ $status = 0 ] || break
	done
	expect_contains "$here/stderr" 'dumped too often: ask again'
	setpriv --reuid=65533 --regid=65533 --clear-groups "$here/asprof" status "$jvm" >"$here/stdout" 2>&1
	expect_contains "$here/stdout" 'not active|not permitted|denied'
	as_user stop -o collapsed "$jvm"
	expect_contains "$here/stdout" 'workload/Shares'
	run_asprof status "$jvm"
	expect_contains "$here/stdout" '^Profiler is not active$'
	run_asprof start --proc 1 -o jfr "$jvm"
	as_user dump -o jfr "$jvm"
	expect_contains "$here/stderr" 'processes of all users use: only root'
	run_asprof stop -o collapsed "$jvm"
	as_user start -e ctimer -i 1ms "$jvm"
	expect_status 0
	run_asprof status "$jvm"
	expect_contains "$here/stdout" '^Profiling is running'
	run_asprof start "$jvm"
	expect_contains "$here/stderr" 'Profiler already started'
	let_work 20
	run_asprof stop -o collapsed "$jvm"
	expect_contains "$here/stdout" 'workload/Shares'
	run_asprof start -i 1ms "$jvm" # and the library in the process, whose own recorder is that user's
	run_asprof load "$jvm" "$library" true start,event=cpu
	expect_status 200
	expect_contains "$jvm_out" 'Profiler already started'
	run_asprof load "$jvm" "$library" true "stop,file=/tmp/duet-two-users-$$.collapsed"
	expect_contains "/tmp/duet-two-users-$$.collapsed" 'workload/Shares'
	expect "owner of the file" "$(stat -c %u "/tmp/duet-two-users-$$.collapsed")" == 65534
	rm -f "/tmp/duet-two-users-$$.collapsed"
	run_asprof status "$jvm"
	expect_contains "$here/stdout" '^Profiler is not active$'
}

collect_gcs() { # FILE WORDS...: six collections while it records
	local file=$1
	shift
	run_asprof start -i 1ms "$@" "$jvm"
	expect_status 0
	for _ in 1 2 3 4 5 6; do "$jdk/bin/jcmd" "$jvm" GC.run >/dev/null; done
	run_asprof stop -f "$file" "$jvm"
	expect_status 0
}

# Time to safepoints: a window for each, and samples between their ends only, unless all are wanted. Filters of threads.
case_marks() {
	local all tid
	need_bpf
	need_root
	begin
	jdk=$(any_jdk)
	nm "$jdk/lib/server/libjvm.so" 2>/dev/null | grep -q SafepointSynchronize5begin ||
		skip "libjvm.so has no symbols"
	collect_gcs "$here/all.jfr" --ttsp --nostop
	expect "windows" "$(jfr_count "$here/all.jfr" profiler.Window)" '>=' 5
	all=$(jfr_count "$here/all.jfr" jdk.ExecutionSample)
	collect_gcs "$here/inside.jfr" --ttsp
	expect "windows" "$(jfr_count "$here/inside.jfr" profiler.Window)" '>=' 5
	expect "samples in windows, of $all" "$(jfr_count "$here/inside.jfr" jdk.ExecutionSample)" '<' $((all / 2))
	run_asprof -d 1 --begin malloc --end malloc "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'begin and end symbols should not resolve to the same address'
	run_asprof -d 1 --begin No::such "$jvm"
	expect_contains "$here/stderr" 'has a function'
	tid=$(grep -lx main /proc/"$jvm"/task/*/comm | head -n 1)
	tid=$(echo "${tid:-/proc/$jvm/task/$jvm/comm}" | cut -d/ -f5)
	run_asprof -d 2 -e wall --filter "$tid" -t -o collapsed "$jvm"
	expect_status 0
	expect "stacks of other threads" "$(grep -cv " tid=$tid\]" "$here/stdout")" == 0
}

after_case() {
	[ -z "${squatted:-}" ] || rmdir "$squatted"
}

# Another user has made the folder in /tmp first: the recorder's socket is in the home directory then.
case_squatted_folder() {
	local uid=61234 folder=/tmp/.duet-asprof-61234
	need_root
	[ ! -e /run/user/$uid ] || skip "user $uid is logged in"
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	mkdir -m 700 "$here/home"
	chown $uid "$here/home"
	chmod 755 "$here"
	mkdir -m 777 $folder || fail "$folder is there"
	squatted=$folder
	chown 65534 $folder
	setpriv --reuid=$uid --regid=$uid --clear-groups "$workloads/busy" 1 60 >"$here/busy" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/busy" '^READY' 10
	setpriv --reuid=$uid --regid=$uid --clear-groups env -u XDG_RUNTIME_DIR HOME="$here/home" \
		"$here/asprof" status "$jvm" >"$here/stdout" 2>"$here/stderr"
	expect "exit code of status" $? == 0
	setpriv --reuid=$uid --regid=$uid --clear-groups env -u XDG_RUNTIME_DIR HOME="$here/home" \
		"$here/asprof" start "$jvm" >"$here/stdout" 2>"$here/stderr"
	expect "sockets in the other user's folder" "$(find $folder -mindepth 1 | wc -l)" == 0
	expect_file "$here/home/.duet-asprof"
	expect_lacks "$here/stderr" 'must belong'
}

# The file is created inside, with the rights of the process. A link there leads nowhere else.
case_file_of_a_container() {
	local outer
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	mkdir "$here/inner"
	chown 65534 "$here/inner"
	# shellcheck disable=SC2016 # for the inner shell
	JVM_AS=(unshare --mount --pid --fork --kill-child --mount-proc --propagation private sh -c
		'mount --bind "$0" /mnt && exec setpriv --reuid=65534 --regid=65534 --clear-groups "$@"' "$here/inner")
	start_jvm "$(any_jdk)" workload.Shares 60
	outer=$jvm
	jvm=$(pgrep -P "$outer" -x java) || fail "no java below $outer"
	jvms+=("$jvm")
	run_asprof -d 2 -i 1ms -f /mnt/out.collapsed "$jvm"
	expect_status 0
	expect_shares "$here/inner/out.collapsed"
	expect "owner of the file" "$(stat -c %u "$here/inner/out.collapsed")" == 65534
	ln -s /etc/passwd "$here/inner/link.collapsed"
	run_asprof -d 1 -f /mnt/link.collapsed "$jvm"
	expect_status 200
	run_asprof -d 1 -f /etc/out.collapsed "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'Could not open output file: /etc/out.collapsed: Permission denied'
}

# A container's root can make devices there that the kernel keeps from the container; outside, nothing would.
case_device_of_a_container() {
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	mkdir "$here/inner"
	# shellcheck disable=SC2016 # for the inner shell
	unshare --mount --propagation private sh -c 'mount --bind "$0" /mnt && mknod /mnt/disk.collapsed c 1 5 &&
		mkfifo /mnt/pipe.collapsed && exec "$@"' "$here/inner" "$workloads/busy" 1 1000 >"$here/busy" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/busy" '^READY\|mknod' 10
	! grep -q mknod "$here/busy" || skip "$(cat "$here/busy")"
	run_asprof -d 1 -f /mnt/disk.collapsed "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'Could not open output file: /mnt/disk.collapsed: Permission denied'
	run_asprof -d 1 -f /mnt/pipe.collapsed "$jvm"
	expect_status 200
	run_asprof -d 1 -f /proc/sys/kernel/core_pattern "$jvm"
	expect_status 200
	run_asprof -d 1 -f /mnt/out.collapsed "$jvm"
	expect_status 0
	run_asprof -d 1 -f /mnt/out.collapsed "$jvm" # replaces it
	expect_status 0
	expect_contains "$here/inner/out.collapsed" ';burn'
}

# A process whose samples would fill the recorder's memory: it stays within its limit, and the sum of CPU time is right.
case_memory_limit() {
	local before after wanted_ns
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	setpriv --reuid=65534 --regid=65534 --clear-groups "$workloads/busy" 2 60 >"$here/busy" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/busy" '^READY' 10
	run_asprof start -e cpu -i 50us --memlimit 64k "$jvm"
	expect_status 0
	before=$(cpu_ticks "$jvm")
	wait_for 60 has_used "$jvm" $((before + 250))
	after=$(cpu_ticks "$jvm")
	run_asprof stop --total -o collapsed "$jvm"
	expect_status 0
	expect_contains "$here/stderr" 'WARN.*limit of memory \(memlimit\)'
	wanted_ns=$(((after - before) * 10000000))
	# A hypervisor may take a quarter of the timers of 50 us. Without weights, three quarters would be missing.
	expect_near "CPU time in the recording" "$(total "$here/stdout")" "$wanted_ns" $((wanted_ns * 2 / 5))
	run_asprof stop -o text "$jvm"
	expect_contains "$here/stdout" 'samples left out'
	expect_lacks "$here/stderr" 'memlimit' # told once
	run_asprof metrics "$jvm"
	expect "kB of the recording" "$(awk '$1 == "mem_calltracestorage_kb" { print $2 }' "$here/stdout")" '<=' 64
	run_asprof resume -i 50us --memlimit 64k "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'has reached its limit of 64 kB'
	run_asprof resume -i 1ms "$jvm"
	expect_status 0
	run_asprof stop --total -o collapsed "$jvm"
	expect "CPU time with what was before" "$(total "$here/stdout")" '>' $((wanted_ns * 4 / 5))
}

# What HotSpot's attach mechanism offers, by the names that async-profiler has.
has_samples() {
	run_asprof metrics "$jvm"
	grep -q '^samples_total [1-9][0-9]*$' "$here/stdout"
}

case_commands_of_the_jvm() {
	need_root
	begin
	run_asprof jcmd "$jvm" VM.version
	expect_status 0
	expect_contains "$here/stdout" '^Connected to remote JVM$'
	expect_contains "$here/stdout" '^JVM response code = 0$'
	expect_contains "$here/stdout" '^OpenJDK .* version '
	run_asprof jcmd "$jvm" GC.class_histogram -all
	expect_contains "$here/stdout" 'java.lang.String'
	run_asprof threaddump "$jvm"
	expect_contains "$here/stdout" '^"main"'
	run_asprof inspectheap "$jvm"
	expect_contains "$here/stdout" 'java.lang.String'
	run_asprof dumpheap "$jvm" "$here/heap.hprof"
	expect_file "$here/heap.hprof"
	run_asprof load "$jvm" /no/such/library.so true
	expect "exit code of load" "$status" '!=' 0
	run_asprof load "$jvm" "$DUET_BUILD/libasyncProfiler.so" true "start,event=cpu,file=$here/loaded.collapsed"
	expect_status 0
	expect_contains "$here/stdout" 'return code: 0'
	run_asprof status "$jvm"
	expect_contains "$here/stdout" 'is running'
	run_asprof load "$jvm" "$DUET_BUILD/libasyncProfiler.so" true start,event=cpu
	expect_status 200
	expect_contains "$jvm_out" 'Profiler already started'
	run_asprof load "$jvm" "$DUET_BUILD/libasyncProfiler.so" true start,event=cpu,event=wall
	expect_status 100
	wait_for 30 has_samples # without any there is no file
	run_asprof load "$jvm" "$DUET_BUILD/libasyncProfiler.so" true stop
	expect_file "$here/loaded.collapsed"
	expect_alive "$jvm"
}

# Neither descriptors nor processes pile up.
case_cycles() { # apart
	local recorder held i
	need_bpf
	need_root
	begin
	run_asprof start "$jvm"
	run_asprof stop -o collapsed "$jvm"
	recorder=$(pgrep -x duet-recorder -n)
	held=$(find "/proc/$recorder/fd" -type l | wc -l)
	for ((i = 0; i < 10; i++)); do
		run_asprof start "$jvm"
		expect_status 0
		run_asprof dump -o collapsed "$jvm"
		run_asprof stop -o collapsed "$jvm"
		expect_status 0
	done
	expect "descriptors of the recorder" "$(find "/proc/$recorder/fd" -type l | wc -l)" '<=' "$held"
	expect "its children" "$(pgrep -P "$recorder" | wc -l)" == 0
	expect "its memory in kB" "$(awk '/^VmRSS/ { print $2 }' "/proc/$recorder/status")" '<=' 65536
	expect_alive "$jvm"
}

run_cases "$@"
