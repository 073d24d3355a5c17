#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# What other programs send to libasyncProfiler.so: the arguments of scripts, IDEs, images and diagnostic tools of
# several years, as public threads show them.
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so

run_java() { # JVM-OPTIONS... ARGUMENTS...
	timeout 90 "$jdk/bin/java" -Xmx256m -Dends=true -Djava.library.path="$DUET_BUILD" -cp "$workloads" "$@" \
		>"$here/stdout" 2>"$here/stderr"
	status=$?
	[ $status = 0 ] || fail "java: exit code $status: $(head -n 3 "$here/stderr")"
	# since JDK 24 about System.loadLibrary()
	! grep -vE '^(WARNING: .*)?$' "$here/stderr" || fail "the JVM has said something"
}

need_recording() {
	need_bpf
	need_root
}

# agent NAME ARGUMENTS: a JVM with -agentpath; its file is $here/NAME.
agent() {
	rm -f "$here/$1"
	run_java "-agentpath:$library=${2//FILE/$here/$1}" workload.ProfilerCalls work 700
}

expect_recorded() { # NAME FIRST-BYTES
	expect_contains "$here/stdout" '^Profiling started$'
	expect_file "$here/$1"
	[ "$(head -c ${#2} "$here/$1")" = "$2" ] || fail "$1 begins with $(head -c 20 "$here/$1")"
}

jdk_case_at_start() {
	local page='<!DOCTYPE html>'
	need_recording
	agent a.html 'start,svg,file=FILE,width=1200,framebuf=2000000,event=cpu,interval=1000000'
	expect_recorded a.html "$page"
	agent a.jfr 'start,jfr,event=cpu,interval=10ms,jstackdepth=2048,safemode=64,file=FILE'
	expect_recorded a.jfr FLR
	agent b.jfr 'start,jfr=7,event=wall,interval=10ms,cstack=no,threads,file=FILE'
	expect_recorded b.jfr FLR
	agent c.jfr 'start,event=cpu,alloc=2m,lock=10ms,chunktime=1m,chunksize=10m,file=FILE'
	expect_recorded c.jfr FLR
	agent a.txt 'start,event=itimer,interval=1ms,summary,traces=200,flat=200,file=FILE'
	expect_recorded a.txt '--- Execution profile ---'
	expect_contains "$here/a.txt" 'workload.ProfilerCalls'
	expect_lacks "$here/stdout" 'WARN'
	agent b.html 'start,event=cpu,cstack=lbr,allkernel,minwidth=0.5,title=a b,file=FILE'
	expect_recorded b.html "$page"
	agent c.html 'start,cstack=dwarf,tree,event=cpu,log=stderr,loglevel=none,file=FILE'
	expect_file "$here/c.html"
	agent a.collapsed 'start,event=ctimer,collapsed,interval=1ms,features=vtable+comptask,fdtransfer=@x,file=FILE'
	expect_recorded a.collapsed ''
	expect_contains "$here/a.collapsed" 'workload/ProfilerCalls'
}

# What an IDE asks before it starts a program, and a program that only loads the library.
jdk_case_without_recording() {
	need_recording
	agent version 'version,file=FILE'
	expect "version" "$(cat "$here/version")" == 4.5
	agent none 'file=FILE.svg'
	expect_contains "$here/stdout" '^\[ERROR\] SVG format is obsolete'
	agent none ''
	expect "lines" "$(grep -vc '^END' "$here/stdout")" == 0
}

expect_said() { # COMMAND-PATTERN ANSWER-PATTERN
	expect_contains "$here/stdout" "^$1: $2"
}

# A diagnostic tool's shell, whose user stops first, asks what is possible, and records twice.
jdk_case_shell() {
	need_recording
	run_java workload.ProfilerCalls tell stop stop version list check,event=cpu check,event=no-such-event \
		"start,event=cpu,interval=10ms,html" status getSamples collapsed,total meminfo resume,event=cpu \
		"dump,file=$here/one.html,flamegraph" "stop,file=$here/two.html,html,threads,minwidth=0.5" \
		"resume,event=cpu" "stop,file=$here/three.svg" "stop,file=$here/three.jfr,jfr" \
		"start,framebuf=5000000,event=alloc,live,jstackdepth=1000" "stop,file=$here/four.txt,flat=5,traces=1"
	expect_said stop 'IllegalStateException Profiler is not active$'
	expect_said version '4\.5'
	expect_said list 'Basic events:'
	expect_said check,event=cpu 'OK$'
	expect_said check,event=no-such-event "IllegalStateException Unsupported event type: 'no-such-event'"
	expect_said start,event=cpu,interval=10ms,html 'Profiling started$'
	expect_said status 'Profiling is running for [0-9]+ seconds$'
	expect_said collapsed,total '.*;.* [0-9]+$'
	expect_said meminfo 'Recording: [0-9]+ kB$'
	expect_said resume,event=cpu 'IllegalStateException Profiler already started$'
	expect_said resume,event=cpu 'Profiling started$'
	expect_said "stop,file=$here/three.svg" 'IllegalArgumentException SVG format is obsolete'
	for file in one.html two.html; do
		expect_contains "$here/$file" 'ProfilerCalls'
	done
	expect_said "stop,file=$here/three.jfr,jfr" 'OK$'
	expect "chunk" "$(head -c 3 "$here/three.jfr")" == FLR
	expect_contains "$here/four.txt" '--- Execution profile ---'
}

# JMH's calls, from a class whose name does not end as the profiler's does.
jdk_case_jmh() {
	local folder=$here/workload.Jmh.iterate-AverageTime
	need_recording
	run_java workload.Jmh "$here"
	expect_lacks "$here/stdout" 'WARN|ERROR'
	expect "recordings" "$(grep -c '^start: Profiling started$' "$here/stdout")" == 8
	expect "reports" "$(grep -cE '^(flat=200|flamegraph|collapsed|tree|otlp): OK$' "$here/stdout")" == 8
	for file in summary-cpu.txt both-cpu.txt; do
		expect_contains "$folder/$file" '^--- Execution profile ---'
		expect_contains "$folder/$file" 'ProfilerCalls\.two'
	done
	expect_contains "$folder/collapsed-cpu.csv" 'workload/Jmh\.iterate\(J\)V_\['
	expect_lacks "$folder/collapsed-cpu.csv" 'Jmh\.warmUp'
	expect_contains "$folder/collapsed-alloc.csv" ';[a-zA-Z.]+(\[\])?_\[[ik]\] [0-9]+$'
	for file in flame-cpu-forward.html flame-cpu-reverse.html tree-cpu.html; do
		expect_contains "$folder/$file" '</html>'
	done
	! cmp -s "$folder/flame-cpu-forward.html" "$folder/flame-cpu-reverse.html" || fail "both directions are alike"
	for file in jfr-cpu.jfr jfr-profile.jfr; do
		expect "chunk of $file" "$(head -c 3 "$folder/$file")" == FLR
	done
}

# Arguments that are sent to a JVM that runs, as a process of the same user does with its attach protocol.
jdk_case_attached() {
	need_recording
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_jvm "$jdk" workload.Shares 90
	send 0 "start,event=cpu,file=$here/a.collapsed,collapsed,ann,sig,threads,interval=1000000,log=$here/log,$(
		)fdtransfer=@y,safemode=0,,features=probesp+vtable,timeout=60"
	expect_contains "$here/log" '^Profiling started$'
	send 200 "start,event=cpu,log=$here/log"
	expect_contains "$here/log" '^\[ERROR\] Profiler already started$'
	log_is_a_trap
	sleep 1
	send 0 "stop,log=$here/log,mcache=30,file=$here/a.collapsed,collapsed,ann,sig"
	expect_contains "$here/a.collapsed" 'workload/Shares\.'
	send 100 "start,interval=-1"
	send 0 "start,event=wall,,alluser,interval=5000000,meminfolog,includemm,includeln"
	send 0 "stop,file=$here/b.html"
	expect_file "$here/b.html"
	send 200 stop
	expect_alive "$jvm"
}

# Another user's link, where no kernel refuses it.
log_is_a_trap() {
	[ "$(id -u)" = 0 ] || return 0
	mkdir "$here/open" && chmod 777 "$here/open"
	echo ours >"$here/ours"
	setpriv --reuid=65534 --regid=65534 --clear-groups ln -s "$here/ours" "$here/open/log"
	send 200 "start,event=cpu,log=$here/open/log"
	expect "the file that the link names" "$(cat "$here/ours")" == ours
}

send() { # CODE ARGUMENTS
	"$here/asprof" load "$jvm" "$library" true "$2" >"$here/reply" 2>&1
	expect "result of $2" "$(sed -nE 's/^(return code: )?([0-9]+)$/\2/p' "$here/reply" | tail -n 1)" == "$1"
}

# The word stands for the JVM that was started last. In a namespace of its own, the test knows all of them.
case_jps() {
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	timeout 60 unshare --pid --fork --mount-proc bash -c '
		"$0" -cp "$1" workload.Shares 60 >/dev/null 2>&1 & sleep 1
		"$0" -cp "$1" workload.Idle >/dev/null 2>&1 & sleep 2
		"$2" jcmd jps VM.command_line; kill %1 %2' \
		"$(any_jdk)/bin/java" "$workloads" "$here/asprof" >"$here/stdout" 2>&1
	expect_contains "$here/stdout" 'java_command: workload\.Idle'
}

asprof() { # ARGUMENTS...
	timeout 60 "$here/asprof" "$@" >"$here/stdout" 2>"$here/stderr" ||
		fail "asprof $*: exit code $?: $(head -n 3 "$here/stderr")"
}

has_stacks() { # PID
	asprof dump "$1" -o collapsed
	grep -q 'workload/Shares' "$here/stdout"
}

# Options and actions that later versions do not have, in the order of scripts that people keep.
jdk_case_older_scripts() {
	need_recording
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_jvm "$jdk" workload.Shares 90
	asprof start "$jvm" -b 4000000 --fdtransfer
	asprof status "$jvm" --fdtransfer
	expect_contains "$here/stdout" 'is running'
	asprof meminfo "$jvm"
	expect_contains "$here/stdout" '^Recording: [0-9]+ kB$'
	wait_for 20 has_stacks "$jvm"
	asprof stop "$jvm" --fdtransfer -o flamegraph
	expect_contains "$here/stdout" 'workload/Shares'
	asprof -e wall -d 1 -b 10000000 -f "$here/%p_1.html" -s -o html --all-kernel --sync-walk "$jvm"
	expect_file "$here/${jvm}_1.html"
	asprof -d 1 -o summary,flat=3 "$jvm"
	expect_contains "$here/stdout" '^--- Execution profile ---'
}

# An empty file or page is no failure, and says so.
jdk_case_without_samples() {
	need_recording
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	start_jvm "$jdk" workload.Shares 90
	asprof -d 1 --trace workload.Shares.noSuchMethod -f "$here/a.html" "$jvm"
	expect_contains "$here/stderr" '^\[INFO\] No samples were collected$'
	expect_file "$here/a.html"
	asprof -d 1 -f "$here/b.html" "$jvm"
	expect_lacks "$here/stderr" INFO
	agent status 'status,file=FILE'
	expect "lines" "$(grep -vc '^END' "$here/stdout")" == 0
	expect_contains "$here/status" '^Profiler is not active$'
}

run_cases "$@"
