#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   tests/corpus/capture.sh FOLDER [-k KIND]... [JDK...]
#
# Captures walks of each kind of JVM into FOLDER, one file each: VERSION-KIND.walks; and of one kind what a reader from
# outside reads: VERSION-c2.image (tests/fixtures/outside/README.md). JDK is a home on this host, or
# ROOT:HOME in a tree made by tests/matrix/root_tree.sh; without JDK, all JDKs of this host are used. WALKS and
# SECONDS_EACH limit a file. tests/fixtures/walk/README.md has more.
[ $# -ge 1 ] || { echo "usage: $0 FOLDER [-k KIND]... [JDK...]" >&2; exit 2; }
[ -n "${CAPTURE_APART-}" ] || [ "$(id -u)" != 0 ] ||
	CAPTURE_APART=1 exec unshare --mount --propagation private "$0" "$@"
DUET_BUILD=$(realpath -m "${DUET_BUILD:-build}")
. "$(dirname "$0")/../system/lib.sh"

# NAME, first JDK, the JVM's options, the workload. A JVM that does not know an option does not start; it gets no file.
kinds=(
	"default       8  -                                   workload.Stubs 60"
	"interpreter   8  -Xint                               workload.Stubs 60"
	"interpreter2  8  -Xint                               shop.Demo 60"
	"c1            8  -XX:TieredStopAtLevel=1             workload.Stubs 60"
	"c1_shop       8  -XX:TieredStopAtLevel=1             shop.Demo 60"
	"c2            8  -XX:-TieredCompilation              shop.Demo 60"
	"comp          8  -Xcomp                              workload.Stubs 60"
	"no_inline     8  -XX:-Inline                         shop.Demo 60"
	"fp            8  -XX:+PreserveFramePointer           shop.Demo 60"
	"one_heap      9  -XX:-SegmentedCodeCache             shop.Demo 60"
	"interleave    8  -                                   workload.Interleave"
	"interleave_i  8  -Xint                               workload.Interleave"
	"deep          8  -                                   workload.Deep 60"
	"deopt         8  -                                   workload.Storm deopt"
	"exceptions    8  -                                   workload.Storm exceptions"
	"locks         8  -                                   workload.Storm locks"
	"serial        8  -XX:+UseSerialGC                    shop.Demo 60"
	"parallel      8  -XX:+UseParallelGC                  shop.Demo 60"
	"g1            8  -XX:+UseG1GC                        shop.Demo 60"
	"shenandoah    11 -XX:+UseShenandoahGC                shop.Demo 60"
	"z             17 -XX:+UseZGC                         shop.Demo 60"
	"virtual       21 -                                   workload.Virtual 40 20000"
	"virtual_i     21 -Xint                               workload.Virtual 20 2000"
)

capture_kind() { # HOME VERSION KIND FIRST OPTION WORKLOAD...
	local home=$1 version=$2 kind=$3 first=$4 option=$5 file status
	shift 5
	[ "$version" -ge "$first" ] || return 0
	file=$folder/$version-$kind.walks
	JVM_OPTS=()
	[ "$option" = - ] || JVM_OPTS=("$option")
	here=$(mktemp -d "$scratch/XXXXXX")
	jvms=()
	mkfifo "$here/in" # Storm ends when its input ends
	exec 9<>"$here/in"
	(JVM_IN=$here/in start_jvm "$home" "$@" && echo "$jvm" >"$here/pid") || return 0
	jvm=$(cat "$here/pid" 2>/dev/null) || return 0
	sleep 1
	timeout 120 "$DUET_BUILD/tests/corpus/capture" -w "$folder/$version.ways" \
		"$jvm" "$file" "$kind: ${option#-} $*" "$WALKS" "$SECONDS_EACH"
	status=$?
	[ "$kind" != c2 ] || "$DUET_BUILD/tests/corpus/image" "$jvm" "$folder/$version-$kind.image" 3
	kill -0 "$jvm" || echo "$file: the JVM died" >&2
	kill -9 "$jvm" 2>/dev/null
	[ $status = 0 ] || rm -f "$file"
}

# As tests/matrix/jdks.sh: mounts what the JVM and the agent look for below the root.
enter() { # ROOT
	local part
	mount -t tmpfs tmpfs "$1/tmp"
	mount -t proc proc "$1/proc"
	for part in /dev /sys "$DUET_BUILD" "$scratch"; do
		mkdir -p "$1$part"
		mount --rbind "$part" "$1$part"
	done
}

capture_jdk() { # HOME or ROOT:HOME
	local home=${1#*:} version kind
	JVM_AS=()
	if [[ $1 = *:* ]]; then
		JVM_AS=(chroot "${1%%:*}")
		enter "${1%%:*}"
	fi
	version=$("${JVM_AS[@]}" "$home/bin/java" -version 2>&1 | sed -nE '1s/.*"(1\.)?([0-9]+).*/\2/p')
	[ -n "$version" ] || { echo "$1: no JVM starts there" >&2; return; }
	for kind in "${kinds[@]}"; do
		[[ -z $chosen || " $chosen " = *" ${kind%% *} "* ]] || continue
		# shellcheck disable=SC2086 # words
		capture_kind "$home" "$version" $kind
	done
}

WALKS=${WALKS:-40} SECONDS_EACH=${SECONDS_EACH:-6}
folder=$(realpath -m "$1") chosen=
shift
while [ "${1-}" = -k ]; do
	chosen+=" $2"
	shift 2
done
mkdir -p "$folder"
rm -f "$folder"/*.ways
[ $# -gt 0 ] || mapfile -t homes < <(jdks)
for jdk in "${@:-${homes[@]}}"; do
	capture_jdk "$jdk"
done
rm -f "$folder"/*.ways
