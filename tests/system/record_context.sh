#!/bin/bash
# SPDX-License-Identifier: MIT
# Samples carry the trace and the span that their thread has published, in OpenTelemetry's layout: the CPU time of each
# span is what the program's own clocks say.
. "$(dirname "$0")/lib.sh"

record_contexts() { # SECONDS [LIBRARY]
	rm -rf "$here"/out* "$here/gate"
	jvm_out=$here/contexts.out
	"$workloads/contexts" "$here/gate" "$@" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record -p "$jvm" -e cpu -i 1ms -d 100 -f "$here/out.duet"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	run_duet convert --by trace,span --total "$here/out.duet" "$here/out.collapsed"
	expect_status 0
}

told_of() { # FILE PATTERN
	awk -v pattern="$2" '$0 ~ pattern { sum += $NF } END { printf "%.0f\n", sum }' "$1"
}

# For each trace and span that the program names, and for all together: the recorded CPU time as a percentage of its
# own. One span has some hundred samples.
expect_contexts() { # FILE
	local word trace span ns all=0 count=0
	while read -r word trace span ns; do
		[[ $span == 0000000000000000 ]] && continue
		expect_near "$word $span of ${trace:0:16}, % of what it has measured" \
			"$(($(told_of "$1" "^$trace;$span;") * 100 / ns))" 100 45
		count=$((count + 1)) all=$((all + ns))
	done < <(grep '^CONTEXT' "$jvm_out")
	expect "spans" "$count" == 6
	expect_near "all spans, % of what they have measured" "$(($(told_of "$1" '^a') * 100 / all))" 100 15
}

# What has neither, of a program that does nothing else.
expect_none() { # FILE
	expect_near "CPU time without a trace, % of what was measured" \
		"$(($(told_of "$1" '^.no trace.;.no span.;') * 100 /
		$(awk '/^CONTEXT 0000/ { sum += $4 } END { printf "%.0f\n", sum }' "$jvm_out")))" 100 25
}

case_executable() {
	need_bpf
	record_contexts 0.8
	expect_contexts "$here/out.collapsed"
	expect_none "$here/out.collapsed"
}

# The three ways in which compilers let a library find its variable.
case_libraries() {
	need_bpf
	local way
	for way in descriptor index distance; do
		record_contexts 0.5 "$workloads/libcontexts_$way.so"
		expect_contexts "$here/out.collapsed"
	done
}

# What other formats hold, and what the filters choose.
case_formats() {
	need_bpf
	local trace format all one
	record_contexts 0.5
	trace=$(awk '/^CONTEXT a/ { print $2; exit }' "$jvm_out")
	for format in pb.gz otlp jfr; do
		run_duet convert "$here/out.duet" "$here/out.$format"
		run_duet convert --by trace,span --total "$here/out.$format" "$here/again.collapsed"
		expect_contexts "$here/again.collapsed"
	done
	all=$(told_of "$here/out.collapsed" .)
	run_duet convert --total --trace-id "$trace" --span '10*' "$here/out.duet" "$here/one.collapsed"
	expect_status 0
	one=$(told_of "$here/one.collapsed" .)
	expect_near "CPU time of one of six spans, % of all" "$((one * 100 / all))" 8 3
	run_duet convert --span nothing "$here/out.duet" "$here/none.collapsed"
	expect "samples of a span that is not there" "$(wc -l <"$here/none.collapsed")" == 0
}

# ---- Java: one.profiler.TraceContext ------------------------------------------------------------

record_java() { # SECONDS RECORD-OPTIONS...
	local seconds=$1
	shift
	[ -e "$DUET_BUILD/duet-api.jar" ] || skip "no JDK built the jar"
	# the jar's classes come before the older ones of the workloads
	JVM_FLAGS=(-Xbootclasspath/a:"$DUET_BUILD/duet-api.jar")
	record_gated workload.TraceContexts "$seconds" -- "$@" --by trace,span
}

# The agent brings the library in which BPF finds the variable. The class was used before it came.
jdk_case_java() {
	need_bpf
	local all
	record_java 0.8 -e cpu,alloc --alloc 64k -i 1ms
	expect_contexts "$here/out.collapsed"
	all=$(told_of "$here/out.alloc.collapsed" .)
	expect "bytes allocated for spans, % of all" \
		"$(($(told_of "$here/out.alloc.collapsed" '^a0') * 100 / all))" '>=' 60
}

jdk_case_java_by_timers() {
	record_java 2.4 --engine ctimer -e cpu -i 1ms # these timers expire at the kernel's ticks, 250 a second
	expect_contexts "$here/out.collapsed"
}

run_cases "$@"
