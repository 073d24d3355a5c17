#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table how long an attach stops the JVM. duet and async-profiler alternate, each in its own JVM.
#   ROUNDS=3 CLASSES=14000 (of 11 methods each) ASPROF=/path/to/asprof JDK=HOME
# Without ASPROF it is Debian's (peers.sh), in its own root file system, in which JDK runs too.
[ -n "${BENCH_APART-}" ] || BENCH_APART=1 exec unshare --mount --propagation private "$0" "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/asprof.sh"

classes=${CLASSES:-14000}

# Starts a JVM of the bench, which logs its safepoints to a file.
start_large() {
	safepoints=$jvm_root/tmp/duet-bench.safepoints.$$
	rm -f "$safepoints"
	JVM_OPTS=(-Xmx1g -XX:MetaspaceSize=900m -XX:TieredStopAtLevel=1)
	JVM_OPTS+=("-Xlog:safepoint:file=/tmp/duet-bench.safepoints.$$")
	JVM_PATIENCE=100 start_jvm "$jdk" workload.Stalls "$classes"
	sleep "${WARM_SECONDS:-4}"
}

now_ms() {
	date +%s%3N
}

duet_attach() {
	start_record -p "$jvm" -d 3600 -i 10ms -o collapsed -f "$scratch/duet.col"
	sleep 2 # it reads the JVM's classes and code
}

duet_detach() {
	end_record INT
}

asprof_attach() {
	asprof_do start -e cpu -i 10ms
	sleep 2
}

asprof_detach() {
	asprof_do stop -o collapsed -f /tmp/duet-bench.collapsed
	rm -f "$jvm_root/tmp/duet-bench.collapsed"
}

nothing_attach() {
	sleep 2
}

nothing_detach() {
	:
}

one_attach() {
	local line began ended
	start_large
	line=$(($(wc -l <"$safepoints") + 1))
	began=$(now_ms)
	"${profiler}_attach"
	ended=$(now_ms)
	safepoints_from "$safepoints" "$line" | sed -n 's/.*Total: *\([0-9]*\) ns.*/\1/p' >"$scratch/safepoints"
	note count "$(wc -l <"$scratch/safepoints")"
	note longest "$(sort -g "$scratch/safepoints" | awk '{ most = $1 / 1000 } END { if (NR) print most }')"
	note stall "$(awk -v b="$began" -v e="$ended" '$1 == "STALL" && $2 >= b && $2 <= e && $3 > most { most = $3 }
		END { print most + 0 }' "$jvm_out")"
	note stalls "$(awk -v b="$began" -v e="$ended" '$1 == "STALL" && $2 >= b && $2 <= e { sum += $3 }
		END { print sum + 0 }' "$jvm_out")"
	"${profiler}_detach"
	kill -KILL "$jvm"
	wait "$jvm" 2>/dev/null
	jvms=()
}

trap end_bench EXIT
[ ${#asprof[@]} != 0 ] || fetch_asprof
kind=attach interval=once
settings=("duet once" "asprof once" "nothing once")
for ((round = 1; round <= rounds; round++)); do
	for profiler in duet asprof nothing; do
		progress "round $round of $rounds: $profiler"
		one_attach
	done
done
progress ""
describe_host
head_row "an attach to a JVM of $((classes * 11)) methods"
figure_rows <<-'END'
	count %.0f safepoints
	longest %.0f the longest of them, us
	stall %.0f longest wait of a thread that loads classes, us
	stalls %.0f all its waits, us
END
