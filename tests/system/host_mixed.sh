#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1500
# Programs with far more methods than the loader has room for: it asks for the methods that samples meet, and every
# sample gets its names.
. "$(dirname "$0")/lib.sh"

long=${DUET_LONG:-0}

# Expects names in every window, or in the one recording, in the collapsed format.
expect_named() { # FILE...
	local file
	for file; do
		expect_share "$(basename "$file"): stacks with a nameless frame or a gap" \
			"$(matching "$file" '\[unknown_(method|code)\]')" '<=' "${nameless:-0.05}"
	done
}

# "N M": of M samples in JVMs N were signalled because their walk was not whole.
reported_needed() {
	sed -n 's/.*walked: [0-9]* of \([0-9]*\) .*, \([0-9]*\) needed a signal .*/\2 \1/p' "$here/stderr" | tail -n 1
}

# 9,000 methods are called in turn, and the rings have the smallest size.
jdk_case_many_methods() {
	need_bpf
	start_jvm "$jdk" workload.Many 1000 60
	record -p "$jvm" -d 3 -i 1ms --max-memory 64m -v -o collapsed -f "$here/out"
	expect_status 0
	expect_share "joined" "$(reported joined)" '>=' 99.5
	expect_share "needed a signal" "$(reported_needed)" '<=' 1
	expect_named "$here/out"
	expect_contains "$here/out" 'workload/Many\$Copy[0-9]{5}\.[a-h]'
	expect_alive "$jvm"
}

# Checks each window by its own report; the last one may be short.
expect_good_windows() {
	local file joined contradicted
	for file in "$here/windows"/profile_*.full.txt; do
		joined=$(sed -n 's/^joined .*: \([0-9]*\) of \([0-9]*\) .*/\1 \2/p' "$file")
		[ "0${joined#* }" -ge 1000 ] || continue
		expect_share "$(basename "$file"): joined" "$joined" '>=' 99.9
		contradicted=$(sed -n 's/^agreed .* of \([0-9]*\) .* contradicted \([0-9]*\) .*/\2 \1/p' "$file")
		[ "0${contradicted#* }" -lt 10 ] || # before the agents have answered
			expect_share "$(basename "$file"): contradicted" "$contradicted" '<=' 0.2
		expect_share "$(basename "$file"): needed a signal" "$(
			sed -n 's/^walked .* of \([0-9]*\) .*, \([0-9]*\) needed a signal .*/\2 \1/p' "$file")" '<=' 1
	done
}

agent_ms() { # PID
	local task
	for task in "/proc/$1/task"/*; do
		[ "$(cat "$task/comm")" != 'duet agent' ] || awk '{ print int($1 / 1000000) }' "$task/schedstat"
	done
}

# 165,000 methods, of which 65,000 are compiled: methods that no sample met cost neither the agent nor the loader
# anything. DUET_LONG=1, on an idle machine: the time to the first sample is checked, too.
huge_options=(-Xmx1g -Xcomp -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m)
huge_arguments=(workload.Many 15000 600 6500)

# Each second is a window of its own.
expect_huge_windows() {
	expect "windows" "$(find "$here/windows" -name 'profile_*' | wc -l)" '>=' 3
	expect_share "joined" "$(reported joined)" '>=' 99.9
	expect_share "needed a signal" "$(reported_needed)" '<=' 1
	expect_named "$here/windows"/profile_*.col
}

jdk_case_a_huge_jvm() {
	need_bpf
	mkdir "$here/windows"
	JVM_OPTS=("${huge_options[@]}")
	JVM_PATIENCE=100 start_jvm "$jdk" "${huge_arguments[@]}"
	start_record --agent always -p "$jvm" --continuous --window 1s -d 60 -i 1ms -v -o col -f "$here/windows"
	expect "ms of CPU time for the agent, once attached" "$(agent_ms "$jvm")" '<=' 300
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + 3))
	end_record INT
	expect_status 0
	expect "ms of CPU time for the loader, to the first sample" "$(
		sed -n 's/.*first sample .* for \([0-9]*\) ms of CPU time/\1/p' "$here/stderr")" '<=' 500
	[ "$long" = 0 ] || expect "ms from the command to the first sample" "$(
		sed -n 's/.*first sample \([0-9]*\) ms after .*/\1/p' "$here/stderr")" '<=' 1000
	expect_huge_windows
	expect_share "contradicted" "$(reported_contradicted)" '<=' 0.2
	expect_alive "$jvm"
}

# The JVM is read from outside.
jdk_case_a_huge_jvm_from_start() {
	need_bpf
	mkdir "$here/windows"
	start_record --continuous --window 1s -d 60 -i 1ms -v -o col -f "$here/windows" -- \
		"$jdk/bin/java" "${huge_options[@]}" -cp "$workloads" "${huge_arguments[@]}"
	wait_for 20 pgrep -P "$recorder" -x java >"$here/pid"
	jvm=$(cat "$here/pid")
	jvm_out=$here/stdout
	wait_for_line "$here/stdout" '^READY' 100
	jvms+=("$jvm")
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + 3))
	end_record INT
	expect_status 0
	expect_huge_windows
}

# ---- JVMs that come and go ----------------------------------------------------------------------

# kB of the loader's own pages and of BPF's maps, as the kernel counts them.
loader_kb() {
	{ cat "/proc/$recorder/status" "/proc/$recorder/fdinfo"/* 2>/dev/null || true; } |
		awk '/^RssAnon/ { sum += $2 } /^pos:/ { is_map = 0 } /^map_type:/ { is_map = 1 }
			is_map && $1 == "memlock:" { sum += $2 / 1024 } END { print int(sum) }'
}

until_jvms_have_ended() { # COUNT
	local end=$((SECONDS + 100 + 2 * $1))
	until [ "$(grep -c ^DONE "$here/programs")" -ge "$1" ]; do
		[ $SECONDS -lt $end ] || fail "$(grep -c ^DONE "$here/programs") JVMs have ended"
		sleep 0.2
	done
}

# Prints for how much of its time the loader has waited for a CPU, in percent.
loader_waited() {
	awk -v ticks="$ticks_per_second" 'FILENAME ~ /uptime/ { now = $1 } FILENAME ~ /schedstat/ { waited = $2 / 1e9 }
		FILENAME ~ /[0-9][/]stat$/ { sub(/.*[)] /, ""); begun = $20 / ticks }
		END { printf "%.1f\n", 100 * waited / (now - begun) }' \
		/proc/uptime "/proc/$recorder/stat" "/proc/$recorder/schedstat"
}

# What has not been joined is counted; a sample may have two causes.
expect_causes() {
	local joined=($(reported joined))
	expect "samples not joined, by their causes" "$(awk '/lost: .*(not joined|stacks with a gap)/ {
			sub(/.*lost: /, ""); sum += $1 } END { print sum + 0 }' "$here/stderr")" '>=' \
		$((joined[1] - joined[0]))
}

# Nearly each sample of such a JVM meets methods that were not asked for before. For the first JVM the loader reads
# libjvm's tables; then three run at a time, with more running threads than CPUs. JVMs that have ended leave nothing in
# the loader. A JVM takes 450 samples. In its first three or so the kernel returns one file each, and the methods of its
# last ones may be freed before they are read. So it is where the loader gets a CPU when it wants one, as on a machine
# without other programs, where it waits for 11 % of the time. What it cannot do while it waits is allowed for: at 60 %,
# 15 of 100 samples were of JVMs that had ended meanwhile. DUET_LONG=1: 1,000 JVMs, for some ten minutes.
case_jvms_that_end() { # apart
	local i java early_kb late_kb waited allowed jvms=$((long ? 1000 : 30)) nameless
	need_bpf
	java=("$(any_jdk)/bin/java" -Xmx64m -XX:TieredStopAtLevel=1 -Dends=true -cp "$workloads" workload.Many 150 1)
	mkdir "$here/windows"
	start_record --host --continuous --window 5s -i 1ms -d 1200 -v -o col -f "$here/windows"
	"${java[@]}" >"$here/first" 2>&1 </dev/null
	for ((i = 0; i < 3; i++)); do
		# shellcheck disable=SC2016 # $@ is the inner shell's
		start_program sh -c 'while "$@"; do :; done' sh "${java[@]}"
		start_program sh -c 'while :; do :; done'
	done
	until_jvms_have_ended $((jvms / 2))
	early_kb=$(loader_kb)
	until_jvms_have_ended "$jvms"
	late_kb=$(loader_kb)
	waited=$(loader_waited)
	allowed=$(awk -v waited="$waited" 'BEGIN { print (waited > 15 ? 0.3 * (waited - 15) : 0) }')
	nameless=$(awk -v allowed="$allowed" 'BEGIN { print 3 + allowed }')
	end_record INT
	expect_status 0
	expect "kB of the loader after $jvms JVMs, $early_kb after half of them" "$late_kb" '<=' \
		"$(awk -v kb="$early_kb" -v allowed="$allowed" 'BEGIN { print int(kb * (110 + allowed) / 100) }')"
	expect_lacks "$here/stderr" 'dropped: .*(ring|tables|out of memory)'
	expect_share "joined by a loader that waited for a CPU for $waited % of the time" "$(reported joined)" '>=' \
		"$(awk -v allowed="$allowed" 'BEGIN { print 96.5 - allowed }')"
	expect_causes
	cat "$here/windows"/profile_*.col >"$here/all"
	expect_named "$here/all"
}

# ---- programs of Debian's: tomcat10-user tomcat10-examples wrk jruby scala clojure --------------

need_programs() {
	local program
	for program in tomcat10-instance-create wrk jruby scalac clojure curl; do
		command -v "$program" >/dev/null || skip "no $program here"
	done
}

# Each program leads a process group, as scripts start one or several JVMs. The list is not local to the case:
# after_case runs when the locals of a passed case no longer exist.
groups=()
start_program() {
	setsid "$@" >>"$here/programs" 2>&1 </dev/null &
	groups+=("$!")
}

after_case() {
	local group
	for group in ${groups[@]+"${groups[@]}"}; do
		kill -KILL -- "-$group"
	done
}

start_tomcat() {
	local page=http://localhost:18080/examples/jsp/jsp2/el/basic-arithmetic.jsp end=$((SECONDS + 60))
	tomcat10-instance-create -p 18080 -c 18005 "$here/tomcat" >/dev/null
	cp -r /usr/share/tomcat10-examples/examples "$here/tomcat/webapps/"
	CATALINA_BASE=$here/tomcat JAVA_HOME=$(any_jdk) start_program /usr/share/tomcat10/bin/catalina.sh run
	until curl -sf -o "$here/page" "$page"; do
		[ $SECONDS -lt $end ] || fail "Tomcat is not up after 60 s: $(tail -n 2 "$here/programs")"
		sleep 0.1
	done
	start_program wrk -t1 -c4 -d1500 "$page"
}

# Each has this many rounds of some 20 ms of CPU time.
write_programs() { # ROUNDS
	echo "$1.times { h = {}; 20000.times { |i| h[i % 977] = i.to_s }; h.sort_by { |k, v| [v, k] } }" >"$here/w.rb"
	echo "(dotimes [_ $1] (frequencies (map #(mod % 97) (filter odd? (range 9000)))))" >"$here/w.clj"
	echo 'object W { sealed trait T; case class L(i: Int) extends T; case class N(a: T, b: T) extends T
		def s(t: T): Int = t match { case L(i) => i; case N(a, b) => s(a) + s(b) } }' >"$here/W.scala"
}

start_languages() {
	write_programs 100000000
	start_program jruby "$here/w.rb"
	start_program clojure "$here/w.clj"
	# shellcheck disable=SC2016 # $1 is the inner shell's
	start_program sh -c 'while :; do scalac -d "$1" "$1/W.scala"; done' sh "$here"
}

expect_whole() { # PERCENT joined
	expect_status 0
	expect_share "joined" "$(reported joined)" '>=' "$1"
	expect_share "needed a signal" "$(reported_needed)" '<=' 1
	expect_named "$here/out"
}

# The programs are scripts: the JVM is noticed by its first samples, so there are no rows for its first milliseconds.
expect_whole_from_start() { # COMMAND...
	need_bpf
	need_programs
	write_programs 300
	record -i 2ms -o collapsed -f "$here/out" -- "$@"
	expect_whole 99
}

# Records when the program has computed for 3 s, until it ends or for 8 s.
expect_whole_attached() { # COMMAND...
	need_bpf
	need_programs
	write_programs 100000000
	start_program "$@"
	wait_for 60 pgrep -g "${groups[-1]}" -x java >"$here/pid"
	jvm=$(cat "$here/pid") jvm_out=$here/programs
	warm_up 3
	record -p "$jvm" -i 2ms -d 8 -o collapsed -f "$here/out"
	expect_whole 99.9
}

case_jruby_from_start() {
	expect_whole_from_start jruby "$here/w.rb"
}

case_clojure_from_start() {
	expect_whole_from_start clojure "$here/w.clj"
}

case_scalac_from_start() {
	expect_whole_from_start scalac -d "$here" "$here/W.scala"
}

case_jruby_attached() {
	expect_whole_attached jruby "$here/w.rb"
}

case_clojure_attached() {
	expect_whole_attached clojure "$here/w.clj"
}

# So many files that compiling them takes longer than starting the recording.
case_scalac_attached() {
	local i
	mkdir "$here/classes"
	write_programs 1
	for i in {1..200}; do
		sed "s/object W/object W$i/" "$here/W.scala" >"$here/W$i.scala"
	done
	expect_whole_attached scalac -d "$here/classes" "$here"/W?*.scala
}

# The whole host with all defaults, in windows. DUET_LONG=1: 20 minutes of them.
case_debian_programs() { # apart
	need_bpf
	need_programs
	start_tomcat
	start_languages
	mkdir "$here/windows"
	start_record --host --continuous --window 10s -i 5ms -d $((long ? 1200 : 40)) -v -o col,text=full \
		-f "$here/windows"
	end_record
	expect_status 0
	expect_share "joined" "$(reported joined)" '>=' 99.9
	expect_share "needed a signal" "$(reported_needed)" '<=' 1
	expect_good_windows
	expect_named "$here/windows"/profile_*.col
}

run_cases "$@"
