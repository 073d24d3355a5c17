#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 240
# Memory that native code allocates: exact when every call is recorded, right on average when calls are sampled.
. "$(dirname "$0")/lib.sh"

ways=(malloc calloc realloc posix_memalign aligned_alloc memalign valloc by_pointer mmap moved)

# Prints the bytes of the stacks that lead from Java through this function of the library, and those of all with it.
bytes_of() { # FILE WAY
	echo "$(matching "$1" "NativeMemory[$]First[.]take;.*take_$2 ")"
}

# All calls are recorded: the sum is exactly what the workload has allocated.
expect_sums() { # FILE
	local column=2 told way
	for way in "${ways[@]}"; do
		told=$(bytes_of "$1" "$way")
		expect "bytes of $way" "${told% *}" == "$(jvm_said BYTES $column)"
		column=$((column + 1))
	done
	told=$(matching "$1" 'NativeMemory[.]late;.*NativeMemory[$]Late[.]take;.*take_malloc ')
	expect "bytes of a library that was loaded late" "${told% *}" == "$(jvm_said BYTES $column)"
	expect_lacks "$here/stderr" 'refused|dropped|full'
}

jdk_case_every_call() {
	record_gated workload.NativeMemory 2000 -- -e nativemem=0 --engine ctimer
	expect_sums "$here/out.collapsed"
	expect_lacks "$here/out.collapsed" 'libduet|hook_'
	expect_alive "$jvm"
}

# Samples of CPU time interrupt the taking of samples, and objects are sampled in the same threads.
jdk_case_beside_cpu_and_alloc() {
	local events=nativemem=0,cpu=1ms
	need_bpf
	[ "$(sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "$jdk/release")" -lt 11 ] || events+=,alloc=4k
	record_gated workload.NativeMemory 2000 -- -e $events
	expect_sums "$here/out.collapsed"
	expect_lacks "$here/out.collapsed" 'libduet|hook_'
}

# The threads wait for the loader when they are faster. CALLS: the number of calls, for longer runs.
jdk_case_many_calls() {
	record_gated workload.NativeMemory $((${CALLS:-108000} / 12)) -- -e nativemem=0 --engine ctimer
	expect_sums "$here/out.collapsed"
}

# Each way takes 400 MB in pieces of 1000 bytes. Every 200,000th byte makes a sample: 2000, which err by 2.2 %. Calls
# are not sampled must not cost much: `make bench-events` prints how much. On a busy machine samples may be lost: they
# are counted, and each may be of any way.
jdk_case_sampled() {
	local column=2 told want way lost
	JVM_FLAGS=(-Dextra=true)
	record_gated workload.NativeMemory 400000 1000 -- -e nativemem=200000 --engine ctimer
	lost=$(sed -n 's/.* samples of .*, \([0-9]*\) lost .*/\1/p' "$here/stderr")
	for way in "${ways[@]}"; do
		told=$(bytes_of "$here/out.collapsed" "$way") told=${told% *}
		want=$(jvm_said BYTES $column)
		expect "bytes of $way" "$told" '<=' $((want * 112 / 100))
		expect "the same, and what was lost" $((told + ${lost:-0} * 200000)) '>=' $((want * 88 / 100))
		column=$((column + 1))
	done
	expect "ps that malloc() costs more" "$(jvm_said EXTRA 2)" '<' 30000
	expect "ps that free() costs more" "$(jvm_said EXTRA 3)" '<' 30000
}

# One piece in a thousand is not freed. All other memory of the library is.
jdk_case_leak() {
	local told
	record_gated workload.NativeMemory 5000 64 -- -e leak=0,nativemem=4k --engine ctimer
	told=$(matching "$here/out.collapsed" 'NativeMemory[$]First[.]take;.*leak_one_in_thousand ')
	expect "bytes that leak" "${told% *}" == "$(jvm_said BYTES 13)"
	told=$(matching "$here/out.collapsed" 'NativeMemory[$](First|Late)[.]take;.*take_')
	expect "bytes of what is freed" "${told% *}" == 0
	expect "bytes of nativemem" "$(total "$here/out.nativemem.collapsed")" '>' 1000000
}

# The same pieces, found by the addresses of what was taken and freed, in a .duet and a JFR file.
# Each window has all that was not freed until its end: one call in a thousand leaks.
jdk_case_leak_in_windows() {
	local file bytes full=0
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.NativeMemory 20000 64
	"$duet" record -v -e leak=0 --total --engine ctimer -p "$jvm" --continuous --window 1s -d 100 -f "$here/out" \
		-o collapsed >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	wait_for 60 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 1
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	sleep 3
	end_record INT
	expect_status 0
	for file in $(find "$here/out" -name 'profile_20*.collapsed' -type f | sort -V); do
		bytes=$(matching "$file" 'NativeMemory[$]First[.]take;.*leak_one_in_thousand ' | cut -d ' ' -f 1)
		[ "$bytes" != 0 ] || [ $full = 0 ] || fail "$file has no leak any more"
		[ "$bytes" != "$(jvm_said BYTES 13)" ] || full=$((full + 1))
		expect "bytes that were freed" "$(matching "$file" 'take_(malloc|calloc) ' | cut -d ' ' -f 1)" '<' 10000
	done
	expect "windows with the whole leak" "$full" '>=' 3
	expect_lacks "$here/stderr" 'arrived when|dropped|refused'
	expect_alive "$jvm"
}

jdk_case_leak_by_address() {
	local told file taps_format=duet
	record_gated workload.NativeMemory 5000 64 -- -e nativemem=0,free --engine ctimer
	run_duet convert "$here/out.duet" "$here/out.jfr"
	expect_status 0
	for file in out.duet out.jfr; do
		run_duet convert --leak --total "$here/$file" "$here/leak.collapsed"
		expect_status 0
		told=$(matching "$here/leak.collapsed" 'NativeMemory[$]First[.]take;.*leak_one_in_thousand ')
		expect "bytes that leak in $file" "${told% *}" == "$(jvm_said BYTES 13)"
		told=$(matching "$here/leak.collapsed" 'NativeMemory[$](First|Late)[.]take;.*take_(malloc|calloc) ')
		expect "bytes of what is freed in $file" "${told% *}" == 0
	done
}

# More pieces than a table of waiting threads has places.
# All are written at once at the end, by a thread that waits for a slow loader.
jdk_case_many_leaks() {
	local told
	JVM_FLAGS=(-Dleaks=40000)
	record_gated workload.NativeMemory 1 64 -- -e leak=0 --engine ctimer
	told=$(matching "$here/out.collapsed" 'NativeMemory[$]First[.]take;.*leak_all ')
	expect "bytes that leak" "${told% *}" == "$(jvm_said BYTES 14)"
	expect "bytes that leak" "${told% *}" == 2560000
	expect_lacks "$here/stderr" 'refused|dropped|full'
}

# Another allocator in the place of libc's: its own calls of itself are not counted.
jdk_case_other_allocator() {
	local name library
	for name in libjemalloc.so.2 libtcmalloc_minimal.so.4 libmimalloc.so.2; do
		library=$(find /usr/lib -name $name | head -n 1)
		[ -n "$library" ] || skip "$name is not installed"
		JVM_AS=(env "LD_PRELOAD=$library")
		record_gated workload.NativeMemory 2000 -- -e nativemem=0 --engine ctimer
		expect_sums "$here/out.collapsed"
	done
}

# Hooks come and go while threads take memory and libraries are loaded and unloaded. Afterwards none is left, and the
# pages of the linkage tables have the rights that they had.
jdk_case_start_and_stop() {
	local before
	JVM_OPTS=(-Dcycles=true -Xcheck:jni)
	start_jvm "$jdk" workload.NativeMemory
	wait_for_line "$jvm_out" '^HOOKED 0' 60
	before=$(rights_of_tables)
	for _ in $(seq "${CYCLES:-8}"); do
		start_taps -p "$jvm" -e nativemem=0,leak=64 --engine ctimer
		for _ in 1 2; do # the first may be of a round that began before
			: >"$jvm_out"
			wait_for_line "$jvm_out" 'HOOKED 2' 60
		done
		end_record INT
		expect_status 0
		expect "bytes of malloc" "$(bytes_of "$here/out.collapsed" malloc | cut -d ' ' -f 1)" '>' 0
		: >"$jvm_out"
		wait_for_line "$jvm_out" 'HOOKED 0' 60
	done
	expect_alive "$jvm"
	expect "rights of the tables" "$(rights_of_tables)" == "$before"
	expect_lacks "$jvm_out" 'FATAL|FAILED'
	expect_lacks "$jvm_out.err" 'FATAL|WARNING.*JNI'
}

case_usage() {
	run_duet record -e nativemem --no-attach -p $$ -d 1
	expect_refusal 2 'nativemem comes from the agent'
	run_duet record -e alloc=0 -p $$ -d 1
	expect_refusal 2 'above 0'
	run_duet list
	grep -q 'nativemem.*malloc' "$here/stdout" || fail "duet list has no nativemem: $(cat "$here/stdout")"
}

run_cases "$@"
