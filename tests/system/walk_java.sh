#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1500
# BPF's walk of Java frames: whether it reaches the thread's entry, needs a signal, and AsyncGetCallTrace agrees.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skip walk_java: its limits were measured on x86-64 only"; exit 0; }

entries='^(__clone3|clone3|__clone|clone|_start|start_thread)(;| )'

# Prints "N M" of "walked: ... of M samples ..., N needed a signal".
reported_needed() {
	sed -n 's/.*walked: [0-9]* of \([0-9]*\) .* \([0-9]*\) needed a signal.*/\2 \1/p' "$here/stderr" | tail -n 1
}

reported_checked() {
	sed -n 's/.*walked: .* \([0-9]*\) got one as a check.*/\1/p' "$here/stderr" | tail -n 1
}

# Prints "N M" of "agreed: ...; the same byte code indices in N of M (...)".
reported_indices() {
	sed -n 's/.*agreed: .* the same byte code indices in \([0-9]*\) of \([0-9]*\) .*/\1 \2/p' "$here/stderr" |
		tail -n 1
}

# Prints where most of the cut walks end, for failures on other kinds of machines.
unrooted_top() { # FILE
	grep -Ev "$entries" "$1" | sed 's/ \([0-9]*\)$/;\1/' | awk -F ';' '{ n[$(NF - 2) ";" $(NF - 1)] += $NF }
		END { for (leaf in n) if (n[leaf] > most) { most = n[leaf]; top = leaf }; print most + 0 " " top }'
}

start_demo() { # CPU_SECONDS that it is warmed up for
	need_bpf
	start_jvm "$jdk" shop.Demo
	warm_up "$1"
}

# The walk alone: the JVM is read from outside.
expect_walked() { # ROOTED_PERCENT
	record_cpu 1 -p "$jvm" -i 500us -v -o collapsed -f "$here/out"
	expect_share "walked to the entry (else: $(unrooted_top "$here/out"))" "$(reported walked)" '>=' "$1"
	expect_share "stacks rooted there" "$(matching "$here/out" "$entries")" '>=' "$1"
	expect "signals" "$(($(reported_needed | cut -d ' ' -f 1) + $(reported_checked)))" == 0
	expect_share "joined" "$(reported joined)" '>=' 99
	expect_share "without code or names" "$(matching "$here/out" 'unknown_(code|method)')" '<=' 1
}

# Walks each sample in both ways. AsyncGetCallTrace sometimes errs in a method's first and last instructions and skips a
# frame, more often if more small methods are not inlined. It should not name another method.
expect_agreement() { # CONTRADICTED_PERCENT
	local agreed
	record_cpu 2 -p "$jvm" -i 500us --signals always -v -o collapsed -f "$here/out"
	agreed=$(reported agreed)
	expect "stacks walked twice" "${agreed#* }" '>=' 100
	expect_share "agreed" "$agreed" '>=' 98
	expect_share "contradicted" "$(reported_contradicted)" '<=' "$1"
	expect_share "the same byte code indices" "$(reported_indices)" '>=' 99.9
	expect_alive "$jvm"
}

# With an agent, it is signalled where the walk does not suffice, and once in 64 whole walks.
jdk_case_checked_by_the_agent() {
	start_demo 3
	record_cpu 1 -p "$jvm" --agent always -i 500us -v -o collapsed -f "$here/out"
	expect_share "needed a signal" "$(reported_needed)" '<=' 4
	expect "signalled as a check" "$(reported_checked)" '>=' 1
	expect_share "joined" "$(reported joined)" '>=' 99
}

# Usually above 99.9 %. The CPU model decides which stubs run and for how long: where caches are flushed slowly, an
# unknown stub took 2 % of the samples.
jdk_case_compiled_by_both() {
	start_demo 3
	expect_walked 99.5
	expect_agreement 0.2
}

# Much of the time here is in a method's first and last instructions.
jdk_case_interpreted() {
	JVM_OPTS=(-Xint)
	start_demo 1
	expect_walked 99
	expect_agreement 0.2
}

jdk_case_compiled_by_c1() {
	JVM_OPTS=(-XX:TieredStopAtLevel=1)
	start_demo 3
	expect_walked 99
	expect_agreement 0.5
}

jdk_case_all_compiled() {
	JVM_OPTS=(-Xcomp)
	start_demo 12
	expect_walked 99.5
	expect_agreement 1
}

# Before the agent has published the JVM's layout, AsyncGetCallTrace has the Java frames and the walk the native ones
# below.
jdk_case_walked_from_the_start() {
	need_bpf
	record -d 6 -i 1ms -v -o collapsed -f "$here/out" -- \
		"$jdk/bin/java" -Xmx256m -cp "$workloads" shop.Demo 8
	expect_status 0
	grep -E ';(java|jdk|sun|shop)/' "$here/out" >"$here/java"
	local end
	end=$(unrooted_top "$here/java")
	expect_share "Java stacks rooted (else: $end)" "$(matching "$here/java" "$entries")" '>=' 99
	expect_contains "$here/stderr" 'unwind rows of .*/libjvm\.so'
}

# Collectors differ in their barriers, not in their frames: one JDK is enough.
case_each_collector() {
	local gc jdk
	jdk=$(jdks | tail -n 1)
	for gc in Serial Parallel G1 Z Shenandoah; do
		"$jdk/bin/java" "-XX:+Use${gc}GC" -version >/dev/null 2>&1 || continue
		JVM_OPTS=("-XX:+Use${gc}GC")
		start_demo 4
		expect_walked 98
		expect_alive "$jvm"
		kill -KILL "$jvm"
	done
}

jdk_case_interleave() {
	local up='workload/Interleave\.across;Java_workload_Interleave_across;[^/]*workload/Interleave\.down'
	need_bpf
	start_jvm "$jdk" workload.Interleave
	sleep 4
	record -p "$jvm" -d 5 -i 1ms -v -o collapsed -f "$here/out"
	expect_status 0
	# The calls through JNI take some percent themselves.
	grep 'workload/TwoBusy\.spin' "$here/out" >"$here/below"
	expect_share "samples below all calls" "$(matching "$here/out" 'workload/TwoBusy\\.spin')" '>=' 80
	up="workload/Interleave\\.main;.*$up;.*$up;.*$up;.*workload/TwoBusy\\.spin"
	expect_share "of them with native code in its place" "$(matching "$here/below" "$up")" '>=' 99.5
	expect_share "walked to the entry" "$(reported walked)" '>=' 97
	expect_share "needed a signal" "$(reported_needed)" '<=' 10
}

# poll and epoll_wait cannot be signalled; the walk gives their stacks.
jdk_case_system_calls() {
	need_bpf
	start_jvm "$jdk" workload.SystemCalls 8
	record -p "$jvm" -d 6 -i 1ms -v -o collapsed -f "$here/out"
	expect_status 0
	wait_for_line "$jvm_out" '^DONE' 10
	expect "poll interrupted" "$(jvm_said EINTR 2)" '==' 0
	expect "epoll_wait interrupted" "$(jvm_said EINTR 3)" '==' 0
	expect_share "not signalled in a system call" "$(matching "$here/out" 'not_signalled_syscall')" '<=' 2
	local calls="${entries}.*workload/SystemCalls\\.interrupted;.*poll.*_\\\\[k\\\\]"
	expect "rooted calls, %" "$(share "$here/out" "$calls")" '>=' 20
}

jdk_case_never() {
	need_bpf
	start_jvm "$jdk" shop.Demo
	sleep 4
	record -p "$jvm" -d 5 -i 1ms --signals never -v -o collapsed -f "$here/out"
	expect_status 0
	expect "needed a signal, and got it" "$(reported_needed | cut -d ' ' -f 1)" '==' 0
	expect "signalled as a check" "$(reported_checked)" '==' 0
	expect_share "joined" "$(reported joined)" '>=' 80
	expect_contains "$here/out" 'java/lang/Thread\.run;.*shop/Worker\.run'
}

case_bad_words() {
	record -p $$ --signals sometimes
	expect_refusal 2 "needed, always or never"
	record -p $$ --signals never --engine ctimer
	expect_refusal 2 "bpf engine"
}

run_cases "$@"
