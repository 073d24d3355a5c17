#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# The agent is attached to JVMs of other users and namespaces, or one sentence says why not. Either way the JVM runs on,
# prints nothing about it, and no file, descriptor, thread or mapping is left.
. "$(dirname "$0")/lib.sh"

attach_once=$DUET_BUILD/tests/system/attach_once
stranger=54321 # a user that nobody is

attach() { # PID [TIMEOUT_MS [CYCLES]]
	${DUET_AS[@]+"${DUET_AS[@]}"} "$attach_once" "$@" >"$here/stdout" 2>"$here/stderr"
	status=$?
}

expect_attached() { # PID [TIMEOUT_MS [CYCLES]]
	attach "$@"
	[ $status = 0 ] || fail "attach: $(cat "$here/stdout" "$here/stderr")"
	expect_tidy "$1"
}

expect_refused() { # PATTERN PID [TIMEOUT_MS]
	local pattern=$1
	shift
	attach "$@"
	[ $status = 1 ] || fail "exit code $status: $(cat "$here/stdout" "$here/stderr")"
	grep -qE -- "$pattern" "$here/stdout" || fail "it says \"$(cat "$here/stdout")\", not \"$pattern\""
	expect_tidy "$1"
}

# Expects that process $1 sees no file of duet in the places where one could be left.
expect_tidy() {
	local left ns_pid
	ns_pid=$(awk '/^NSpid/ { print $NF }' "/proc/$1/status" 2>/dev/null)
	left=$(find "/proc/$1/root/tmp" "/proc/$1/root/dev/shm" "/proc/$1/root/var/tmp" "/proc/$1/root/run" \
		"/proc/$1/cwd/" -maxdepth 1 \( -name ".duet-*-$ns_pid" -o -name ".attach_pid$ns_pid" \) 2>/dev/null)
	[ -z "$left" ] || fail "left behind: $left"
}

expect_quiet() {
	! grep -q 'Full thread dump' "$jvm_out" "$jvm_out.err" || fail "the JVM printed a thread dump"
	expect_alive "$jvm"
}

start_idle() { # HOME [JAVA_OPTIONS...]
	local home=$1
	shift
	JVM_OPTS=("$@")
	start_jvm "$home" workload.Idle 2
}

# A JVM in namespaces of its own; $1 is shell text that runs in them first. Its pid here is $jvm.
start_apart() { # PREPARE HOME [JAVA_OPTIONS...]
	local prepare=$1 tries=0 classes=$workloads workloads=/mnt # a new /tmp may hide the build folder
	shift
	prepare="mount --bind '$classes' /mnt && $prepare"
	JVM_AS=(unshare -f -p -m -n --mount-proc --kill-child sh -c "$prepare && \"\$@\" & wait" sh)
	start_idle "$@"
	JVM_AS=()
	apart=$jvm
	until jvm=$(descendant java "$apart"); do
		[ $((tries += 1)) -lt 100 ] || fail "no java below $apart"
		sleep 0.02
	done
	jvms+=("$jvm")
}

descendant() { # COMM PID
	local child
	for child in $(pgrep -P "$2"); do
		[ "$(cat "/proc/$child/comm")" != "$1" ] || { echo "$child"; return 0; }
		descendant "$1" "$child" && return 0
	done
	return 1
}

# ---- it works --------------------------------------------------------------------------------

jdk_case_attach_own() {
	start_idle "$jdk"
	expect_attached "$jvm"
	expect_attached "$jvm"
	expect_quiet
}

jdk_case_attach_other_user() {
	need_root
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start_idle "$jdk"
	expect_attached "$jvm"
	expect_quiet
}

case_attach_as_ordinary_user() {
	need_root
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	DUET_AS=("${JVM_AS[@]}")
	start_idle "$(any_jdk)"
	expect_attached "$jvm"
}

jdk_case_attach_other_namespaces() {
	need_root
	start_apart 'mount -t tmpfs tmp /tmp' "$jdk"
	expect_attached "$jvm"
	[ -S "/proc/$jvm/root/tmp/.java_pid$(awk '/^NSpid/ { print $NF }' "/proc/$jvm/status")" ] ||
		fail "the attach socket is not in the JVM's own /tmp"
	expect_quiet
}

# The socket is there before /tmp turns read-only; the library has to go elsewhere.
case_attach_tmp_read_only() {
	need_root
	start_apart 'mount -t tmpfs tmp /tmp' "$(any_jdk)" -XX:-UsePerfData # whose mapping keeps /tmp writable
	expect_attached "$jvm"
	nsenter -t "$jvm" -m mount -o remount,bind,ro /tmp || fail "cannot remount"
	expect_attached "$jvm"
	grep -q '/dev/shm/.duet-.*libduet.so' "/proc/$jvm/maps" || fail "not placed in /dev/shm"
}

# Nothing can be created where HotSpot looks for the trigger file.
case_attach_tmp_full() {
	need_root
	start_apart 'mount -t tmpfs -o nr_inodes=1 tmp /tmp && cd /tmp' "$(any_jdk)" -XX:-UsePerfData
	expect_refused "cannot create .attach_pid[0-9]+ in its /tmp \\(No space left.*\\): .*--no-attach" "$jvm"
	nsenter -t "$jvm" -m mount -o remount,nr_inodes=100 /tmp || fail "cannot remount"
	expect_attached "$jvm"
	expect_quiet
}

case_attach_tmp_noexec() {
	need_root
	start_apart 'mount -t tmpfs -o noexec tmp /tmp' "$(any_jdk)"
	expect_attached "$jvm"
	! grep -q '/tmp/.duet-.*libduet.so' "/proc/$jvm/maps" || fail "placed on a noexec mount"
}

# All writable file systems are mounted noexec: duet mounts a place of its own for the time of the attach.
case_attach_nowhere_executable() {
	local mounts mappings i
	need_root
	start_apart 'for f in /tmp /dev/shm /var/tmp /run; do mount -t tmpfs -o noexec none $f; done' "$(any_jdk)"
	mounts=$(cat "/proc/$jvm/mountinfo")
	expect_attached "$jvm"
	mappings=$(grep -c libduet.so "/proc/$jvm/maps")
	expect "mappings of the agent" "$mappings" '>' 0
	[ "$(cat "/proc/$jvm/mountinfo")" = "$mounts" ] || fail "mounts left: $(tail -n 1 "/proc/$jvm/mountinfo")"
	for i in 1 2 4 8 16 32; do
		attach "$jvm" "-$i"
	done
	sleep 0.5 # a process that nobody waits for removes it
	expect_attached "$jvm"
	[ "$(cat "/proc/$jvm/mountinfo")" = "$mounts" ] || fail "mounts left: $(tail -n 1 "/proc/$jvm/mountinfo")"
	expect "mappings of the agent" "$(grep -c libduet.so "/proc/$jvm/maps")" == "$mappings"
	expect_quiet
}

case_attach_starting_jvm() {
	"$(any_jdk)/bin/java" -cp "$workloads" workload.Idle >"$here/early" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	until grep -q libjvm "/proc/$jvm/maps"; do :; done
	expect_attached "$jvm"
	! grep -q 'Full thread dump' "$here/early" || fail "it printed a thread dump"
}

# Without SIGQUIT such a JVM listens from the start.
# HotSpot's attach listener answers, but there is no JVMTI yet.
jdk_case_attach_before_the_start_is_over() {
	"$jdk/bin/java" -Djava.system.class.loader=workload.SlowStart -Dstart.ms=1500 -cp "$workloads" workload.Idle \
		>"$here/early" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	until grep -qsx 'Signal Dispatch' "/proc/$jvm/task"/*/comm; do
		kill -0 "$jvm" || fail "the JVM is gone: $(cat "$here/early")"
	done
	expect_attached "$jvm"
}

case_attach_xrs() {
	start_idle "$(any_jdk)" -Xrs
	expect_attached "$jvm"
	rm "/tmp/.java_pid$jvm"
	expect_refused 'runs with -Xrs and its attach socket /tmp/.java_pid[0-9]+ is gone' "$jvm"
	expect_quiet
}

# JDK 14 and later (JDK-8225690) open it again.
jdk_case_attach_socket_deleted() {
	start_idle "$jdk"
	expect_attached "$jvm"
	rm "/tmp/.java_pid$jvm"
	attach "$jvm" 2000
	[ $status = 0 ] || grep -q 'attach socket' "$here/stdout" || fail "it says $(cat "$here/stdout")"
	expect_tidy "$jvm"
	expect_quiet
}

jdk_case_attach_50_cycles() {
	local before
	start_idle "$jdk" -XX:+IgnoreUnrecognizedVMOptions -XX:-UseDynamicNumberOfCompilerThreads \
		-XX:-UseDynamicNumberOfGCThreads
	expect_attached "$jvm" 0 2
	sleep 0.1
	before=$(held_by "$jvm")
	expect_attached "$jvm" 0 50
	sleep 0.1
	[ "$(held_by "$jvm")" = "$before" ] || fail "fds, threads, mappings: $before before, $(held_by "$jvm") after"
	expect_quiet
}

# ---- it does not, and says why ------------------------------------------------------------------

case_refuse_other_users_jvm() {
	need_root
	start_idle "$(any_jdk)"
	DUET_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	expect_refused "process $jvm belongs to user 0: run duet as that user or as root" "$jvm"
	expect_quiet
}

case_refuse_stopped() {
	start_idle "$(any_jdk)"
	kill -STOP "$jvm"
	expect_refused "JVM $jvm is stopped \(SIGSTOP\): resume it with kill -CONT $jvm" "$jvm"
	kill -CONT "$jvm"
	expect_attached "$jvm"
}

# SIGQUIT would stay pending, and after the thaw the JVM would print a thread dump.
refuse_frozen() { # KIND SWITCH FREEZE THAW
	need_root
	make_freezer 0 "$1" "$2"
	start_idle "$(any_jdk)"
	echo "$jvm" >"$freezer/cgroup.procs"
	echo "$3" >"$freezer/$2"
	expect_refused "JVM $jvm is frozen with its cgroup, as by docker pause: thaw it first" "$jvm"
	echo "$4" >"$freezer/$2"
	sleep 0.3
	expect_quiet
	expect_attached "$jvm"
}

case_refuse_frozen() {
	refuse_frozen cgroup2 cgroup.freeze 1 0
}

case_refuse_frozen_v1() {
	refuse_frozen freezer freezer.state FROZEN THAWED
}

# It gets no CPU time until the attach is over: frozen as soon as SIGQUIT was sent, or stopped.
case_late_to_look() {
	local i
	need_root
	make_freezer 0 freezer freezer.state
	for i in 1 2 3 4 5 6; do
		start_idle "$(any_jdk)"
		echo "$jvm" >"$freezer/cgroup.procs"
		"$attach_once" "$jvm" 2000 >"$here/stdout" 2>&1 &
		until [ -e "/tmp/.attach_pid$jvm" ] || ! kill -0 $!; do
			:
		done 2>/dev/null
		echo FROZEN >"$freezer/freezer.state"
		wait $!
		thaw
		sleep 0.5
		expect_quiet
		! grep -q frozen "$here/stdout" || break
	done
	expect_attached "$jvm"
}

jdk_case_refuse_attach_disabled() {
	start_idle "$jdk" -XX:+DisableAttachMechanism
	expect_refused 'runs with -XX:\+DisableAttachMechanism' "$jvm"
	expect_quiet
}

# The option comes from a file or a variable, so the command line does not show it.
case_refuse_attach_disabled_hidden() {
	local home
	home=$(any_jdk)
	echo '-XX:+DisableAttachMechanism' >"$here/options"
	start_idle "$home" "@$here/options" -XX:-UsePerfData
	expect_refused 'DisableAttachMechanism' "$jvm"
	expect_quiet
	start_idle "$home" "-XX:VMOptionsFile=$here/options"
	expect_refused 'DisableAttachMechanism' "$jvm"
	expect_quiet
	JVM_AS=(env "JAVA_TOOL_OPTIONS=-XX:+DisableAttachMechanism")
	start_idle "$home" -XX:-UsePerfData
	expect_refused 'DisableAttachMechanism' "$jvm"
	expect_quiet
}

case_refuse_not_a_jvm() {
	sleep 100 &
	jvms+=($!)
	until [ "$(cat /proc/$!/comm)" = sleep ]; do :; done
	expect_refused "process $! \(sleep\) is not a HotSpot JVM: it maps no libjvm.so" $!
}

case_refuse_no_such_process() {
	sleep 0 &
	wait $!
	expect_refused "there is no process $!" $!
}

case_jvm_killed_during_attach() {
	local i left
	for i in 1 2 3 4 5 6; do
		start_idle "$(any_jdk)"
		"$attach_once" "$jvm" 0 1000 >"$here/stdout" &
		sleep "0.0$i"
		kill -KILL "$jvm"
		wait $! && fail "it did not notice"
		grep -qE 'exited|answer|no HELLO|closed|no process' "$here/stdout" ||
			fail "it says $(cat "$here/stdout")"
		left=$(find /tmp . -maxdepth 1 \( -name ".duet-*-$jvm" -o -name ".attach_pid$jvm" \))
		[ -z "$left" ] || fail "left behind: $left"
	done
}

case_loader_aborts() {
	local i
	start_idle "$(any_jdk)"
	for i in 1 2 4 8 16 32; do
		attach "$jvm" "-$i"
		[ $status = 0 ] || fail "exit code $status"
		expect_tidy "$jvm"
	done
	expect_quiet
	expect_attached "$jvm"
}

# Shell text for start_hostile: mounts a folder of root's at the place where duet would put the agent.
squat() { # HASH
	local name
	for name in ".duet-0-$1-1" ".duet-$stranger-$1-1"; do
		echo "mkdir /tmp/$name && mount --bind /media /tmp/$name &&"
	done
}

# Like start_apart, by a user who is root only in a user namespace of their own, and the JVM in another below it, pid 1.
start_hostile() { # PREPARE HOME
	local classes=$workloads workloads=/mnt tries=0
	local nested='exec unshare -U -r -p -f -m --mount-proc --kill-child "$@"'
	JVM_AS=(setpriv "--reuid=$stranger" "--regid=$stranger" --clear-groups unshare -U -r -m sh -c
		"mount --bind '$classes' /mnt && $1 $nested" sh)
	start_idle "$2" -XX:-UsePerfData
	JVM_AS=()
	until apart=$jvm jvm=$(descendant java "$apart"); do
		[ $((tries += 1)) -lt 100 ] || fail "no java below $apart"
		sleep 0.02
	done
	jvms+=("$jvm")
}

# Root does not enter, change or mount over what a user has put in the agent's place.
case_mount_is_a_trap() {
	local hash before
	need_root
	unshare -U true || skip "no user namespaces"
	start_idle "$(any_jdk)"
	expect_attached "$jvm"
	hash=$(sed -nE 's|.*/tmp/\.duet-[0-9]+-([0-9a-f]{16})-.*|\1|p' "/proc/$jvm/maps" | head -n 1)
	mkdir -m 700 "$here/secret"
	start_hostile "mount --bind '$here/secret' /media && for f in /tmp /dev/shm /var/tmp /run; do
		mount -t tmpfs -o noexec,mode=1777 none \$f; done && $(squat "$hash")" "$(any_jdk)"
	before=$(stat -c '%a %Y %Z' "$here/secret")
	expect_attached_beside "$jvm"
	[ "$(stat -c '%a %Y %Z' "$here/secret")" = "$before" ] ||
		fail "root's folder was touched: $before before, $(stat -c '%a %Y %Z' "$here/secret") after"
	[ -z "$(ls -A "$here/secret")" ] || fail "in root's folder: $(ls -A "$here/secret")"
}

# As expect_attached, but folders with the agent's usual name belong to the user.
expect_attached_beside() { # PID
	attach "$1"
	[ $status = 0 ] || fail "attach: $(cat "$here/stdout" "$here/stderr")"
	expect "folders in /tmp" "$(find "/proc/$1/root/tmp" -maxdepth 1 -name '.duet-*' | wc -l)" == 2
	! grep -q ' /tmp/.duet-.* - tmpfs duet ' "/proc/$1/mountinfo" || fail "mounts left"
}

# ---- what the JVM notices ---------------------------------------------------------------------------

# JDK 21 and later stop all threads for a moment when the first JVMTI environment is created. Everything else, as
# reading the loaded classes, happens while they run. The JVM's own garbage collections are not counted.
jdk_case_attach_stops_once() {
	local safepoints=$here/safepoints line
	need_jdk 11 "log of safepoints"
	JVM_OPTS=("-Xlog:safepoint:file=$safepoints")
	start_jvm "$jdk" workload.Many 1000 60
	line=$(($(wc -l <"$safepoints") + 1))
	record -p "$jvm" -d 2 -i 10ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'workload/Many'
	safepoints_from "$safepoints" "$line" | sed 's/^/# /' | tee "$here/stops"
	expect "safepoints" "$(wc -l <"$here/stops")" '<=' 1
	expect_alive "$jvm"
}

# ---- another /tmp comes in between ------------------------------------------------------------------

# While duet attaches, at the moment named by EVENT, another folder is mounted over the JVM's /tmp. The attach succeeds
# or says in time why not. No file of duet stays in the old or the new /tmp, and the new one is unchanged.
replace_tmp() { # EVENT
	local new=$here/new$1 old=$here/old$1 before place
	mkdir -m 1777 "$new" "$old"
	echo precious >"$new/file"
	start_apart "mount --bind '$old' /tmp" "$jdk" -XX:-UsePerfData
	before=$(stat -c '%a %u %Y %s' "$new/file")
	"$DUET_BUILD/tests/system/replace_tmp" "$jvm" "$1" "$new" >"$here/replaced" 2>&1 &
	jvms+=($!)
	until grep -q . "$here/replaced"; do sleep 0.01; done
	expect_contains "$here/replaced" READY
	attach "$jvm" 4000
	expect_contains "$here/replaced" REPLACED
	echo "# at $1: $(cat "$here/stdout")"
	[ $status = 0 ] || grep -qE "^/tmp of JVM $jvm was replaced" "$here/stdout" ||
		fail "at $1: it says \"$(cat "$here/stdout")\""
	expect_alive "$jvm"
	[ "$(stat -c '%a %u %Y %s' "$new/file")" = "$before" ] || fail "at $1: the file of the new /tmp changed"
	for place in "$old" "$new"; do
		[ -z "$(find "$place" -mindepth 1 ! -name '.java_pid*' ! -name file)" ] ||
			fail "at $1: left in $(basename "$place"): $(ls -A "$place")"
	done
	expect_attached "$jvm"
}

jdk_case_tmp_is_replaced() {
	need_jdk 14 "attach socket that is opened again"
	need_root
	replace_tmp open
	replace_tmp .duet-
	replace_tmp .attach_pid
	replace_tmp .java_pid
}

case_folder_is_a_trap() {
	need_root
	start_apart 'mount -t tmpfs tmp /tmp' "$(any_jdk)"
	expect_attached "$jvm"
	local path
	path=$(grep -o '/tmp/.duet-[^/ ]*' "/proc/$jvm/maps" | head -n 1)
	ln -s /etc "/proc/$jvm/root$path" || fail "no link"
	attach "$jvm"
	[ $status = 0 ] || fail "attach: $(cat "$here/stdout")"
	[ ! -e /etc/libduet.so ] || fail "it wrote through the link"
	rm "/proc/$jvm/root$path"
	expect_tidy "$jvm"
}

run_cases "$@"
