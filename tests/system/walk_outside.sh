#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
# Java frames without an agent: the loader reads the JVM's structures from outside, and BPF walks by them.
. "$(dirname "$0")/lib.sh"

[ "$(uname -m)" = x86_64 ] || { echo "skip walk_outside: its limits were measured on x86-64 only"; exit 0; }

read_outside() { # CPU_SECONDS OPTIONS...
	record_cpu "$1" -p "$jvm" --no-attach -v -o collapsed -f "$here/out" "${@:2}"
}

# The expected shares are those that the thread's own clock measured.
jdk_case_shares() {
	local method want
	need_bpf
	start_jvm "$jdk" workload.Shares 60
	read_outside 3 -i 1ms
	expect_share "walked to the entry" "$(reported walked)" '>=' 99
	expect_share "joined" "$(reported joined)" '>=' 99
	grep -E 'Shares\.(fifty|thirty|twenty)' "$here/out" >"$here/three"
	for method in fifty:50 thirty:30 twenty:20; do
		want=${method#*:}
		method=${method%:*}
		expect_near "share of $method" "$(share "$here/three" "Shares.$method;workload/Shares.kernel")" \
			"$want" 6
	done
}

# The frames of one stack, of every kind and with lines, are equal as the agent names them and as they are read from
# outside.
jdk_case_as_the_agent_sees_it() {
	local kind
	need_bpf
	start_jvm "$jdk" workload.Mixed
	warm_up 4
	for kind in always never; do
		record_cpu 1 -p "$jvm" -i 1ms -a --lines --agent $kind -o collapsed -f "$here/$kind"
		grep 'workload/Mixed' "$here/$kind" | sed -E 's/ ([0-9]+)$/\t\1/' |
			awk -F '\t' '{ n[$1] += $2 } END { for (s in n) print n[s] "\t" s }' | sort -rn |
			head -n 1 | cut -f 2 >"$here/$kind.top"
	done
	expect "frames of the top stack" "$(tr ';' '\n' <"$here/always.top" | grep -c workload)" '>=' 20
	cmp -s "$here/always.top" "$here/never.top" ||
		fail "the agent names $(cat "$here/always.top"), from outside it is $(cat "$here/never.top")"
}

latin=a-latin-name-that-is-longer-than-fifteen-bytes-é

# record_long_names JVM_OPTION… -> $here/spin
record_long_names() {
	need_jdk 17 "list of threads that is read"
	need_bpf
	JVM_OPTS=("$@")
	start_jvm "$jdk" workload.LongNames
	warm_up 4
	start_record -p "$jvm" --no-attach -d 60 -i 1ms -t -o collapsed -f "$here/out"
	sleep 5
	end_record INT
	expect_status 0
	grep 'LongNames\.spin' "$here/out" >"$here/spin"
}

# name_share PERCENT NAME
name_share() {
	expect_share "samples of $2" "$(matching "$here/spin" "^\\\\[$2 tid=")" '>=' "$1"
}

# Longer than the kernel's 15 bytes. The collector moves them while they are read. One thread gets a new name.
jdk_case_long_names() {
	record_long_names -XX:+UseParallelGC
	name_share 15 $latin
	name_share 15 ein-名前-that-is-longer-than-fifteen-😀-bytes
	name_share 15 it-is-called-this-after-it-was-renamed
	name_share 95 '(a-latin-[a-z-]*-bytes-é|ein-名前-[a-z-]*-😀-bytes|it-(is|was)-called-this-[a-z-]*-renamed)'
}

# ZGC collects when a tenth of the heap is used: since then all references have an outdated colour.
jdk_case_long_names_of_zgc() {
	record_long_names -XX:+UseZGC -Xmx400m
	name_share 15 $latin
	name_share 15 ein-名前-that-is-longer-than-fifteen-😀-bytes
}

# The memory of an unloaded class is soon reused for another one. No stack may have names of two classes.
jdk_case_unloading() {
	need_bpf
	JVM_OPTS=(-XX:+UseSerialGC)
	start_jvm "$jdk" workload.Unloading
	read_outside 3 -i 500us
	perl -ne 'next unless /outer(\d{10})/; $all += (split)[-1]; my %n = map { $_ => 1 } /\D(\d{10})\b/g;
		$wrong += (split)[-1] if keys %n > 1 }{ print $all + 0, " ", $wrong + 0, "\n"' \
		"$here/out" >"$here/numbers"
	read -r all wrong <"$here/numbers"
	expect "samples with a number" "$all" '>=' 1000
	expect "of them with two numbers" "$wrong" == 0
	expect_share "unloaded before they were named" "$(matching "$here/out" 'unloaded_class')" '<=' 10
}

# The life of such a JVM is shorter than an attach takes.
jdk_case_short_lives() {
	need_bpf
	[ -x "$jdk/bin/javac" ] || skip "no javac in $jdk"
	mkdir "$here/classes"
	record --no-attach -t -i 2ms -o collapsed -f "$here/out" -- sh -c "for i in 1 2 3; do
		'$jdk/bin/javac' -proc:none -d '$here/classes' -cp '$workloads' $PWD/tests/workloads/S*.java; done"
	expect_status 0
	expect_share "needed a signal" "$(reported_needed)" '<=' 0
	# The main threads: before their name is read, they have that of the process.
	grep -E '^\[javac[^;]*;\[(javac|main) ' "$here/out" >"$here/main"
	expect_share "Java frames on the main threads" "$(matching "$here/main" 'com/sun/tools/javac|java/')" '>=' 85
	expect_share "without a name" "$(matching "$here/main" 'unknown_(method|code)|unloaded')" '<=' 3
}

reported_needed() {
	sed -n 's/.*walked: [0-9]* of \([0-9]*\) .* \([0-9]*\) needed a signal.*/\2 \1/p' "$here/stderr" | tail -n 1
}

# A JVM that refuses agents has Java frames nevertheless.
case_no_attach_mechanism() { # apart
	need_bpf
	need_root
	JVM_OPTS=(-XX:+DisableAttachMechanism)
	start_jvm "$(any_jdk)" workload.Shares 60
	record_cpu 1 --host --agent always -i 2ms -o collapsed -f "$here/out"
	expect_contains "$here/stderr" "JVM $jvm .*its Java frames are read from outside"
	expect "samples in its methods" "$(total <(grep "pid=$jvm\]" "$here/out" | grep 'Shares.main'))" '>=' 100
}

# A JVM that can be read gets no agent; a JVM that cannot be read gets one. Each has its own recording, because other
# duets may attach.
case_agent_where_needed() {
	need_bpf
	start_jvm "$(any_jdk)" workload.Shares 60
	record_cpu 2 -p "$jvm" -i 1ms -o collapsed -f "$here/out"
	expect_share "walked to the entry" "$(reported walked)" '>=' 99
	expect_lacks "$here/stderr" 'native frames only|stacks cut' # from the first sample on
	expect_contains "$here/stderr" 'agreed: read from outside: no witness'
	expect_contains "$here/out" 'workload/Shares.main'
	record -p "$jvm" --agent always --no-attach -d 1
	expect_refusal 2 '--no-attach is --agent never: leave out --agent always'
	record -p "$jvm" --agent sometimes -d 1
	expect_refusal 2 "unknown --agent 'sometimes': needed, always or never"
}

# Its native method overwrites its frame with other words, so no walk gets past it.
case_agent_where_walks_are_cut() { # alone: a recording of the whole host may bring its agent first
	need_bpf
	start_jvm "$(any_jdk)" workload.Crafted 60 spin
	start_record -p "$jvm" -d 60 -i 1ms -o collapsed -f "$here/out"
	wait_for 30 grep -qs memfd:duet-ring "/proc/$jvm/maps"
	sleep 1
	end_record INT
	expect_status 0
	expect_contains "$here/stderr" 'read: 0 JVMs from outside, 0 by an agent, 1 from outside until an agent was in'
}

# The name of the moment: the kernel's, where the thread renames itself, which the first samples show; Java's, where
# another one does.
jdk_case_renamed_threads() {
	need_bpf
	start_jvm "$jdk" workload.Renamed 60
	record -p "$jvm" -d 3 -i 2ms -t -o collapsed -f "$here/out"
	expect_status 0
	need_plain "names of a few milliseconds are read late"
	grep 'Renamed\.serve;' "$here/out" >"$here/server"
	expect_share "requests under their names" "$(matching "$here/server" \
		'^\[orders-a tid=[0-9]+\];.*Renamed\.orders|^\[billing-b tid=[0-9]+\];.*Renamed\.billing')" '>=' 90
	grep 'Renamed\.paint' "$here/out" >"$here/painter"
	expect_share "the painter" "$(matching "$here/painter" '^\[painter-of-the-fourth-hour tid=')" '>=' 98
}

# Children of vfork() run the JVM's code in its memory until they execute their program: they count for the JVM.
jdk_case_vfork_children() {
	need_bpf
	need_root
	JVM_OPTS=(-Djdk.lang.Process.launchMechanism=VFORK)
	start_jvm "$jdk" workload.Spawner
	make_freezer 0 cgroup2 cgroup.procs
	echo "$jvm" >"$freezer/cgroup.procs"
	record --cgroup "$freezer" -d 3 -i 200us -t -o collapsed -f "$here/out"
	expect_status 0
	grep ';childProcess' "$here/out" >"$here/children"
	[ "$(total "$here/children")" -gt 20 ] || skip "too few samples of children"
	expect_share "children under their caller" "$(matching "$here/children" \
		"^\\[[^;]*pid=$jvm\\];.*Spawner\\.spawn;.*forkAndExec;")" '>=' 99
}

# Threads that have given up their memory, and only end: 2 % of this program. Nothing of them is missing. The agent's
# own thread has one frame.
case_threads_that_end() {
	need_bpf
	start_jvm "$(any_jdk)" workload.ShortThreads 60
	record -p "$jvm" -d 2 -i 200us -o collapsed -f "$here/out"
	expect_status 0
	expect_share "ending threads" "$(matching "$here/out" '^\[exiting\];.*do_exit')" '>=' 0.2
	expect_lacks "$here/out" 'not_signalled_exiting'
	expect_lacks "$here/stderr" 'exiting or in exec|by an agent, [1-9]'
	record -p "$jvm" -d 2 -i 200us --agent always -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" '^\[duet_agent\] [0-9]+$'
	expect_lacks "$here/out" 'not_signalled_exiting'
}

# Prints the pid of our process that reads $jvm: it has a pidfd of it. Another test may read the JVM, too: its processes
# are of another process group.
reader() {
	local at group
	group=$(cut -d ' ' -f 5 "/proc/$BASHPID/stat")
	for at in /proc/[0-9]*; do
		grep -qsx duet-outside "$at/comm" && grep -qsx "Pid:	$jvm" "$at/fdinfo"/* || continue
		[ "$(cut -d ' ' -f 5 "$at/stat" 2>/dev/null)" = "$group" ] || continue
		echo "${at#/proc/}"
		return
	done
	return 1
}

is_gone() { # PID
	! kill -0 "$1" 2>/dev/null
}

# A reader that does not answer delays no other, and it ends with the recording.
case_readers_that_hang_or_die() {
	local signal before pid
	need_bpf
	need_root
	start_jvm "$(any_jdk)" workload.Shares 90
	for signal in STOP KILL; do
		start_record -p "$jvm" --no-attach -d 60 -i 2ms -o collapsed -f "$here/out"
		wait_for 10 reader >/dev/null
		pid=$(reader)
		kill -"$signal" "$pid"
		sleep 1
		before=$SECONDS
		end_record INT
		expect_status 0
		expect "seconds to end after SIG$signal" $((SECONDS - before)) '<=' 20
		kill -CONT "$pid" 2>/dev/null
		wait_for 10 is_gone "$pid"
	done
	expect_alive "$jvm"
}

has_other_reader() { # than PID
	local pid
	pid=$(reader) && [ "$pid" != "$1" ]
}

# Prints the number of the loss with this text.
lost() { # TEXT
	sed -n "s/^.*  *\([0-9]*\)  *$1.*/\1/p" "$here/stderr" | tail -n 1
}

# A reader that was killed is replaced, up to a limit. The samples are counted meanwhile.
case_killed_readers_are_replaced() {
	local i pid=0
	need_bpf
	need_root
	start_jvm "$(any_jdk)" workload.Shares 90
	start_record -p "$jvm" --no-attach -d 60 -i 2ms -o collapsed -f "$here/out"
	for i in 1 2 3 4 5; do
		wait_for 20 has_other_reader "$pid"
		pid=$(reader)
		sleep 0.5
		kill -KILL "$pid"
	done
	wait_for_line "$here/stderr" "JVM $jvm: the process that reads it has ended 5 times: native frames only" 10
	sleep 1
	! has_other_reader "$pid" || fail "there is a sixth reader"
	end_record INT
	expect_status 0
	expect "readers lost" "$(lost 'readers of JVMs that ended before their JVM')" == 5
	expect "samples without one" "$(lost 'samples without Java frames')" '>=' 100
	# with a reader for 2.5 s, without one for 6
	expect_share "with Java frames" "$(matching "$here/out" 'workload/Shares.main')" '>=' 15
	expect_alive "$jvm"
}

# A file has the name libjvm.so and is not a libjvm.
case_not_a_jvm() {
	need_bpf
	need_root
	mkdir "$here/lib"
	cp "$workloads/liblarge_small.so" "$here/lib/libjvm.so"
	"$workloads/libraries" "$here/lib/libjvm.so" >"$here/liar" &
	jvm=$!
	wait_for_line "$here/liar" READY 10
	record -p "$jvm" --no-attach -d 2 -i 2ms -o collapsed -f "$here/out"
	kill "$jvm"
	expect_status 0
	expect_contains "$here/stderr" "JVM $jvm: its libjvm.so (does not describe|cannot be read)"
	expect "samples in its function" "$(total <(grep library_work "$here/out"))" '>=' 20
}

# A libjvm whose tables have no end, change while they are read, or cannot be read to the end. The other JVM has its
# frames, and nobody waits for what is read of the first.
case_lying_libjvm() {
	local how liar before took
	need_bpf
	need_root
	mkdir "$here/lib"
	cp "$workloads/libliar.so" "$here/lib/libjvm.so"
	start_jvm "$(any_jdk)" workload.Shares 90
	for how in endless rewritten hangs; do
		LIAR=$how "$workloads/libraries" "$here/lib/libjvm.so" >"$here/liar" &
		liar=$!
		jvms+=("$liar")
		wait_for_line "$here/liar" READY 10
		! grep -q '^NO ' "$here/liar" || continue # this kernel does not permit userfaultfd(2)
		before=$SECONDS
		record -p "$liar" -p "$jvm" --no-attach -d 2 -i 2ms -o collapsed -f "$here/out"
		took=$((SECONDS - before))
		expect_status 0
		echo "# $how: $took s for a recording of 2 s"
		expect "$how: seconds more than the recording" $((took - 2)) '<=' 6
		expect "$how: samples in its function" "$(total <(grep library_work "$here/out"))" '>=' 20
		expect "$how: with a name of Java" "$(total <(grep library_work "$here/out" | grep 'workload/'))" '<=' 0
		expect_share "$how: the other JVM's" "$(
			matching <(grep -vE 'library_work|rewrite' "$here/out") 'Shares.main')" \
			'>=' 80
		kill "$liar"
	done
	expect_alive "$jvm"
}

run_cases "$@"
