#!/bin/bash
# SPDX-License-Identifier: MIT
# JFR files as async-profiler's and the JDK's tools read them: what the file says about the JVM and the machine, the
# JVM's own events beside duet's, and limits. `jfr` of the JDK is the judge.
. "$(dirname "$0")/lib.sh"

run_asprof() { # WORDS... -> $here/stdout, $here/stderr, $status
	timeout 90 "$here/asprof" "$@" >"$here/stdout" 2>"$here/stderr"
	status=$?
}

begin() {
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	need_bpf
	need_root
	ln -sf "$DUET_BUILD/duet" "$here/asprof"
	start_jvm "$jdk" shop.Demo
}

jfr_print() { # FILE TYPES -> $here/print
	jfr print --events "$2" "$1" >"$here/print" 2>"$here/why" || fail "jfr print: $(cat "$here/why")"
}

# How many events of this type were printed.
printed() { # TYPE
	grep -c "^jdk[.]$1 {" "$here/print"
}

# The same of a file with the JDK's chunks, too.
jfr_printed() { # FILE TYPE
	jfr_print "$1" "$2"
	printed "${2#jdk.}"
}

# Others that were killed may have left such folders: those before the case began do not count.
no_folders() {
	[ -z "$(find /tmp -maxdepth 1 -name '.duet-jfr-*' -newer "$here/asprof")" ]
}

# Cases that run at the same time have such folders, too, but not for long.
expect_no_folders() {
	wait_for 90 no_folders
}

# Properties, libraries, how the JVM was started, CPU load each second, and the heap after collections.
jdk_case_about_the_jvm() {
	JVM_OPTS=(-Dshop.color=blue -Xmx64m)
	begin
	record -p "$jvm" -d 5 -e cpu,alloc -f "$here/out.jfr" -f "$here/out.duet"
	expect_status 0
	record -p "$jvm" -d 2 --jfropts 31 -f "$here/less.jfr"
	expect_status 0
	end_jvm
	jfr_print "$here/out.jfr" InitialSystemProperty
	expect_contains "$here/print" 'key = "shop.color"'
	expect_contains "$here/print" 'value = "blue"'
	expect_contains "$here/print" 'key = "java.vm.specification.version"'
	jfr_print "$here/out.jfr" NativeLibrary
	expect_contains "$here/print" 'name = "/.*/libjvm.so"'
	jfr_print "$here/out.jfr" JVMInformation
	expect_contains "$here/print" 'jvmArguments = ".*-Dshop.color=blue.*-cp '
	expect_contains "$here/print" 'javaArguments = "shop.Demo'
	expect "CPU loads of 5 s" "$(jfr_count "$here/out.jfr" jdk.CPULoad)" '>=' 4
	jfr_print "$here/out.jfr" CPULoad
	expect "user time of the JVM, percent of all CPUs" \
		"$(sed -n 's/.*jvmUser = \([0-9.]*\)%.*/\1/p' "$here/print" | sort -n | tail -n 1)" '>' 1
	expect "heaps after collections" "$(jfr_count "$here/out.jfr" jdk.GCHeapSummary)" '>=' 1
	jfr_print "$here/out.jfr" GCHeapSummary
	expect_contains "$here/print" 'reservedSize = 64.0 MB'
	run_duet convert "$here/out.duet" "$here/again.jfr" # the other file knows the same
	for type in InitialSystemProperty NativeLibrary CPULoad GCHeapSummary; do
		expect "$type" "$(jfr_count "$here/again.jfr" "jdk.$type")" == \
			"$(jfr_count "$here/out.jfr" "jdk.$type")"
	done
	for type in OSInformation InitialSystemProperty NativeLibrary CPULoad GCHeapSummary JVMInformation; do
		expect "$type that was left out" "$(jfr_count "$here/less.jfr" "jdk.$type")" == 0
	done
}

# The JVM's events and duet's in one file, in chunks with the same clock. The JVM is left as it was.
jdk_case_sync() {
	JVM_OPTS=(-Dx.password=hunter2hunter2)
	begin
	run_asprof -d 3 -e cpu -i 1ms --lock 0 --jfrsync default -f "$here/out.jfr" "$jvm"
	expect_status 0
	expect "lines with a secret" "$(grep -ac hunter2 "$here/out.jfr")" == 0
	expect "lines without it" "$(grep -acF 'x.password=[redacted]' "$here/out.jfr")" '>=' 1
	local types=(OSInformation CPUInformation JVMInformation InitialSystemProperty NativeLibrary GCConfiguration)
	expect "chunks" "$(jfr_count "$here/out.jfr" Chunks:)" '>=' 2
	jfr_print "$here/out.jfr" "$(IFS=,; echo "${types[*]/#/jdk.},jdk.ExecutionSample,jdk.ActiveSetting")"
	for type in "${types[@]}"; do
		expect "$type of the JVM" "$(printed "$type")" '>=' 1
	done
	run_duet convert -e cpu "$here/out.jfr" "$here/cpu.collapsed"
	expect_share "in the workload's threads" "$(matching "$here/cpu.collapsed" 'shop/')" '>' 50
	expect "ExecutionSample" "$(printed ExecutionSample)" == "$(total "$here/cpu.collapsed")"
	expect_contains "$here/print" 'name = "clock"'
	"$jdk/bin/jcmd" "$jvm" JFR.check >"$here/check" 2>&1
	expect_contains "$here/check" 'No available recordings'
	expect_no_folders
	run_asprof -d 1 --jfrsync +jdk.ThreadSleep+jdk.GarbageCollection -f "$here/two.jfr" "$jvm"
	expect_status 0
	jfr_print "$here/two.jfr" jdk.ThreadSleep,jdk.JVMInformation
	expect "ThreadSleep" "$(printed ThreadSleep)" '>=' 1
	expect "JVMInformation" "$(printed JVMInformation)" == 0
	expect_alive "$jvm"
}

# `dump` has all until then, and the recording goes on.
jdk_case_sync_and_dump() {
	begin
	run_asprof start -e cpu -i 1ms --jfrsync profile -f "$here/out.jfr" "$jvm"
	expect_status 0
	sleep 2
	run_asprof dump -f "$here/out.jfr" "$jvm"
	expect_status 0
	local samples
	samples=$(jfr_printed "$here/out.jfr" jdk.ExecutionSample)
	expect "samples until the dump" "$samples" '>' 100
	expect "JVMInformation" "$(jfr_printed "$here/out.jfr" jdk.JVMInformation)" '>=' 1
	sleep 2
	run_asprof stop -f "$here/out.jfr" "$jvm"
	expect_status 0
	expect "samples in all" "$(jfr_printed "$here/out.jfr" jdk.ExecutionSample)" '>' "$samples"
	expect "JVMInformation" "$(jfr_printed "$here/out.jfr" jdk.JVMInformation)" '>=' 1
	expect_no_folders
}

# duet record does the same. The JVM ends first: what its recorder has written by then is there.
jdk_case_sync_of_a_jvm_that_ends() {
	begin
	start_record -p "$jvm" -d 60 -i 1ms --jfrsync default -f "$here/out.jfr"
	wait_for_ticks
	sleep 2
	kill -TERM "$jvm"
	wait "$recorder"
	status=$?
	recorder=
	expect_status 0
	expect "JVMInformation" "$(jfr_printed "$here/out.jfr" jdk.JVMInformation)" '>=' 1
	expect "ExecutionSample" "$(jfr_printed "$here/out.jfr" jdk.ExecutionSample)" '>' 10
	expect_no_folders
}

# One sentence for each thing that does not work; nothing runs afterwards.
case_refusals_of_sync() {
	jdk=$(any_jdk)
	begin
	run_asprof -d 1 --jfrsync nosuch -f "$here/out.jfr" "$jvm"
	expect_status 200
	expect_contains "$here/stderr" '^\[ERROR\] the flight recorder of JVM [0-9]+ refuses: .'
	run_duet record -p "$jvm" -d 1 --jfrsync +jdk.StringFlag -f "$here/out.jfr"
	expect_status 1
	expect_contains "$here/stderr" 'jdk.StringFlag may have secrets'
	run_asprof -d 1 --jfrsync '+a b' -f "$here/out.jfr" "$jvm"
	expect_status 200
	expect_contains "$here/stderr" "'a b' is not the name of an event"
	run_duet record -p "$jvm" -d 1 --jfrsync default -f "$here/out.html"
	expect_refusal 2 'for one JVM and a JFR file'
	run_duet record -p "$jvm" -d 1 --ratelimit cpu:0 -f "$here/out.jfr"
	expect_refusal 2 "CATEGORY:NUMBER is accepted"
	"$jdk/bin/jcmd" "$jvm" JFR.check >"$here/check" 2>&1
	expect_lacks "$here/check" 'running'
	expect_no_folders
}

# So many events a second; the rest is counted.
jdk_case_limits() {
	begin
	run_asprof -d 4 -e cpu -i 1ms --alloc 1k --ratelimit cpu:50,alloc:100 -f "$here/out.jfr" "$jvm"
	expect_status 0
	local cpu alloc
	cpu=$(jfr_count "$here/out.jfr" jdk.ExecutionSample)
	alloc=$(jfr_count "$here/out.jfr" jdk.ObjectAllocationInNewTLAB)
	expect "samples of CPU time" "$cpu" '<=' 300
	expect "samples of CPU time" "$cpu" '>=' 100
	expect "samples of allocations" "$alloc" '<=' 600
	expect "samples of allocations" "$alloc" '>=' 200
	jfr_print "$here/out.jfr" DataLoss
	expect_contains "$here/print" 'events above the limits of --ratelimit'
}

# Ticks of the processor's counter show the same times.
jdk_case_clocks() {
	local clock
	begin
	for clock in tsc monotonic; do
		run_asprof -d 2 -e cpu -i 10ms --clock $clock -f "$here/$clock.jfr" "$jvm"
		expect_status 0
		jfr_print "$here/$clock.jfr" ActiveSetting
		grep -A 1 'name = "clock"' "$here/print" >"$here/setting"
		expect_contains "$here/setting" "value = \"$clock\""
		run_duet convert --from 0s --to 1s -e cpu "$here/$clock.jfr" "$here/first.collapsed"
		run_duet convert -e cpu "$here/$clock.jfr" "$here/all.collapsed"
		expect "samples in the first second of two" "$(total "$here/first.collapsed")" '<' \
			"$(awk -v all="$(total "$here/all.collapsed")" 'BEGIN { print 0.8 * all }')"
	done
}

# Prints a field of each sample of the burning process.
burner_said() { # FIELD
	awk -v field="$1" -v pid="$burner" '/^profiler.ProcessSample/ { ours = 0 }
		$1 == "pid" && $3 == pid { ours = 1 }
		ours && $1 == field { sub(/^[^=]*= /, ""); sub(/%$/, ""); print }' "$here/print"
}

# What processes use, each second but the first: a process burns a CPU, and the kernel knows how much it got.
jdk_case_processes() {
	local burner used looks
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	need_bpf
	need_root
	(exec -a 'burner ) S 1 (x' bash -c 'while :; do :; done') &
	burner=$!
	jvms+=("$burner")
	record -p "$burner" -d 4 --proc 1 -f "$here/out.jfr" -f "$here/out.duet" -f "$here/out.txt"
	used=$(awk '{ sub(/.*\) R /, ""); print ($11 + $12) / 100 }' "/proc/$burner/stat")
	expect_status 0
	jfr_print "$here/out.jfr" profiler.ProcessSample
	# beside many others it may get less than what is told
	looks=$(burner_said pid | wc -l)
	expect "looks at the burner in 4 s" "$looks" '>=' 1
	expect "looks at the burner in 4 s" "$looks" '<=' 3
	expect "looks that name its command" "$(burner_said cmdLine | grep -cF '"burner ) S 1 (x -c while ')" == \
		"$looks"
	expect "its threads" "$(burner_said threads | sort -u)" == 1
	expect "its CPU time at the last look, s" "$(burner_said cpuUser | tail -n 1)" '<=' "$used"
	expect_contains "$here/out.txt" "^ *$burner  *$looks .* burner"
	run_duet convert "$here/out.duet" "$here/again.jfr"
	expect "samples in the other file" "$(jfr_count "$here/again.jfr" profiler.ProcessSample)" == \
		"$(jfr_count "$here/out.jfr" profiler.ProcessSample)"
	ln -sf "$DUET_BUILD/duet" "$here/asprof"
	run_asprof -d 3 --proc 1 -f "$here/peer.jfr" "$burner"
	expect_status 0
	jfr_print "$here/peer.jfr" profiler.ProcessSample
	expect "looks of asprof in 3 s" "$(burner_said pid | wc -l)" '<=' 2
	run_asprof -d 1 --proc 1 -o collapsed "$burner"
	expect_contains "$here/stderr" "Process sampling requires JFR output format"
}

# Every view of `jfr view` finds what it asks for, and those are not empty whose data the recording has.
jdk_case_views() {
	local view
	JVM_OPTS=(-Xmx64m)
	begin
	jfr view 2>&1 | grep -q all-views || skip "its jfr has no views"
	record -p "$jvm" -d 4 -e cpu,alloc,live,lock,nativemem,gc,safepoint,compilation --proc 1 \
		-f "$here/out.jfr" -f "$here/out.duet"
	expect_status 0
	end_jvm
	jfr view --width 160 all-views "$here/out.jfr" >"$here/view" 2>&1 ||
		fail "all-views: $(tail -n 3 "$here/view")"
	! grep -E "Missing event|Can't find" "$here/view" >"$here/why" || fail "views: $(head -n 3 "$here/why")"
	for view in 'Active Recordings' 'Active Settings' 'Allocation by Class' 'Allocation by Site' \
		'Allocation by Thread' 'Contention by Site' 'Contention by Thread' 'Contention by Lock Class' \
		'CPU Information' 'CPU Load' 'Event Types by Count' 'Garbage Collections' 'GC Pauses' \
		'GC Pause Phases' 'Java Methods that Execute the Most' 'Command Line Flags' \
		'JVM Information' 'Latencies by Type' \
		'Memory Leak Candidates by Class' 'Memory Leak Candidates by Site' 'Java Thread Statistics' \
		'Native Libraries' 'Recording Information' 'Safepoints' 'Longest Compilations' \
		'System Properties at Startup' 'System Information' 'System Processes' 'Thread Allocation Statistics' \
		'Thread CPU Load'; do
		expect_contains "$here/view" "^ *$view\$"
	done
	expect_contains "$here/view" '^MaxHeapSize  *67,108,864'
	run_duet convert -e alloc --total "$here/out.duet" "$here/alloc.collapsed"
	jfr print --json --events ThreadAllocationStatistics "$here/out.jfr" >"$here/json"
	expect "bytes of all threads" \
		"$(awk '/"allocated":/ { sum += $2 } END { printf "%.0f", sum }' "$here/json")" == \
		"$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$here/alloc.collapsed")"
	run_duet convert -e gc "$here/out.duet" "$here/gc.collapsed"
	expect "collections" "$(jfr_count "$here/out.jfr" jdk.GarbageCollection)" == "$(total "$here/gc.collapsed")"
	expect "safepoints' ends" "$(jfr_count "$here/out.jfr" jdk.SafepointEnd)" == \
		"$(jfr_count "$here/out.jfr" jdk.SafepointBegin)"
}

run_cases "$@"

