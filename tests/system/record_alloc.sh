#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Memory that Java code allocates: as many bytes as the JVM itself counts, with the right methods and classes.
. "$(dirname "$0")/lib.sh"

# The site with the fewest samples has 12,500, whose sum has an error of 0.9 %. 5 % is five times that: one run of ten
# million fails.
rounds=400
tolerance=5

record_allocations() { # WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	record_gated workload.Allocations "$@"
}

# Checks the bytes of one site, and that nothing else was allocated there.
expect_site() { # FILE METHOD CLASS COLUMN
	local told all want
	told=$(matching "$1" "Allocations[.]round;workload/Allocations[.]$2;$3_.i. ")
	all=$(matching "$1" "Allocations[.]round;workload/Allocations[.]$2;")
	want=$(jvm_said BYTES "$4")
	expect_near "bytes of $2" "${told% *}" "$want" $((want * tolerance / 100))
	expect_share "of them of its class" "${told% *} ${all% *}" ">=" 99.5
}

expect_sites() { # FILE
	expect_site "$1" one 'workload[.]Allocations[$]Node' 2
	expect_site "$1" two 'byte\[\]' 3
	expect_site "$1" four 'java[.]lang[.]String\[\]\[\]' 4
	expect_lacks "$here/stderr" 'refused|dropped'
}

expect_truth() { # FILE
	expect_sites "$1"
	expect_share "walks to the end of Java's frames" "$(reported walked)" '>=' 99.9
}

jdk_case_bytes_and_classes() {
	need_bpf
	need_jdk 11 "sampling of allocations"
	record_allocations $rounds -- -e alloc=4k
	expect_truth "$here/out.collapsed"
	expect_contains "$here/stderr" 'walked: .* needed a call of JVMTI'
	expect_contains "$here/stderr" 'agreed: .*, JVMTI left out frames'
	expect_share "of the thread that allocates" \
		"$(matching "$here/out.collapsed" '^workload/Allocations[.]main;')" '>=' 99
}

# Another engine walks the native frames below Java as well.
jdk_case_timers() {
	need_jdk 11 "sampling of allocations"
	record_allocations $rounds -- -e alloc=4k --engine ctimer
	expect_truth "$here/out.collapsed"
	expect_share "from the thread's entry on" \
		"$(matching "$here/out.collapsed" 'start_thread;.*call_helper;workload/Allocations[.]main;')" '>=' 99
}

beside_cpu() { # ENGINE
	record_allocations $rounds -- -e cpu=1ms,alloc=4k --engine "$1"
	expect_truth "$here/out.alloc.collapsed"
	expect "CPU time, in ns" "$(total "$here/out.collapsed")" '>' 50000000
	expect "CPU samples in the methods, %" "$(share "$here/out.collapsed" 'Allocations[.]round')" '>' 5
	expect_lacks "$here/out.collapsed" '_\[i\] '
}

jdk_case_beside_cpu_time() {
	need_bpf
	need_jdk 11 "sampling of allocations"
	beside_cpu bpf
}

jdk_case_beside_itimer() {
	need_jdk 11 "sampling of allocations"
	beside_cpu itimer
}

# The stack has the virtual thread's name and all of its frames: after each pause most of them are on the heap.
jdk_case_virtual_threads() {
	need_bpf
	need_jdk 21 "virtual threads"
	record_allocations $rounds virtual -- -e alloc=4k -t
	expect_sites "$here/out.collapsed"
	expect_share "of the virtual thread" \
		"$(matching "$here/out.collapsed" '^.allocator.*Allocations[.]rounds;workload/Allocations[.]round;')" \
		'>=' 98
	expect_share "from its entry on" "$(matching "$here/out.collapsed" '^.allocator.*VirtualThread[.]run;')" '>=' 98
	expect_lacks "$here/out.collapsed" 'frames_on_heap'
}

# The JVM itself gives the stacks. Each allocation is sampled, with each collector, and with -Xcheck:jni.
jdk_case_every_collector() {
	local collector
	need_jdk 11 "sampling of allocations"
	for collector in Serial Parallel G1 Z; do
		JVM_FLAGS=(-XX:+Use${collector}GC -Xcheck:jni -Xmx128m)
		record_allocations 20 -- -e alloc=1 --engine ctimer
		expect_alive "$jvm" "with ${collector}GC"
		expect_lacks "$jvm_out" 'FATAL|WARNING.*JNI'
		expect "bytes with $collector" "$(total "$here/out.collapsed")" '>' 100000
		kill "$jvm"
	done
}

# By construction, with each collector.
jdk_case_sums() {
	local collector
	need_bpf
	need_jdk 11 "sampling of allocations"
	for collector in Serial Parallel G1 Z; do
		JVM_FLAGS=(-XX:+Use${collector}GC -Xmx512m)
		record_gated workload.Sums 3000 2 -- -e alloc=4k
		expect_sums "$here/out.collapsed" 3000 'Thread[.]run.*;workload/Sums.Work[.]one;'
		expect_lacks "$here/stderr" 'ring was full'
		kill "$jvm"
	done
}

# With the interval that is the default, JDK 12 to 24 themselves miss a third of the largest objects: those outside of
# the threads' buffers. There are 2,000 samples of them, whose sum has an error of 2.3 %.
jdk_case_objects_outside() {
	local told want
	need_bpf
	need_jdk 12 "samples of objects outside of buffers that are right"
	JVM_FLAGS=(-XX:+UseG1GC -Xmx512m)
	record_gated workload.Sums 8000 2 -- -e alloc
	told=$(matching "$here/out.collapsed" 'Sums[$]Work[.]huge;byte')
	want=$(sed -n 's/^SITE huge byte\[\] //p' "$jvm_out")
	expect_near "bytes of the largest objects" "${told% *}" "$want" $((want / 8))
}

jdk_case_sums_of_virtual_threads() {
	need_bpf
	need_jdk 21 "virtual threads"
	record_gated workload.Sums 3000 20 virtual -- -e alloc=4k -t
	expect_sums "$here/out.collapsed" 3000 '^.allocator-.*VirtualThread[.]run;.*workload/Sums.Work[.]one;'
}

# The event ends with the recording: another agent may have it, and the same one again.
jdk_case_given_back() {
	need_jdk 11 "sampling of allocations"
	for _ in 1 2; do
		record_allocations 50 -- -e alloc=64k --engine ctimer
		expect "bytes" "$(total "$here/out.collapsed")" '>' 1000000
	done
	start_taps -p "$jvm" -e alloc --engine ctimer
	end_record INT
	expect_status 0
	expect_lacks "$here/stderr" 'no samples of alloc'
}

# The JVM is started as a command, and recorded from its first instruction.
jdk_case_command() {
	local told
	need_jdk 11 "sampling of allocations"
	run_duet record -e alloc=64k --total --engine ctimer -o collapsed -f "$here/out.collapsed" -- \
		"$jdk/bin/java" -Dends=true -cp "$workloads" workload.Allocations 200
	expect_status 0
	jvm_out=$here/stdout
	told=$(matching "$here/out.collapsed" 'Allocations[.]four;java.lang.String')
	expect_near "bytes of four" "${told% *}" "$(jvm_said BYTES 4)" $(($(jvm_said BYTES 4) / 4))
}

# No event takes samples of a JVM that starts later: it is noticed by its mappings.
starts_later() { # COMMAND FILE RECORD-OPTIONS...
	"$duet" record -v "${@:3}" --total -d 100 -o collapsed -f "$here/out.collapsed" \
		>"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	# shellcheck disable=SC2016 # for the function
	wait_for 60 eval '[ "$(count_perf_events "$recorder")" -gt 0 ]'
	sleep 0.5
	rm -f "$here/gate"
	$1
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 0.5
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	expect_truth "$2"
}

start_gated() {
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Allocations $rounds
}

jdk_case_host() { # apart
	need_bpf
	need_jdk 11 "sampling of allocations"
	starts_later start_gated "$here/out.collapsed" --host -e alloc=4k
}

become_gated() {
	: >"$here/go"
	wait_for_line "$jvm_out" '^READY' 60
}

# Only with an event that any process has: else it is refused, as nothing may come of it.
jdk_case_becomes_a_jvm() {
	need_bpf
	need_jdk 11 "sampling of allocations"
	jvm_out=$here/jvm.0
	bash -c 'until [ -e "$0" ]; do sleep 0.1; done; exec "$@"' "$here/go" "$jdk/bin/java" -Dgate="$here/gate" \
		-Xmx256m -cp "$workloads" workload.Allocations $rounds >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	starts_later become_gated "$here/out.alloc.collapsed" -p "$jvm" -e cpu=100ms,alloc=4k
}

jdk_case_command_of_a_shell() {
	need_bpf
	need_jdk 11 "sampling of allocations"
	run_duet record -e alloc=64k --total -o collapsed -f "$here/out.collapsed" -- \
		sh -c '"$@"; exit' sh "$jdk/bin/java" -Dends=true -cp "$workloads" workload.Allocations 2000
	expect_status 0
	expect_contains "$here/out.collapsed" 'Allocations[.]four;java.lang.String'
}

# A JVM without the event is reported once, and gives samples of the other events.
jdk_case_too_old() {
	[ "$(sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "$jdk/release")" -lt 11 ] || skip "samples allocations"
	start_jvm "$jdk" workload.TwoBusy
	record -e cpu=1ms,alloc -d 2 --engine ctimer -p "$jvm" -o collapsed -f "$here/out.collapsed"
	expect_status 0
	expect "sentences" "$(grep -c 'no samples of alloc: a JVM before JDK 11' "$here/stderr")" == 1
	expect "CPU time" "$(total "$here/out.collapsed")" '>' 0
}

# Tests the options that are made from the table of events.
jdk_case_option_words() {
	need_jdk 11 "sampling of allocations"
	record_allocations $rounds -- --cpu -i 2ms --alloc 4k --live --lock 20us --engine ctimer
	expect_truth "$here/out.alloc.collapsed"
	expect "CPU time, in ns" "$(total "$here/out.collapsed")" '>' 50000000
	record_allocations $rounds -- --all --alloc 4k --wall 5ms
	expect_truth "$here/out.alloc.collapsed"
	expect "bytes of native memory" "$(total "$here/out.nativemem.collapsed")" '>' 0
}

case_usage() {
	run_duet record --alloc 0 -p $$ -d 1
	expect_refusal 2 '--alloc 0: a number above 0'
	run_duet record --lock -5 -p $$ -d 1
	expect_refusal 2 '--lock -5: a number above 0'
	run_duet record --alloc 4k -i 5k -p $$ -d 1
	expect_refusal 2 'both set the interval'
	run_duet record --alloc 4k --no-attach -p $$ -d 1
	expect_refusal 2 'alloc comes from the agent'
	run_duet record --all -e page-faults,minor-faults,major-faults,cs,migrations,syscalls,leak,wait,exceptions,gc \
		-p $$ -d 1
	expect_refusal 2 'more than 16 events'
	run_duet complete record
	grep -q -- '--nativemem' "$here/stdout" || fail "no completion of --nativemem"
	run_duet record -e alloc --no-attach -p $$ -d 1
	expect_refusal 2 'alloc comes from the agent'
	run_duet record -e alloc=2g -p $$ -d 1
	expect_refusal 2 'from 1 bytes to 1 GiB'
	run_duet list
	grep -q 'alloc.*bytes' "$here/stdout" || fail "duet list has no alloc: $(cat "$here/stdout")"
}

run_cases "$@"
