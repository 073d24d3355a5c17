#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Events that name a place in the kernel, in a program, or in memory: the counts are what the workload has done.
. "$(dirname "$0")/lib.sh"

program=$workloads/events
rounds=20000
bytes=9990000 # of rounds writes, of i % 1000 bytes each

start_workload() { # ARGUMENTS...
	rm -f "$here"/out* "$here/gate"
	jvm_out=$here/events.out
	"$program" "$here/gate" "$@" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
}

record_rounds() { # EVENTS: leaves $here/out.collapsed and, for further events, $here/out.EVENT.collapsed
	start_workload places $rounds
	start_record --no-attach -p "$jvm" -e "$1" --total -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
}

amount() { # FILE PATTERN
	local both
	both=$(matching "$1" "$2")
	echo "${both% *}"
}

# After a run that the hypervisor has interrupted for long, BPF rests, and the next sample counts what it has missed; at
# the end there is none.
expect_amount() { # WHAT EVENT PATTERN [EXPECTED]: EVENT is "" for the first
	expect_near "$1" "$(amount "$here/out${2:+.$2}.collapsed" "$3")" "${4:-$rounds}" $((${4:-$rounds} / 50))
}

need_uprobes() {
	need_bpf
	[ -e /sys/bus/event_source/devices/uprobe ] || skip "no uprobes"
}

# Some hypervisors take breakpoints and never stop at them.
has_breakpoints() {
	! "$duet" check 2>&1 | grep -q 'mem:… needs'
}

need_syscalls() {
	need_bpf
	[ "$(id -u)" = 0 ] || skip "only root reads tracefs"
	"$duet" record -p $$ -d 0.1 -e syscalls:write -o collapsed -f "$here/tried" >/dev/null 2>&1 ||
		skip "no tracepoints of single system calls"
}

# Probes at both ends of a function, and a static probe that the program passes only while its counter is up, beside the
# clock.
case_functions() {
	need_uprobes
	record_rounds cpu,uprobe:events:counted,uretprobe:events:counted,usdt:events:duet_test:passed
	expect_amount "calls" uprobe:events:counted ';main;(run;)?(places;)?counted '
	expect_amount "returns" uretprobe:events:counted ';(main|run|places) '
	expect_amount "passes" usdt:events:duet_test:passed ';main;(run;)?(places;)?pass '
	expect "files" "$(echo "$here"/out*.collapsed | wc -w)" '==' 4
}

# The file by its whole path, and one call in 7 on average: 2,857 samples, whose number has an error of 2 %.
case_function_seldom() {
	need_uprobes
	record_rounds "uprobe:$program:counted=7"
	expect_amount "calls" '' ';main;(run;)?(places;)?counted '
	expect "samples" "$(grep -oE '[0-9]+ samples in' "$here/stderr" | head -n 1)" '<' 4000
}

# A variable by its name and by its address: two breakpoints, each with its own count.
case_variable() {
	need_bpf
	has_breakpoints || skip "no breakpoints that work"
	local address
	record_rounds mem:watched:w,mem:watched/8:rw
	expect_amount "writes" '' ';(main|run|places) '
	expect_amount "accesses" mem:watched_8:rw ';(main|run|places) '
	start_workload places $rounds
	address=$(awk -v base="$(awk '/events$/ {print $1; exit}' "/proc/$jvm/maps" | cut -d- -f1)" \
		-v symbol="$(nm "$program" | awk '$3 == "watched" {print $1}')" 'BEGIN {print base, symbol}')
	start_record --no-attach -p "$jvm" -e "mem:$(printf '0x%x' $((0x${address% *} + 0x${address#* }))):w" --total \
		-d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
	expect_amount "writes to the address" '' ';(main|run|places) '
}

# Only the program's debug file has these names.
case_debug_file() {
	need_uprobes
	command -v objcopy >/dev/null || skip "no objcopy"
	local from=$program program=$here/events watched=
	! has_breakpoints || watched=,mem:watched:w
	objcopy --only-keep-debug "$from" "$program.debug" &&
		objcopy --strip-all --add-gnu-debuglink="$program.debug" "$from" "$program" || fail "objcopy"
	record_rounds "uprobe:events:counted,uretprobe:$program:counted,uprobe:*:counted$watched"
	expect_amount "calls" '' ';main;(run;)?(places;)?counted '
	expect_amount "returns" "uretprobe:${program//[\/.]/_}:counted" ';(main|run|places) '
	expect_amount "calls, in any file" 'uprobe:_:counted' ';counted '
	[ -z "$watched" ] || expect_amount "writes" mem:watched:w ';(main|run|places) '
}

# A system call by its name and by its tracepoint. The tracepoint is weighed by a field, once exactly and once at
# random: 9,990 samples of 1,000 bytes each, an error of 1 %.
case_system_call() {
	need_syscalls
	record_rounds syscalls:write
	expect_amount "calls" '' ';main;(run;)?(places;)?(__)?write '
	record_rounds 'cpu,syscalls:sys_exit_write,syscalls:sys_enter_write{count},raw_syscalls:sys_exit{ret}'
	expect_amount "calls that ended" syscalls:sys_exit_write ';main;(run;)?(places;)?(__)?write '
	expect_amount "bytes" syscalls:sys_enter_write_count_ ';(__)?write ' $bytes
	expect_amount "bytes by the end of the call" raw_syscalls:sys_exit_ret_ ';(__)?write;' $bytes
	record_rounds 'syscalls:sys_enter_write{count}=1000'
	expect_near "bytes, sampled" "$(amount "$here/out.collapsed" '(__)?write ')" $bytes $((bytes / 15))
	expect "samples" "$(grep -oE '[0-9]+ samples in' "$here/stderr" | head -n 1)" '<' 12000
}

# The kernel counts up to the interval: each sample weighs as much, and each CPU keeps less than one at the end.
case_kernel_counts() {
	need_bpf
	start_workload faults $rounds
	start_record --no-attach -p "$jvm" -e software/config=2/=7 --total -d 100 -o collapsed \
		-f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
	expect_near "faults" "$(amount "$here/out.collapsed" 'one_page|three_pages')" $((4 * rounds)) \
		$((4 * rounds / 20))
	[ $(($(total "$here/out.collapsed") % 7)) = 0 ] || fail "a sample does not weigh 7"
}

case_minor_faults() {
	need_bpf
	start_workload faults $rounds
	start_record --no-attach -p "$jvm" -e minor-faults,major-faults,cpu-migrations,cpu --total -d 100 -o collapsed \
		-f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
	expect_near "faults" "$(amount "$here/out.collapsed" 'one_page|three_pages')" $((4 * rounds)) \
		$((4 * rounds / 20))
}

# A command's probes are there from its first instruction on, in the processes that it starts as well.
case_command() {
	need_uprobes
	touch "$here/gate"
	run_duet record -e "uprobe:$program:counted" --total -o collapsed -f "$here/out.collapsed" -- \
		bash -c "'$program' '$here/gate' places $rounds; '$program' '$here/gate' places $rounds"
	expect_status 0
	expect_amount "calls of two children" '' ';main;(run;)?(places;)?counted ' $((2 * rounds))
}

# The workload makes as many calls of poll as of epoll_wait, and 20,000 of each for one of nanosleep.
jdk_case_java() {
	need_uprobes
	need_syscalls
	local calls file
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.SystemCalls 2
	start_record -p "$jvm" -e "syscalls:poll=10,uprobe:libworkload.so:Java_workload_SystemCalls_interrupted" -d 60 \
		--total -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	[ "$(jvm_said EINTR) $(jvm_said EINTR 3) $(jvm_said EINTR 4)" = '0 0 0' ] ||
		fail "system calls were interrupted: $(grep ^EINTR "$jvm_out")"
	calls=$(jvm_said CALLS)
	grep 'Java_workload_SystemCalls_interrupted' "$here/out.collapsed" >"$here/native"
	expect_near "calls of poll" "$(total "$here/native")" $((calls / 2)) $((calls / 40))
	expect_share "of them with the method's Java caller" \
		"$(matching "$here/native" 'SystemCalls.main.*SystemCalls.interrupted')" '>=' 99
	file=$here/out.uprobe:libworkload_so:Java_workload_SystemCalls_interrupted.collapsed
	expect "calls of the native method from Java" \
		"$(amount "$file" 'SystemCalls.main.*SystemCalls.interrupted.*Java_workload_SystemCalls_interrupted')" \
		'==' 1
}

refuse() { # EVENT WHY
	run_duet record -p "$jvm" -d 1 -o collapsed -f "$here/out" -e "$1"
	[ "$status" != 0 ] || fail "$1 was accepted"
	expect_contains "$here/stderr" "$2"
	expect "lines about $1" "$(grep -c 'duet: error' "$here/stderr")" '==' 1
}

# Each wrong word gives one sentence with the cause, and no file.
case_wrong() {
	need_uprobes
	local user
	start_workload places 1
	mkfifo "$here/fifo"
	echo 'no program' >"$here/text"
	refuse "uprobe:$here/fifo:f" 'fifo is no regular file'
	refuse "uprobe:/dev/zero:f" '/dev/zero is no regular file'
	refuse "uprobe:$here:f" 'is no regular file'
	refuse "uprobe:$here/text:f" 'no program or library'
	refuse "uprobe:$here/missing:f" 'missing cannot be read: No such file'
	refuse "uprobe:$program:count" "no function 'count'.*did you mean counted"
	refuse "uprobe:/:f" '/ is no regular file'
	refuse "uprobe:$program:+0x7fffffffff" 'no code at the offset 0x7fffffffff'
	refuse "uprobe:$program:+0" 'no code at the offset 0x0'
	refuse "uprobe:$program:counted+0x7fffffffff" 'no code at the offset'
	refuse "uprobe:libnothing.so:f" "no file 'libnothing.so' mapped"
	refuse "usdt:$program:duet_test:past" "no static probe duet_test:past; it has duet_test:passed"
	refuse "usdt:/bin/sh:a:b" 'no static probe a:b'
	refuse mem:nowhere:w "no variable or function 'nowhere'"
	if has_breakpoints; then
		refuse mem:watched:r 'give :rw'
		refuse mem:watched+1/8:w 'multiple of its 8 bytes'
	else
		refuse mem:watched:w 'no breakpoints that work'
	fi
	refuse mem:0xffffffffffffffff:rw 'no program can have memory at 0xffffffffffffffff'
	refuse mem:0:w 'no program can have memory at 0x0'
	refuse mem:0x8000000000000000:x 'no program can have memory at'
	refuse mem:99999999999999999999 'not of the form'
	refuse nopmu/event=1/ "no PMU 'nopmu'"
	refuse software/teapot/ "no event or term 'teapot'"
	[ -e /sys/bus/event_source/devices/kprobe ] || refuse kprobe:do_exit 'without kprobes'
	[ -e /sys/bus/event_source/devices/cpu ] || refuse cycles 'no counter of this machine.*-e cpu'
	need_syscalls
	refuse 'syscalls:write,syscalls:sys_enter_write{count}' 'are one tracepoint'
	refuse sched:sched_swich "did you mean sched_switch"
	refuse schd:sched_switch "did you mean sched"
	refuse 'sched:sched_switch{prev_pids}' 'has no field prev_pids; it has prev_pid'
	refuse 'sched:sched_switch{prev_comm}' 'no whole number'
	[ ! -e "$here/out" ] || fail "a refused recording leaves a file"
}

case_listed() {
	run_duet list
	expect_status 0
	expect_contains "$here/stdout" '^  uprobe:FILE:FUNCTION'
	[ -e /sys/bus/event_source/devices/kprobe ] ||
		expect_contains "$here/stdout" '^  kprobe:FUNCTION .*not available here'
	run_duet check
	expect_contains "$here/stdout" '^  (yes|no) +probes of programs and libraries'
}

# The JVM is init of its container, and never collects a process: none may be left to it.
case_jvm_is_init() {
	need_root
	need_bpf
	local inside words zombies
	jdk=$(any_jdk)
	JVM_AS=(unshare --fork --pid --mount-proc --kill-child)
	start_jvm "$jdk" workload.Shares 60
	inside=$(pgrep -P "$jvm")
	# LeakSanitizer's own process becomes one of init's when the process that it looks at is killed.
	export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0
	for words in "--agent never" "-e lock,alloc,cpu" "-e uprobe:$(libc_of "$inside"):malloc"; do
		# shellcheck disable=SC2086 # words
		nsenter -t "$inside" -p -m "$DUET_BUILD/duet" record $words -d 1 -p 1 -f "$here/out.duet" \
			2>"$here/stderr" || fail "$words: $(tail -n 3 "$here/stderr")"
		zombies=$(ps --ppid "$inside" -o comm= | tr '\n' ' ')
		expect "processes of init after $words: $zombies" "$(wc -w <<<"$zombies")" == 0
	done
}

libc_of() { # PID
	sed -n 's/.* \(\/.*libc[.]so[.]6\)$/\1/p' "/proc/$1/maps" | head -n 1
}

run_cases "$@"
