# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# What is done to a JVM. Each step and each end has the arguments ENGINE INTERVAL MILLISECONDS.

recordings=0
group= # a control group of this episode

# ---- recordings ------------------------------------------------------------------------------------

# Records in the background. Sets $recorder to the pid.
begin_recording() { # ENGINE INTERVAL SECONDS [TARGET...]
	local options=(--engine "${1%-*}" -i "$2" -d "$3" -o collapsed)
	[ "$1" = bpf-interval ] && options+=(--pairing interval --agent always) # with bpf, the JVM is read from outside
	[[ $1 != *-wall ]] || options+=(-e wall)
	shift 3
	[ $# -gt 0 ] || set -- -p "$jvm"
	recorder_err=$here/record.$((++recordings)).err
	"$duet" record "${options[@]}" -f "${output:-$here/out}.$recordings" "$@" \
		>/dev/null 2>"$recorder_err" </dev/null &
	recorder=$!
}

# A recording may be refused with one sentence; it must neither crash nor hang.
end_recording() { # [CODES]
	wait_for_end "$recorder"
	[[ " ${1:-0} " == *" $status "* ]] || leave_to_neighbour
	[[ " ${1:-0} " == *" $status "* ]] || fail "duet ended with $status, not ${1:-0}: $(tail -n 3 "$recorder_err")"
	echo "#   $(tail -n 1 "$recorder_err" | cut -c 1-160)"
}

# An attach needs memory of the JVM, and CPU time while its collector runs.
codes() {
	if has_storm oom || has_storm gc; then echo "0 1"; else echo "0"; fi
}

pause() { # MILLISECONDS
	sleep "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))"
}

# ---- steps -----------------------------------------------------------------------------------------

step_record() {
	begin_recording "$1" "$2" $((1 + $3 / 500))
	end_recording "$(codes)"
}

step_interrupt() {
	begin_recording "$1" "$2" 30
	pause "$3"
	kill -INT "$recorder"
	end_recording "0 1 130" # before it has the first sample, or before it catches the signal
}

step_kill_loader() {
	begin_recording "$1" "$2" 30
	pause "$3"
	kill -KILL "$recorder"
	wait "$recorder" 2>/dev/null
	rm -f "$here"/.out* "$here"/out* # a killed loader cannot remove its unfinished file
}

# The second recorder finds the agent busy.
step_two_loaders() {
	local first first_err winners=0
	begin_recording "$1" "$2" 2
	first=$recorder first_err=$recorder_err
	pause "$(($3 / 4))"
	begin_recording bpf 1ms 2
	end_recording "0 1"
	[ "$status" != 0 ] || winners=1
	recorder=$first recorder_err=$first_err
	end_recording "0 1"
	[ "$status" != 0 ] || winners=2
	[ $winners != 0 ] || has_storm oom || fail "neither of two loaders could record"
}

# A loader that attaches to a stopped JVM reports that and ends.
step_stop_jvm() {
	begin_recording "$1" "$2" 3
	pause "$3"
	kill -STOP "$jvm"
	pause 1000
	kill -CONT "$jvm"
	end_recording "0 1"
}

step_stop_loader() {
	begin_recording "$1" "$2" 4
	pause "$3"
	kill -STOP "$recorder"
	pause 1500
	expect_sound "its loader was stopped"
	kill -CONT "$recorder"
	end_recording "$(codes)"
}

# jcmd may fail when memory is short; that is no fault of duet.
diagnose() { # COMMAND...
	timeout 30 "$jdk/bin/jcmd" "$jvm" "$@" >/dev/null 2>&1
}

step_flight_recording() {
	diagnose JFR.start name=chaos
	begin_recording "$1" "$2" 2
	pause "$3"
	diagnose JFR.stop name=chaos
	end_recording "$(codes)"
}

step_diagnose() {
	local command
	begin_recording "$1" "$2" 4
	for command in Thread.print GC.class_histogram VM.classloader_stats Compiler.codecache GC.run \
		Compiler.codelist; do
		diagnose "$command"
	done
	end_recording "$(codes)"
}

step_dump_threads() {
	begin_recording "$1" "$2" 2
	for _ in 1 2 3 4 5; do
		pause 200
		kill -QUIT "$jvm"
	done
	end_recording "$(codes)"
}

# The file is written to another place, and the loader reports which.
step_full_disk() {
	local disk=$here/disk elsewhere
	mkdir -p "$disk"
	mount -t tmpfs -o size=64k tmpfs "$disk"
	head -c 1M /dev/zero >"$disk/ballast" 2>/dev/null
	output=$disk/out begin_recording "$1" "$2" 2
	end_recording "1"
	[ "$(ls -A "$disk")" = ballast ] || fail "left on the full disk: $(ls -A "$disk")"
	umount "$disk"
	elsewhere=$(sed -n 's/.*was written to \(.*\) instead.*/\1/p' "$recorder_err")
	[ -z "$elsewhere" ] || rm "$elsewhere" || fail "$elsewhere was not written"
}

step_whole_host() {
	begin_recording bpf "$2" 2 --host
	end_recording
}

# ---- ends ------------------------------------------------------------------------------------------

end_leave() {
	tell "exit 0"
	wait_for_end "$jvm"
	expect "exit code" "$status" '==' 0
}

# Begins to record. Returns when the JVM has been sampled for a while, or while duet attaches to it.
begin_last_recording() { # ENGINE INTERVAL MILLISECONDS
	begin_recording "$1" "$2" 20
	pause $(($3 * 2))
}

# The JVM has ended, and the loader ends by itself.
end_last_recording() {
	wait_for_end "$recorder"
	[ "$status" -le 1 ] || fail "duet ended with $status: $(tail -n 3 "$recorder_err")"
}

end_exit() {
	begin_last_recording "$@"
	tell "exit 9"
	wait_for_end "$jvm"
	expect "exit code" "$status" '==' 9
	end_last_recording
}

end_kill() {
	begin_last_recording "$@"
	kill -KILL "$jvm"
	wait_for_end "$jvm"
	expect "exit code" "$status" '==' 137
	end_last_recording
}

end_segv() {
	begin_last_recording "$@"
	kill -SEGV "$jvm"
	wait_for_end "$jvm"
	expect_killed_by_hand
	end_last_recording
}

# The new program has no handler: a signal that was sent to the JVM would kill it. With itimer that happens, because the
# kernel keeps this timer over exec.
end_exec() {
	[ "$1" != itimer ] || set -- ctimer "$2" "$3"
	begin_last_recording "$@"
	tell "exec"
	wait_for_end "$jvm"
	expect "exit code of the new program" "$status" '==' 0
	expect_contains "$jvm_out" '^LIVED'
	end_last_recording
}

end_cgroup() {
	group=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/duet-chaos-$seed-$$
	begin_last_recording "$@"
	if mkdir "$group" 2>/dev/null && echo "$jvm" >"$group/cgroup.procs" 2>/dev/null &&
			[ -e "$group/cgroup.kill" ]; then
		echo 1 >"$group/cgroup.kill"
	else
		echo "# no cgroup.kill here"
		kill -KILL "$jvm"
	fi
	wait_for_end "$jvm"
	expect "exit code" "$status" '==' 137
	end_last_recording
}

# Runs after each episode. A group takes a moment to become empty.
after_case() {
	local try
	[ -d "$group" ] || return
	echo 1 >"$group/cgroup.kill"
	for try in 1 2 3 4 5 6 7 8 9 10; do
		! rmdir "$group" || return
		sleep 0.1
	done
}

# Starts another program with the JVM's process id while the loader still knows that id. Later processes get new ids
# again: bash forgets the exit code of the loader when a child gets the loader's id.
end_reuse() {
	local newcomer=0 last=
	begin_last_recording "$@"
	kill -KILL "$jvm"
	wait_for_end "$jvm"
	{ read -r last </proc/sys/kernel/ns_last_pid; } 2>/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		echo $((jvm - 1)) >/proc/sys/kernel/ns_last_pid
		sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done' &
		newcomer=$!
		[ $newcomer != "$jvm" ] || break
		kill -KILL $newcomer
	done 2>/dev/null
	echo "$last" 2>/dev/null >/proc/sys/kernel/ns_last_pid
	[ $newcomer = "$jvm" ] || skip "the process id could not be reused"
	wait_for_end $newcomer
	expect "exit code of the newcomer" "$status" '==' 0
	end_last_recording
}
