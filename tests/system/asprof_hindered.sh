#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# libasyncProfiler.so where it cannot do as it likes: no program may be executed, descriptors are closed, the process
# forks, no process can be made. It says so in one sentence, and the program does not notice otherwise.
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so
program=$DUET_BUILD/tests/system/asprof_hindered

# Runs the program and leaves what it says in $here/said.
hinder() { # HOW [COMMAND...]: in front of the program
	local how=$1
	shift
	"$@" timeout 90 "$program" "$library" "$how" "$here/out.collapsed" >"$here/said" 2>"$here/said.err"
	status=$?
	[ $status = 0 ] || fail "exit code $status: $(cat "$here/said.err")"
	! grep '^skip: ' "$here/said" || skip "$(sed -n 's/^skip: //p' "$here/said")"
}

expect_said() { # LINE-PATTERN...
	local line
	for line; do
		expect_contains "$here/said" "^$line\$"
	done
}

# The library's own: its socket, and the agent's socket and thread. They stay, and do not become more.
expect_held() {
	expect "descriptors and threads more" "$(sed -n 's/^HELD //p' "$here/said")" '<=' 3
	expect "children" "$(sed -n 's/^CHILDREN //p' "$here/said")" == 0
}

# A recording of the program's work: half a second, at 1 kHz.
expect_work() { # FILE
	expect "samples of spend()" "$(matching "$1" ';spend ' | cut -d ' ' -f 1)" '>' 50
}

need_recording() {
	need_bpf
	need_root
}

case_no_exec() {
	need_recording
	hinder exec
	expect_said 'start: duet could not be started: Operation not permitted' \
		'again: duet could not be started: Operation not permitted'
	[ ! -e "$here/out.collapsed" ] || fail "there is a file"
	expect_held
}

# The recording is lost with the socket, or goes on; another one can be made.
case_closed_descriptors() {
	need_recording
	hinder closed
	expect_said 'start: Profiling started' 'start anew: Profiling started' 'stop anew: OK'
	expect_work "$here/out.collapsed"
	expect_held
}

# A child has its own recorder, and leaves that of its parent alone.
case_fork() {
	need_recording
	hinder fork
	expect_said 'start: Profiling started' 'status of the child: Profiler is not active' \
		'start of the child: Profiling started' 'stop of the child: Profiling stopped after [0-9]* seconds.*' \
		'stop: OK'
	expect_work "$here/out.collapsed"
	expect_held
}

case_daemon() {
	need_recording
	hinder daemon
	wait_for 60 grep -qs '^CHILDREN' "$here/said"
	expect_said 'start: Profiling started' 'start of the daemon: Profiling started' 'stop of the daemon: OK'
	expect_work "$here/out.collapsed"
}

case_long_arguments() {
	need_recording
	hinder long
	expect_said 'start of 64 kB: Profiling started' 'stop of 64 kB: OK' \
		'start of 256 kB: The arguments are too long' 'commas: '
	expect_work "$here/out.collapsed"
	expect_held
}

# Runs the command in mounts of its own, after the mounts of the script's text.
with_mounts() { # TEXT COMMAND...
	local text=$1
	shift
	unshare --mount --propagation private bash -c "cd / && $text"' && exec "$@"' mounts "$@"
}

# The file beside the library may not be executed. The library that carries another one uses that.
case_mounted_noexec() {
	local mounts="mount -t tmpfs -o noexec,mode=755 tmpfs '$here/bin' && cp '$DUET_BUILD/duet' '$here/bin/duet'"
	need_recording
	mkdir "$here/bin" "$here/lib"
	cp "$DUET_BUILD/libduet.so" "$here/lib/empty.so"
	cp "$library" "$here/lib/whole.so"
	library=$here/lib/empty.so
	hinder plain with_mounts "$mounts"
	expect_said 'start: duet could not be started: Permission denied'
	expect_held
	library=$here/lib/whole.so
	hinder plain with_mounts "$mounts"
	expect_said 'start: Profiling started' 'stop: OK'
	expect_work "$here/out.collapsed"
}

# Linux 6.3: no memfd of this pid namespace may be executed. The file beside the library may.
case_memfd_noexec() {
	local no_memfd=(unshare --pid --fork --mount-proc --kill-child bash -c
		'echo 2 >/proc/sys/vm/memfd_noexec && "$@"' memfd)
	need_recording
	"${no_memfd[@]}" true 2>/dev/null || skip "this kernel has no vm.memfd_noexec"
	hinder plain "${no_memfd[@]}"
	expect_said 'start: Profiling started' 'stop: OK'
	expect_work "$here/out.collapsed"
	cp "$library" "$here/alone.so"
	library=$here/alone.so
	hinder plain "${no_memfd[@]}"
	expect_said 'start: duet could not be started: .*'
	expect_held
}

# Nothing can be written but the report: no folder for sockets, none for temporary files.
case_read_only_root() {
	need_recording
	mkdir "$here/written"
	hinder plain with_mounts "mount -t tmpfs tmpfs '$here/written' && for at in /run /tmp /var/tmp /dev/shm /; do
		mount --bind \$at \$at && mount -o remount,bind,ro \$at; done; ! touch /tmp/x 2>/dev/null"
	expect_said 'start: Profiling started' 'stop: .*'
	expect_lacks "$here/said" '^start: duet'
	expect_held
}

start_sleeper() { # sets $sleeper
	sleep 1000 &
	sleeper=$!
	jvms+=("$sleeper")
}

newest_recorder() { # it is an orphan; its recording has the same name
	pgrep -n -x -P 1 duet-recorder
}

# Others do not wait for recorders that are killed, stopped, or write into a pipe that nobody reads.
case_stuck_recorders() { # apart
	local i stopped piped recorder_of_stopped
	need_recording
	mount -t tmpfs tmpfs /run || skip "no mounts here"
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_sleeper
	"$here/asprof" start -e cpu "$sleeper" || fail "the first one cannot be started"
	pkill -KILL -x duet-recorder
	start_sleeper
	stopped=$sleeper
	"$here/asprof" start -e cpu "$stopped" || fail "the second one cannot be started"
	recorder_of_stopped=$(newest_recorder)
	kill -STOP "$recorder_of_stopped"
	start_sleeper
	mkfifo "$here/pipe"
	"$here/asprof" start -e cpu -f "$here/pipe" "$sleeper" || fail "the third one cannot be started"
	piped=$(newest_recorder)
	kill -KILL "$sleeper"
	for i in {1..20}; do
		start_sleeper
		timeout 30 "$here/asprof" start -e cpu "$sleeper" 2>"$here/stderr" ||
			fail "start $i: $(cat "$here/stderr")"
		timeout 30 "$here/asprof" stop -o collapsed "$sleeper" >"$here/stdout" 2>"$here/stderr" ||
			fail "stop $i: $(cat "$here/stderr")"
		kill -KILL "$sleeper"
	done
	timeout 30 "$here/asprof" status "$stopped" 2>"$here/stderr" && fail "a stopped recorder answers"
	expect_contains "$here/stderr" 'the recorder is stopped'
	timeout 30 "$here/asprof" stop "$stopped" 2>"$here/stderr" && fail "a stopped recorder stops a recording"
	kill -CONT "$recorder_of_stopped"
	timeout 30 "$here/asprof" status "$stopped" >"$here/stdout"
	expect_contains "$here/stdout" 'is running' # who asked for the stop has gone
	hinder plain
	expect_said 'start: Profiling started' 'stop: OK'
	wait_for 60 process_is_gone "$piped"
}

process_is_gone() { # PID
	[ ! -e "/proc/$1" ]
}

make_group() { # sets $group
	group=/sys/fs/cgroup/pids/duet-test-$BASHPID
	mkdir "$group" 2>/dev/null || skip "no group of the controller pids can be made here"
}

# A recorder stays in it for some seconds.
after_case() {
	[ -n "${group:-}" ] || return 0
	while read -r pid; do
		echo "$pid" >"${group%/*}/cgroup.procs"
	done <"$group/cgroup.procs"
	rmdir "$group"
}

# The group has as many threads as it may have. Later it may have more.
case_no_free_process() {
	need_recording
	make_group
	mkfifo "$here/steps"
	"$program" "$library" demand "$here/out.collapsed" <"$here/steps" >"$here/said" 2>"$here/said.err" &
	jvm=$!
	exec 9>"$here/steps"
	echo "$jvm" >"$group/cgroup.procs"
	wait_for 20 grep -qs READY "$here/said"
	cat "$group/pids.current" >"$group/pids.max"
	echo >&9
	wait_for 30 grep -qs '^start: ' "$here/said"
	expect_said 'start: duet could not be started: Resource temporarily unavailable'
	echo max >"$group/pids.max"
	echo >&9
	exec 9>&-
	wait "$jvm" || fail "the program failed: $(cat "$here/said.err")"
	expect_said 'start anew: Profiling started' 'stop anew: OK'
	expect_work "$here/out.collapsed"
	expect_held
}

# In a JVM that cannot have one more thread, the command is refused, and the JVM goes on.
jdk_case_no_free_thread() {
	need_recording
	make_group
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_OPTS=(-XX:+UseSerialGC -XX:CICompilerCount=2 -XX:-UseDynamicNumberOfCompilerThreads)
	[[ $jdk != *-8-* ]] || JVM_OPTS=()
	start_jvm "$jdk" workload.Shares 90
	"$here/asprof" jcmd "$jvm" VM.version >"$here/stdout" || fail "the JVM cannot be attached to"
	echo "$jvm" >"$group/cgroup.procs"
	cat "$group/pids.current" >"$group/pids.max"
	"$here/asprof" load "$jvm" "$library" true start,event=cpu >"$here/stdout" 2>"$here/stderr"
	expect_contains "$here/stdout" '^(return code: )?200$'
	expect_alive "$jvm" "without a free thread"
	echo max >"$group/pids.max"
	"$here/asprof" load "$jvm" "$library" true start,event=cpu >"$here/stdout" 2>"$here/stderr"
	expect_contains "$here/stdout" '^(return code: )?0$'
	"$here/asprof" stop -o collapsed "$jvm" >"$here/out.collapsed" || fail "it cannot be stopped"
}

# The agent needs no permission of Java's; the API needs that to load a library.
jdk_case_security_manager() {
	local policy=$here/policy
	need_recording
	is_jdk 24 && skip "JDK 24 and later have no security manager"
	cat >"$policy" <<-'END'
		grant {
			permission java.lang.RuntimePermission "loadLibrary.*";
			permission java.util.PropertyPermission "*", "read";
			permission java.io.FilePermission "<<ALL FILES>>", "read";
			permission java.lang.management.ManagementPermission "monitor";
		};
	END
	timeout 60 "$jdk/bin/java" -agentpath:"$library=start,event=cpu,interval=1ms,file=$here/agent.collapsed" \
		-Djava.security.manager -cp "$workloads" -Dends=true workload.ProfilerCalls nothing \
		>"$here/stdout" 2>"$here/stderr"
	expect_contains "$here/stdout" '^Profiling started$'
	expect_file "$here/agent.collapsed"
	timeout 60 "$jdk/bin/java" -Djava.security.manager -Djava.security.policy=="$policy" \
		-Dends=true -Djava.library.path="$DUET_BUILD" -cp "$workloads" \
		workload.ProfilerCalls flink "$here" \
		>"$here/stdout" 2>"$here/stderr" || fail "exit code $?: $(head -n 3 "$here/stderr")"
	expect_contains "$here/stdout" '^stop CPU: OK$'
	timeout 60 "$jdk/bin/java" -Djava.security.manager -Dends=true -Djava.library.path="$DUET_BUILD" \
		-cp "$workloads" workload.ProfilerCalls flink "$here" >"$here/stdout" 2>"$here/stderr" &&
		fail "it needs no permission"
	expect_contains "$here/stderr" 'AccessControlException|access denied'
}

# async-profiler's library and ours, loaded by one JVM: each makes its own recording.
case_two_libraries() { # apart
	local home theirs ours order file
	need_recording
	tree=$(timeout 90 "$(dirname "$0")/../matrix/root_tree.sh" sid 17 async-profiler-java 2>"$here/fetched") ||
		skip "async-profiler cannot be had: $(tail -n 1 "$here/fetched")"
	mount -t proc proc "$tree/proc" && mount -t tmpfs tmpfs "$tree/tmp" && mount -t tmpfs tmpfs "$tree/mnt" &&
		mount --rbind /sys "$tree/sys" && mount --rbind /dev "$tree/dev" || skip "no mounts here"
	mkdir "$tree/mnt/workloads" "$tree/mnt/duet"
	mount --bind "$workloads" "$tree/mnt/workloads"
	mount --bind "$DUET_BUILD" "$tree/mnt/duet"
	for home in "$tree"/usr/lib/jvm/java-17-openjdk-*/; do jdk=${home#"$tree"}; done
	for theirs in "$tree"/usr/lib/*/jni/libasyncProfiler.so; do theirs=${theirs#"$tree"}; done
	ours=/mnt/duet/libasyncProfiler.so
	for order in "theirs $theirs ours $ours" "ours $ours theirs $theirs"; do
		# shellcheck disable=SC2086 # words
		set -- $order
		rm -f "$tree"/tmp/*.collapsed
		timeout 90 chroot "$tree" "$jdk/bin/java" -Xmx256m -Dends=true -cp /mnt/workloads \
			"-agentpath:$2=start,event=cpu,interval=1ms,file=/tmp/$1.collapsed" \
			"-agentpath:$4=start,event=cpu,interval=1ms,file=/tmp/$3.collapsed" \
			workload.ProfilerCalls work 1000 >"$here/stdout" 2>"$here/stderr" ||
			fail "exit code $? with $1 first: $(tail -n 3 "$here/stderr")"
		for file in ours theirs; do
			expect "samples, $1 first: $file" \
				"$(matching "$tree/tmp/$file.collapsed" 'ProfilerCalls' | cut -d ' ' -f 1)" '>' 300
		done
	done
}

run_cases "$@"
