#!/bin/bash
# SPDX-License-Identifier: MIT
# Processes of a user that make the loader work for nothing, and leave the CPUs to others. It ends in time, and an
# honest process keeps its samples.
. "$(dirname "$0")/lib.sh"

hostile=$DUET_BUILD/tests/system/hostile_work
attackers=(nice -n 19 setpriv --reuid 1500 --regid 1500 --clear-groups)

start_attackers() { # KIND COUNT SECONDS ARGUMENT
	need_bpf
	need_root
	"${attackers[@]}" "$hostile" "$@" >"$here/attackers" 2>&1 </dev/null &
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
	sed -n 's/.* samples in \([0-9.]*\) s .*/# recorded for \1 s/p' "$here/stderr"
	echo "# ms of CPU time: $cpu_ms, of time: $took_ms"
	grep "pid=$honest\]" "$here/out" >"$here/honest"
	expect_share "named samples of the honest process" "$(matching "$here/honest" ';burn')" '>=' 90
}

# ---- cases -----------------------------------------------------------------------------------

case_sleepers_with_libjvm() { # apart
	local home
	home=$(any_jdk)
	start_honest
	start_attackers jvms 60 60 "$(find "$home/" -name libjvm.so | head -n 1)"
	record_host 8
	expect "JVMs that are none" "$(grep -c 'it has loaded libjvm.so, but is none' "$here/stderr")" '>=' 30
}

# Each frame is on another page, which a helper reads.
case_deep_sleepers() { # apart
	start_honest
	start_attackers deep 100 60 4000
	record_host 6 -e wall=10ms
	expect "s of a recording of 6 s" "$(sed -n 's/.* samples in \([0-9.]*\) s .*/\1/p' "$here/stderr")" '<' 10
}

# 2 MB of arguments, and a file of 256 MB that is called libjvm.so, at each change of the mappings.
case_nameless_with_long_arguments() { # apart
	start_honest
	truncate -s 256M "$here/libjvm.so"
	chmod 644 "$here/libjvm.so"
	start_attackers names 12 60 "$here/libjvm.so"
	record_host 6
	expect "ms of CPU time" "$cpu_ms" '<' $((2500 + took_ms / 10))
	expect "ms after the end" "$((took_ms - 6000))" '<' 6000
}

run_cases "$@"
