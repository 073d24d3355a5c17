#!/bin/bash
# SPDX-License-Identifier: MIT
# Commands by HTTP: server= among the arguments of libasyncProfiler.so. The recorder listens, not the JVM.
. "$(dirname "$0")/lib.sh"

library=$DUET_BUILD/libasyncProfiler.so

free_port() {
	local port
	for port in $(shuf -i 20000-29999 -n 50); do
		[ -n "$(ss -Hltn "sport = :$port")" ] || { echo "$port"; return; }
	done
}

# ask PATH [CURL-OPTIONS...] -> $code, $here/answer
ask() {
	local path=$1
	shift
	code=$(curl -s -m 60 -o "$here/answer" -w '%{http_code}' "$@" "http://127.0.0.1:$port$path")
}

expect_answer() { # CODE PATTERN
	expect "status code" "$code" == "$1"
	expect_contains "$here/answer" "$2"
}

start_server() { # ARGUMENTS
	need_bpf
	need_root
	command -v curl >/dev/null && command -v ss >/dev/null || skip "needs curl and ss"
	port=$(free_port)
	JVM_OPTS=(-agentpath:"$library=$1")
	JVM_OPTS=("${JVM_OPTS[@]//PORT/$port}")
	start_jvm "$jdk" workload.Shares 90
	wait_for 20 grep -qs 'HTTP server started' "$jvm_out"
}

# A recording as async-profiler's users make it, with the reports as answers.
jdk_case_commands() {
	start_server 'server=PORT'
	ask /
	expect_answer 200 '^Async-profiler server$'
	ask /status
	expect_answer 200 '^Profiler is not active'
	ask '/start?event=cpu&interval=1ms'
	expect_answer 200 '^Profiling started$'
	ask '/start?event=cpu'
	expect_answer 500 '^Profiler already started'
	sleep 1
	ask '/dump?collapsed'
	expect_answer 200 'workload/Shares.* [0-9]+$'
	ask /status
	expect_answer 200 '^Profiling is running for'
	ask '/stop?flamegraph&title=a%20b' -D "$here/head"
	expect_answer 200 '<!DOCTYPE html>'
	expect_contains "$here/answer" 'Shares[.]fifty' # the page leaves out what names before begin with
	expect_contains "$here/answer" 'a b'
	expect_contains "$here/head" '^Content-Type: text/html'
	ask '/start,event=cpu,interval=1ms,jfr'
	expect_answer 200 '^Profiling started$'
	sleep 1
	ask '/stop?jfr'
	expect "status code" "$code" == 200
	run_duet convert "$here/answer" -o collapsed "$here/jfr.collapsed"
	expect_contains "$here/jfr.collapsed" 'workload/Shares'
	expect "descriptors of the JVM that listen" "$(ss -Hltnp "sport = :$port" | grep -c "pid=$jvm,")" == 0
}

# One state with asprof. The address is free as soon as the JVM has ended.
case_life() {
	jdk=$(any_jdk)
	start_server 'start,event=cpu,interval=1ms,quiet,server=localhost:PORT'
	ln -s "$DUET_BUILD/duet" "$here/asprof"
	ask /status
	expect_answer 200 '^Profiling is running for'
	"$here/asprof" stop -o collapsed "$jvm" >"$here/out.collapsed" || fail "asprof cannot stop it"
	ask /status
	expect_answer 200 '^Profiler is not active'
	kill "$jvm"
	wait "$jvm" 2>/dev/null
	start_jvm_at "$port"
	kill -KILL "$jvm"
	wait "$jvm" 2>/dev/null
	wait_for 5 is_free "$port"
	start_jvm_at "$port"
}

is_free() {
	[ -z "$(ss -Hltn "sport = :$1")" ]
}

start_jvm_at() {
	JVM_OPTS=(-agentpath:"$library=server=$1")
	start_jvm "$jdk" workload.Shares 90
	wait_for 20 grep -qsE 'HTTP server started|ERROR' "$jvm_out"
	expect_contains "$jvm_out" "^\\[INFO\\] HTTP server started at $1\$"
	ask /version
	expect "status code" "$code" == 200
}

# What the server does not do, and for whom.
# What processes of all users use is not for whoever reaches the port.
case_private() {
	jdk=$(any_jdk)
	start_server "start,event=cpu,proc=1,jfr,file=$here/out.jfr,server=PORT"
	sleep 1
	ask '/dump?jfr'
	expect_answer 500 'only root can dump or stop'
	ask '/stop?collapsed'
	expect_answer 500 'only root can dump or stop'
	ask /status
	expect_answer 200 'is running'
	kill "$jvm"
	wait_for 20 test -s "$here/out.jfr"
	expect "mode of the file" "$(stat -c %a%u "$here/out.jfr")" == 6000
}

case_refusals() {
	local i
	jdk=$(any_jdk)
	start_server 'server=:PORT'
	ask /nothing
	expect_answer 404 '^Unknown command$'
	ask '/status%0a'
	expect_answer 404 '^Unknown command$'
	ask /statuses
	expect_answer 404 '^Unknown command$'
	ask '/status?title=jfrsync'
	expect_answer 200 'not active'
	ask '/start?interval=x'
	expect_answer 400 'Invalid interval'
	ask "/start?event=cpu&file=$here/written"
	expect_answer 400 'writes no files'
	ask "/status?log=$here/written"
	expect_answer 400 'writes no files'
	ask '/start?event=cpu&jfrsync'
	expect_answer 400 'writes no files'
	[ ! -e "$here/written" ] || fail "a file was written"
	ask /status -X DELETE
	expect_answer 404 '^Unknown command$'
	ask /status -H 'Host: rebound.example'
	expect_answer 403 'other sites'
	ask /status -H 'Sec-Fetch-Site: cross-site'
	expect_answer 403 'other sites'
	ask /status -H 'Origin: https://rebound.example'
	expect_answer 403 'other sites'
	ask "/status?$(head -c 60000 /dev/zero | tr '\0' x)"
	expect_answer 200 'not active'
	ask "/status?$(head -c 100000 /dev/zero | tr '\0' x)"
	expect "status code of a request that is too long" "$code" == 000
	# clients that say nothing do not keep others out
	for ((i = 0; i < 40; i++)); do
		exec {held}<>"/dev/tcp/127.0.0.1/$port" || fail "connection $i was refused"
	done
	ask /status
	expect_answer 200 'not active'
	expect "addresses other than of this host" "$(ss -Hltn "sport = :$port" | grep -vc '127\.0\.0\.1:')" == 0
	expect_alive "$jvm"
}

# The program runs without its server if the address is taken or no address.
case_no_address() {
	local address
	jdk=$(any_jdk)
	start_server 'server=PORT'
	for address in "$port" x 0 70000 1:2:x 192.0.2.1:80; do
		JVM_OPTS=(-agentpath:"$library=start,event=cpu,server=$address")
		start_jvm "$jdk" workload.Shares 90
		wait_for 20 grep -qs '^Profiling started' "$jvm_out"
		expect_contains "$jvm_out" "^\\[ERROR\\] server=$address: "
		kill -KILL "$jvm"
	done
}

run_cases "$@"
