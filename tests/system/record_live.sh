#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 120
# Bytes of objects that are still in use at the end, by the method that allocated them; other objects are not counted.
. "$(dirname "$0")/lib.sh"

bytes_of() { # FILE METHOD
	echo "$(matching "$1" "workload/Live[.]$2;byte\\[\\]_.i. ")"
}

# None of the dropped arrays of 20,000 bytes stays. HotSpot itself may allocate smaller ones that stay, when it resolves
# a call in this method.
expect_dropped() { # FILE [AGE]
	local told
	told=$(matching "$1" "workload/Live[.]drop;byte\\[\\]_.i.${2:-} ")
	expect "bytes of drop() that stay" "${told% *}" '<' 20000
}

# 5000 objects stay: five times as many as the limit of other profilers. All are sampled.
jdk_case_what_stays() {
	local told
	need_jdk 11 "sampling of allocations"
	record_gated workload.Live 50000 -- -e live=1k --engine ctimer
	told=$(bytes_of "$here/out.collapsed" keep)
	expect_near "bytes that stay" "${told% *}" "$(jvm_said BYTES)" $(($(jvm_said BYTES) / 100))
	expect_dropped "$here/out.collapsed"
	expect_lacks "$here/stderr" 'refused|dropped'
	expect_alive "$jvm"
}

# Each event has its own interval: of 500 MB about every 100,000th byte makes a sample of alloc. 5000 err by 1.4 %.
jdk_case_beside_alloc() {
	local told want
	need_jdk 11 "sampling of allocations"
	JVM_FLAGS=(-Xcheck:jni)
	record_gated workload.Live 25000 -- -e alloc=100k,live=2k --engine ctimer
	told=$(bytes_of "$here/out.collapsed" drop)
	want=$(jvm_said BYTES 3)
	expect_near "bytes allocated" "${told% *}" "$want" $((want * 8 / 100))
	told=$(bytes_of "$here/out.live.collapsed" keep)
	want=$(jvm_said BYTES 2)
	expect_near "bytes that stay" "${told% *}" "$want" $((want / 100))
	expect_lacks "$jvm_out" 'FATAL|WARNING.*JNI'
}

# Each window has what is in use at its end, whenever it was allocated: first all, later nothing. The collection may
# come while a window's end is told.
jdk_case_windows() {
	local file bytes want=$((2000 * 20000)) full=0 empty=0 between=0
	need_jdk 11 "sampling of allocations"
	JVM_OPTS=(-Dgate="$here/gate" -Dlingers=3200)
	start_jvm "$jdk" workload.Live 20000
	"$duet" record -v -e live=1k --ages --total --engine ctimer -p "$jvm" --continuous --window 1s -d 100 \
		-f "$here/out" -o collapsed >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 1
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	for file in $(find "$here/out" -name 'profile_20*.collapsed' -type f | sort -V); do
		bytes=$(matching "$file" 'workload/Live[.]keep;byte\[\]_.i.;\[age_' | cut -d ' ' -f 1)
		if is_near "$bytes" "$want" $((want / 50)); then
			full=$((full + 1))
			[ $empty = 0 ] || fail "$file has objects again"
		elif [ $full -gt 0 ] && [ "$bytes" -gt 0 ]; then
			expect "windows in between" $((between += 1)) == 1
			expect "empty windows before" $empty == 0
		elif [ $full -gt 0 ]; then
			empty=$((empty + 1))
		fi
		expect_dropped "$file" ';.age_1_to.*'
	done
	expect "windows with all" "$full" '>=' 2
	expect "windows after the end" "$empty" '>=' 2
	expect_contains <(cat "$here/out"/profile_20*.collapsed) 'keep;byte\[\]_.i.;\[age_1_to_10_s\] '
	expect_lacks "$here/stderr" 'arrived when|dropped|refused'
	expect_alive "$jvm"
}

# One array in a thousand stays, and 20 MB are held. What has grown most from an early window to a late one is the leak.
jdk_case_growth() {
	local windows grown first
	need_jdk 11 "sampling of allocations"
	JVM_OPTS=(-Dgate="$here/gate" -Dleaks=6000 -Xmn16m)
	start_jvm "$jdk" workload.Live 0
	"$duet" record -v -e live=2k --survivors 1 --engine ctimer -p "$jvm" --continuous --window 1s -d 100 \
		-f "$here/out" -o duet >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 0.5
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	mapfile -t windows < <(find "$here/out" -name 'profile_20*.duet' -type f | sort -V)
	expect "windows" "${#windows[@]}" '>=' 6
	run_duet diff "${windows[2]}" "${windows[-2]}" -o text
	expect_status 0
	grown=$(grep -m 1 -A 2 '^--- [+]' "$here/stdout")
	first=$(sed -n '1s/^--- [+]\([0-9]*\) bytes.*/\1/p' <<<"$grown")
	expect_contains <(echo "$grown") '0. byte\[\]'
	expect_contains <(echo "$grown") '1. workload[.]Live[.]keep'
	expect "bytes that have leaked" "$first" '>' $(($(jvm_said LEAKED) / 10))
	expect "at most" "$first" '<=' "$(jvm_said LEAKED)"
}

# Objects that were there at the last collection have outlived one. None has outlived more than there were.
jdk_case_survivors() {
	local told
	need_jdk 11 "sampling of allocations"
	record_gated workload.Live 5000 -- -e live=1k --survivors 1 --engine ctimer
	told=$(bytes_of "$here/out.collapsed" keep)
	expect_near "bytes that stay" "${told% *}" "$(jvm_said BYTES)" $(($(jvm_said BYTES) / 50))
	record_gated workload.Live 5000 -- -e live=1k --survivors 100000 --engine ctimer
	expect "samples" "$(wc -l <"$here/out.collapsed")" == 0
}

# Objects that are kept are told at the end, four seconds after they were allocated.
jdk_case_ages_in_jfr() {
	local old all
	need_jdk 11 "sampling of allocations"
	JVM_OPTS=(-Dgate="$here/gate" -Dlingers=20000)
	start_jvm "$jdk" workload.Live 2000
	"$duet" record -v -e live=1k --engine ctimer -p "$jvm" -d 100 -f "$here/out.jfr" \
		>"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 1
	touch "$here/gate"
	sleep 4
	end_record INT
	expect_status 0
	jfr print --events jdk.OldObjectSample "$here/out.jfr" >"$here/print"
	all=$(grep -c 'objectAge = ' "$here/print")
	old=$(grep -cE 'objectAge = [2-5]([.][0-9]+)? s' "$here/print")
	expect "objects" "$all" '>=' 180
	expect "objects of two seconds and more" "$old" '>=' $((all * 9 / 10))
}

case_usage() {
	run_duet record -e alloc --ages -p $$ -d 1
	expect_refusal 2 '--ages is about live objects'
	run_duet record --live --survivors 0 -p $$ -d 1
	expect_refusal 2 'survivors'
}

run_cases "$@"
