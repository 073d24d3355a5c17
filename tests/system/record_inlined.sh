#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Methods that a compiler has inlined, above calls without debug information: of programs of which it is known which
# method makes which call (inlined.pl).
. "$(dirname "$0")/lib.sh"

read -ra exact <<<"-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints"

# Sets `figures` to what inlined.pl says of the recording.
judge() {
	figures=$("$(dirname "$0")/inlined.pl" "$here/out" 2>"$here/faults") || fail "$(cat "$here/faults")"
	sed 's/^/# fault: /' "$here/faults" | head -n 5
}

figure() { # NAME [METHOD]
	awk -v name="$1" -v of="${2:-}" '$1 == name && (of == "" || $2 == of) { print $NF; exit }' <<<"$figures"
}

# Records a workload that is compiled by now.
record_compiled() { # WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	local workload=()
	while [ "$1" != -- ]; do
		workload+=("$1")
		shift
	done
	shift
	need_bpf
	start_jvm "$jdk" "${workload[@]}"
	warm_up 3
	record_cpu 2 -p "$jvm" -i 500us -t -a -o collapsed -f "$here/out" "$@"
	judge
}

# Hardly a sample lacks its caller without a mark.
expect_right() { # LEAST-SAMPLES MOST-PERCENT
	expect "samples in loops" "$(figure known)" '>=' "$1"
	expect "leaf calls, samples" "$(figure leaf_calls)" '>=' $(($1 / 10))
	expect "leaf calls that lack their caller without a mark, %" "$(figure leaf_silent)" '<=' "$2"
	expect "samples that lack their caller without a mark, %" "$(figure silent)" '<=' 1
}

# So do few with a mark: most callers are found in the byte code.
expect_found() {
	expect_right 500 0.5
	expect "leaf calls that lack their caller, %" "$(figure leaf_lacking)" '<=' 25
}

# Both methods have entries of their own, which are certain.
expect_leafs() { # MOST-PERCENT: with those that are marked
	expect_right 500 0.1
	expect "samples that lack their caller, %" "$(figure lacking)" '<=' "$1"
	expect_near "samples in copyRows, %, and its time" "$(figure of copyRows)" \
		"$(awk '$1 == "TRUTH" { ns[$2] = $3 }
			END { print 100 * ns["copyRows"] / (ns["copyRows"] + ns["trig"]) }' "$jvm_out")" 5
}

jdk_case_leaf_calls() {
	record_compiled workload.Leafs 60 -- --agent never
	expect_leafs 3
}

jdk_case_leaf_calls_with_an_agent() {
	record_compiled workload.Leafs 60 -- --agent always
	expect_leafs 3
}

jdk_case_leaf_calls_replaced_on_stack() {
	record_compiled workload.Leafs 60 100 60 once -- --agent never
	expect_leafs 3
}

# Loops have no polls, and so fewer entries. What has none by the call is marked, not given to the other method.
jdk_case_leaf_calls_without_polls() {
	JVM_OPTS=(-XX:+UseSerialGC -XX:+IgnoreUnrecognizedVMOptions -XX:UseAVX=2)
	record_compiled workload.Leafs 60 10 6 -- --agent never
	expect "samples in loops" "$(figure known)" '>=' 300
	expect "leaf calls that lack their caller without a mark, %" "$(figure leaf_silent)" '<=' 1
}

# Their loops have no entry at all. The byte code of the method leads to the stub.
jdk_case_leaf_calls_without_entries() {
	local calls
	JVM_OPTS=(-XX:CompileCommand=quiet "-XX:CompileCommand=dontinline,workload.ShortLoops::*s")
	need_bpf
	start_jvm "$jdk" workload.ShortLoops 60
	warm_up 3
	record_cpu 2 -p "$jvm" -i 500us -t -a -o collapsed -f "$here/out" --agent never
	calls=$(awk '/ShortLoops\.(power|checksum)s_\[j\]/ && /;(libmPow|dpow|updateBytesCRC32) [0-9]+$/ {
		sum += $NF
		lacking += /ShortLoops\.(power|checksum)_\[i\]/ ? 0 : $NF
	} END { print sum + 0, lacking + 0 }' "$here/out")
	expect "leaf calls" "${calls% *}" '>=' 500
	expect "leaf calls that lack their caller" "${calls#* }" '<=' $((${calls% *} / 100))
}

jdk_case_leaf_calls_exact() {
	JVM_OPTS=("${exact[@]}")
	record_compiled workload.Leafs 60 -- --agent never
	expect_leafs 1
}

jdk_case_leaf_calls_from_the_start() {
	need_bpf
	record -d 80 -i 500us -t -a -o collapsed -f "$here/out" -- \
		"$jdk/bin/java" -Dends=true -cp "$workloads" workload.Leafs 6
	expect_status 0
	jvm_out=$here/stdout
	judge
	expect_leafs 3
}

jdk_case_intrinsics() {
	record_compiled workload.Intrinsics 60 -- --agent never
	expect_found
}

jdk_case_intrinsics_with_an_agent() {
	record_compiled workload.Intrinsics 60 -- --agent always
	expect_found
}

jdk_case_intrinsics_exact() {
	JVM_OPTS=("${exact[@]}")
	record_compiled workload.Intrinsics 60 -- --agent never
	expect_found
}

jdk_case_intrinsics_of_c1() {
	JVM_OPTS=(-XX:TieredStopAtLevel=1)
	record_compiled workload.Intrinsics 60 -- --agent never
	expect_right 500 5
}

jdk_case_intrinsics_of_virtual_threads() {
	need_jdk 21 "virtual threads"
	record_compiled workload.Intrinsics 60 virtual -- --agent never
	expect_found
}

jdk_case_contended_locks() {
	record_compiled workload.Intrinsics 60 contended locks -- --agent never
	expect_right 100 1
}

run_cases "$@"
