#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Formats for other tools: a round trip keeps the recording, and the tools themselves read the same.
. "$(dirname "$0")/lib.sh"

convert() {
	run_duet convert "$@"
	expect_status 0
}

# A JVM, which has 2 s of CPU time, and other processes; CPU time and page faults: $here/a.duet
record_mixed() {
	need_bpf
	record -e cpu,page-faults -i 1ms -f "$here/a.duet" -- bash -c \
		'ls -lR /usr/lib >/dev/null; "$0" -cp "$1" shop.Demo & sleep 2
		used() { sed "s/.*) //" /proc/$!/stat | cut -d " " -f 12; }
		while kill -0 $! && [ "$(used)" -lt "$2" ]; do sleep 0.1; done
		kill $!' \
		"$(any_jdk)/bin/java" "$DUET_BUILD/workloads" $((2 * ticks_per_second))
	expect_status 0
}

# In a JFR file a thread has one name, the last, and one container.
one_name() { # FILE
	sed 's/\[[^];]* tid=/[tid=/' "$1" | awk '{ count = $NF; sub(/ [0-9]+$/, ""); sum[$0] += count }
		END { for (stack in sum) print stack, sum[stack] }' | sort >"$1.named" && mv "$1.named" "$1"
}

# Collapsed stacks of $here/a.duet and of $here/a.EXTENSION made from it are equal, in each style. The former are
# kept for the next format.
round_trip() { # EXTENSION
	local style event want by=container,process,thread
	[ "$1" != jfr ] || by=process
	convert "$here/a.duet" "$here/a.$1"
	for style in '' -t --total '-a -g -l --lines' '-s -X vfs_statx' "--by=$by"; do
		for event in cpu page-faults; do
			want="$here/want${style// /}.$event.collapsed"
			# shellcheck disable=SC2086
			[ -e "$want" ] || convert $style -e $event "$here/a.duet" "$want"
			# shellcheck disable=SC2086
			convert $style -e $event "$here/a.$1" "$here/got.collapsed"
			cp "$want" "$here/want.collapsed"
			[ "$1" != jfr ] || one_name "$here/want.collapsed"
			[ "$1" != jfr ] || one_name "$here/got.collapsed"
			expect_same "$here/got.collapsed" "$here/want.collapsed"
		done
	done
}

# One recording comes back from each format.
case_round_trips() {
	local format
	record_mixed
	for format in pprof otlp html jfr perf; do
		echo "# $format"
		${format}_round_trip
	done
}

pprof_round_trip() {
	round_trip pb.gz
	gzip -dc "$here/a.pb.gz" >"$here/plain"
	convert -e page-faults "$here/plain" "$here/plain.collapsed"
	convert -e page-faults "$here/a.duet" "$here/want.collapsed"
	expect_same "$here/plain.collapsed" "$here/want.collapsed"
}

# The sum of all values is that of all stacks. The tables are read by index, as others read them.
case_otlp_for_protoc() {
	command -v protoc >/dev/null || skip "no protoc"
	record_mixed
	convert "$here/a.duet" "$here/a.otlp"
	protoc --proto_path=user/profile --decode=otlp.ProfilesData otlp.proto <"$here/a.otlp" >"$here/decoded" \
		2>"$here/why" || fail "protoc: $(cat "$here/why")"
	convert -e cpu --total "$here/a.duet" "$here/cpu.collapsed"
	convert -e page-faults --total "$here/a.duet" "$here/faults.collapsed"
	expect "sum of the values" "$(awk '$1 == "values:" { sum += $2 } END { printf "%.0f", sum }' "$here/decoded")" \
		'==' "$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$here/cpu.collapsed" "$here/faults.collapsed")"
	expect_contains "$here/decoded" 'string_value: "java: shop[.]Demo"'
	expect_contains "$here/decoded" 'string_table: "shop[.]Demo[.]main"'
	expect_contains "$here/decoded" 'string_value: "kernel"'
}

otlp_round_trip() {
	round_trip otlp
	round_trip otlp.json
	gzip -c "$here/a.otlp.json" >"$here/a.gz"
	convert -e cpu "$here/a.gz" "$here/got.collapsed"
	convert -e cpu "$here/a.duet" "$here/want.collapsed"
	expect_same "$here/got.collapsed" "$here/want.collapsed"
	convert -e cpu --from 1s --to 2s "$here/a.otlp" "$here/got.collapsed"
	convert -e cpu --from 1s --to 2s "$here/a.duet" "$here/want.collapsed"
	expect_same "$here/got.collapsed" "$here/want.collapsed"
}

# The page has leading frames of processes, and the threads of each sample.
html_round_trip() {
	local event
	convert "$here/a.duet" "$here/a.html"
	for event in cpu page-faults; do
		convert -e $event "$here/a.duet" "$here/want.collapsed"
		convert -e $event "$here/a.html" "$here/got.collapsed"
		expect_same "$here/got.collapsed" "$here/want.collapsed"
		convert --total -g -e $event "$here/a.duet" "$here/want.collapsed"
		convert -g "$here/a.duet" "$here/g.html"
		convert --total -g -e $event "$here/g.html" "$here/got.collapsed"
		expect_same "$here/got.collapsed" "$here/want.collapsed"
	done
	convert --by thread -e cpu "$here/a.html" "$here/got.collapsed"
	convert -e cpu "$here/a.duet" "$here/want.collapsed"
	expect "samples of threads" "$(total "$here/got.collapsed")" == "$(total "$here/want.collapsed")"
	convert -e cpu --from 1s --to 2s "$here/a.html" "$here/got.collapsed"
	expect_file "$here/got.collapsed"
}

jfr_round_trip() {
	round_trip jfr
	cat "$here/a.jfr" "$here/a.jfr" >"$here/two.jfr" # chunks of two recordings
	convert -e cpu "$here/two.jfr" "$here/two.collapsed"
	convert -e cpu "$here/a.duet" "$here/a.duet" "$here/want.collapsed"
	expect_same "$here/two.collapsed" "$here/want.collapsed"
	gzip -c "$here/two.jfr" >"$here/two.jfr.gz"
	convert -e cpu "$here/two.jfr.gz" "$here/gzip.collapsed"
	expect_same "$here/gzip.collapsed" "$here/want.collapsed"
	head -c -100 "$here/two.jfr.gz" >"$here/cut.gz"
	run_duet convert -e cpu "$here/cut.gz" "$here/none.collapsed"
	expect_refusal 1 'the compressed data are damaged or end too early'
	head -c 1000 "$here/two.jfr.gz" >"$here/cut.gz" # within what tells the format
	run_duet convert -e cpu "$here/cut.gz" "$here/none.collapsed"
	expect_refusal 1 'the compressed data are damaged or end too early'
}

# "SAMPLES METHOD" of each class of the workload among the hottest methods of `jfr view`, and the same of duet. What
# else ran may leave none of them among the hottest 25.
compare_hot_methods() {
	convert -e cpu -I '*shop/*' "$here/a.duet" "$here/shop.jfr"
	jfr view --width 400 --truncate end hot-methods "$here/shop.jfr" >"$here/view" 2>"$here/why" ||
		fail "jfr view: $(cat "$here/why")"
	sed -nE 's/^(shop[.][A-Za-z.]+)\(.*\) +([0-9,]+) .*/\2 \1/p' "$here/view" | tr -d , | sort >"$here/hot.jdk"
	[ -s "$here/hot.jdk" ] || fail "hot-methods has no method of the workload: $(cat "$here/view")"
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, ""); gsub("/", "."); sum[$0] += n }
		END { for (i in sum) print sum[i], i }' "$here/cpu.collapsed" | sort >"$here/hot.duet"
	expect "methods that duet counts otherwise: $(comm -23 "$here/hot.jdk" "$here/hot.duet")" \
		"$(comm -23 "$here/hot.jdk" "$here/hot.duet" | wc -l)" == 0
}

# The JDK's own reader counts the same.
jdk_case_jfr_for_the_jdk() {
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	record_mixed
	convert "$here/a.duet" "$here/a.jfr"
	convert -e cpu "$here/a.duet" "$here/cpu.collapsed"
	convert -e page-faults "$here/a.duet" "$here/faults.collapsed"
	expect "ExecutionSample" "$(jfr_count "$here/a.jfr" jdk.ExecutionSample)" == \
		"$(total "$here/cpu.collapsed")"
	expect "PageFaults" "$(jfr_count "$here/a.jfr" duet.PageFaults)" == "$(total "$here/faults.collapsed")"
	jfr print --json --events JVMInformation,ExecutionSample "$here/a.jfr" >"$here/json" 2>"$here/why" ||
		fail "jfr print: $(cat "$here/why")"
	expect_contains "$here/json" '"jvmName": ".*VM"'
	! jfr view 2>&1 | grep -q hot-methods || compare_hot_methods
}

# Each kind of event has the type that others know, and the JDK counts as many as duet does.
jdk_case_jfr_types() {
	local event type weights=$here/weights.collapsed
	[ -x "$jdk/bin/jfr" ] || skip "$jdk has no jfr"
	need_bpf
	start_jvm "$jdk" shop.Demo
	warm_up 1
	record -p "$jvm" -d 4 -e cpu,alloc,lock,nativemem,live -f "$here/a.duet"
	expect_status 0
	end_jvm
	convert "$here/a.duet" "$here/a.jfr"
	convert --jfr-tlab --jfr-cpu-time "$here/a.duet" "$here/b.jfr"
	while read -r event file type; do
		convert -e "$event" "$here/a.duet" "$here/want.collapsed"
		expect "$type" "$(jfr_count "$here/$file.jfr" "$type")" == "$(total "$here/want.collapsed")"
		convert -e "$event" --total "$here/a.duet" "$weights"
		convert -e "$event" --total "$here/$file.jfr" "$here/got.collapsed"
		expect_same "$here/got.collapsed" "$weights"
	done <<-END
		cpu a jdk.ExecutionSample
		cpu b jdk.CPUTimeSample
		alloc a jdk.ObjectAllocationSample
		alloc b jdk.ObjectAllocationInNewTLAB
		nativemem a profiler.Malloc
		live a profiler.LiveObject
		live a jdk.OldObjectSample
		lock a jdk.JavaMonitorEnter
	END
	jfr view 2>&1 | grep -q hot-methods || return 0
	convert -e lock "$here/a.duet" "$here/lock.collapsed"
	jfr view contention-by-class "$here/a.jfr" >"$here/view"
	awk '/;shop.Till(_\[i\])? [0-9]+$/ { sum += $NF } END { print sum }' "$here/lock.collapsed" >"$here/want"
	expect "contention of shop.Till" "$(awk '$1 == "shop.Till" { print $2 }' "$here/view")" == "$(cat "$here/want")"
	jfr view cpu-load "$here/a.jfr" >"$here/view"
	expect_contains "$here/view" 'JVM User [(]Average[)]: [1-9]'
}

# Prints how many events of this type there are, and the sum of a field in ns or bytes, as `jfr print` has them.
jdk_sum() { # TYPE FIELD
	jfr print --json --stack-depth 1 --events "$1" "$here/jdk.jfr" >"$here/json" 2>"$here/why" ||
		fail "jfr print: $(cat "$here/why")"
	awk -v field="\"$2\":" '/"type": "jdk/ { events++ }
		$1 == field { gsub(/[",]|PT|S/, "", $2); sum += field ~ /duration/ ? $2 * 1e9 : $2 }
		END { printf "%d %.0f\n", events, sum }' "$here/json"
}

# An event of duet's and the fields of types of the JDK that are its weight.
expect_jdk() { # EVENT TYPE.FIELD...
	local event=$1 count sum counts=0 sums=0
	shift
	for field; do
		read -r count sum <<<"$(jdk_sum "${field%.*}" "${field#*.}")"
		counts=$((counts + count)) sums=$((sums + sum))
	done
	[ "$counts" != 0 ] || return 0 # not each JVM has one in some seconds
	convert -e "$event" "$here/jdk.duet" "$here/event.collapsed"
	expect "number of $event" "$(total "$here/event.collapsed")" == "$counts"
	convert -e "$event" --total "$here/jdk.duet" "$here/event.collapsed"
	sum=$(awk '{ sum += $NF } END { printf "%.0f", sum }' "$here/event.collapsed")
	expect "weight of $event" "$sum" == "$sums"
}

# Recordings of the JDK: duet counts and sums what jfr has, and knows its stacks. Allocations count once, whatever types
# tell of them.
jdk_case_jfr_of_the_jdk() {
	need_jdk 11 "the flight recorder"
	local settings=settings=profile
	! is_jdk 17 || settings+=,memory-leaks=stack-traces,jdk.ObjectAllocationInNewTLAB#enabled=true
	! is_jdk 17 || settings+=,jdk.ObjectAllocationOutsideTLAB#enabled=true
	JVM_OPTS=(-XX:StartFlightRecording=filename="$here/jdk.jfr","$settings")
	start_jvm "$jdk" shop.Demo
	warm_up 3
	kill "$jvm"
	wait "$jvm"
	convert "$here/jdk.jfr" "$here/jdk.duet"
	convert -e cpu "$here/jdk.duet" "$here/jdk.collapsed"
	expect "ExecutionSample" "$(total "$here/jdk.collapsed")" == "$(jfr_count "$here/jdk.jfr" jdk.ExecutionSample)"
	expect_share "in the workload's threads" "$(matching "$here/jdk.collapsed" ';shop/Worker[.]run;')" '>' 50
	convert -e sleep "$here/jdk.duet" "$here/sleep.collapsed"
	expect "ThreadSleep" "$(total "$here/sleep.collapsed")" == "$(jfr_count "$here/jdk.jfr" jdk.ThreadSleep)"
	expect_jdk lock JavaMonitorEnter.duration
	expect_jdk sleep ThreadSleep.duration
	expect_jdk park ThreadPark.duration
	is_jdk 17 || return 0
	expect_jdk alloc ObjectAllocationInNewTLAB.tlabSize ObjectAllocationOutsideTLAB.allocationSize
	expect_jdk alloc-sample ObjectAllocationSample.weight
	! is_jdk 25 || expect_jdk old-object OldObjectSample.objectSize
}

# Prints "type events ns" of each type of which an event has a stack, as `jfr print` has them. Lengths of a type without
# any are left out.
types_with_stacks() { # FILE
	jfr print --json --stack-depth 1 "$1" | awk '
		/"type": "[a-zA-Z]+[.][a-zA-Z.]+"/ { gsub(/[",]/, ""); type = $2; events[type]++ }
		/^ *"duration": "PT/ { gsub(/[",]|PT|S/, ""); ns[type] += $2 * 1e9 }
		/^ *"stackTrace": [{]/ { has[type] = 1 }
		END {
			for (type in has)
				printf "%s %d%s\n", type, events[type], ns[type] ? sprintf(" %.0f", ns[type]) : ""
		}'
}

# The same of duet: its whole text has "=== event: 12 ns, 3 samples ===". Types that duet knows have names of its own.
events_of_duet() { # FILE
	convert "$1" "$here/a.full.txt"
	sed -n 's/^=== \(jdk[^:]*\): \([0-9]*\) \([^,]*\), \([0-9]*\) samples\? ===$/\1 \4 \2 \3/p' "$here/a.full.txt" |
		awk '{ print $1, $2 ($4 == "ns" ? " " $3 : "") }'
}

# All types of the JDK that have stacks come out, whether duet knows them or not, with their numbers and lengths.
jdk_case_jfr_of_every_type() {
	need_jdk 11 "the flight recorder"
	local known='ExecutionSample|NativeMethodSample|CPUTimeSample|ObjectAllocation[a-zA-Z]*|OldObjectSample'
	known+='|JavaMonitorEnter|JavaMonitorWait|JavaExceptionThrow|JavaErrorThrow|ThreadSleep|ThreadPark'
	sed -E 's/(name="enabled"[^>]*>)[^<]*/\1true/; s/(name="threshold"[^>]*>)[^<]*/\10 ns/; s/ control="[^"]*"//
		s/(name="stackTrace"[^>]*>)[^<]*/\1true/; s/(name="throttle"[^>]*>)[^<]*/\1off/' \
		"$jdk/lib/jfr/profile.jfc" >"$here/all.jfc"
	timeout 90 "$jdk/bin/java" -Xmx64m -XX:StartFlightRecording=filename="$here/jdk.jfr",settings="$here/all.jfc" \
		-cp "$DUET_BUILD/workloads" shop.Demo 2 >"$here/log" 2>&1
	types_with_stacks "$here/jdk.jfr" | grep -Ev "jdk[.]($known|(File|Socket)(Read|Write)) " |
		sort >"$here/want"
	events_of_duet "$here/jdk.jfr" | sort >"$here/got"
	expect_contains "$here/want" '^jdk.ClassLoad [0-9]+ [0-9]+$'
	expect_contains "$here/want" '^jdk.ThreadStart [0-9]+$'
	expect_same "$here/got" "$here/want"
	convert -e exceptions "$here/jdk.jfr" "$here/one.collapsed"
	expect "exceptions, of which errors are some" "$(total "$here/one.collapsed")" == \
		"$(jfr_count "$here/jdk.jfr" jdk.JavaExceptionThrow)"
}

# The text of perf script: of duet, and of perf itself.
perf_round_trip() {
	local style event
	convert "$here/a.duet" "$here/a.perf"
	for style in '' --total '-a --by=process,thread'; do
		for event in cpu page-faults; do
			# shellcheck disable=SC2086
			convert $style -e $event "$here/a.duet" "$here/want.collapsed"
			# shellcheck disable=SC2086
			convert $style -e $event "$here/a.perf" "$here/got.collapsed"
			expect_same "$here/got.collapsed" "$here/want.collapsed"
		done
	done
}

case_perf_of_perf() {
	perf record -q -e cpu-clock -F 999 -g -o "$here/perf.data" -- timeout 1 "$DUET_BUILD/workloads/busy" 1 1 \
		>/dev/null 2>"$here/why"
	perf script -i "$here/perf.data" >"$here/a.txt" 2>"$here/why" && [ -s "$here/a.txt" ] ||
		skip "no perf that works: $(head -n 1 "$here/why")"
	convert "$here/a.txt" "$here/a.collapsed"
	expect "samples" "$(total "$here/a.collapsed")" == "$(grep -c 'cpu-clock.*: *$' "$here/a.txt")"
	convert --total "$here/a.txt" "$here/total.collapsed"
	expect "periods" "$(total "$here/total.collapsed")" == \
		"$(sed -nE 's/.*: +([0-9]+) cpu-clock.*: *$/\1/p' "$here/a.txt" | awk '{ n += $1 } END { print n }')"
	expect_share "in the program" "$(matching "$here/a.collapsed" "burn")" ">" 50
	perf script --header --show-mmap-events --show-task-events -i "$here/perf.data" >"$here/b.txt" 2>/dev/null
	convert "$here/b.txt" "$here/b.collapsed"
	expect_same "$here/b.collapsed" "$here/a.collapsed"
}

case_callgrind_annotate() {
	command -v callgrind_annotate >/dev/null || skip "no callgrind_annotate"
	record_mixed
	convert -e cpu "$here/a.duet" "$here/a.callgrind"
	convert -e cpu "$here/a.duet" "$here/samples.collapsed"
	callgrind_annotate --threshold=100 --show=samples --sort=samples "$here/a.callgrind" >"$here/annotated" \
		2>"$here/why" || fail "callgrind_annotate: $(cat "$here/why")"
	expect "samples" "$(awk '/PROGRAM TOTALS/ { gsub(",", ""); print $1 }' "$here/annotated")" == \
		"$(total "$here/samples.collapsed")"
	expect "samples of shop/Till.take" \
		"$(awk '/[?:]shop[/]Till[.]take( |$)/ { gsub(",", ""); n += $1 } END { print n + 0 }' \
			"$here/annotated")" == \
		"$(matching "$here/samples.collapsed" 'shop/Till[.]take [0-9]+$' | awk '{ print $1 }')"
}

# Go's reader shortens names of C++: these are left out, also where another function has the short name.
without_shortened() {
	awk 'NR == FNR { shortened[$0]; next } !/[<:(]/ && !($2 in shortened)' "$here/shortened" - | sort
}

# Go's own reader finds the same sums for each function as collapsed stacks have.
case_pprof_for_go() {
	command -v go >/dev/null || skip "no go"
	export HOME=$here GOFLAGS=-mod=mod GO111MODULE=off
	record_mixed
	convert "$here/a.duet" "$here/a.pb.gz"
	convert -e cpu --by=thread "$here/a.duet" "$here/a.collapsed"
	go tool pprof -raw "$here/a.pb.gz" >"$here/raw" 2>"$here/why" || fail "go: $(cat "$here/why")"
	expect_contains "$here/raw" '^cpu_samples/count cpu/nanoseconds\[dflt\] page-faults_samples/count '
	expect_contains "$here/raw" '^ +container:\[[^]]+\] process:\[java\] thread:\[[^]]+\]$'
	expect "samples" "$(awk '/^Locations/ { exit } / [0-9]+ +[0-9]+ +[0-9]+: / { n += $1 } END { print n }' \
		"$here/raw")" == "$(total "$here/a.collapsed")"
	go tool pprof -top -nodecount=100000 -nodefraction=0 -sample_index=cpu_samples "$here/a.pb.gz" \
		>"$here/top" 2>"$here/why" || fail "go: $(cat "$here/why")"
	awk '{ sub(/ [0-9]+$/, ""); sub(/.*;/, "") } /[<:(]/ { sub(/[<(].*/, ""); sub(/.*::/, ""); print }' \
		"$here/a.collapsed" | sort -u >"$here/shortened"
	# "flat flat% sum% cum cum% name" against the leaves of collapsed stacks
	sed -nE '1,/ cum%/d; s/ \(inline\)$//; s/^ *([1-9][0-9]*) +[^ ]+ +[^ ]+ +[^ ]+ +[^ ]+ +/\1 /p' "$here/top" |
		without_shortened >"$here/flat.go"
	awk '{ n = $NF; sub(/ [0-9]+$/, ""); sub(/.*;/, ""); sum[$0] += n } END { for (i in sum) print sum[i], i }' \
		"$here/a.collapsed" | without_shortened >"$here/flat.duet"
	expect_same "$here/flat.go" "$here/flat.duet"
}

run_cases "$@"
