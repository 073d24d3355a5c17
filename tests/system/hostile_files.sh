#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
#
# A process whose files and memory block every reader: by leases, pipes, and a FUSE server that does not answer. It
# runs as the user nobody (65534). The loader still ends in time, and an honest process beside it keeps its samples
# and names.
. "$(dirname "$0")/lib.sh"

hostile=$DUET_BUILD/tests/system/hostile_files
# Seconds that a recording of 2 s may take on a busy machine. A lease blocks a reader for 45 s, FUSE for ever.
patience=30

# Its pid is $attacker, that of its FUSE server $server.
start_attacker() { # FOLDER [ATTACK]
	mkdir "$here/$1"
	chmod 755 "$here/$1"
	rm -f "$here/attacker" # the last one's READY
	cp -f /bin/true "$here/libjvm.so"
	chmod 755 "$here/libjvm.so"
	"$hostile" "$here/$1" "$here/libjvm.so" "${2:-$1}" >"$here/attacker" 2>&1 </dev/null &
	jvm=$! attacker=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY\|^FAILED' 20
	! grep -q '^FAILED.*\(/dev/fuse\|mknod\|unshare\|mounting\)' "$here/attacker" || skip "$(cat "$here/attacker")"
	server=$(sed -n 's/^READY //p' "$here/attacker")
	[ -n "$server" ] || fail "$1: $(cat "$here/attacker")"
	[ "$server" = 0 ] || jvms+=("$server")
}

end_attacker() {
	[ "$server" = 0 ] || kill -KILL "$server"
	kill -KILL "$attacker"
	wait "$attacker"
	rm -f "/tmp/perf-$attacker.map"
} 2>/dev/null

start_honest() {
	need_bpf
	need_root
	[ -e "$workloads/busy" ] || skip "no workload"
	"$workloads/busy" 1 1000 >"$here/busy" 2>&1 </dev/null &
	honest=$! jvm=$!
	jvms+=("$honest")
	wait_for_line "$here/busy" '^READY' 10
}

# Ends the server first: processes that wait for it cannot end before it.
after_case() {
	[ "${server:-0}" = 0 ] || kill -KILL "$server"
	[ -z "${attacker:-}" ] || rm -f "/tmp/perf-$attacker.map"
	[ -z "${cgroup:-}" ] || leave_cgroup
}

leave_cgroup() {
	kill -KILL "${jvms[@]}"
	wait "${jvms[@]}"
	rmdir "$cgroup" "${cgroup%/*}"
} 2>/dev/null

# The loader ends in time, by itself; only the attacker's profile may suffer.
survive() { # ATTACK RECORD-OPTIONS...
	local attack=$1 started
	shift
	start_attacker "$attack"
	started=$SECONDS
	timeout --kill-after=1 $patience "$duet" record -v -p "$attacker,$honest" --no-attach -d 2 -i 2ms -t \
		-o collapsed -f "$here/out" "$@" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	# A reader that is blocked for ever cannot even be killed: only the end of the server frees it.
	while kill -0 "$recorder" 2>/dev/null && [ $((SECONDS - started)) -le $patience ]; do
		sleep 0.1
	done
	if kill -0 "$recorder" 2>/dev/null; then
		end_attacker
		fail "$attack: the loader hangs"
	fi
	end_record
	expect_status 0 "$attack"
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	expect_share "$attack: named samples of the honest process" "$(matching "$here/honest" ';burn')" '>=' 90
	grep -q "pid=$attacker\]" "$here/out" || fail "$attack: the attacker was not sampled"
	[ "$(proc_state "$attacker")" != Z ] || fail "$attack: the attacker died: $(cat "$here/attacker")"
	end_attacker
}

# ---- cases -----------------------------------------------------------------------------------

case_leases() {
	start_honest
	survive lease_perf_map
	survive lease_by_link
	survive lease_library
	survive lease_libjvm
	survive fifo_perf_map
}

case_fuse_files() {
	start_honest
	survive fuse_perf_map
	expect_contains "$here/stderr" 'did not answer in time'
	survive fuse_perf_map_reads
	survive fuse_library
	expect_contains "$here/stderr" 'did not answer in time'
}

# The process runs in namespaces that its user has made, which needs no rights.
case_fuse_below_an_overlay() {
	start_honest
	survive fuse_overlay
	expect_contains "$here/stderr" 'did not answer in time'
}

# The process that makes a place for the agent is root, and is blocked where no signal ends it; it is waited for later.
case_fuse_holds_the_place() {
	need_root
	start_attacker fuse_stage
	timeout 20 "$DUET_BUILD/tests/system/attach_once" "$attacker" 1500 3 >"$here/stdout" 2>&1
	expect_contains "$here/stdout" 'took longer than'
	expect_contains "$here/stdout" '1 attaches are left'
	end_attacker
}

case_fuse_memory() {
	start_honest
	survive fuse_stack_end
	survive fuse_lock
	expect_contains "$here/stderr" 'did not answer in time'
	start_attacker fuse_lock_too fuse_lock
	timeout --kill-after=1 $patience "$duet" list >"$here/stdout" 2>&1 || fail "duet list hangs"
	kill -0 "$attacker" || fail "the attacker ended before"
	end_attacker
}

# The end of its memory's map, which every process may move, leads to pages that never come; its root never answers.
case_fuse_arguments() {
	start_honest
	survive fuse_arguments
	survive fuse_root
	cp "$hostile" "$here/java"
	hostile=$here/java
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_attacker fuse_arguments_too fuse_arguments
	timeout --kill-after=1 $patience "$duet" list >"$here/stdout" 2>&1 || fail "duet list hangs"
	end_attacker
	start_attacker fuse_lock # asprof reads the arguments of each JVM when it gets a name
	timeout --kill-after=1 $patience "$here/asprof" -d 1 NoSuchProgram >"$here/stdout" 2>"$here/stderr"
	expect "exit code of asprof" $? == 1
	expect_contains "$here/stderr" '^No Java process$'
	kill -0 "$attacker" || fail "the attacker ended before"
	end_attacker
}

# A report that is written in the process's folder.
write_report() { # FILE
	timeout --kill-after=1 60 "$here/asprof" -d 1 -f "$1" "$attacker" >"$here/stdout" 2>"$here/stderr"
	expect "exit code of asprof" $? == 200
	expect_contains "$here/stderr" '^\[ERROR\] Could not .*Connection timed out$'
	kill -0 "$attacker" || fail "the attacker ended before"
	end_attacker
}

case_fuse_reports() {
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_attacker fuse_library
	write_report "$here/fuse_library/mount/out.collapsed"
	start_attacker fuse_root
	write_report /out.collapsed
	start_attacker fuse_output
	write_report "$here/fuse_output/mount/out.collapsed"
}

# Windows in a folder over which somebody has mounted what answers nothing.
case_fuse_windows() {
	local begun
	need_bpf
	need_root
	start_attacker fuse_library
	begun=$SECONDS
	record -p "$attacker" -d 3 --continuous -o collapsed -f "/proc/$attacker/root$here/fuse_library/mount"
	expect_status 1
	expect_contains "$here/stderr" 'cannot create files there: Connection timed out'
	expect "seconds" $((SECONDS - begun)) '<' 60
	end_attacker
}

is_asleep() { # THREADS
	[ "$(grep -l '^State:.D ' "/proc/$attacker/task"/*/status | wc -l)" -ge "$1" ]
} 2>/dev/null

# Threads that sleep for a page of a file system that answers nothing: each is recorded with all its time.
case_fuse_asleep() {
	local name told
	need_bpf
	need_root
	"$duet" check 2>&1 | grep -qE 'yes +time off CPU' || skip "this kernel has no hook for sleeps"
	start_attacker fuse_asleep
	wait_for 10 is_asleep 2
	SECONDS=0
	record --no-attach -p "$attacker" -e offcpu --total -t -d 3 -o collapsed -f "$here/out"
	expect_status 0
	expect "seconds that it took" $SECONDS '<=' "$patience"
	for name in in_read:2 in_fault:1; do
		told=$(grep -F "[${name%:*} " "$here/out" | awk '{ sum += $NF } END { print sum / 1e9 }')
		expect_near "time of ${name%:*}, s" "$told" $((3 * ${name#*:})) 1
	done
	expect_contains "$here/out" '\[in_read .*;asleep_in_read;.*_\[k\];\[io\] '
	expect_contains "$here/out" '\[in_fault .*;asleep_in_fault;.*_\[k\];\[(io|page fault)\] '
	kill -0 "$attacker" || fail "the attacker ended before"
	end_attacker
}

# ---- one user chooses what all users of a file see ----------------------------------------------

stranger=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# Another user's program runs and is sampled before root's, which is $honest.
record_after() { # HONEST ATTACKER: commands, their words separated by blanks
	rm -f "$here/busy" "$here/attacker"
	# shellcheck disable=SC2086
	"${stranger[@]}" $2 >"$here/attacker" 2>&1 </dev/null &
	attacker=$! jvm=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
	# shellcheck disable=SC2086
	$1 >"$here/busy" 2>&1 </dev/null &
	honest=$! jvm=$!
	jvms+=("$honest")
	wait_for_line "$here/busy" '^READY' 10
	kill -STOP "$honest"
	start_record -p "$attacker,$honest" --no-attach -d 60 -i 1ms -t -o collapsed -f "$here/out"
	sleep 1
	kill -CONT "$honest"
	warm_up 2
	end_record INT
	expect_status 0
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	grep -q "pid=$attacker\]" "$here/out" || fail "the attacker was not sampled"
}

# Root's file has a debug link, and the other user mounts the file where they have put a debug file.
case_debug_file_of_a_stranger() {
	need_bpf
	need_root
	objcopy --version >/dev/null 2>&1 || skip "no objcopy"
	"${stranger[@]}" unshare -U -r -m true || skip "no user namespaces"
	"${stranger[@]}" mkdir "$here/mine"
	touch "$here/mine/victim"
	objcopy --only-keep-debug --redefine-sym burn=forged "$workloads/busy" "$here/mine/victim.debug"
	chown 65534:65534 "$here/mine/victim.debug"
	objcopy --strip-all --add-gnu-debuglink="$here/mine/victim.debug" "$workloads/busy" "$here/victim"
	cat >"$here/attack" <<-EOF
		mount --bind $here/victim $here/mine/victim
		exec $here/mine/victim 1 1000
	EOF
	record_after "$here/victim 1 1000" "unshare -U -r -m sh $here/attack"
	expect "samples of root's program" "$(total "$here/honest")" '>=' 20
	expect_lacks "$here/honest" 'forged'
}

# The other user's program has the build id of root's program, but other code.
case_build_id_of_another_file() {
	need_bpf
	need_root
	objcopy --version >/dev/null 2>&1 || skip "no objcopy"
	objcopy --dump-section .note.gnu.build-id="$here/id" "$workloads/native" /dev/null || skip "no build id"
	objcopy --update-section .note.gnu.build-id="$here/id" "$workloads/busy" "$here/copy" || skip "no build id"
	record_after "$workloads/native compute" "$here/copy 1 1000"
	expect_share "whole stacks of root's program" \
		"$(matching "$here/honest" ";main;run;$(printf 'link_%d;' {30..0})leaf_compute( |;)")" '>=' 90
}

# As many mappings as a process can have, most of them without a name, and always changing.
case_many_mappings() {
	local peak_kb cpu_ms
	start_honest
	start_attacker many_mappings
	timeout --kill-after=5 60 "$DUET_BUILD/tests/system/peak_memory" "$here/peak" "$duet" record -v \
		-p "$attacker,$honest" --no-attach -d 5 -i 2ms -t -o collapsed -f "$here/out" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect_status 0
	read -r peak_kb cpu_ms <"$here/peak"
	expect "kB of RAM" "$peak_kb" '<' $((160 << 10))
	expect "ms of CPU time in 5 s" "$cpu_ms" '<' 2000
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	expect_share "named samples of the honest process" "$(matching "$here/honest" ';burn')" '>=' 90
	expect_lacks "$here/stderr" 'lost: .*ring'
	end_attacker
}

# A hundred files a second that each take as long to read as a very large program's.
case_many_files() {
	local peak_kb cpu_ms took
	start_honest
	"${stranger[@]}" "$DUET_BUILD/tests/system/hostile_crowd" 30 "$here/file" >"$here/attacker" 2>&1 </dev/null &
	attacker=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
	timeout --kill-after=1 $patience "$DUET_BUILD/tests/system/peak_memory" "$here/peak" "$duet" record -v \
		-p "$attacker,$honest" --no-attach -d 6 -i 2ms -t -o collapsed -f "$here/out" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect_status 0
	expect_contains "$here/stderr" 'processes of user 65534 take too long to read'
	read -r peak_kb cpu_ms <"$here/peak"
	took=$(sed -n 's/.* samples in \([0-9]*\)\.[0-9] s .*/\1/p' "$here/stderr") # longer on a busy machine
	expect "ms of CPU time in $took s" "$cpu_ms" '<' $((3000 + 200 * took))
	expect "kB of RAM" "$peak_kb" '<' $((200 << 10))
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	expect_share "named samples of the honest process" "$(matching "$here/honest" ';burn')" '>=' 90
}

# ---- names in everything that is written ------------------------------------------------------

unclean='([\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80[\xaa-\xae]|\xed[\xa0-\xbf]|[\xc0\xf8-\xff])'

expect_clean() { # FILE...
	! LC_ALL=C grep -aoP ".{0,20}$unclean" "$@" >"$here/unclean" || fail "$(head -n 1 "$here/unclean" | cat -v)"
}

# Frames without a ';', at least one letter each, then the count.
expect_stacks() { # FILE
	expect "lines that are no stack" "$(grep -cvaE '^[^;]+(;[^;]+)* [1-9][0-9]*$' "$1")" '==' 0
}

expect_json() { # FILE: UTF-8
	perl -MJSON::PP -0777 -ne 'JSON::PP->new->utf8->decode($_)' "$1" 2>"$here/json" ||
		fail "$(basename "$1") is not JSON: $(head -c 300 "$here/json")"
}

# Makes a cgroup with a name that systemd would not give, if the host has cgroup v2: $cgroup.
make_cgroup() {
	local tree
	tree=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
	mkdir "$tree/duet-test-$$" 2>/dev/null || return 0
	cgroup=$tree/duet-test-$$/lxc.payload.$'\033[2J\302\233;<script>"\\\r\377'
	mkdir "$cgroup"
	echo "$1" >"$cgroup/cgroup.procs"
	echo "$2" >"$cgroup/cgroup.procs"
}

# Starts a JVM whose jar has a hostile name, which duet reports: $jvm.
start_evil_jvm() {
	local jar=$here/$'e\033[2J;<script>\302\233.jar' home
	home=$(any_jdk)
	[ -x "$home/bin/jar" ] || skip "no jar"
	printf 'Main-Class: workload.Names\n' >"$here/manifest"
	"$home/bin/jar" cfm "$here/jar" "$here/manifest" -C "$workloads" workload || fail "no jar"
	mv "$here/jar" "$jar"
	chmod 644 "$jar"
	JVM_AS=("${stranger[@]}")
	LC_ALL=C.UTF-8 start_jvm "$home" -jar "$jar"
}

case_names_in_everything() {
	local format evil
	need_bpf
	need_root
	perl -MJSON::PP -e 1 2>/dev/null || skip "no JSON::PP"
	start_attacker names_perf_map
	start_evil_jvm
	evil=$jvm
	make_cgroup "$attacker" "$evil"
	warm_up 1
	start_record -v -p "$attacker,$evil" -d 60 -i 2ms -t --by container --metrics localhost:0 \
		-o collapsed,text,flamegraph,col -f "$here/out.collapsed"
	warm_up 3
	"$duet" status "$recorder" >"$here/status"
	perl -MIO::Socket::INET -e 'my $peer = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or die;
		print $peer "GET /metrics HTTP/1.1\r\n\r\n"; print while <$peer>' \
		"$(sed -n 's/.*metrics on http:.*:\([0-9]*\)\/metrics$/\1/p' "$here/stderr")" |
		sed '1,/^\r$/d' >"$here/metrics"
	end_record INT
	expect_status 0
	run_duet list
	expect_contains "$here/stdout" "^ +$evil "
	for format in collapsed txt html col; do
		expect_file "$here/out.$format"
	done
	expect_clean "$here/out".* "$here/status" "$here/metrics" "$here/stdout" "$here/stderr"
	expect_stacks "$here/out.collapsed"
	expect_stacks <(tail -n +2 "$here/out.col" | sed 's/;;/;-;/')
		expect_contains "$here/out.collapsed" 'm{4000}(;| )'
	expect_contains "$here/out.collapsed" '\?\[2J[^;]*</script>\|.* 1 0{3999}1'
	[ -z "${cgroup:-}" ] || expect_contains "$here/out.collapsed" '^\?\[2J[^;]*\|<script>'
	head -n 1 "$here/out.col" | sed 's/^# //' >"$here/head"
	expect_json "$here/head"
	perl -0777 -ne 'print $1 if m{id="profiles">(.*?)</script>}s' "$here/out.html" >"$here/profile" # as browsers do
	expect_json "$here/profile"
	expect_lacks "$here/profile" '<'
	expect "metrics out of their format" "$(grep -cvE '^(#|duet_[a-z_]+(\{[a-z]+="[^"\\]*"\})? [0-9.e+-]+$)' \
		"$here/metrics")" '==' 0
	end_attacker
}

run_cases "$@"
