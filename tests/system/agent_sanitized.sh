#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# The agent under AddressSanitizer and UndefinedBehaviorSanitizer in real JVMs that preload the former's runtime.
#
# Covered: every load and store of the agent's own code, in its thread, in JVMTI's events and in the signal handler, of
# its own memory and of what libjvm and libc took with malloc(), which go through the runtime then. Not covered: Java's
# code and heap (HotSpot maps those itself, the runtime takes them for accessible), what the kernel reads in
# process_vm_readv(), races, and leaks: HotSpot keeps pointers where a leak checker does not look. SIGSEGV and its like
# stay HotSpot's. Use after return is not looked for: that takes memory inside of handlers.
. "$(dirname "$0")/lib.sh"

duet=$DUET_BUILD/sanitized/duet
runtime=$(gcc -print-file-name=libasan.so 2>/dev/null)

need_sanitizers() {
	[ -e "$duet" ] || skip "there is no $duet: make $duet"
	[ -e "${runtime:-}" ] || skip "this host has no libasan.so"
	signals=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0:allow_user_segv_handler=1
	sanitized=(env LD_PRELOAD="$(realpath "$runtime")"
		ASAN_OPTIONS="$signals:detect_leaks=0:detect_stack_use_after_return=0:log_path=$here/report"
		UBSAN_OPTIONS="print_stacktrace=1:log_path=$here/report")
	"${sanitized[@]}" "$jdk/bin/java" -version >/dev/null 2>"$here/stderr" ||
		skip "this JVM does not start with the runtime: $(head -c 200 "$here/stderr")"
}

# A report ends the process, and may have gone to its stderr.
expect_no_report() {
	local found
	found=$(grep -hE -m 1 'runtime error|ERROR: AddressSanitizer' "$here"/report* "$here"/jvm.*.err "$here/stderr")
	[ -z "$found" ] || {
		cat "$here"/report* /dev/null
		fail "$found"
	}
}

recording() { # OPTIONS...
	record -p "$jvm" -i 1ms -o collapsed -f "$here/out" "$@"
	expect_no_report
	expect_status 0 "duet record $*"
	expect_alive "$jvm" "after duet record $*"
}

# Classes come and go, threads too, code is thrown away: while the agent names, samples, starts and stops.
record_storm() { # ENGINE...
	local engine round
	for engine; do
		recording --engine "$engine" -d 1
	done
	[ "$1" = ctimer ] || recording --signals always -d 1
	start_record --engine "$1" -p "$jvm" -i 1ms -d 30 -o collapsed -f "$here/killed"
	end_record KILL
	for round in 1 2 3; do
		recording --engine "$1" -d 250ms
	done
}

engines() {
	if "$duet" check 2>/dev/null | grep -q '^bpf: ready'; then echo bpf; fi
	echo ctimer itimer
}

jdk_case_attached() {
	need_sanitizers
	mkfifo "$here/in"
	exec {jvm_in}<>"$here/in"
	JVM_AS=("${sanitized[@]}")
	JVM_IN=$here/in start_jvm "$jdk" workload.Storm classes threads deopt
	# shellcheck disable=SC2046 # a list
	record_storm $(engines)
	expect_contains "/proc/$jvm/maps" 'libasan'
	echo "ask 1" >&"$jvm_in"
	wait_for_line "$jvm_out" '^SOUND 1$' 30
	echo "exit 0" >&"$jvm_in"
	wait "$jvm"
	status=$?
	expect_no_report
	expect "exit code of the JVM" "$status" '==' 0
	expect_contains "$here/out" 'workload/(Storm|Checksum)'
}

jdk_case_from_the_start() {
	need_sanitizers
	DUET_AS=("${sanitized[@]}")
	record -i 1ms -o collapsed -f "$here/out" -- "$jdk/bin/java" -cp "$workloads" workload.Checksum 3
	expect_no_report
	expect_status 0
	expect_contains "$here/stdout" '^SOUND'
	expect_contains "$here/out" 'workload/Checksum'
}

run_cases "$@"
