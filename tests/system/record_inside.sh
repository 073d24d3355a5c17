#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# What the JVM itself does: garbage collections, safepoints, classes that are loaded, methods that are compiled. As many
# as the workload causes, or as the JVM's own log has.
. "$(dirname "$0")/lib.sh"

collections=40

expect_sound() {
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI'
	expect_lacks "$here/stderr" 'refused|dropped'
}

# Adds up the numbers that stand between BEFORE and AFTER in the lines of the JVM's log from LINE on, and prints a
# thousand times their sum.
sum_of_log() { # BEFORE AFTER LINE
	tail -n "+$3" "$here/jvm.log" | sed -n "s/.*$1\([0-9.]*\)$2.*/\1/p" |
		awk '{ sum += $1 } END { printf "%.0f\n", sum * 1000 }'
}

# The JVM's log tells how long each pause was, in ms.
jdk_case_collections() {
	local collector want
	need_jdk 9 "the log of collections"
	for collector in Serial Parallel G1; do
		JVM_FLAGS=(-XX:+Use${collector}GC -Xmx64m -Xcheck:jni "-Xlog:gc:file=$here/jvm.log")
		record_gated workload.Inside $collections 0 0 -- -e gc -t --engine ctimer
		expect_contains "$here/stderr" "^duet: $collections samples"
		want=$(sum_of_log 'Pause .*) ' 'ms' 1)
		expect_near "us of pauses with $collector" "$(($(total "$here/out.collapsed") / 1000))" "$want" \
			$((want / 5 + collections * 100))
		expect_contains "$here/out.collapsed" '^.VM Thread'
		expect_sound
		kill "$jvm"
	done
}

# The JVM's log has both times of each safepoint, in ns. The agent itself causes some when it comes.
jdk_case_safepoints() {
	local before told at
	need_jdk 17 "the log of safepoints as it is now"
	JVM_FLAGS=(-XX:+UseSerialGC -Xmx64m "-Xlog:safepoint:file=$here/jvm.log")
	record_gated workload.Inside $collections 0 0 -- -e safepoint --engine ctimer
	before=$(grep -n 'Safepoint "' "$here/jvm.log" | grep -m 1 -iE 'Collect.*Full|Collect' | cut -d : -f 1)
	told=$(matching "$here/out.collapsed" 'at_safepoint')
	at=$(($(sum_of_log ', At safepoint: *' ' ns' "$before") / 1000))
	expect_near "ns at safepoints" "${told% *}" "$at" $((at / 5))
	told=$(reported_samples)
	expect "samples, two of each safepoint" "$told" '>=' $((2 * collections))
	expect "of all safepoints" "$told" '<=' $((2 * $(grep -c 'Safepoint "' "$here/jvm.log")))
	expect_contains "$here/out.collapsed" 'time_to_safepoint'
	expect_sound
}

# A program that duet starts gets the agent before its JVM has made all its counters.
jdk_case_safepoints_from_start() {
	start_record -e cpu,safepoint --samples -o collapsed -f "$here/out.collapsed" -- \
		"$jdk/bin/java" -Xmx64m -cp "$workloads" workload.Inside $collections 0 0
	jvm=$recorder wait_for_line "$here/stdout" '^DONE' 60
	jvms+=("$(pgrep -P "$recorder" -x java)")
	end_record INT
	expect_lacks "$here/stderr" 'does not count'
	expect "samples, two of each safepoint" "$(total "$here/out.safepoint.collapsed")" '>=' $((2 * collections))
}

jdk_case_classes() {
	local told
	JVM_FLAGS=(-Xcheck:jni)
	record_gated workload.Inside 0 300 0 -- -e class-load --engine ctimer
	told=$(matching "$here/out.collapsed" \
		'Inside[.]load;.*ClassLoader[.]defineClass;.*workload[.]Inside[$]Loaded_.i. ')
	expect "classes that were loaded" "${told% *}" == 300
	expect_sound
}

# With an AOT cache the JVM loads nearly all classes before it lets an agent begin: they are said to be missing.
jdk_case_classes_of_a_cache() {
	local all told lost java=("$jdk/bin/java" -Dends=true -cp "$here/all.jar")
	need_jdk 25 "AOT cache that one command makes"
	"$jdk/bin/jar" cf "$here/all.jar" -C "$workloads" workload
	"${java[@]}" "-XX:AOTCacheOutput=$here/cache" workload.Inside 0 0 0 >"$here/made" 2>&1
	[ -s "$here/cache" ] || fail "no cache: $(cat "$here/made")"
	run_duet record -e class-load --total -o collapsed -f "$here/out.collapsed" --engine ctimer -- \
		"${java[@]}" "-XX:AOTCache=$here/cache" "-Xlog:class+load:file=$here/log" workload.Inside 0 0 0
	expect_status 0
	all=$(grep -c 'source:' "$here/log")
	told=$(total "$here/out.collapsed")
	lost=$(sed -n 's/.*lost: \([0-9]*\) classes not counted: .*/\1/p' "$here/stderr")
	expect "classes loaded at once" "$lost" '>' $((all / 2))
	expect_near "classes, counted or not" $((told + lost)) "$all" $((all / 50))
}

# The compilers' log has a line when a compilation begins. A line that says what becomes of code has no size.
jdk_case_compilations() {
	local want
	need_jdk 9 "the log of compilations"
	JVM_FLAGS=("-Xlog:jit+compilation=debug:file=$here/jvm.log")
	record_gated workload.Inside 0 0 3000000 -- -e compilation --engine ctimer
	for method in hot call; do
		want=$(grep -E "workload[.]Inside::$method " "$here/jvm.log" | grep -cv 'made not entrant')
		expect "compilations of $method" "$want" '>' 0
		expect "compilations of $method" \
			"$(matching "$here/out.collapsed" "^workload/Inside[.]$method " | cut -d ' ' -f 1)" == "$want"
	done
	expect_sound
}

jdk_case_all_at_once() {
	record_gated workload.Inside 10 100 1000000 -- \
		-e cpu=1ms,gc,safepoint,class-load,compilation,lock,wait,nativemem,exceptions --engine ctimer
	for event in gc safepoint class-load compilation; do
		expect "$event" "$(total "$here/out.$event.collapsed")" '>' 0
	done
	expect_sound
}

# What is read back from JFR and from pprof is what was written.
jdk_case_formats() {
	local format event
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Inside 5 50 100000
	"$duet" record -v -p "$jvm" -e class-load,gc,safepoint,compilation --engine ctimer -d 100 -f "$here/out.duet" \
		>"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 0.5
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	for event in class-load gc safepoint compilation; do
		"$duet" convert -e $event --total "$here/out.duet" "$here/want.collapsed" || fail "no $event in .duet"
		expect "$event" "$(total "$here/want.collapsed")" '>' 0
		for format in jfr pb.gz; do
			"$duet" convert "$here/out.duet" "$here/out.$format" || fail "no $format"
			"$duet" convert -e $event --total "$here/out.$format" "$here/got.collapsed" || fail "$format"
			expect "$event of $format" "$(total "$here/got.collapsed")" == "$(total "$here/want.collapsed")"
		done
	done
}

case_usage() {
	run_duet record -e gc --no-attach -p $$ -d 1
	expect_refusal 2 'gc comes from the agent'
	run_duet record -e class-load=0 -p $$ -d 1
	expect_refusal 2 'above 0'
	run_duet list
	grep -q 'safepoint .*stand still' "$here/stdout" || fail "duet list has no safepoint: $(cat "$here/stdout")"
}

run_cases "$@"
