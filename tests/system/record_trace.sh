#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Calls of Java methods that take long: as many as the workload makes, however they end, and as long as they take.
. "$(dirname "$0")/lib.sh"

rounds=3

# Calls that were long enough, each of which is a sample of its own.
expect_traced() { # STACK COUNT [FILE]
	local calls
	calls=$(matching "${3:-$here/out.collapsed}" "Traced[.]callAll;workload/$1 ")
	expect "calls of $1" "${calls% *}" == "$2"
}

expect_ways_out() {
	expect_traced 'Traced[.]slow' $rounds
	expect_traced 'Traced[.]early' $rounds
	expect_traced 'Traced[.]throwing' $rounds
	expect_traced 'Traced[.]slow;workload/Traced[.]pause' $rounds
	expect_traced 'Traced[.]level' $rounds
	expect_traced 'Traced[.]level;workload/Traced[.]level' $rounds
	expect_traced 'Traced[.]level;workload/Traced[.]level;workload/Traced[.]level' $rounds
	expect_lacks "$here/out.collapsed" '(level;workload/Traced[.]){3}level '
}

expect_sound_jvm() {
	expect_alive "$jvm"
	expect_lacks "$jvm_out" 'FATAL|WARNING|Error|Re-registering'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI|Error'
	expect_lacks "$here/stderr" 'refused|dropped'
}

jdk_case_every_way_out() {
	local recorded
	JVM_FLAGS=(-Xverify:all -Xcheck:jni)
	record_gated workload.Traced $rounds -- --trace 'workload.Traced.*:45ms' -t
	recorded=$(matching "$here/out.collapsed" 'Traced[.]callAll;workload/Traced[.]slow ')
	expect_near "ns in slow" "${recorded% *}" "$(jvm_said SLEPT)" $(($(jvm_said SLEPT) / 20))
	recorded=$(matching "$here/out.collapsed" 'callAll;workload/Traced[.]level ')
	expect "ns in the outermost level" "${recorded% *}" '>=' $((rounds * 150000000))
	recorded=$(matching "$here/out.collapsed" 'level;workload/Traced[.]level;workload/Traced[.]level ')
	expect "ns in the innermost level" "${recorded% *}" '>=' $((rounds * 50000000))
	expect "ns in the innermost level" "${recorded% *}" '<' $((rounds * 100000000))
	expect_sound_jvm
}

# Records into a file of any format while the workload runs.
record_into() { # FILE [virtual] -- RECORD-OPTIONS...
	local file=$1 workload=()
	shift
	while [ "$1" != -- ]; do
		workload+=("$1")
		shift
	done
	shift
	JVM_OPTS=(-Dgate="$here/gate" ${JVM_FLAGS[@]+"${JVM_FLAGS[@]}"})
	start_jvm "$jdk" workload.Traced $rounds ${workload[@]+"${workload[@]}"}
	"$duet" record -v -p "$jvm" -d 100 "$@" -f "$file" >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 0.5
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
}

# The calls of an event.
convert_into() { # FROM TO [CONVERT-OPTIONS...]
	local from=$1 to=$2
	shift 2
	run_duet convert -t -o collapsed "$@" "$from" "$to"
	expect_status 0
}

jdk_case_calls() {
	record_into "$here/out.duet" -- --trace 'workload.Traced.*:45ms'
	convert_into "$here/out.duet" "$here/out.collapsed"
	expect_ways_out
}

# Two targets in two classes beside cpu, and one that nothing reaches.
jdk_case_targets() {
	record_into "$here/out.duet" -- --engine ctimer -e cpu=1ms --trace 'workload.Traced$Made.<init>:45ms' \
		--trace 'workload.Traced.slow(I)J:45ms' --trace 'workload.Traced.early:10s'
	convert_into "$here/out.duet" "$here/made" --event 'trace:workload.Traced$Made.<init>:45ms'
	expect_traced 'Traced[$]Made[.]<init>' $rounds "$here/made"
	convert_into "$here/out.duet" "$here/slow" --event 'trace:workload.Traced.slow(I)J:45ms'
	expect_traced 'Traced[.]slow' $rounds "$here/slow"
	expect_sound_jvm
}

jdk_case_virtual_threads() {
	need_jdk 21 "virtual threads"
	record_into "$here/out.duet" virtual -- --trace 'workload.Traced.*:45ms'
	convert_into "$here/out.duet" "$here/out.collapsed"
	expect_ways_out
	expect_sound_jvm
}

# jdk.MethodTrace has the call's time, its method and its thread.
jdk_case_jfr() {
	local reader
	record_into "$here/out.jfr" -- --trace 'workload.Traced.slow:45ms'
	reader=$(command -v "$jdk/bin/jfr") || skip "this JDK has no jfr"
	"$reader" print --events jdk.MethodTrace "$here/out.jfr" >"$here/printed" 2>&1
	expect "events" "$(grep -c '^jdk.MethodTrace' "$here/printed")" == $rounds
	expect "durations of 60 ms and more" \
		"$(grep -cE 'duration = ([6-9]|1[0-9])[0-9][.]?[0-9]* ms' "$here/printed")" == $rounds
	expect_contains "$here/printed" 'method = workload[.]Traced[.]slow'
}

# Every class of java.base can be verified with its methods timed, and none is left out.
jdk_case_verified() {
	need_jdk 9 "modules"
	JVM_FLAGS=(-Xverify:all)
	record_gated workload.Everything -- --trace '*.*:10s'
	expect "classes that were linked" "$(jvm_said LINKED)" '>' 5000
	expect "classes that were refused" "$(jvm_said LINKED 3)" == 0
	expect_lacks "$here/stderr" 'not instrumented'
}

# By the CPU time that the calls take: of a method that is called some million times a second.
jdk_case_cost() {
	local before during
	start_jvm "$jdk" workload.TracedCost
	wait_for 60 test_rates 4
	before=$(rate_of 3)
	start_taps -p "$jvm" --trace 'workload.TracedCost.work:10s'
	seen=$(grep -c RATE "$jvm_out")
	wait_for 60 test_rates $((seen + 4))
	during=$(rate_of 3)
	end_record INT
	expect_status 0
	echo "# $before calls a ms before, $during traced"
	expect "calls a ms while they are traced" "$during" '>=' $((before * 85 / 100))
}

# shellcheck disable=SC2317 # called by wait_for
test_rates() { # COUNT
	[ "$(grep -c RATE "$jvm_out")" -ge "$1" ]
}

# The best of the last few.
rate_of() { # COUNT
	grep RATE "$jvm_out" | tail -n "$1" | awk '$2 > best { best = $2 } END { print best }'
}

case_usage() {
	local text
	for text in Foo 'Foo.bar:' 'Foo.bar:-1ms' 'Foo.bar:x' 'Foo.bar(I:1ms' 'F*o.bar' 'sched:switch'; do
		run_duet record --trace "$text" -p $$ -d 1
		expect_refusal 2 "^duet: error: --trace $(sed 's/[*(]/./g' <<<"$text"): "
	done
	run_duet record --trace Foo.bar:0 --no-attach -p $$ -d 1
	expect_refusal 2 'comes from the agent'
	run_duet list
	grep -q 'trace:CLASS.METHOD' "$here/stdout" || fail "duet list has no trace: $(cat "$here/stdout")"
}

run_cases "$@"
