# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# The JVM of an episode: how it starts, and what is expected of it and of the machine.

patience=60 # seconds for anything that should happen at once: the machine may be busy

find_jdks() {
	local home name
	declare -gA collectors
	mapfile -t homes < <(jdks)
	for home in "${homes[@]}"; do
		for name in SerialGC ParallelGC G1GC ZGC ShenandoahGC; do
			"$home/bin/java" "-XX:+Use$name" -version >/dev/null 2>&1 && collectors[$home]+=" $name"
		done
	done
}

has_storm() {
	[[ " ${storms[*]} " == *" $1 "* ]]
}

make_java_agent() {
	printf 'Premain-Class: workload.Storm\nCan-Redefine-Classes: true\n' >"$here/manifest"
	"$jdk/bin/jar" cfm "$here/storm.jar" "$here/manifest" || skip "this JDK has no jar command"
}

start_storm() {
	JVM_OPTS=(-XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions "-XX:+Use$collector" -Xmx128m
		-XX:ErrorFile="$here/hs_err.log" -XX:-CreateCoredumpOnCrash $flavour)
	if has_storm redefine; then
		make_java_agent
		JVM_OPTS+=(-javaagent:"$here/storm.jar")
	fi
	mkfifo "$here/in"
	exec {jvm_in}<>"$here/in"
	JVM_IN=$here/in start_jvm "$jdk" workload.Storm "${storms[@]}"
	tokens=0
}

tell() {
	echo "$*" >&"$jvm_in"
}

# Expects that its sums are right and that it reports no error.
expect_sound() { # AFTER
	tell "ask $((++tokens))"
	wait_for_line "$jvm_out" "^SOUND $tokens\$" $patience
	expect_alive "$jvm" "after $1"
	[ ! -e "$here/hs_err.log" ] || fail "an hs_err file after $1"
	expect_lacks "$jvm_out" '^WRONG|(FATAL ERROR|WARNING) in native'
}

# Waits for the JVM's end. Sets $status to its exit code.
wait_for_end() { # PID
	local until=$((SECONDS + patience))
	while kill -0 "$1" 2>/dev/null && [ "$(proc_state "$1")" != Z ]; do
		[ $SECONDS -lt $until ] || fail "process $1 did not end within $patience s"
		sleep 0.05
	done
	wait "$1" 2>/dev/null
	status=$?
}

# ---- nothing is left -------------------------------------------------------------------------------

# Prints sequenced-packet sockets of the JVM: only the agent makes these.
agent_sockets() {
	local link
	for link in /proc/"$jvm"/fd/*; do
		link=$(readlink "$link")
		[[ $link == socket:* ]] && awk -v inode="${link//[!0-9]/}" \
			'$5 == "0005" && $7 == inode { print "socket", $8 }' /proc/net/unix
	done 2>/dev/null
}

# A duet outside of this pid namespace that profiles the whole host knows the JVM by another number, which is in the
# name of its socket.
leave_to_neighbour() {
	! agent_sockets | grep "@duet-" | grep -qv "@duet-$jvm-" ||
		skip "a duet elsewhere on this host profiles this JVM"
}

left_in_jvm() {
	agent_sockets
	find "/proc/$jvm/fd" \( -lname '*memfd:duet*' -o -lname '*eventfd*' \) -printf 'descriptor %l\n'
	grep -h 'memfd:duet' "/proc/$jvm/maps" | sed 's/^/mapping /'
	grep -lx 'duet agent' "/proc/$jvm/task"/*/comm | sed 's/^/thread /'
	sed -n 's/^ID: /timer /p' "/proc/$jvm/timers" | head -n 3
	# Another duet on this host, of another build, may have attached its own library.
	awk '/libduet/ && !seen[$5]++ && paths[$6]++ { print "library twice", $6 }' "/proc/$jvm/maps"
}

# Counts loaders, and processes that got a descriptor from one. This /proc shows only the processes of the namespace.
left_on_machine() {
	find /proc/[0-9]*/fd \( -lname 'anon_inode:*bpf*' -o -lname 'anon_inode:*perf_event*' \) \
		-printf 'descriptor %p %l\n'
	find /sys/fs/bpf /tmp /dev/shm /run -maxdepth 3 \( -iname '*duet*' -o -name '.attach_pid*' \) \
		! -path "$scratch*" ! -path "$DUET_BUILD*" ! -path '/mnt*' -printf 'file %p\n'
	grep -lx duet /proc/[0-9]*/comm | sed 's/^/process /'
}

left() {
	{
		[ ! -e "/proc/$jvm/maps" ] || left_in_jvm
		left_on_machine
	} 2>/dev/null
}

expect_nothing_left() { # AFTER
	local until=$((SECONDS + patience))
	while [ -n "$(left)" ]; do
		leave_to_neighbour
		[ $SECONDS -lt $until ] || fail "left after $1: $(left | head -n 5 | tr '\n' ';')"
		sleep 0.2
	done
}

# ---- crashes ---------------------------------------------------------------------------------------

# Prints the first lines of an hs_err file that a developer needs.
print_crash() { # FILE
	[ -s "$1" ] || return
	grep -E '^#  ?(SIG|Internal|fatal|assert|Error)|^# [VCJjv] |^siginfo|^Current thread|^RIP|_thread_in' "$1" |
		head -n 12
	sed -n '/^Native frames/,/^$/p' "$1" | head -n 30
}

# Expects that the JVM was killed by the test, not by its own error.
expect_killed_by_hand() {
	[ "$status" = 134 ] || [ "$status" = 1 ] || fail "exit code after SIGSEGV: $status" # 1: told not to dump core
	expect_contains "$here/hs_err.log" 'si_code: 0 \(SI_USER\)|sent by kill'
	rm "$here/hs_err.log"
}
