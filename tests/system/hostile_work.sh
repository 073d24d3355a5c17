#!/bin/bash
# SPDX-License-Identifier: MIT
# Processes of a user that make the loader work for nothing, and leave the CPUs to others. It ends in time, and an
# honest process keeps its samples.
. "$(dirname "$0")/lib.sh"

attackers=(nice -n 19 setpriv --reuid 1500 --regid 1500 --clear-groups)

start_attackers() { # ATTACK COUNT: files are in $here
	need_bpf
	need_root
	"${attackers[@]}" "$DUET_BUILD/tests/system/hostile_neighbour" "$1" 60 "$here" "$2" \
		>"$here/attackers" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/attackers" '^READY' 10
}

start_honest() {
	need_bpf
	[ -e "$workloads/busy" ] || skip "no workload"
	"$workloads/busy" 1 1000 >"$here/busy" 2>&1 </dev/null &
	honest=$! jvm=$!
	jvms+=("$honest")
	wait_for_line "$here/busy" '^READY' 10
}

# Leaves the CPU time of duet and its helpers in $cpu_ms, and how long it took in $took_ms.
record_host() { # SECONDS OPTIONS...
	local seconds=$1 begun=${EPOCHREALTIME/./}
	shift
	timeout --kill-after=1 90 "$DUET_BUILD/tests/system/peak_memory" "$here/peak" "$duet" record -v --host -t \
		-d "$seconds" -o collapsed -f "$here/out" "$@" >"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	took_ms=$(((${EPOCHREALTIME/./} - begun) / 1000))
	expect_status 0
	read -r _ cpu_ms <"$here/peak"
	expect "s of a recording of $seconds s" "$(sed -n 's/.* samples in \([0-9.]*\) s .*/\1/p' "$here/stderr")" \
		'<' $((seconds + 4))
	echo "# ms of CPU time: $cpu_ms, of time: $took_ms"
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	expect_share "named samples of the honest process" "$(matching "$here/honest" ';burn')" '>=' 90
}

# ---- cases -----------------------------------------------------------------------------------

case_sleepers_with_libjvm() { # apart
	start_honest
	install -m 644 "$(find "$(any_jdk)/" -name libjvm.so | head -n 1)" "$here"
	start_attackers libjvm_sleepers 60
	record_host 8
	expect "JVMs that are none" "$(grep -c 'it has loaded libjvm.so, but is none' "$here/stderr")" '>=' 30
}

# Each frame is on another page, which a helper reads.
case_deep_sleepers() { # apart
	start_honest
	start_attackers deep_sleepers 100
	record_host 6 -e wall=10ms
}

# 2 MB of arguments, and a file of 256 MB that is called libjvm.so, at each change of the mappings.
case_nameless_with_long_arguments() { # apart
	start_honest
	start_attackers arguments 12
	record_host 6
	expect "ms of CPU time" "$cpu_ms" '<' $((2500 + took_ms / 10))
}

run_cases "$@"
