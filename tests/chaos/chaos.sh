#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
#
#   chaos.sh [SECONDS [SEED [EPISODE]]]
#
# Profiles JVMs under storms while loaders and JVMs are stopped, killed and replaced. An episode is one JVM: a JDK, its
# options, storms in it, steps that are done to it, and its end. SEED and the number of the episode determine all of
# these; they are printed before they are done. After each step the JVM computes sums of known value, and nothing of
# duet is left. The same SEED gives the same episodes. With EPISODE, only that one runs, again and again for SECONDS.
# The files of failed episodes are kept in $DUET_BUILD/chaos.
#
# Runs in its own namespaces: all files in /tmp are this script's, process ids can be reused, and the kernel ends all
# processes with the first.
seconds=${1:-180}
seed=${2:-$((RANDOM * 32768 + RANDOM))}
only=${3:-}

enter_namespaces() {
	local build=${DUET_BUILD:-build}
	[ "$(id -u)" = 0 ] || { echo "skip chaos: needs root for namespaces"; exit 0; }
	mkdir -p "$build/chaos"
	build=$(realpath "$build")
	exec unshare --mount --pid --fork --kill-child --mount-proc env CHAOS_INSIDE=1 DUET_BUILD="$build" \
		"$0" "$seconds" "$seed" "$only"
}

# Mounts a new /tmp, /dev/shm and /run, because a daemon that runs on this host has files there. The programs are
# copied, as they may lie in the /tmp that is hidden by this.
hide_files() {
	local real=$DUET_BUILD
	mount -t tmpfs tmpfs /dev/shm
	mount -t tmpfs tmpfs /run
	mount -t tmpfs -o mode=1777 tmpfs /mnt
	mkdir -p /mnt/build /mnt/findings
	cp -r "$real/duet" "$real/workloads" /mnt/build/
	mount --bind "$real/chaos" /mnt/findings
	mount --rbind /mnt /tmp
	DUET_BUILD=/tmp/build
	findings=/tmp/findings
}

[ -n "${CHAOS_INSIDE:-}" ] || enter_namespaces
unset TMPDIR
hide_files
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/../system/lib.sh"
# shellcheck source=tests/chaos/jvm.sh
. "$(dirname "$0")/jvm.sh"
# shellcheck source=tests/chaos/steps.sh
. "$(dirname "$0")/steps.sh"

# ---- the plan of an episode ------------------------------------------------------------------------

all_storms=(threads virtual classes code deopt redefine overflow exceptions locks children gc oom)
all_steps=(record record interrupt kill_loader two_loaders stop_jvm stop_loader flight_recording diagnose dump_threads
	full_disk whole_host)
all_ends=(exit exit leave kill segv exec cgroup reuse)
all_engines=(bpf bpf bpf-interval ctimer ctimer-wall itimer)
all_intervals=(100us 250us 1ms 10ms)
all_flavours=(
	""
	"-XX:+PreserveFramePointer"
	"-Xint"
	"-XX:TieredStopAtLevel=1"
	"-XX:-TieredCompilation"
	"-Xcomp -XX:TieredStopAtLevel=1"
	"-XX:ReservedCodeCacheSize=6m"
	"-Xss200k"
	"-XX:GuaranteedSafepointInterval=1"
	"-XX:+DebugNonSafepoints"
	"-Xcheck:jni"
	"-XX:+UseCompactObjectHeaders"
	"-agentlib:jdwp=transport=dt_socket,server=y,suspend=n,address=127.0.0.1:0"
)

pick() { # VARIABLE WORDS...
	local variable=$1
	shift
	printf -v "$variable" '%s' "${@:RANDOM % $# + 1:1}"
}

draw_step() { # VARIABLE NAMES...
	local variable=$1 name engine interval
	shift
	pick name "$@"
	pick engine "${all_engines[@]}"
	pick interval "${all_intervals[@]}"
	printf -v "$variable" '%s' "$name $engine $interval $((RANDOM % 1500))"
}

has_virtual_threads() { # JDK
	grep -qE '^JAVA_VERSION="(2[1-9]|[3-9])' "$1/release"
}

# The meaning of SEED depends on the order of the draws.
draw_episode() { # NUMBER
	local i storm step
	RANDOM=$(((seed % 100000) * 20011 + $1))
	pick jdk "${homes[@]}"
	# shellcheck disable=SC2086 # a list
	pick collector ${collectors[$jdk]}
	pick flavour "${all_flavours[@]}"
	storms=() steps=()
	for ((i = RANDOM % 3; i >= 0; i--)); do
		pick storm "${all_storms[@]}"
		[ "$storm" != virtual ] || has_virtual_threads "$jdk" || storm=threads
		[[ " ${storms[*]} " == *" $storm "* ]] || storms+=("$storm")
	done
	for ((i = 1 + RANDOM % 3; i >= 0; i--)); do
		draw_step step "${all_steps[@]}"
		steps+=("$step")
	done
	draw_step end "${all_ends[@]}"
}

# ---- an episode ------------------------------------------------------------------------------------

episode() {
	local step
	start_storm
	expect_sound "start"
	for step in "${steps[@]}"; do
		[ $SECONDS -lt "$end_of_chaos" ] || break # the last episode continues to its end
		echo "# step: $step"
		# shellcheck disable=SC2086 # the words of a step
		step_$step
		expect_sound "$step"
		expect_nothing_left "$step"
	done
	echo "# end: $end"
	# shellcheck disable=SC2086
	end_$end
	expect_nothing_left "$end"
	[ ! -e "$here/hs_err.log" ] || fail "an hs_err file"
}

# Keeps the files that the subshell of a failed episode has left.
keep_findings() { # NAME
	local kept=$findings/$1
	rm -rf "$kept"
	mkdir -p "$kept"
	cp "$here"/jvm.* "$here"/record.*.err "$here"/hs_err.log "$kept" 2>/dev/null
	print_crash "$here/hs_err.log"
	echo "# kept in \$DUET_BUILD/chaos/$1"
}

episode_and_findings() {
	trap 'code=$?; case $code in 0 | 77) ;; *) keep_findings "$seed-$number" ;; esac; (exit $code); end_case' EXIT
	episode
}

run_episode() { # NUMBER
	number=$1
	draw_episode "$number"
	echo "# episode $number: $(basename "$jdk") -XX:+Use$collector $flavour; storms: ${storms[*]}"
	printf '#   %s\n' "${steps[@]}" "$end"
	run_case "episode $number ($(basename "$jdk"), $collector, ${storms[*]}, ${end%% *})" episode_and_findings
}

echo "# make chaos SECONDS=$seconds SEED=$seed${only:+ EPISODE=$only}"
find_jdks
log=$scratch/log
: >"$log"
end_of_chaos=$((SECONDS + seconds))
for ((number = 1; SECONDS < end_of_chaos; number++)); do
	run_episode "${only:-$number}" > >(tee -a "$log") 2>&1
	tee=$!
	# Children of a JVM 25 that is killed while it starts two of them wait for each other for ever, with our output.
	pkill -KILL -P $$ -x jspawnhelper
	wait "$tee"
done
count() {
	grep -c "^$1 " "$log"
}
echo "$(count ok) passed, $(count 'not ok') failed, $(count skip) skipped"
[ "$(count 'not ok')" = 0 ]
