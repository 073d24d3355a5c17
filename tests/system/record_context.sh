#!/bin/bash
# SPDX-License-Identifier: MIT
# Samples carry the trace, the span and the attributes that their thread has published, in OpenTelemetry's layout: the
# CPU time of each span, and of each route, is what the program's own clocks say.
. "$(dirname "$0")/lib.sh"

record_program() { # NAME SECONDS WORDS...
	rm -rf "$here"/out* "$here/gate"
	jvm_out=$here/contexts.out
	"$workloads/$1" "$here/gate" "${@:2}" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record -p "$jvm" -e cpu -i 1ms -d 100 -f "$here/out.duet"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
}

record_contexts() { # SECONDS [LIBRARY]
	record_program contexts "$@"
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

# Libraries in which the linker has bound the variable to themselves, and a static executable without a fixed address.
case_bound() { # apart
	need_bpf
	local way
	record_program routes_static 0.5 plain
	expect_routes "$here/out.duet" 4
	for way in descriptor distance; do
		[ -e "$workloads/libcontexts_bound_$way.so" ] || skip "no lld made the libraries"
		record_contexts 0.5 "$workloads/libcontexts_bound_$way.so"
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
	expect_refusal 1 "nothing is left to write: no sample has a span, .* that --span"
}

# ---- attributes ---------------------------------------------------------------------------------

# The share of each route of the recorded CPU time, and of that which the program has measured, in per mille.
expect_routes() { # FILE POINTS
	local recorded measured route
	run_duet convert --by attr:http.route --total "$1" "$here/routes.collapsed"
	expect_status 0
	awk '/^ROUTE/ { ns = $2; sub(/^ROUTE [0-9]* /, ""); print $0 ";" ns }' "$jvm_out" >"$here/measured"
	while read -r recorded measured route; do
		expect_near "$route of ${1##*/}, per mille of the CPU time" "$recorded" "$measured" "$(($2 * 10))"
	done < <(awk -F';' '
		FNR == NR { of[$1] += $NF; all += $NF; next }
		{ words = split($NF, word, " "); in_file[$1] += word[words]; sum += word[words] }
		END { for (r in of) printf "%.0f %.0f %s\n", in_file[r] * 1000 / sum, of[r] * 1000 / all, r }
	' "$here/measured" "$here/routes.collapsed")
	expect "routes" "$(cut -d';' -f1 "$here/measured" | sort -u | wc -l)" == 4
}

# One route is of a trace that is not sampled, the others are of none. What other formats hold, and what --attr chooses.
case_routes() {
	need_bpf
	local format
	record_program routes 0.8 plain
	for format in duet pb.gz otlp jfr; do
		[ $format = duet ] || run_duet convert "$here/out.duet" "$here/out.$format"
		expect_routes "$here/out.$format" 3
	done
	run_duet convert --attr 'http.route=/pay*' --by attr:http.route,attr:user.id,attr:service.name --total \
		"$here/out.pb.gz" "$here/pay.collapsed"
	expect "routes that --attr has left, users, services" \
		"$(cut -d';' -f1-3 "$here/pay.collapsed" | sort -u | xargs)" == \
		"/pay/{id};user-0;routes /pay/{id};user-1;routes"
	run_duet convert --attr 'http.route=/no' "$here/out.duet" "$here/none.collapsed"
	expect_refusal 1 "nothing is left to write: no sample has .* attributes that .*--attr match"
	run_duet diff --by attr:http.route "$here/out.duet" "$here/out.pb.gz" "$here/diff.collapsed"
	expect_contains "$here/diff.collapsed" "^/cart;"
}

# Ten attributes, as many as a record may have, a name that is published when it is used, and very many values.
case_attributes() { # apart
	need_bpf
	local way
	for way in ten long late many; do
		record_program routes 0.8 "$way"
		expect_routes "$here/out.duet" "$([ $way = late ] && echo 9 || echo 3)"
	done
	run_duet convert --by attr:user.id "$here/out.duet" "$here/users.collapsed"
	expect "different users" "$(cut -d';' -f1 "$here/users.collapsed" | sort -u | wc -l)" '>=' 500
}

# Nothing of what it says breaks a line; the other samples are as they were.
case_liar() { # apart
	need_bpf
	record_program routes 0.8 liar
	run_duet convert --by attr:http.route --total "$here/out.duet" "$here/out.collapsed"
	expect "bytes that control" "$(LC_ALL=C grep -c $'[\001-\011\013-\037\177]' "$here/out.collapsed")" == 0
	expect_near "CPU time of /pay, % of that of the search" "$(($(told_of "$here/out.collapsed" '^/pay/') * 100 /
		$(told_of "$here/out.collapsed" '^/se')))" 50 8
	run_duet convert -o text=full "$here/out.duet" -
	expect_contains "$here/stdout" 'samples without some attributes of their thread'
	expect_contains "$here/stdout" 'samples without the attributes of their thread: they could not be read'
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
