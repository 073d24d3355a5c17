#!/bin/bash
# SPDX-License-Identifier: MIT
# libasyncProfiler.so: a JVM that profiles itself, with a recorder that the library hires.
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so

# run_java OPTIONS... -> $here/stdout, $here/stderr, $status. The JVM ends by itself.
run_java() {
	timeout 120 "$jdk/bin/java" -Xmx256m -Dends=true -Djava.library.path="$DUET_BUILD:$workloads" \
		-cp "${classpath:-$workloads}" "$@" \
		>"$here/stdout" 2>"$here/stderr"
	status=$?
}

# The workload spends a third of its time in one method and two thirds in another.
expect_thirds() { # FILE
	local all="workload/ProfilerCalls\\.(one|two);"
	grep -E "$all" "$1" >"$here/thirds" || fail "no stack of the workload in $1"
	expect_near "percent in one()" "$(share "$here/thirds" 'ProfilerCalls\.one;')" 33.3 8
}

recorders_of() { # PID
	find /run/duet-recorders -name "$1-*" 2>/dev/null
}

# The file is whole when the JVM has ended.
jdk_case_at_start() {
	need_bpf
	need_root
	run_java -agentpath:"$library=start,event=cpu,interval=1ms,file=$here/%p.collapsed" \
		workload.ProfilerCalls work 2000
	expect_status 0 java
	expect_contains "$here/stdout" '^Profiling started$'
	[ ! -s "$here/stderr" ] || fail "the library wrote to stderr: $(head -n 3 "$here/stderr")"
	expect_thirds "$(find "$here" -name '[0-9]*.collapsed')"
}

# Names of a process's own descriptors are the caller's, also in the recorder, which is another process.
jdk_case_own_descriptors() {
	need_bpf
	need_root
	run_java -agentpath:"$library=start,quiet,event=cpu,interval=1ms,collapsed,file=/dev/stdout" \
		workload.ProfilerCalls work 1000
	expect_status 0 java
	expect_thirds "$here/stdout"
	run_java -agentpath:"$library=start,quiet,event=cpu,interval=1ms,collapsed,file=/proc/self/fd/7" \
		workload.ProfilerCalls work 1000 7>"$here/seven"
	expect_status 0 java
	expect_thirds "$here/seven"
	run_java -agentpath:"$library=start,quiet,event=cpu,interval=1ms,jfr,file=/dev/fd/7" \
		workload.ProfilerCalls work 1000 7>"$here/seven"
	expect_status 0 java
	run_duet convert "$here/seven" -o collapsed "$here/seven.collapsed"
	expect_thirds "$here/seven.collapsed"
}

# Prints how many ms the JVM took to end when the recorder had written its file. Others that want to run are not waited
# for, where that is allowed.
end_ms() {
	local ahead=(chrt --rr 1)
	"${ahead[@]}" true 2>/dev/null || ahead=()
	rm -f "$here/out.collapsed"
	# shellcheck disable=SC2016 # for the inner shell
	"${ahead[@]}" bash -c '"$@" && echo "end: ${EPOCHREALTIME/[.,]/}"' end timeout 120 "$jdk/bin/java" -Xmx256m \
		-cp "$workloads" -agentpath:"$library=start,event=cpu,interval=1ms,file=$here/out.collapsed" \
		-Dends=true workload.ProfilerCalls work 100 >"$here/stdout" 2>"$here/stderr"
	echo $((($(sed -n 's/^end: //p' "$here/stdout") - $(stat -c %.6Y "$here/out.collapsed" | tr -d .)) / 1000))
}

# At its end the JVM waits 300 ms for an attached thread in native code. So each of the starts would take longer.
jdk_case_end_is_not_delayed() {
	local tries=20 took=1000
	need_bpf
	need_root
	need_plain "a recorder takes longer to start"
	while [ "$took" -ge 280 ] && [ $((tries--)) -gt 0 ]; do
		took=$(end_ms)
	done
	expect "ms to the end when the file was written" "$took" '<' 280
}

# Neither side takes the other one down.
jdk_case_killed() {
	need_bpf
	need_root
	JVM_OPTS=(-agentpath:"$library=start,event=cpu,interval=1ms,file=$here/killed.collapsed")
	start_jvm "$jdk" workload.Shares 90
	sleep 1
	kill -KILL "$jvm"
	wait_for 20 test -s "$here/killed.collapsed"
	expect "stacks of the killed JVM" "$(grep -c 'workload/Shares' "$here/killed.collapsed")" '>' 0
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_OPTS=(-agentpath:"$library=start,event=cpu,quiet,file=$here/other.collapsed")
	start_jvm "$jdk" workload.Shares 90
	"$here/asprof" status "$jvm" | grep -q 'is running' || fail "asprof does not see the recording"
	pkill -KILL -P "$(recorder_pid "$jvm")"
	kill -KILL "$(recorder_pid "$jvm")"
	sleep 1
	expect_alive "$jvm" "with its recorder"
	"$here/asprof" status "$jvm" | grep -q 'not active' || fail "asprof sees a dead recording"
}

# The name of a recorder that was killed goes when another one begins, but not before its process has ended.
jdk_case_left_names() {
	local first second
	need_bpf
	need_root
	JVM_OPTS=(-agentpath:"$library=start,event=cpu,quiet")
	start_jvm "$jdk" workload.Shares 90
	first=$jvm
	pkill -KILL -P "$(recorder_pid "$first")"
	kill -KILL "$(recorder_pid "$first")"
	start_jvm "$jdk" workload.Shares 90
	second=$jvm
	[ -n "$(recorders_of "$first")" ] || fail "the name of a process that runs is gone"
	kill -KILL "$first"; wait "$first" 2>/dev/null
	run_java -agentpath:"$library=start,event=cpu,quiet" workload.ProfilerCalls work 100
	[ -z "$(recorders_of "$first")" ] || fail "left behind: $(recorders_of "$first")"
	[ -n "$(recorders_of "$second")" ] || fail "the name of a recorder that runs is gone"
}

recorder_pid() { # PID: prints whose the meeting's socket is
	local name
	name=$(basename "$(recorders_of "$1")")
	pgrep -x duet-recorder | while read -r pid; do
		ss -xlp 2>/dev/null | grep -q "$name.*pid=$pid," && echo "$pid"
	done | head -n 1
}

# The state that asprof and Java share.
jdk_case_one_state() {
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_OPTS=(-agentpath:"$library=start,event=cpu,interval=1ms")
	start_jvm "$jdk" workload.Shares 90
	"$here/asprof" start "$jvm" 2>"$here/stderr" && fail "a second recording"
	expect_contains "$here/stderr" 'Profiler already started'
	"$here/asprof" stop -o collapsed "$jvm" >"$here/out.collapsed" || fail "asprof cannot stop it"
	expect "stacks" "$(grep -c 'workload/Shares' "$here/out.collapsed")" '>' 0
	"$here/asprof" start -i 1ms "$jvm" 2>"$here/stderr" || fail "asprof cannot start after it"
	expect "copies of the agent" "$(grep -cE 'r-xp.*(libduet|libasyncProfiler)' "/proc/$jvm/maps")" == 1
}

# Flink's calls with the class that it brings along.
jdk_case_flink() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls flink "$here"
	expect_status 0 java
	for mode in CPU ALLOC LOCK WALL ITIMER; do
		expect_contains "$here/stdout" "^start $mode: Profiling started$"
		expect_contains "$here/stdout" "^stop $mode: OK$"
		expect_contains "$here/10.0.0.1:4711-a_${mode}_2024-01-01_00_00_00.html" '</html>'
	done
	expect_contains "$here/10.0.0.1:4711-a_CPU_2024-01-01_00_00_00.html" 'ProfilerCalls'
}

jdk_case_errors() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls errors
	expect_status 0 java
	expect_contains "$here/stdout" '^stop: IllegalStateException Profiler is not active$'
	expect_contains "$here/stdout" '^dump: IllegalStateException Profiler has not started$'
	expect_contains "$here/stdout" '^event: IllegalArgumentException Duplicate event argument$'
	expect_contains "$here/stdout" '^interval: IllegalArgumentException Invalid interval$'
	expect_contains "$here/stdout" '^several: IllegalStateException Only JFR output supports multiple events$'
	expect_contains "$here/stdout" '^start: Profiling started$'
	expect_contains "$here/stdout" '^again: IllegalStateException Profiler already started$'
	expect_contains "$here/stdout" '^file: IOException .*/no/such/folder/x.html: No such file or directory$'
	expect_contains "$here/stdout" '^status: Profiling is running for [0-9]+ seconds$'
	expect_contains "$here/stdout" '^stopped: Profiling stopped after [0-9]+ seconds. No dump options specified$'
	expect_lacks "$here/stdout" '^after: .*Exception'
}

# The natives of the first versions, in a package of another library.
jdk_case_older() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls older
	expect_status 0 java
	expect_contains "$here/stdout" '^version: 4\.5$'
	expect "samples" "$(sed -n 's/^samples: //p' "$here/stdout")" '>' 300
	grep '^[^ ]*;[^ ]* [0-9]*$' "$here/stdout" >"$here/out.collapsed"
	expect_thirds "$here/out.collapsed"
	expect_contains "$here/stdout" '^text: --- Execution profile ---'
}

# Recordings leave nothing behind in the JVM, and send it no signal. DUET_CYCLES is the number of recordings.
jdk_case_cycles() {
	local held cycles=${DUET_CYCLES:-20}
	need_bpf
	need_root
	start_cycles 3
	held=$(held_by "$jvm")
	kill "$jvm"
	start_cycles "$cycles"
	expect "descriptors and threads after $cycles cycles" "$(held_by "$jvm" | awk '{ print $1 + $2 }')" '<=' \
		"$(echo "$held" | awk '{ print $1 + $2 + 1 }')"
	expect "children of the JVM" "$(pgrep -c -P "$jvm")" == 0
	expect "recorders of the JVM" "$(recorders_of "$jvm" | wc -l)" '<=' 1
	expect "files of the JVM in /tmp" "$(find /tmp -maxdepth 1 -name "*asprof*$jvm*" | wc -l)" == 0
	expect "starts" "$(grep -c '^start: ' "$jvm_out")" == "$cycles"
	awk '/^start: / && n++ { print $2 }' "$jvm_out" | sort -n |
		awk '{ us[NR] = $1 } END { print "# median of the later starts: " us[int((NR + 1) / 2)] / 1000 " ms" }'
}

start_cycles() { # COUNT
	jvm_out=$here/cycles.$1
	"$jdk/bin/java" -Xmx256m -Djava.library.path="$DUET_BUILD" -cp "$workloads" \
		workload.ProfilerCalls cycles "$1" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^END' $((60 + $1))
}

jdk_case_crowd() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls crowd 100
	expect_status 0 java
	expect "threads that started it" "$(grep -c '^crowd: Profiling started' "$here/stdout")" == 1
	expect "threads that were refused" "$(grep -c '^crowd: .*Profiler already started' "$here/stdout")" == 99
}

# Its executable is beside it, or inside.
case_carried() {
	need_bpf
	need_root
	jdk=$(any_jdk)
	cp "$library" "$here/alone.so"
	run_java -agentpath:"$here/alone.so=start,event=cpu,interval=1ms,file=$here/out.collapsed" \
		workload.ProfilerCalls work 1500
	expect_status 0 java
	expect_thirds "$here/out.collapsed"
	cp "$DUET_BUILD/libduet.so" "$here/empty.so"
	run_java -agentpath:"$here/empty.so=start,event=cpu" workload.ProfilerCalls work 100
	expect_status 0 java
	expect_contains "$here/stdout" '^\[ERROR\] There is no duet .* beside the library'
}

# The jar's classes, as a Java agent.
jdk_case_java_agent() {
	local jar=$DUET_BUILD/duet-api.jar
	need_bpf
	need_root
	[ -e "$jar" ] || skip "no JDK built the jar"
	classpath=$jar:$workloads # which has an older class
	run_java -javaagent:"$jar=start,event=cpu,interval=1ms,file=$here/exit.collapsed" \
		-Done.profiler.libraryPath="$library" workload.ProfilerCalls bean
	expect_status 0 java
	expect_contains "$here/stdout" '^version: 4\.5$'
	expect_contains "$here/stdout" '^otlp: true$'
	grep '^[^ ]*;[^ ]* [0-9]*$' "$here/stdout" >"$here/out.collapsed"
	expect_thirds "$here/out.collapsed"
	expect_thirds "$here/exit.collapsed"
}

# A program that is no JVM. It ends without exit(), so the recorder notices its end by itself.
case_preload() {
	# shellcheck disable=SC2016 # for the inner shell
	local count='i=0; while [ $i -lt 1000000 ]; do i=$((i + 1)); done'
	need_bpf
	need_root
	ASPROF_COMMAND="start,event=cpu,interval=1ms,file=$here/out.collapsed" LD_PRELOAD=$library \
		sh -c "$count" >"$here/stdout" 2>"$here/stderr"
	expect_contains "$here/stdout" '^Profiling started$'
	wait_for 20 test -s "$here/out.collapsed"
	expect "samples" "$(total "$here/out.collapsed")" '>' 50
	rm "$here/out.collapsed"
	ASPROF_COMMAND="start,event=cpu,file=$here/out.collapsed" sh -c "$count" >"$here/stdout"
	[ ! -e "$here/out.collapsed" ] || fail "the variable counts without the library"
}

# exec() keeps the process: the new program gets a recording of its own, and no line on its output.
case_exec() {
	need_bpf
	need_root
	ASPROF_COMMAND="start,event=cpu,interval=1ms,file=$here/out.collapsed" LD_PRELOAD=$library bash -c \
		'exec awk "BEGIN { while (i < 3000000) i++; print \"end\" }"' >"$here/stdout" 2>"$here/stderr"
	status=$?
	expect_status 0 awk
	[ "$(cat "$here/stdout")" = $'Profiling started\nend' ] || fail "on stdout: $(cat "$here/stdout")"
	[ ! -s "$here/stderr" ] || fail "on stderr: $(cat "$here/stderr")"
	wait_for 20 test -s "$here/out.collapsed"
	expect "samples of awk" "$(matching "$here/out.collapsed" 'awk' | cut -d ' ' -f 1)" '>' 30
}

# One that the command line names, and one that the program loads: each makes its own recordings.
jdk_case_two_copies() {
	need_bpf
	need_root
	cp "$library" "$here/one.so"
	run_java -agentpath:"$here/one.so=start,event=cpu,interval=1ms,file=$here/one.collapsed" \
		-Dlibrary="$library" workload.ProfilerCalls flink "$here"
	expect_status 0 java
	expect_contains "$here/stdout" '^start CPU: Profiling started$'
	expect_contains "$here/stdout" '^stop ITIMER: OK$'
	expect "samples of the whole run" "$(matching "$here/one.collapsed" ProfilerCalls | cut -d ' ' -f 1)" '>' 1000
}

# The C functions, in a process whose JVM comes later or never.
case_c_functions() {
	need_bpf
	need_root
	"$DUET_BUILD/tests/system/asprof_functions" "$library" "$here/out.collapsed" >"$here/stdout" 2>"$here/stderr" ||
		fail "$(cat "$here/stderr")"
	expect_contains "$here/out.collapsed" ';spend '
}

# Many recordings by the C functions leave nothing behind either.
case_cycles_of_c() {
	local held cycles=${DUET_CYCLES:-20}
	need_bpf
	need_root
	"$DUET_BUILD/tests/system/asprof_functions" "$library" "$here/out.collapsed" "$cycles" >"$here/stdout" \
		2>"$here/stderr" &
	program=$!
	wait "$program" || fail "$(cat "$here/stderr")"
	mapfile -t held < <(grep '^HELD' "$here/stdout")
	[ "${#held[@]}" = 2 ] || fail "the program has not told what it held"
	expect "descriptors and threads after $cycles cycles" "${held[1]}" == "${held[0]}"
	wait_for 20 has_no_recorder "$program"
	expect "files of the program in /tmp" "$(find /tmp -maxdepth 1 -name "*asprof*$program*" | wc -l)" == 0
}

# What a JVM, and the recorder of its process, may keep: descriptors, threads and children.
held_with_recorder() {
	local recorder
	recorder=$(recorder_pid "$jvm")
	echo "$(held_by "$jvm" | awk '{ print $1 + $2 }') $(find "/proc/$recorder/fd" -mindepth 1 | wc -l)" \
		"$(pgrep -c -P "$recorder") $(recorders_of "$jvm" | wc -l)" \
		"$(find /tmp -maxdepth 1 -name "*asprof*" -newer "$here/asprof" | wc -l)"
}

# repeat COUNT START STOP: both are functions.
repeat() {
	local i
	for ((i = 0; i < $1; i++)); do
		$2 >>"$here/said" 2>&1 || fail "start $i: $(tail -n 3 "$here/said")"
		$3 >>"$here/said" 2>&1 || fail "stop $i: $(tail -n 3 "$here/said")"
	done
}

expect_cycles() { # START STOP
	local before after cycles=${DUET_CYCLES:-10}
	need_bpf
	need_root
	cp "$DUET_BUILD/duet" "$here/asprof"
	# the JVM starts threads of its collector and compilers when it has work for them
	JVM_OPTS=(-XX:+IgnoreUnrecognizedVMOptions -XX:+UseSerialGC -XX:-UseDynamicNumberOfCompilerThreads)
	start_jvm "$jdk" workload.Shares 600
	repeat 3 "$1" "$2"
	before=$(held_with_recorder)
	repeat "$cycles" "$1" "$2"
	expect_alive "$jvm" "after $cycles cycles"
	after=$(held_with_recorder)
	expect "descriptors and threads after $cycles cycles" "${after%% *}" '<=' "${before%% *}"
	expect "what the recorder keeps after $cycles cycles" "${after#* }" == "${before#* }"
}

start_by_asprof() {
	"$here/asprof" start -e cpu -i 1ms "$jvm"
}

stop_by_asprof() {
	"$here/asprof" stop -o collapsed "$jvm"
}

# With the agent, which JFR files need.
start_jfr_by_asprof() {
	"$here/asprof" start -e cpu -i 1ms -o jfr "$jvm"
}

stop_jfr_by_asprof() {
	"$here/asprof" stop -f "$here/out.jfr" "$jvm"
}

start_by_arguments() {
	"$here/asprof" load "$jvm" "$library" true "start,event=cpu,interval=1ms"
}

stop_by_arguments() {
	"$here/asprof" load "$jvm" "$library" true "stop,file=$here/out.collapsed"
}

case_cycles_of_asprof() {
	jdk=$(any_jdk)
	expect_cycles start_by_asprof stop_by_asprof
}

case_cycles_of_jfr() {
	jdk=$(any_jdk)
	expect_cycles start_jfr_by_asprof stop_jfr_by_asprof
}

case_cycles_of_arguments() {
	jdk=$(any_jdk)
	expect_cycles start_by_arguments stop_by_arguments
}

has_no_recorder() { # PID
	[ -z "$(recorders_of "$1")" ]
}

# Memory of a process that has no JVM: what is taken, by its size, and whether it is freed, by its address.
case_memory_of_a_program() {
	need_bpf
	need_plain "they have malloc() of the program"
	need_root
	jdk=$(any_jdk)
	"$DUET_BUILD/tests/system/asprof_functions" "$library" "$here/out.jfr" memory >"$here/stdout" \
		2>"$here/stderr" || fail "$(cat "$here/stderr")"
	expect_memory "$here/out.jfr"
	ASPROF_COMMAND="start,nativemem,nofree,file=$here/out.collapsed,total" LD_PRELOAD=$library \
		awk 'BEGIN { for (i = 0; i < 100000; i++) a[i] = i }' >"$here/stdout" 2>&1
	wait_for 20 test -s "$here/out.collapsed"
	expect_contains "$here/out.collapsed" ';malloc_hook [0-9]+$'
}

# The first call of a library that was loaded a moment before has its whole stack.
case_memory_of_a_late_library() {
	need_bpf
	need_root
	need_plain "they have malloc() of the program"
	"$DUET_BUILD/tests/system/asprof_functions" "$library" "$here/out.collapsed" late \
		"$workloads/libmemory_late.so" >"$here/stdout" 2>"$here/stderr" || fail "$(cat "$here/stderr")"
	expect_contains "$here/out.collapsed" ';main;(.*;)?take_malloc;malloc_hook 1234567$'
}

# Events of the program's own: each with its type, its bytes as Latin-1, and its thread.
case_events_of_a_program() {
	need_bpf
	need_root
	jdk=$(any_jdk)
	"$DUET_BUILD/tests/system/asprof_functions" "$library" "$here/out.jfr" events >"$here/stdout" \
		2>"$here/stderr" || fail "$(cat "$here/stderr")"
	jfr print --json --events profiler.UserEvent "$here/out.jfr" >"$here/events.json"
	expect "events" "$(grep -c '"type": "profiler.UserEvent"' "$here/events.json")" == 1003
	expect "events of the type order" "$(grep -c '"type": "order"' "$here/events.json")" == 1000
	expect "different data" "$(grep -oE '"data": "number [0-9]+"' "$here/events.json" | sort -u | wc -l)" == 1000
	expect "the longest" "$(grep -cE '"data": "x{2048}"' "$here/events.json")" == 1
	expect_lacks "$here/events.json" '"before"'
}

expect_memory() { # FILE
	local freed kept
	jfr print --json --events profiler.Malloc,profiler.Free "$1" >"$here/memory.json"
	freed=$(address_of 1234567)
	kept=$(address_of 2345678)
	[ "$freed" ] && [ "$kept" ] || fail "no sample of the memory that was taken"
	expect "frees of the first piece" "$(frees_of "$freed")" == 1
	expect "frees of the second piece" "$(frees_of "$kept")" == 0
}

address_of() { # BYTES: of the piece of memory of this size
	awk -v bytes="$1" '{ gsub(",", "") } /"type": "profiler/ { is_malloc = /Malloc/ } /"address":/ { address = $2 }
		/"size":/ && is_malloc && $2 == bytes { print address }' "$here/memory.json"
}

frees_of() { # ADDRESS
	awk -v address="$1" '{ gsub(",", "") } /"type": "profiler/ { is_free = /Free/ }
		/"address":/ && is_free && $2 == address { count++ } END { print count + 0 }' "$here/memory.json"
}

expect_calls_of() { # METHOD COUNT FILE
	local calls
	calls=$(matching "$3" "callAll;workload/Traced[.]$1 ")
	expect "calls of $1" "${calls% *}" == "$2"
}

# Methods that are counted, and several that are traced, from the JVM's command line. Half of the calls are long.
jdk_case_methods() {
	local arguments="start,threads,event=workload.Traced.slow,collapsed,file=$here/counted.collapsed"
	need_bpf
	need_root
	run_java -agentpath:"$library=$arguments" workload.Traced 3
	expect_status 0 java
	expect_calls_of slow 6 "$here/counted.collapsed"
	arguments="start,trace=workload.Traced.slow:45ms,trace=workload.Traced.early:45ms,collapsed"
	run_java -agentpath:"$library=$arguments,file=$here/traced.collapsed" workload.Traced 3
	expect_status 0 java
	expect_calls_of slow 3 "$here/traced.collapsed"
	expect_calls_of early 3 "$here/traced.collapsed"
	[ ! -s "$here/stderr" ] || fail "the library wrote to stderr: $(head -n 3 "$here/stderr")"
}

# Calls that have just returned are counted, and so is the time that their samples took.
jdk_case_metrics_at_once() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls metrics 3
	expect_status 0 java
	expect "samples" "$(sed -n 's/^samples_total //p' "$here/stdout")" == 3
	expect "ns of samples" "$(sed -n 's/^stackwalk_ns_total //p' "$here/stdout")" '>' 0
	expect "ns of a sample" "$(sed -n 's/^stackwalk_ns_avg //p' "$here/stdout")" '<' 20000000
}

# The main thread's first objects, and what the JVM allocates when it is almost ready.
jdk_case_first_objects() {
	need_bpf
	need_root
	run_java -XX:-UseTLAB -agentpath:"$library=start,alloc=1,collapsed,file=$here/first.collapsed" \
		workload.ProfilerCalls markers 100
	expect_status 0 java
	expect "markers" "$(matching "$here/first.collapsed" "ProfilerCalls\\.mark;[^;]*Marker_\\[i\\] " |
		cut -d' ' -f1)" '>=' 99
	expect_contains "$here/first.collapsed" '^\[no_Java_frame\];java\.lang\.Thread_\[i\] '
	expect_contains "$here/first.collapsed" 'java/lang/ClassLoader\.loadClass;'
	run_java -XX:-UseTLAB -agentpath:"$library=start,alloc=1,cstack=fp,collapsed,file=$here/native.collapsed" \
		workload.ProfilerCalls markers 100
	expect_status 0 java
	expect "markers with native frames" "$(matching "$here/native.collapsed" \
		"ProfilerCalls\\.mark;.*;[^;]*Marker_\\[i\\] " | cut -d' ' -f1)" '>=' 99
	expect_contains "$here/native.collapsed" ';JNI_CreateJavaVM;.*java\.lang\.Thread_\[i\] '
	expect_lacks "$here/native.collapsed" 'no_Java_frame'
}

# Threads that the program adds to the filter, for as long as it wants.
jdk_case_chosen_threads() {
	local whole half
	need_bpf
	need_root
	run_java workload.ProfilerCalls chosen "$here/chosen.collapsed"
	expect_status 0 java
	whole=$(matching "$here/chosen.collapsed" '^\[naps-1 ' | cut -d' ' -f1)
	half=$(matching "$here/chosen.collapsed" '^\[main ' | cut -d' ' -f1)
	expect "samples of the thread of a second" "$whole" '>=' 70
	expect_near "percent of them of the thread of half a second" "$((100 * half / whole))" 50 15
	expect_lacks "$here/chosen.collapsed" 'naps-[02]'
}

# An executable that somebody else may have put beside the library is not started.
case_not_of_others() {
	need_bpf
	need_root
	jdk=$(any_jdk)
	cp "$library" "$here/alone.so"
	printf '#!/bin/sh\ntouch "%s"\n' "$here/was_run" >"$here/duet"
	chmod 777 "$here/duet"
	run_java -agentpath:"$here/alone.so=start,event=cpu,file=$here/out.collapsed" workload.ProfilerCalls work 500
	expect_status 0 java
	chgrp 65534 "$here/duet"
	chmod 775 "$here/duet"
	run_java -agentpath:"$here/alone.so=start,event=cpu,file=$here/out.collapsed" workload.ProfilerCalls work 500
	expect_status 0 java
	chmod 755 "$here/duet"
	chmod 777 "$here"
	run_java -agentpath:"$here/alone.so=start,event=cpu,file=$here/out.collapsed" workload.ProfilerCalls work 500
	expect_status 0 java
	expect_file "$here/out.collapsed"
	[ ! -e "$here/was_run" ] || fail "it was started"
}

# The application's own file has the number of the library's socket now.
jdk_case_descriptors_closed() {
	need_bpf
	need_root
	run_java workload.ProfilerCalls closed "$here/own"
	expect_status 0 java
	expect_contains "$here/stdout" '^first: Profiling started$'
	expect_contains "$here/stdout" '^second: Profiling is running'
	[ ! -s "$here/own" ] || fail "the library wrote to the application's file"
}

run_cases "$@"
