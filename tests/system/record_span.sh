#!/bin/bash
# SPDX-License-Identifier: MIT
# Spans that the program reports: each of them is there, as long as the program's own clock says.
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so
jar=$DUET_BUILD/duet-api.jar

need_spans() {
	need_bpf
	need_root
	[ -e "$jar" ] || skip "no JDK built the jar"
	# the jar's classes come before the older ones of the workloads
	JVM_FLAGS=(-Xbootclasspath/a:"$jar")
}

spans_said() { # TAG COLUMN
	awk -v tag="$1" -v column="$2" '$1 == "SPANS" && $2 == tag { print $column }' "$jvm_out"
}

# The class was used before the agent came.
jdk_case_sums() {
	need_spans
	record_gated workload.ProfiledSpans 4 2000 -- -e span -t
	expect_contains "$jvm_out" '^STATE 0$'
	expect_contains "$jvm_out" '^STATE 2$'
	expect_near "ns of the spans that slept" "$(matching "$here/out.collapsed" ';slept ' | cut -d' ' -f1)" \
		"$(spans_said slept 4)" "$(($(spans_said slept 4) / 100))"
	expect "ns of the short ones" "$(matching "$here/out.collapsed" ';short ' | cut -d' ' -f1)" '<=' \
		"$(spans_said short 4)"
	expect "threads of the spans without a tag" "$(grep -c '^\[spans-[0-3] tid=[0-9]*\];\[no tag\] ' \
		"$here/out.collapsed")" == 4
	expect_lacks "$here/out.collapsed" 'before'
}

# In a JFR file, which is complete when the JVM has ended.
jdk_case_jfr() {
	need_spans
	is_jdk 17 || skip "jfr prints tags since JDK 17"
	JVM_OPTS=(-Dends=true "${JVM_FLAGS[@]}" -agentpath:"$library=start,event=cpu,interval=1ms,file=$here/out.jfr")
	start_jvm "$jdk" workload.ProfiledSpans 4 2000
	wait "$jvm" || fail "java ended with $?"
	expect_contains "$jvm_out" '^STATE 2$'
	jfr print --events profiler.Span "$here/out.jfr" >"$here/spans"
	expect "short spans" "$(grep -c '^ *tag = "short"' "$here/spans")" == 8000
	expect "spans that slept" "$(grep -c '^ *tag = "slept"' "$here/spans")" == 80
	expect "spans without a tag" "$(grep -c '^ *tag = null\|^ *tag = N/A' "$here/spans")" == 4
	run_duet convert -e span "$here/out.jfr" "$here/read.collapsed"
	expect_status 0
	expect "short spans of the file" "$(matching "$here/read.collapsed" 'short ' | cut -d' ' -f1)" == 8000
	expect "spans before the recording" "$(grep -c '^ *tag = "before"' "$here/spans")" '<=' 1
	expect "samples of CPU time" "$(jfr_count "$here/out.jfr" jdk.ExecutionSample)" '>' 0
}

# Spans that are wanted only if their thread was sampled in them: BPF and handlers tell it which were.
jdk_case_optional() {
	local event
	need_spans
	is_jdk 17 || skip "jfr prints tags since JDK 17"
	for event in cpu ctimer cpu,nativemem; do # the last also needs unwind tables in the agent
		rm -f "$here/out.jfr"
		JVM_OPTS=(-Dends=true "${JVM_FLAGS[@]}"
			-agentpath:"$library=start,event=$event,interval=1ms,file=$here/out.jfr")
		start_jvm "$jdk" workload.ProfiledSpans optional
		wait "$jvm" || fail "java ended with $?"
		jfr print --events profiler.Span "$here/out.jfr" >"$here/spans"
		expect "busy spans with $event" "$(grep -c '^ *tag = "busy"' "$here/spans")" == 5
		expect "of 20 idle spans with $event" "$(grep -c '^ *tag = "idle"' "$here/spans")" '<=' 10
	done
}

# asprof comes while the program uses the class: a JFR file has the spans unasked.
jdk_case_asprof_attaches() {
	local settings
	need_spans
	is_jdk 17 || skip "jfr prints tags since JDK 17"
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_OPTS=("${JVM_FLAGS[@]}")
	start_jvm "$jdk" workload.ProfiledSpans steady
	"$here/asprof" -d 2 -e cpu -i 1ms -f "$here/out.jfr" "$jvm" 2>"$here/stderr" || fail "$(cat "$here/stderr")"
	expect "spans" "$(jfr_count "$here/out.jfr" profiler.Span)" '>' 50
	# converters of others take any "interval" for that of the CPU's samples
	settings=$(jfr print --events ActiveSetting "$here/out.jfr" | grep -c 'name = "interval"')
	expect "settings called interval" "$settings" == 1
}

# A JVM that takes no agent is recorded without spans.
jdk_case_asprof_without_agent() {
	need_spans
	is_jdk 17 || skip "jfr prints stacks since JDK 17"
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_OPTS=("${JVM_FLAGS[@]}" -XX:+DisableAttachMechanism)
	start_jvm "$jdk" workload.Shares 90
	"$here/asprof" -d 2 -e cpu -i 1ms -f "$here/out.jfr" "$jvm" 2>"$here/stderr" || fail "$(cat "$here/stderr")"
	jfr print --events ExecutionSample "$here/out.jfr" >"$here/samples"
	expect "frames of the program" "$(grep -c 'workload\.Shares' "$here/samples")" '>' 100
}

# What a span takes while none is recorded, and while all are.
jdk_case_cost() {
	need_spans
	JVM_OPTS=(-Dends=true "${JVM_FLAGS[@]}")
	start_jvm "$jdk" workload.ProfiledSpans cost
	wait "$jvm"
	expect "ns of a span that nobody records" "$(awk '$1 == "COST" { least = !n++ || $2 < least ? $2 : least }
		END { print least }' "$jvm_out")" '<' 5
}

run_cases "$@"
