#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# The agent under AddressSanitizer and UndefinedBehaviorSanitizer, in real JVMs that preload AddressSanitizer's runtime.
#
# Covered: every load and store of the agent's own code, in its thread, in JVMTI's events and in the signal handler, in
# its own memory and in memory that libjvm and libc got from malloc(), which the runtime replaces. Not covered: Java's
# code and heap (HotSpot maps these itself, and the runtime treats them as accessible), what the kernel reads in
# process_vm_readv(), races, and leaks (HotSpot keeps pointers where a leak checker does not look). HotSpot keeps
# SIGSEGV and similar signals. Use after return is not checked, because that allocates memory inside handlers.
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
	[ -z "${tree:-}" ] || sanitize_in_tree
	"${sanitized[@]}" "$jdk/bin/java" -version >/dev/null 2>"$here/stderr" ||
		skip "this JVM does not start with the runtime: $(head -c 200 "$here/stderr")"
}

# The sanitizer ends the process with a report, which it may have written to the stderr of the process.
expect_no_report() {
	local found
	found=$(grep -hE -m 1 'runtime error|ERROR: AddressSanitizer' "$here"/report* "$here"/jvm.*.err "$here/stderr")
	[ -z "$found" ] || {
		cat "$here"/report* /dev/null
		fail "$found"
	}
}

recording() { # OPTIONS...
	record --agent always -p "$jvm" -i 1ms -o collapsed -f "$here/out" "$@"
	expect_no_report
	expect_status 0 "duet record $*"
	expect_alive "$jvm" "after duet record $*"
}

# The agent names, samples, starts and stops while classes are loaded and unloaded, threads start and end, and code is
# discarded.
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
	record --agent always -i 1ms -o collapsed -f "$here/out" -- "$jdk/bin/java" -cp "$workloads" workload.Checksum 3
	expect_no_report
	expect_status 0
	expect_contains "$here/stdout" '^SOUND'
	expect_contains "$here/out" 'workload/Checksum'
}

# ---- beside other profilers ------------------------------------------------------------------------

# A workload that computes known sums again and again and ends when one is wrong.
start_beside() {
	need_sanitizers
	JVM_AS=("${sanitized[@]}")
	start_jvm "$jdk" workload.Checksum
}

# The recording has whole stacks of the running methods while the other profiler samples too.
expect_ours() { # WHAT
	expect_no_report
	expect_status 0 "$1"
	expect "$1: samples" "$(total "$here/out")" '>=' 50
	# shellcheck disable=SC2046 # two numbers
	set -- "$1" $(reported walked)
	expect "$1: walked to their entry, %" $((100 * ${2:-0} / ${3:-1})) '>=' 95
	expect_share "$1: of known methods" "$(matching "$here/out" 'workload/Checksum|Compile|GC|JFR|VM')" '>=' 90
	expect_contains "$here/out" 'workload/Checksum.inJava|workload/Checksum.*verifyNative'
	expect_alive "$jvm" "after $1"
}

record_beside() { # ENGINE...
	local engine
	for engine; do
		record_cpu 1 -p "$jvm" -i 2ms --engine "$engine" -o collapsed -f "$here/out"
		expect_ours "$engine beside the other"
	done
}

# With BPF, each sample sends a signal: none of them may be lost among those of other profilers.
start_with_signals() {
	local options=(--engine ctimer)
	[[ $(engines) != bpf* ]] || options=(--signals always)
	start_record --agent always -p "$jvm" -i 2ms -d 90 -o collapsed -f "$here/out" "${options[@]}"
}

prof_handler() { # caught, ignored, or default
	local bit=$((1 << 26))
	awk '/^SigCgt|^SigIgn/ { print $2 }' "/proc/$jvm/status" | {
		read -r ignored && read -r caught
		[ $((0x$caught & bit)) = 0 ] || { echo caught; return; }
		[ $((0x$ignored & bit)) = 0 ] && echo default || echo ignored
	}
}

jcmd() {
	"$jdk/bin/jcmd" "$jvm" "$@" >"$here/jcmd" 2>&1 || fail "jcmd $1: $(cat "$here/jcmd")"
	expect_no_report
}

# JFR's CPU-time sampler of JDK 25 and later uses SIGPROF; older JDKs stop threads to walk them.
start_jfr() {
	local own=()
	[ -z "$jfr_event" ] || own=("$jfr_event#enabled=true")
	jcmd JFR.start name=r settings=profile ${own[@]+"${own[@]}"}
	expect_contains "$here/jcmd" '^Started recording'
}

need_jfr() {
	[ -x "$jdk/bin/jfr" ] && [ -x "$jdk/bin/jcmd" ] || skip "this JDK has no jfr"
	jfr_event=
	! "$jdk/bin/jfr" metadata 2>/dev/null | grep -q '^@Name("jdk.CPUTimeSample")' || jfr_event=jdk.CPUTimeSample
}

jfr_samples() { # FILE: stacks whose top is a method of the workload's, of each kind of sample
	"$jdk/bin/jfr" print --stack-depth 1 --events jdk.ExecutionSample,jdk.CPUTimeSample "$1" |
		awk '/^jdk\.[A-Za-z]*Sample/ { kind = $1 }
			/workload.Checksum|java.util.zip/ && !/sampledThread/ { count[kind]++ }
			END { print count["jdk.ExecutionSample"] + 0, count["jdk.CPUTimeSample"] + 0 }'
}

# Expects more samples of each kind that this JDK has than at the last dump, $before. DUMP and STOP are commands of JFR.
expect_jfr() { # WHAT DUMP|STOP
	local now kinds=1
	[ -z "$jfr_event" ] || kinds=2
	jcmd "JFR.$2" name=r "filename=$here/$2.jfr"
	now=$(jfr_samples "$here/$2.jfr")
	for ((kind = 1; kind <= kinds; kind++)); do
		expect "$1: JFR's samples of kind $kind" "$(cut -d ' ' -f $kind <<<"$now")" '>' \
			$(($(cut -d ' ' -f $kind <<<"${before:-0 0}") + 10))
	done
	before=$now
}

burn() { # CPU_SECONDS of the JVM
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + $1))
}

# JFR starts first and ends while duet samples. Then JFR starts while duet samples, and duet ends first.
jdk_case_beside_jfr() {
	local before='0 0'
	need_jfr
	start_beside
	start_jfr
	# shellcheck disable=SC2046 # a list
	record_beside $(engines | sed 's/itimer//')
	expect_jfr "duet inside of JFR" dump
	start_with_signals
	burn 1
	expect_jfr "JFR leaves first" stop
	burn 1
	end_record INT
	expect_ours "JFR left first"

	before='0 0'
	start_with_signals
	start_jfr
	burn 1
	end_record INT
	expect_ours "JFR came second"
	expect_jfr "JFR came second" dump
	burn 1
	expect_jfr "duet left first" stop
}

# Engines that use SIGPROF: whoever has installed its handler keeps it, and leaves it to others at its end.
jdk_case_sigprof_goes_round() {
	local before='0 0'
	need_jfr
	start_beside
	record_beside itimer
	[ "$(prof_handler)" = ignored ] || fail "SIGPROF after engine itimer: $(prof_handler)"
	record_beside itimer
	start_jfr
	burn 1
	expect_jfr "after itimer" dump
	if [ -n "$jfr_event" ]; then
		record -p "$jvm" -i 2ms -d 1 --engine itimer -o collapsed -f "$here/refused"
		expect_status 1 "itimer beside JFR"
		expect_contains "$here/stderr" 'SIGPROF is in use in this JVM'
	fi
	burn 1
	expect_jfr "after itimer was refused" stop
}

# ---- async-profiler, in a root file system of its own: tests/bench/peers.sh has it from there too ----

need_async_profiler() {
	local home
	need_root
	tree=$(timeout 90 "$(dirname "$0")/../matrix/root_tree.sh" sid 17 async-profiler-java 2>"$here/fetched") ||
		skip "async-profiler cannot be had: $(tail -n 1 "$here/fetched")"
	mount -t proc proc "$tree/proc" && mount -t tmpfs tmpfs "$tree/tmp" && mount -t tmpfs tmpfs "$tree/mnt" ||
		skip "no mounts here"
	mkdir "$tree/mnt/workloads" && mount --bind "$workloads" "$tree/mnt/workloads"
	workloads=/mnt/workloads
	for home in "$tree"/usr/lib/jvm/java-17-openjdk-*/; do jdk=${home#"$tree"}; done
	for library in "$tree"/usr/lib/*/jni/libasyncProfiler.so; do
		ln -sf "${library#"$tree"}" "$tree/usr/lib/" # where asprof looks
	done
}

# Installs this host's sanitizer runtime in that root file system. chroot itself does not find it, reports that, and
# continues.
sanitize_in_tree() {
	local name file
	for name in asan ubsan; do
		file=$(realpath "$(gcc -print-file-name=lib$name.so)")
		cp "$file" "$tree/mnt/$(basename "${file%.*.*}")" # libasan.so.8 of libasan.so.8.0.0
	done
	for file in "$tree"/mnt/libasan.so.*; do
		sanitized=(env LD_LIBRARY_PATH=/mnt LD_PRELOAD="${file#"$tree"}"
			ASAN_OPTIONS="$signals:detect_leaks=0:detect_stack_use_after_return=0:verify_asan_link_order=0"
			chroot "$tree")
	done
}

asprof() { # start|stop OPTIONS...
	chroot "$tree" /usr/bin/asprof "$@" "$jvm" >"$here/asprof" 2>&1 || fail "asprof $1: $(cat "$here/asprof")"
	expect_no_report
}

expect_asprof() { # WHAT: its samples, and of the methods that run
	asprof stop -o collapsed -f /tmp/collapsed
	expect "$1: samples of async-profiler" "$(total "$tree/tmp/collapsed")" '>=' 50
	expect_share "$1: of known methods" "$(matching "$tree/tmp/collapsed" 'workload/Checksum')" '>=' 50
	[ "$(prof_handler)" = caught ] || fail "$1: async-profiler's handler is $(prof_handler)"
}

# async-profiler starts first and ends while duet samples. Then it starts second, and duet ends first.
case_beside_async_profiler() { # apart
	need_async_profiler
	start_beside
	asprof start -e cpu -i 2ms
	# shellcheck disable=SC2046 # a list
	record_beside $(engines | sed 's/itimer//')
	start_with_signals
	expect_asprof "duet inside"
	burn 1
	end_record INT
	expect_ours "it left first"

	start_with_signals
	asprof start -e cpu -i 2ms
	burn 1
	end_record INT
	expect_ours "it came second"
	burn 1
	expect_asprof "duet left first"
}

# Both use the process's one timer: the last one to set it has it, and keeps it when the other ends.
case_async_profiler_takes_sigprof() { # apart
	need_async_profiler
	start_beside
	start_record -p "$jvm" -i 2ms -d 90 --engine itimer -o collapsed -f "$here/out"
	burn 1
	asprof start -e itimer -i 2ms
	end_record INT
	expect_ours "itimer, until it was taken"
	burn 1
	expect_asprof "duet left the timer"
}

run_cases "$@"
