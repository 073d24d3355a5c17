#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
#
# Root's `asprof` asks processes of a user who wishes it ill: his "JVM", his recorder, his sockets. It ends in time, its
# terminal shows text, and its files are its own.
. "$(dirname "$0")/lib.sh"

uid=1535
as_attacker=(setpriv --reuid=$uid --regid=$uid --clear-groups)
folder=/tmp/.duet-asprof-$uid

# run_asprof SECONDS WORDS... -> $here/stdout, $here/stderr, $status; $took in ms
run_asprof() {
	local patience=$1 begin
	shift
	begin=$(date +%s%3N)
	timeout --kill-after=2 "$patience" "$here/asprof" "$@" >"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	took=$(($(date +%s%3N) - begin))
	[ $status != 124 ] && [ $status != 137 ] || fail "asprof $1 has not ended within $patience s"
}

start_attacker() { # WHAT HOW FILE: its pid is $attacker
	need_root
	ln -sf "$DUET_BUILD/duet" "$here/asprof"
	cp "$DUET_BUILD/tests/system/asprof_hostile" /bin/true "$here"
	cp /bin/true "$here/libjvm.so"
	chmod 755 "$here/asprof_hostile" "$here/libjvm.so"
	chmod 755 "$here"
	rm -f "$here/attacker"
	"${as_attacker[@]}" env -u XDG_RUNTIME_DIR "$here/asprof_hostile" "$1" "$2" "$3" >"$here/attacker" 2>&1 &
	attacker=$! jvm=$!
	jvms+=("$attacker")
	wait_for_line "$here/attacker" '^READY' 10
}

end_attacker() {
	kill -KILL "$attacker" 2>/dev/null
	wait "$attacker" 2>/dev/null
	rm -rf "/tmp/.java_pid$attacker" "$folder"
}

after_case() {
	rm -rf "$folder"
	[ -z "${attacker:-}" ] || rm -f "/tmp/.java_pid$attacker"
}

expect_text() { # FILE...
	! LC_ALL=C grep -qaP '[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]|\xe2\x80\xae' "$@" ||
		fail "control characters: $(LC_ALL=C cat -v "$@" | head -n 5)"
}

case_replies() {
	start_attacker jvm escape "$here/libjvm.so"
	run_asprof 20 jcmd "$attacker" VM.version
	expect_text "$here/stdout" "$here/stderr"
	expect_contains "$here/stdout" '^name .\]0;owned.'
	expect_contains "$here/stdout" $'^\tat a.b$'
	expect_contains "$here/stdout" 'no end'
	expect_status 0
	end_attacker
	start_attacker jvm endless "$here/libjvm.so"
	timeout 60 "$here/asprof" jcmd "$attacker" VM.version 2>"$here/stderr" | wc -c >"$here/stdout"
	expect "bytes printed" "$(cat "$here/stdout")" '<' $((300 << 20))
	expect_contains "$here/stderr" 'longer than 256 MB'
	end_attacker
	start_attacker name - -
	run_asprof 20 jcmd "$attacker" VM.version
	expect_text "$here/stdout" "$here/stderr"
	expect_contains "$here/stderr" 'is not a HotSpot JVM'
	end_attacker
}

case_silent_reply() {
	start_attacker jvm silent "$here/libjvm.so"
	run_asprof 60 jcmd "$attacker" VM.version
	expect_status 1
	expect_contains "$here/stderr" 'sent nothing for 30 s'
	end_attacker
}

expect_ended_by() { # SIGNAL WORDS...: within a second
	local signal=$1 asprof begin
	shift
	env --default-signal=INT "$here/asprof" "$@" >"$here/stdout" 2>"$here/stderr" </dev/null &
	asprof=$!
	sleep 1
	begin=$(date +%s%3N)
	kill -s "$signal" $asprof
	wait_for 20 process_has_ended $asprof || kill -KILL $asprof
	took=$(($(date +%s%3N) - begin))
	wait $asprof
	expect "ms until asprof $1 ended by SIG$signal" "$took" '<' 1500
}

process_has_ended() {
	[[ ! -e /proc/$1 || $(cut -d ' ' -f 3 "/proc/$1/stat") = Z ]]
}

# Nobody accepts, or nobody answers.
case_sockets() { # apart
	start_attacker recorder full -
	run_asprof 20 status "$attacker"
	expect_status 0
	expect "ms of asprof status" "$took" '<' 6000
	expect_contains "$here/stdout" '^Profiler is not active$'
	expect_ended_by INT status "$attacker"
	end_attacker
	start_attacker recorder mute -
	run_asprof 30 status "$attacker"
	expect "ms of asprof status" "$took" '<' 15000
	expect_ended_by TERM status "$attacker"
	expect_ended_by INT -d 30 "$attacker"
	expect_ended_by TERM -d 30 "$attacker"
	end_attacker
}

expect_no_report() { # HOW
	expect_status 200 "asprof with a report that is $1"
	expect_contains "$here/stderr" "^\[ERROR\] .*the other user's recorder sent what is no (report|recording)$"
	[ ! -e "$here/out.html" ] && [ ! -s "$here/stdout" ] || fail "there is a report that is $1"
	expect "ms with a report that is $1" "$took" '<' 10000
}

no_report() { # HOW FILE
	start_attacker recorder "$1" "$2"
	run_asprof 30 stop -f "$here/out.html" "$attacker"
	expect_no_report "$1"
	run_asprof 30 stop -o collapsed "$attacker"
	expect_no_report "$1"
	end_attacker
}

# Descriptors that are no report: they have no end, may change, keep their reader waiting, or hold a page for a browser.
case_reports() { # apart
	need_bpf
	need_root
	echo '<!DOCTYPE html><script>evil()</script>' >"$here/evil.html"
	"$workloads/busy" 1 1000 >"$here/busy" 2>&1 &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/busy" '^READY' 10
	record_cpu 1 -p "$jvm" -o duet -f "$here/some.duet"
	end_jvm
	expect_file "$here/some.duet"
	chmod 644 "$here/some.duet"
	for how in sparse holes large open folder device pipe; do no_report $how "$here/some.duet"; done
	no_report sealed "$here/evil.html"
	start_attacker recorder sealed "$here/some.duet"
	run_asprof 30 stop -f "$here/out.html" "$attacker"
	expect_status 0
	expect_contains "$here/out.html" '</html>'
	run_duet convert "$here/out.html" "$here/out.collapsed"
	expect_contains "$here/out.collapsed" ';burn'
	run_asprof 30 dump -o collapsed "$attacker"
	expect_contains "$here/stdout" ';burn'
	run_asprof 30 status "$attacker"
	expect_text "$here/stdout" "$here/stderr"
	head -c 3000 "$here/some.duet" >"$here/cut.duet"
	chmod 644 "$here/cut.duet"
	end_attacker
	start_attacker recorder sealed "$here/cut.duet"
	run_asprof 30 dump -o jfr -f "$here/out.jfr" "$attacker"
	expect_text "$here/stderr"
	end_attacker
}

# What all users' processes do is for root alone.
case_private() {
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	JVM_AS=("${as_attacker[@]}")
	start_jvm "$(any_jdk)" workload.Shares 90
	umask 022
	run_asprof 60 -d 1 --all -f "$here/all.jfr" "$jvm"
	expect "mode with --all" "$(stat -c %a "$here/all.jfr")" == 600
	run_asprof 60 start --proc 1 -o jfr "$jvm"
	run_asprof 60 dump -f "$here/dump.jfr" "$jvm"
	expect "mode of a dump" "$(stat -c %a%u "$here/dump.jfr")" == 6000
	run_asprof 60 stop -f "$here/stop.jfr" "$jvm"
	expect "mode at the end" "$(stat -c %a%u "$here/stop.jfr")" == 6000
	run_asprof 60 resume "$jvm" # what it resumes has them
	run_asprof 60 stop -f "$here/resumed.jfr" "$jvm"
	expect "mode of what was resumed" "$(stat -c %a%u "$here/resumed.jfr")" == 6000
	run_asprof 60 -d 1 -f "$here/plain.jfr" "$jvm"
	expect "mode without others" "$(stat -c %a "$here/plain.jfr")" == 644
}

case_private_in_a_container() {
	need_bpf
	need_root
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	mkdir "$here/inner"
	chown $uid "$here/inner"
	# shellcheck disable=SC2016 # for the inner shell
	JVM_AS=(unshare --mount --propagation private sh -c 'mount --bind "$0" /mnt && exec "$@"' "$here/inner"
		"${as_attacker[@]}")
	start_jvm "$(any_jdk)" workload.Shares 90
	run_asprof 60 -d 1 --all -f /mnt/all.jfr "$jvm"
	expect_status 200
	expect_contains "$here/stderr" 'what processes of all users use.*leave out -f'
	run_asprof 60 start --proc 1 -f /mnt/late.jfr "$jvm"
	expect_status 200
	run_asprof 60 start --proc 1 -o jfr "$jvm"
	run_asprof 60 stop -f /mnt/stop.jfr "$jvm"
	expect_status 200
	run_asprof 60 status "$jvm"
	expect_contains "$here/stdout" 'is running'
	[ -z "$(find "$here/inner" -type f -size +0)" ] || fail "there is a file"
	run_asprof 60 stop -o jfr "$jvm"
	expect_file "$here/stdout"
}

run_cases "$@"
