#!/bin/bash
# SPDX-License-Identifier: MIT
# `duet status` and --metrics: the same numbers as at the end, only for permitted users, whatever a peer does.
. "$(dirname "$0")/lib.sh"

# after_case() ends the processes that a case has started.
# shellcheck disable=SC2317
after_case() {
	[ -z "${recorder:-}" ] || kill -KILL "$recorder"
}

samples_so_far() {
	"$duet" status "$recorder" 2>/dev/null | awk '$2 == "samples" && NF == 2 { print $1 }'
}

start_crowd() { # OPTIONS...
	local end=$((SECONDS + 15))
	start_record -i 1ms --total -f "$here/out.collapsed" "$@" -- "$workloads/crowd" stacks 120
	until [ "$(samples_so_far)0" -gt 200 ]; do
		[ $SECONDS -lt $end ] || fail "no samples within 15 s: $(cat "$here/stderr")"
		sleep 0.2
	done
}

# Sends GET PATH to the port, or to the socket if it is a path. SLOWLY: after a while, and in two pieces. $head: its
# other lines.
get() { # PORT|SOCKET PATH [SLOWLY]
	head=${head:-Host: localhost} perl -MIO::Socket::INET -MIO::Socket::UNIX -e '
		my ($at, $path, $slowly) = @ARGV;
		my $peer = $at =~ m{^/} ? IO::Socket::UNIX->new(Peer => $at) : IO::Socket::INET->new("127.0.0.1:$at");
		$peer or die "no connection: $!\n";
		$peer->autoflush(1);
		select undef, undef, undef, 0.4 if $slowly;
		print $peer "GET $path HTTP";
		select undef, undef, undef, 0.4 if $slowly;
		print $peer "/1.1\r\n$ENV{head}\r\n\r\n";
		print while <$peer>;' "$@" >"$here/page" 2>"$here/page.err"
}

port() {
	sed -n 's/.*metrics on http:.*:\([0-9]*\)\/metrics$/\1/p' "$here/stderr"
}

metric() { # NAME{LABELS}
	awk -v name="$1" '$1 == name { print $2 }' "$here/page"
}

case_metrics() {
	local first bad head
	need_bpf
	start_crowd --metrics localhost:0
	get "$(port)" /metrics
	expect_contains "$here/page" '^HTTP/1.1 200 OK'
	expect_contains "$here/page" '^# TYPE duet_samples_total counter'
	first=$(metric duet_samples_total)
	expect "samples" "$first" '>' 10
	expect "interval" "$(metric duet_interval_seconds)" '==' 0.001
	expect "bytes of RAM" "$(metric duet_memory_bytes)" '>' 1e6
	# Allows a difference: the kernel adds up the counts of each CPU from time to time.
	expect "the peak" "$(metric duet_memory_peak_bytes)" '>=' "$(($(metric duet_memory_bytes) - 2000000))"
	expect "CPU time of BPF" "$(metric 'duet_cpu_seconds_total{part="bpf"}')" '>' 0
	expect "CPU time of the loader" "$(metric 'duet_cpu_seconds_total{part="loader"}')" '>' 0
	expect "causes of loss" "$(grep -c '^duet_lost_total{cause="[a-z_0-9]*"} ' "$here/page")" '>' 30
	bad=$(sed '1,/^\r$/d' "$here/page" | grep -vE '^# (HELP|TYPE) duet_' |
		grep -vE '^duet_[a-z_]+(\{[a-z]+="[^"]*"\})? [0-9.e+-]+$')
	[ -z "$bad" ] || fail "not in the format: $bad"
	sleep 1
	get "$(port)" /
	expect "samples a second later" "$(metric duet_samples_total)" '>' "$first"
	get "$(port)" /metrics slowly
	expect_contains "$here/page" '^HTTP/1.1 200 OK'
	for head in 'Host: example.org:9100' $'Host: localhost\r\nOrigin: http://example.org'; do
		get "$(port)" /metrics
		expect_contains "$here/page" '^HTTP/1.1 403'
		expect_lacks "$here/page" 'duet_samples_total'
	done
	head=
	get "$(port)" /etc/passwd
	expect_contains "$here/page" '^HTTP/1.1 404'
	end_record INT
	expect "samples at the end" "$(reported_samples)" '>' "$first"
}

case_only_this_host() {
	need_bpf
	for address in 0.0.0.0:9100 :9100 9100 example.org:80 localhost:x localhost:70000 localhost: '[::]:9100'; do
		record -d 1 -p $$ --metrics "$address"
		expect_refusal 1 'localhost:PORT'
	done
	start_crowd --metrics localhost:0
	awk -v port="$(printf '%04X' "$(port)")" '$4 == "0A" && $2 ~ ":" port "$" { print $2 }' \
		/proc/net/tcp /proc/net/tcp6 >"$here/listening"
	[ "$(cat "$here/listening")" = "0100007F:$(printf '%04X' "$(port)")" ] ||
		fail "listens on $(cat "$here/listening")"
	end_record INT
}

case_socket_of_its_user() {
	need_bpf
	start_crowd --metrics "$here/socket"
	[ "$(stat -c %a "$here/socket")" = 600 ] || fail "mode $(stat -c %a "$here/socket")"
	get "$here/socket" /metrics
	expect "samples" "$(metric duet_samples_total)" '>' 10
	record -d 1 -p $$ --metrics "$here/socket"
	expect_refusal 1 'in use'
	end_record KILL
	[ -S "$here/socket" ] || fail "no socket was left behind to try with"
	start_crowd --metrics "$here/socket"
	get "$here/socket" /metrics
	expect "samples of the next one" "$(metric duet_samples_total)" '>' 10
	end_record INT
	[ ! -e "$here/socket" ] || fail "the socket is still there"
	echo kept >"$here/file"
	record -d 1 -p $$ --metrics "$here/file"
	expect_refusal 1 'in use'
	expect_contains "$here/file" kept
}

# Peers that send nothing, send too much, or do not read: the next one is answered, and none disturbs the recording.
case_bad_peers() {
	need_bpf
	start_crowd --metrics localhost:0
	perl -MIO::Socket::INET -e '
		my @peers = map { IO::Socket::INET->new("127.0.0.1:$ARGV[0]") } 1 .. 30;
		for my $i (0 .. $#peers) {
			my $peer = $peers[$i] or next;
			print $peer "x" x (1000 * $i) if $i % 2;
			$peer->flush;
		}
		sleep 8' "$(port)" &
	jvms+=($!)
	sleep 7
	get "$(port)" /metrics
	expect "samples" "$(metric duet_samples_total)" '>' 10
	end_record INT
	expect_status 0
}

# Eight other users connect again and again and send one letter: a request is answered nevertheless.
case_silent_peers_make_room() {
	local before
	need_bpf
	need_root
	start_crowd --metrics localhost:0
	for i in 1 2 3 4 5 6 7 8; do
		# shellcheck disable=SC2016
		setpriv --reuid 65534 --clear-groups perl -MIO::Socket::INET -e '
			my @peers;
			for (1 .. 200) {
				push @peers, IO::Socket::INET->new("127.0.0.1:$ARGV[0]") // next;
				syswrite $peers[-1], "G";
				select undef, undef, undef, 0.1;
			}' "$(port)" 2>/dev/null &
		jvms+=($!)
	done
	sleep 1
	before=$SECONDS
	for i in 1 2 3 4 5 6 7 8 9 10; do
		get "$(port)" /metrics
		expect "samples, answer $i" "$(metric duet_samples_total)" '>' 10
	done
	expect "seconds for 10 answers" $((SECONDS - before)) '<' 12
	end_record INT
	expect_status 0
}

# Prints the number of answers to what the expression of perl says, and their codes.
answers_to() { # EXPRESSION
	# shellcheck disable=SC2016
	setpriv --reuid 65534 --clear-groups perl -MIO::Socket::INET -e '
		$SIG{PIPE} = "IGNORE";
		my $get = "GET /metrics HTTP/1.1\r\n";
		my $peer = IO::Socket::INET->new("127.0.0.1:$ARGV[0]") or die;
		syswrite $peer, eval $ARGV[1];
		my ($all, $bytes) = ("");
		$all .= $bytes while sysread $peer, $bytes, 65536;
		my @answers = $all =~ m{^HTTP/1.1 (\d+)}mg;
		print join(" ", scalar @answers, @answers)' "$(port)" "$1"
}

expect_answers() { # ANSWERS EXPRESSION
	local got
	got=$(answers_to "$2")
	[ "$got" = "$1" ] || fail "answers to $2: $got, expected $1"
}

# Each connection has one answer or none, whatever follows the first request in it.
# shellcheck disable=SC2016 # for perl
case_odd_requests() {
	local before
	need_bpf
	need_root
	start_crowd --metrics localhost:0
	expect_answers '1 200' '"$get\r\n"'
	expect_answers '1 200' '"$get\r\n" x 3'
	expect_answers '1 200' '"${get}Content-Length: 40\r\n\r\n$get\r\n"'
	expect_answers '1 200' '"${get}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n$get\r\n"'
	expect_answers '1 404' '"POST /metrics HTTP/1.1\r\n\r\n"'
	expect_answers '1 404' '"GET /metrics/../../etc/passwd HTTP/1.1\r\n\r\n"'
	expect_answers 0 '$get . "X: y\r\n" x 20000 . "\r\n"'
	before=$SECONDS
	expect_answers 0 '"GET /\0metrics"'
	expect "seconds until it is closed" $((SECONDS - before)) '<' 6
	end_record INT
	expect_status 0
}

# Anybody may ask as often as he likes, on many connections: the loader has time for its samples nevertheless.
case_many_requests() {
	local before
	need_bpf
	need_root
	start_crowd --metrics localhost:0
	for i in 1 2 3 4; do
		# shellcheck disable=SC2016
		setpriv --reuid 65534 --clear-groups perl -MIO::Socket::INET -e '
			$SIG{PIPE} = "IGNORE";
			for (my $end = time + 8; time < $end;) {
				my @peers = map { IO::Socket::INET->new("127.0.0.1:$ARGV[0]") // () } 1 .. 64;
				syswrite $_, "GET /metrics HTTP/1.1\r\n\r\n" for @peers;
				for my $peer (@peers) {
					1 while sysread $peer, my $bytes, 65536;
				}
			}' "$(port)" 2>/dev/null &
		jvms+=($!)
	done
	sleep 1
	before=$(cpu_ticks "$recorder")
	sleep 4
	expect "CPU time in 4 s, in 10 ms" $(($(cpu_ticks "$recorder") - before)) '<' 120
	get "$(port)" /metrics
	expect "samples" "$(metric duet_samples_total)" '>' 10
	end_record INT
	expect_status 0
}

case_status() {
	need_bpf
	start_crowd --max-memory 100m --max-overhead 50
	"$duet" status "$recorder" >"$here/status" || fail "exit code $?"
	expect_contains "$here/status" "^duet $recorder\$"
	expect "samples" "$(awk '$2 == "samples" && NF == 2 { print $1 }' "$here/status")" '>' 10
	expect_contains "$here/status" ' 104857600  --max-memory'
	expect_contains "$here/status" ' bpf  engine'
	expect_contains "$here/status" '^[0-9]+ samples in [0-9.]+ s, .* % overhead$'
	# The socket of a recording that has just ended refuses connections.
	perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0); bind(S, pack_sockaddr_un("\0duet-status-$$")) or die;
		sleep 60' &
	jvms+=($!)
	wait_for 20 grep -q "@duet-status-$!\$" /proc/net/unix
	"$duet" status >"$here/all" # other cases have some that may not be asked
	expect_contains "$here/all" "^duet $recorder\$"
	end_record INT
	"$duet" status "$recorder" >"$here/status" 2>"$here/why" && fail "there is none any more"
	expect_contains "$here/why" "no duet has the pid $recorder"
}

# Targets may be hostile, so the kernel limits the memory of the loader even without --max-memory.
case_limit_without_the_option() {
	local limit held
	need_bpf
	start_crowd
	"$duet" status "$recorder" >"$here/status" || fail "exit code $?"
	limit=$(awk '$2 == "--max-memory," { print $1 }' "$here/status")
	expect "bytes of RAM" "$limit" '>=' $((256 << 20))
	expect "bytes of RAM" "$limit" '<=' $((4 << 30))
	held=$(awk '/^Max data size/ { print $4 + 0 }' "/proc/$recorder/limits")
	expect "bytes that the kernel allows" "$held" '>' 0
	expect "bytes that the kernel allows" "$held" '<=' "$limit"
	end_record INT
}

case_status_is_not_for_all() {
	need_bpf
	need_root
	start_crowd
	setpriv --reuid 65534 --clear-groups "$duet" status "$recorder" >"$here/status" 2>"$here/why" &&
		fail "nobody was answered: $(cat "$here/status")"
	expect_contains "$here/why" 'only root'
	end_record INT
}

# Any user can bind such an abstract socket name: what another user answers there is not believed.
case_impostor() {
	need_root
	# shellcheck disable=SC2016
	setpriv --reuid 65534 --clear-groups perl -MSocket -e '
		socket(my $s, AF_UNIX, SOCK_STREAM, 0);
		bind($s, pack_sockaddr_un("\0duet-status-$$")) or die;
		listen($s, 1);
		$| = 1;
		print "READY\n";
		accept(my $c, $s);
		syswrite $c, "all is well\n";
		sleep 9' >"$here/impostor" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/impostor" READY 9
	"$duet" status "$jvm" >"$here/status" 2>"$here/why" && fail "the impostor was believed: $(cat "$here/status")"
	expect_lacks "$here/status" 'all is well'
}

# Sockets of other users with such names and full queues: duet status does not wait for them for long.
case_squatters() {
	local started
	need_bpf
	need_root
	start_crowd --metrics "$here/metrics"
	setpriv --reuid 65534 --clear-groups perl -MSocket -e '
		my @kept;
		for my $path ("\0duet-status-1", "\0duet-status-4194303", $ARGV[0]) {
			socket(my $s, AF_UNIX, SOCK_STREAM, 0);
			bind($s, pack_sockaddr_un($path)) && listen($s, 0) or die;
			push @kept, $s;
			for (1 .. 3) {
				socket(my $c, AF_UNIX, SOCK_STREAM | 2048, 0); # SOCK_NONBLOCK
				connect($c, pack_sockaddr_un($path));
				push @kept, $c;
			}
		}
		$| = 1;
		print "READY\n";
		sleep 90' "$here/squatted" >"$here/squatter" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/squatter" READY 9
	started=$SECONDS
	timeout 30 "$duet" status >"$here/status" 2>"$here/why"
	expect "seconds" $((SECONDS - started)) '<' 25
	expect_contains "$here/status" "^duet $recorder\$"
	expect_contains "$here/why" 'duet 1: it accepts no question'
	end_record INT
	timeout 20 "$duet" record --metrics "$here/squatted" -o collapsed -f "$here/out" -- true >"$here/stdout" 2>&1
	status=$?
	expect_status 1
	expect_contains "$here/stdout" 'Address already in use'
}

run_cases "$@"
