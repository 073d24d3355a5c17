#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1200
# Many cycles of attach, start, stop and detach leave nothing in the JVM or on the disk.
. "$(dirname "$0")/lib.sh"

cycles=${CYCLES:-200}

count_fds() {
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# All threads except those of the compilers and the collector, whose number the JVM changes with its load.
count_threads() {
	cat "/proc/$1"/task/*/comm 2>/dev/null | grep -cvE '^(C[12] CompilerThre|GC Thread#|G1 (Conc|Refine)#)'
}

# Mappings of files and memfds; the JVM changes its anonymous memory by itself.
count_mappings() {
	grep -cE 'duet|memfd' "/proc/$1/maps"
}

# The agent gives the ring back when it has confirmed the end, which may be long after that on a busy machine.
wait_for_rest() {
	wait_for 30 sh -c "! grep -q memfd:duet /proc/$jvm/maps"
}

duet_files() {
	find /tmp "${TMPDIR:-/tmp}" /dev/shm /run -maxdepth 2 \( -iname '*duet*' -o -name '.attach_pid*' \) \
		! -path '*/duet-test.*' 2>/dev/null | sort -u
}

cycle() { # OPTIONS...
	record --agent always -p "$jvm" -o collapsed -f "$here/out" "$@"
	expect_status 0 "cycle $round"
	expect_alive "$jvm" "in cycle $round"
}

holds_no_more() { # FDS THREADS MAPPINGS
	[ "$(count_fds "$jvm")" -le "$1" ] && [ "$(count_threads "$jvm")" -le "$2" ] &&
		[ "$(count_mappings "$jvm")" -le "$3" ]
}

# The first two cycles load the agent and start the JVM's attach listener; after them, nothing may grow.
cycles_leave_nothing() { # OPTIONS...
	start_jvm "$jdk" workload.Checksum
	local round fds threads mappings files left
	for round in -1 0; do
		cycle -d 250ms "$@"
	done
	wait_for_rest
	fds=$(count_fds "$jvm") threads=$(count_threads "$jvm") mappings=$(count_mappings "$jvm") files=$(duet_files)
	for ((round = 1; round <= cycles; round++)); do
		cycle -d 250ms "$@"
	done
	for ((round = 0; round < 600; round++)); do
		holds_no_more "$fds" "$threads" "$mappings" && break
		sleep 0.05
	done
	expect "descriptors" "$(count_fds "$jvm")" '<=' "$fds"
	expect "threads" "$(count_threads "$jvm")" '<=' "$threads"
	expect "mappings" "$(count_mappings "$jvm")" '<=' "$mappings"
	left=$(comm -13 <(echo "$files") <(duet_files))
	[ -z "$left" ] || fail "files left: $(head -n 5 <<<"$left")"
	expect_lacks "$jvm_out" WRONG
	expect_contains "$here/out" 'workload/Checksum'
}

case_cycles() { # apart
	need_bpf
	jdk=$(any_jdk)
	cycles_leave_nothing -i 1ms
}

jdk_case_cycles_short() { # apart
	need_bpf
	cycles=10 cycles_leave_nothing -i 1ms
}

case_cycles_ctimer() { # apart
	jdk=$(any_jdk) cycles=20
	cycles_leave_nothing --engine ctimer -i 1ms
}

case_cycles_perf() { # apart
	"$duet" check | grep -q '^perf: ready' || skip "perf events are refused"
	jdk=$(any_jdk) cycles=20
	cycles_leave_nothing --engine perf -i 1ms
}

# Every event of an agent at once, under storms of classes, code and locks, beside the JVM's own recorder, in a JVM that
# checks each call of JNI. It computes the same sums afterwards, obeys its own commands, and has printed nothing.
jdk_case_all_events() { # apart
	local events=cpu=1ms,alloc=64k,live=64k,lock=10us,wait=10us,nativemem=64k,leak=64k,free,nativelock=10us
	local round=0 tables commands options
	events+=,exceptions,gc,safepoint,class-load,compilation
	options=(-d 300ms -e "$events" --trace 'workload.Storm.*:1ms')
	need_jdk 11 "sampled allocations"
	mkfifo "$here/in"
	exec {commands}<>"$here/in"
	JVM_OPTS=(-Xcheck:jni -XX:+EnableDynamicAgentLoading
		"-XX:StartFlightRecording=filename=$here/jvm.jfr,maxsize=64m")
	JVM_IN=$here/in start_jvm "$jdk" workload.Storm classes code locks
	cycle "${options[@]}"
	wait_for_rest
	tables=$(rights_of_tables)
	for ((round = 1; round <= ${CYCLES:-5}; round++)); do
		cycle "${options[@]}"
	done
	wait_for_rest
	expect "rights of the tables" "$(rights_of_tables)" == "$tables"
	"$jdk/bin/jcmd" "$jvm" JFR.dump name=1 >"$here/jcmd" 2>&1 || fail "jcmd: $(cat "$here/jcmd")"
	echo "ask 1" >&$commands
	wait_for_line "$jvm_out" '^SOUND 1$' 60
	expect_lacks "$jvm_out" 'WRONG|WARNING|FATAL'
	expect_lacks "$jvm_out.err" 'WARNING|FATAL|duet'
}

# While it samples: no descriptor for a thread.
jdk_case_descriptors_per_thread() {
	start_jvm "$jdk" workload.Idle 20
	local few many
	start_record --agent always -p "$jvm" -d 30 -o collapsed -f "$here/few"
	few=$(count_fds "$jvm")
	end_record INT
	start_jvm "$jdk" workload.Idle 400
	start_record --agent always -p "$jvm" -d 30 -o collapsed -f "$here/many"
	many=$(count_fds "$jvm")
	end_record INT
	expect "descriptors with 400 instead of 20 threads" "$many" '<=' "$few"
}

run_cases "$@"
