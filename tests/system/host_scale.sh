#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
#
# A host under extreme load: processes that live for a millisecond, a JVM with thousands of threads, dozens of JVMs,
# many of them in containers. With DUET_LONG=1 the first takes a minute, up to 50 JVMs are started if the memory
# allows, and another user has 100,000 threads, for which the host's number of process ids is raised. Without it: ten
# seconds, 12 JVMs, 30,000 threads. Mounts are made in this script's own mount namespace.
[ -n "${DUET_APART-}" ] || [ "$(id -u)" != 0 ] || DUET_APART=1 exec unshare --mount --propagation private "$0" "$@"
. "$(dirname "$0")/lib.sh"

long=${DUET_LONG:-0}

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	local pid
	[ -z "${recorder:-}" ] || kill -KILL "$recorder"
	[ -z "${pids:-}" ] || echo "$pids" >/proc/sys/kernel/pid_max
	for pid in $(our_jvms); do
		kill -KILL "$pid" # with it its container goes
	done
}

resident_kb() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

descriptors() { # PID
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# ---- processes without end -----------------------------------------------------------------

# Notes duet's memory and descriptors at the beginning, in the middle and at the end.
look() { # PART
	held_fds[$1]=$(descriptors "$recorder")
	held_kb[$1]=$(resident_kb "$recorder")
}

# 2,000 children a second, as far as the machine can.
churn() { # SECONDS RECORD_OPTIONS...
	local seconds=$1
	shift
	start_record --no-attach --by process -d 600 "$@"
	"$workloads/mayfly" 2000 $((seconds + 2)) >"$here/mayfly" &
	jvms+=($!)
	sleep 2 # until tables that grow only once have grown
	look 0
	sleep $((seconds / 2))
	look 1
	sleep $((seconds - seconds / 2))
	look 2
	wait "${jvms[-1]}"
	end_record INT
	expect_status 0
	recorder=
	echo "# children a second: $(($(said CHILDREN 2) / (seconds + 2)))"
	echo "# descriptors ${held_fds[*]}, kB of RAM ${held_kb[*]}"
}

said() { # KEY COLUMN
	awk -v key="$1" -v column="$2" '$1 == key { print $column }' "$here/mayfly"
}

# One or two more descriptors are open while a file is read.
expect_no_more_descriptors() {
	expect "descriptors, later" $((held_fds[2] - held_fds[0])) '<=' 2
}

# All children have one name: only their stacks show in which of the two functions they burn CPU time.
expect_truth() { # FILE...
	cat "$@" >"$here/all"
	grep -E '^mayfly_child;(.*;)?burn_(long|short)(;|\ )' "$here/all" >"$here/burnt"
	expect "samples in the two functions" "$(total "$here/burnt")" '>=' 300
	expect_near "share of burn_long, %" "$(share "$here/burnt" burn_long)" \
		"$(awk '$1 == "BURNED" { print 100 * $2 / ($2 + $3) }' "$here/mayfly")" 3
	expect "named, % of what children had of the user's time" \
		"$(share <(grep '^mayfly_child;' "$here/all" | grep -v '_\[k\]') burn_)" '>=' 90
}

# At this rate the time has enough samples for three points. Only the children are sampled: the symbols of other
# processes would take memory too.
case_short_processes() { # alone
	need_bpf
	if [ "$long" = 0 ]; then
		churn 10 --comm mayfly_child -i 997us -o collapsed -f "$here/out"
	else
		churn 60 --comm mayfly_child -i 4999us -o collapsed -f "$here/out"
	fi
	expect_no_more_descriptors
	expect "kB of RAM at the end" "${held_kb[2]}" '<=' $((held_kb[1] * 105 / 100))
	expect_truth "$here/out"
}

case_short_processes_in_windows() { # alone
	need_bpf
	churn $((long ? 60 : 10)) --host -i 997us --continuous --window 2s -o collapsed -f "$here/out"
	expect_no_more_descriptors
	expect "kB of RAM at the end" "${held_kb[2]}" '<' $((128 << 10)) # the limit of --continuous
	expect_truth "$here/out"/profile_20*.collapsed
}

# ---- one JVM of many threads -----------------------------------------------------------------

# Prints the milliseconds to the first sample of a JVM with this many threads, and the descriptors that duet and the JVM
# have then.
start_threads() { # COUNT
	JVM_OPTS=(-Xss256k -XX:+UseSerialGC)
	JVM_PATIENCE=60 start_jvm "$jdk" workload.Idle "$1" busy
	first_ms=() held=
	for _ in 1 2 3; do
		start_record -v -p "$jvm" -d 60 -i 5ms -o collapsed -f "$here/out"
		sleep 1 # for the first sample
		held="$(descriptors "$recorder") $(descriptors "$jvm")"
		end_record INT
		expect_status 0
		first_ms+=("$(sed -n 's/.*first sample \([0-9]*\) ms after.*/\1/p' "$here/stderr")")
	done
	recorder=
	kill "$jvm"
	first_ms=$(printf '%s\n' "${first_ms[@]}" | sort -n | head -n 1)
	echo "# $1 threads: $first_ms ms to the first sample, descriptors of duet and the JVM: $held"
}

# Takes the fastest of three tries, as the machine may be busy, and compares with a JVM of ten threads in the same run.
jdk_case_threads() { # alone
	local few few_held
	need_bpf
	start_threads 10
	[ -n "$first_ms" ] || fail "duet does not say when the first sample came"
	few=$first_ms few_held=$held
	start_threads 5000
	# duet may just be reading a file.
	expect "more descriptors of duet" $((${held% *} - ${few_held% *})) '<=' 3
	expect "descriptors of the JVM" "${held#* }" == "${few_held#* }"
	expect "times as long as with 10 threads" $((first_ms / few)) '<=' 5
}

# ---- throngs of another user ---------------------------------------------------------------------

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

# While another user starts as many threads as possible, the loader's cost is bounded and samples arrive.
record_beside() { # WHAT
	local peak_kb cpu_ms
	timeout --kill-after=5 90 "$DUET_BUILD/tests/system/peak_memory" "$here/peak" "$duet" record -v --host -t -d 5 \
		-i 1ms -o collapsed -f "$here/out" >"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	expect_status 0 "$1"
	read -r peak_kb cpu_ms <"$here/peak"
	expect "$1: kB of RAM" "$peak_kb" '<' $((160 << 10))
	expect "$1: ms of CPU time in 5 s" "$cpu_ms" '<' 3000
	expect "$1: samples in its stacks" "$(grep -c 'throng' "$here/out")" '>' 10
}

# Starts as many threads as there are process ids, except for some that are left for others.
case_threads_of_a_stranger() { # alone
	local most want=30000
	need_bpf
	need_root
	if [ "$long" != 0 ]; then
		want=100000 pids=$(cat /proc/sys/kernel/pid_max)
		[ "$pids" -ge 140000 ] || echo 140000 >/proc/sys/kernel/pid_max || skip "no more process ids"
	fi
	most=$(($(cat /proc/sys/kernel/pid_max) * 3 / 4))
	jvm_out=$here/throng
	"${nobody[@]}" "$workloads/throng" threads $((most < want ? most : want)) >"$jvm_out" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 60
	record_beside "$(cat "$jvm_out") threads"
}

case_forks_and_execs() { # alone
	local kind
	need_bpf
	need_root
	for kind in forks execs; do
		for i in 1 2 3 4; do
			"${nobody[@]}" "$workloads/throng" $kind 8 >/dev/null &
			jvms+=($!)
		done
		record_beside $kind
		wait "${jvms[@]}"
		jvms=()
		[ $kind != forks ] || expect_whole_children
	done
}

# The processes have ended before the loader reads of them, but have their parent's mappings. None of these functions
# has a frame pointer, and main() calls all of them.
expect_whole_children() {
	grep -E 'throng.*;(_Fork|fork|_exit|wait4|waitpid)(;| )' "$here/out" >"$here/children"
	expect "samples in fork() and the children's _exit()" "$(total "$here/children")" '>' 100
	expect_share "down to the entry" "$(matching "$here/children" ';_start;')" '>=' 75
}

# ---- many JVMs ----------------------------------------------------------------------------------

# Finds the JVMs by a mark on their command line, in whatever namespace they run.
our_jvms() {
	local pid
	for pid in $(pgrep -x java); do
		! grep -qs "duet.of=$here\$" <(tr '\0' '\n' <"/proc/$pid/cmdline") || echo "$pid"
	done
}

small_jvm() { # COMMAND... of the container, before java
	"$@" "$jdk/bin/java" -Xmx16m -Xss256k -XX:+UseSerialGC -XX:TieredStopAtLevel=1 "-Dduet.of=$here" -cp /mnt \
		workload.Pulse 1 >"$here/out.$#" 2>>"$here/jvms" </dev/null &
	jvms+=($!)
}

in_host() {
	exec "${@/%\/mnt/$workloads}"
}

# A container with the host's files, but its own /tmp and pid namespace.
in_unshare() {
	exec unshare -f -p -m -i -u --kill-child --mount-proc \
		sh -c 'mount --bind "$0" /mnt && mount -t tmpfs tmpfs /tmp && exec "$@"' "$workloads" "$@"
}

in_podman() {
	exec podman --runtime runc --cgroup-manager cgroupfs --root /run/duet-podman-root --runroot /run/duet-podman \
		--tmpdir /run/duet-podman-tmp run --rm --network none --cgroupns private --ulimit nofile=4096:4096 \
		--ulimit nproc=4096:4096 --log-driver=none --read-only --read-only-tmpfs=false \
		--tmpfs /tmp:rw,exec,notmpcopyup --tmpfs /run:rw,notmpcopyup \
		-v "$workloads:/mnt:ro" --rootfs "$root" "$@"
}

in_nspawn() {
	exec systemd-nspawn -q --console=pipe --link-journal=no --register=no --keep-unit --read-only -D "$root" \
		--machine="duet$BASHPID" --tmpfs=/tmp --bind-ro="$workloads:/mnt" "$@"
}

root=/run/duet-root # ends with the mount namespace; not below $here, which is removed with all that is in it

# Starts containers of those of the three kinds that this machine has.
find_kinds() {
	kinds=(in_unshare)
	[ "$(id -u)" = 0 ] || skip "needs root to make containers"
	unshare -f -p -m --mount-proc true 2>/dev/null || skip "unshare is refused"
	mount -t tmpfs tmpfs /run && mkdir "$root" && mount --bind / "$root" && mount -o remount,bind,ro "$root" ||
		return
	! command -v podman >/dev/null || ! command -v runc >/dev/null || kinds+=(in_podman)
	! command -v systemd-nspawn >/dev/null || kinds+=(in_nspawn)
}

# 80 MB for each, and half of the memory for all else.
count_jvms() {
	local most=$1 room
	room=$(($(awk '$1 == "MemAvailable:" { print $2 }' /proc/meminfo) / 2 / 80000))
	count=$((room < most ? room : most))
	[ $count -ge 5 ] || skip "memory for $count JVMs only"
}

# Two of five JVMs, as twenty of fifty, run in containers.
start_jvms() {
	local i kind
	for ((i = 0; i < count; i++)); do
		kind=in_host
		[ $((i % 5)) -ge 2 ] || kind=${kinds[started_contained++ % ${#kinds[@]}]}
		small_jvm $kind
		[ $((i % 4)) != 3 ] || sleep 0.5
	done
	wait_for_jvms
}

wait_for_jvms() {
	local end=$((SECONDS + 40))
	until [ "$(our_jvms | wc -l)" = "$count" ]; do
		[ $SECONDS -lt $end ] || fail "$(our_jvms | wc -l) of $count JVMs started: $(tail -n 3 "$here/jvms")"
		sleep 0.5
	done
	sleep 2 # for their compilers
}

case_many_jvms() { # alone
	local kinds count started_contained=0 pid jdk missing=0
	need_bpf
	jdk=$(any_jdk)
	find_kinds
	count_jvms $((long ? 50 : 12))
	start_jvms
	echo "# $count JVMs, $started_contained of them in containers of ${#kinds[@]} kinds: ${kinds[*]#in_}"
	record --host -v -d 10 -i 1ms --max-memory 128m -o collapsed -f "$here/out"
	expect_status 0
	expect "ms to the first sample, with all agents" \
		"$(sed -n 's/.*first sample \([0-9]*\) ms after.*/\1/p' "$here/stderr")" '<=' 10000
	for pid in $(our_jvms); do
		grep -q "^\[java pid=$pid\];.*workload/Pulse.work" "$here/out" || missing=$((missing + 1))
	done
	expect "JVMs without Java frames" $missing '==' 0
	expect_share "joined or walked" "$(reported joined)" '>=' 99
}

run_cases "$@"
