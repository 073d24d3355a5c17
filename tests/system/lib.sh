# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Shared functions of the system tests. A test sources this file, defines its cases and ends with run_cases:
#
#   case_NAME()      runs once
#   jdk_case_NAME()  runs for every JDK found; $jdk is its home
#
# Each runs in a subshell of its own with an empty folder $here. A case that returns has passed. `fail why` and
# `skip why` end it early. At its end, JVMs started by start_jvm are ended, and after_case() runs if it is defined.
set -u
shopt -s nullglob

DUET_BUILD=$(realpath "${DUET_BUILD:-build}") # cases change their folder
duet=$DUET_BUILD/duet
workloads=$DUET_BUILD/workloads
scratch=$(mktemp -d "${TMPDIR:-/tmp}/duet-test.XXXXXX")
chmod 755 "$scratch" # JVMs of other users write their output below
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM HUP
ticks_per_second=$(getconf CLK_TCK)
exec {nothing}<> <(:) # a pipe that nobody writes to

# Sleeps without a process of its own: cases look many times for what they wait for.
nap() { # SECONDS
	read -r -t "$1" -u "$nothing"
}

# ---- cases ---------------------------------------------------------------------------------

fail() {
	! was_late || skip "not under sanitizers, which make duet too slow: $*"
	echo "$*" >"$here/why"
	exit 1
}

skip() {
	echo "$*" >"$here/why"
	exit 77
}

run_case() { # NAME FUNCTION
	here=$(mktemp -d "$scratch/XXXXXX")
	chmod 1777 "$here"
	echo "# $1"
	(
		jvms=() status=
		trap end_case EXIT
		"$2"
		exit 0 # the exit code of the case's last command does not matter: the case did not call fail
	)
	case $? in
	0) echo "ok $1" ;;
	77) echo "skip $1: $(cat "$here/why")" ;;
	*) echo "not ok $1: $(cat "$here/why" 2>/dev/null || echo "left with an error")" ;;
	esac
	rm -rf "$here"
}

# shellcheck disable=SC2317 # called by the trap
end_case() {
	local code=$?
	if [ $code != 0 ] && [ $code != 77 ] && [ -s "$here/stderr" ]; then
		sed 's/^/# stderr: /' "$here/stderr"
	fi
	{
		[ -z "${freezer:-}" ] || thaw
		! declare -F after_case >/dev/null || after_case
		[ -z "${recorder:-}" ] || kill -KILL $(pgrep -P "$recorder") "$recorder" # with the command that it runs
		[ ${#jvms[@]} = 0 ] || kill -KILL "${jvms[@]}"
		wait
		rm -f "${jvms[@]/#//tmp/.java_pid}"
		[ -z "${freezer:-}" ] || rmdir "$freezer"
	} 2>/dev/null # drops the shell's messages about killed processes
	exit $code
}

# Lists the cases of the script. The mark is "alone" or "apart" if the first line of the case ends with that comment.
marks_of_cases() { # prints: KIND NAME MARK
	sed -nE 's/^(case_|jdk_case_)([a-z0-9_]+)\(\) \{( # (alone|apart).*)?$/\1 \2 \4/p' "$0"
}

# Prints "NAME MARK" for each case; the name is NAME@JDK for each JDK.
list_cases() {
	local kind name mark home
	while read -r kind name mark; do
		if [ "$kind" = case_ ]; then
			echo "$name ${mark:-${default_mark:-side}}"
			continue
		fi
		while read -r home; do
			echo "$name@$(basename "$home") ${mark:-${default_mark:-side}}"
		done < <(jdks)
	done < <(marks_of_cases)
}

# run_cases [NAME...]: runs all cases in the order of the file, or those that are named; NAME@JDK is the case with one
# JDK. With --list a script prints names and marks and exits before it starts anything: see the end of this file.
#
# A case marked "alone" disturbs others or is disturbed by them: it profiles every JVM of the host, or its figures need
# free CPUs. A case marked "apart" has its own process ids and /tmp, so "the whole host" is what it has started.
run_cases() {
	local wanted name mark
	while read -r name mark; do
		wanted=" $* "
		[ $# = 0 ] || [[ $wanted == *" $name "* || $wanted == *" ${name%@*} "* ]] || continue
		if [ "$mark" = apart ] && [ "$(id -u)" = 0 ] && [ -z "${CASE_APART:-}" ]; then
			run_apart "$name"
		else
			run_named "$name"
		fi
	done < <(list_cases) # run_case has no use for its input
}

run_named() { # NAME[@JDK]
	if [[ $1 == *@* ]]; then
		jdk=$(jdks | grep "/${1#*@}$") run_case "${1%@*} (${1#*@})" "jdk_case_${1%@*}" </dev/null
	else
		run_case "$1" "case_$1" </dev/null
	fi
}

# Files below /tmp that the case needs, such as the checkout, keep their path.
run_apart() { # NAME
	# shellcheck disable=SC2016 # for the inner shell
	CASE_APART=1 unshare --mount --pid --fork --kill-child --mount-proc --propagation private bash -c '
		exec 5<"$1" 6<"$2" 7<"$(pwd)"
		mount -t tmpfs -o mode=1777 tmpfs /tmp
		mount -t tmpfs -o mode=1777 tmpfs /dev/shm
		for place in "5 $1" "6 $2" "7 $(pwd)"; do
			[ -e "${place#* }" ] && continue
			mkdir -p "${place#* }" && mount -c --rbind "/proc/self/fd/${place%% *}" "${place#* }" || exit 1
		done
		cd "$(pwd)" && exec "$3" "$4"' apart \
		"$(realpath "$(dirname "$0")/../..")" "$DUET_BUILD" "$(realpath "$0")" "$1" </dev/null
}

# ---- JVMs ----------------------------------------------------------------------------------

# Prints the homes of the JDKs and JREs of this machine, each once, however many links lead to it.
jdks() {
	local java home
	for java in /usr/lib/jvm/*/bin/java; do
		home=$(realpath "$(dirname "$java")/..")
		[ -e "$home/lib/libjava.so" ] || [ -d "$home/jre" ] || continue
		echo "$home"
	done | sort -u
}

is_jdk() { # VERSION: $jdk has it, or a later one
	[ "$(sed -nE 's/^JAVA_VERSION="(1\.)?([0-9]+).*/\2/p' "$jdk/release")" -ge "$1" ]
}

need_jdk() { # VERSION WHAT
	is_jdk "$1" || skip "no $2 before JDK $1"
}

# Prints a hash of the rights of all parts of the JVM's own libraries.
rights_of_tables() {
	awk '/libjvm|libjava|libjli|libnio|libc[.]so/ { print $1, $2, $6 }' "/proc/$jvm/maps" | cksum
}

any_jdk() {
	jdks | head -n 1
}

# start_jvm HOME CLASS ARGS...: returns when the workload says READY. Its pid is $jvm, its output
# $jvm_out, its input JVM_IN. JVM_OPTS (array) goes before the class, JVM_AS (array) is a command in front of java.
start_jvm() {
	local home=$1
	shift
	jvm_out=$here/jvm.${#jvms[@]}
	${JVM_AS[@]+"${JVM_AS[@]}"} "$home/bin/java" -Xmx256m ${JVM_OPTS[@]+"${JVM_OPTS[@]}"} \
		-Djava.library.path="$workloads" -cp "$workloads" "$@" \
		>"$jvm_out" 2>"$jvm_out.err" <"${JVM_IN:-/dev/null}" &
	jvm=$!
	jvms+=("$jvm")
	rm -f "/tmp/.java_pid$jvm" # left by a killed JVM of another user, which this JVM could not remove
	wait_for_line "$jvm_out" '^READY' "${JVM_PATIENCE:-30}"
}

# Waits for a line. SECONDS is for an idle machine; four times as long is allowed, for a busy one.
wait_for_line() { # FILE PATTERN SECONDS
	local end=$((SECONDS + 4 * $3))
	until [ -s "$1" ] && grep -qs "$2" "$1"; do
		{ [ $SECONDS -lt $end ] && kill -0 "$jvm" 2>/dev/null; } || grep -qs "$2" "$1" ||
			fail "no line \"$2\" within 4 x $3 s; the workload said: $(tail -n 3 "$1" "$1.err" 2>/dev/null)"
		nap 0.05
	done
}

wait_for() { # SECONDS COMMAND...
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || fail "not within the time: $*; duet said: $(tail -n 3 "$here/stderr")"
		nap 0.05
	done
}

# Waits until the JVM has used so much CPU time that its hot methods are compiled, however long that takes.
warm_up() { # CPU_SECONDS
	local end=$((SECONDS + 40))
	until [ "$(cpu_ticks "$jvm")" -ge $(($1 * ticks_per_second)) ] || [ $SECONDS -ge $end ]; do
		expect_alive "$jvm"
		nap 0.1
	done
}

# Starts `duet record` of $jvm for events that come from the JVM itself. Without anything that ticks, only the JVM's
# mappings show that the agent has been started. Stacks go to $here/out.collapsed.
start_taps() { # RECORD-OPTIONS...
	local end=$((SECONDS + 60)) format=${taps_format:-collapsed}
	"$duet" record -v "$@" --total -d 100 -o "$format" -f "$here/out.$format" >"$here/stdout" 2>"$here/stderr" &
	recorder=$!
	until grep -qs memfd:duet-ring "/proc/$jvm/maps"; do
		kill -0 "$recorder" 2>/dev/null || fail "duet record ended at once: $(cat "$here/stderr")"
		[ $SECONDS -lt $end ] || fail "no agent in JVM $jvm within 60 s: $(cat "$here/stderr")"
		nap 0.05
	done
	wait_for 60 has_begun
	sleep 0.5
}

# When all is started, the loader gives up what it does not need any more.
has_begun() {
	grep -qs '^NoNewPrivs:.*1' "/proc/$recorder/status"
}

# Records a workload that waits for its gate, until it says DONE. The gate opens when the command in gate_waits, if that
# is set, succeeds.
record_gated() { # WORKLOAD-ARGUMENTS -- RECORD-OPTIONS...
	local workload=()
	while [ "$1" != -- ]; do
		workload+=("$1")
		shift
	done
	rm -f "$here"/out* "$here/gate"
	JVM_OPTS=(-Dgate="$here/gate" ${JVM_FLAGS[@]+"${JVM_FLAGS[@]}"})
	start_jvm "$jdk" "${workload[@]}"
	shift
	start_taps -p "$jvm" "$@"
	[ -z "${gate_waits:-}" ] || wait_for 60 "$gate_waits"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
}

# Prints the number after KEY in the last line "KEY NUMBER..." of the workload's output.
jvm_said() { # KEY [COLUMN]
	awk -v key="$1" -v column="${2:-2}" '$1 == key { value = $column } END { print value }' "$jvm_out"
}

# Compares the bytes of each class and site of workload.Sums with what the workload says, within 2 percent for those
# that are more than 3 percent of all.
expect_sums() { # FILE MEGABYTES PATTERN-OF-STACKS
	local site class bytes told compared=0
	while read -r _ site class bytes; do
		told=$(awk -v frame="Sums\$Work.$site;" -v class="$class" -v of="$3" '
			index($0, frame) && $0 ~ of {
				weight = $NF
				sub(/ [0-9]+$/, "")
				sub(/.*;/, "")
				sum += $0 == class "_[i]" || $0 == class "_[k]" ? weight : 0
			}
			END { printf "%.0f", sum }' "$1")
		[ "$bytes" -gt $((($2 << 20) / 33)) ] || continue
		compared=$((compared + 1))
		expect_near "bytes of $class in $site" "$told" "$bytes" $((bytes / 50))
	done < <(grep '^SITE' "$jvm_out")
	expect "compared sites" "$compared" == 7
}

# Ends $jvm, so that it takes no CPU time while its recording is judged.
end_jvm() {
	kill -KILL "$jvm"
	wait "$jvm" 2>/dev/null
}

# The judge of JFR files. Its work is short: a better compiler and more threads would cost more than they save.
jfr() { # ARGUMENTS...
	"$jdk/bin/jfr" -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC "$@"
}

# Writes what the JDK counts in a file, once, to a file whose name is $summary.
jfr_summary() { # FILE
	summary=$here/summary${1//\//_}
	summary=${summary%.jfr}
	[ "$summary" -nt "$1" ] || jfr summary "$1" 2>"$here/why" >"$summary" ||
		fail "jfr summary: $(cat "$here/why")"
}

# Prints how many events of this type there are.
jfr_count() { # FILE TYPE
	jfr_summary "$1"
	awk -v type="$2" '$1 == type { print $2 }' "$summary"
}

expect_alive() {
	kill -0 "$1" 2>/dev/null || fail "the JVM is gone${2:+ $2}: $(tail -n 3 "$jvm_out.err")"
	[ "$(proc_state "$1")" != Z ] || fail "the JVM died${2:+ $2}: $(tail -n 3 "$jvm_out.err")"
}

# Counts the columns from the state, after the name, which may contain blanks.
read_stat() { # PID: to the array `stat`, from column 3 on
	local text=
	{ read -r -d '' text <"/proc/$1/stat"; } 2>/dev/null
	read -ra stat <<<"${text##*) }"
}

# Prints a column of /proc/PID/stat.
proc_stat() { # PID COLUMN (as in proc(5))
	local stat
	read_stat "$1"
	echo "${stat[$2 - 3]:-}"
}

proc_state() {
	proc_stat "$1" 3
}

# Prints the lines of a JVM's log of safepoints (-Xlog:safepoint:file=FILE) from LINE on, except its garbage
# collections.
safepoints_from() { # FILE LINE
	tail -n "+$2" "$1" | grep 'Safepoint "' |
		grep -vE '"(G1|Serial|Parallel|GenCollect|Collect|CGC|ICBufferFull|Cleanup)'
}

# Prints utime + stime in ticks.
cpu_ticks() {
	local stat
	read_stat "$1"
	echo $((${stat[11]:-0} + ${stat[12]:-0}))
}

# Prints how many descriptors, threads and mappings of the agent the JVM has.
held_by() { # PID
	echo "$(find "/proc/$1/fd" -mindepth 1 | wc -l) $(find "/proc/$1/task" -mindepth 1 -maxdepth 1 | wc -l)" \
		"$(grep -c libduet "/proc/$1/maps")"
}

# ---- duet ----------------------------------------------------------------------------------

need_bpf() {
	local verdict
	verdict=$("$duet" check 2>&1)
	grep -q '^bpf: ready' <<<"$verdict" ||
		skip "no BPF: $(grep -A1 '  NO ' <<<"$verdict" | head -n 2 | tr -s ' \n' ' ')"
}

# For `make test-sanitized`, where memory and CPU time of duet are not its own.
is_sanitized() {
	grep -q __asan_init "$duet"
}

need_plain() { # WHAT
	! is_sanitized || skip "not under sanitizers: $1"
}

# A recording that ended well, and says that it lost samples or rows because duet was slow: its figures say nothing.
was_late() {
	is_sanitized && [ "${status:-0}" = 0 ] &&
		grep -qsE 'lost: .*(rings? (was|were) full|no unwind row)' "$here/stderr"
}

need_root() {
	[ "$(id -u)" = 0 ] || skip "needs root to change users"
}

# Runs duet. Its exit code is in $status, its output in $here/stdout and $here/stderr.
run_duet() {
	timeout --kill-after=5 90 ${DUET_AS[@]+"${DUET_AS[@]}"} "$duet" "$@" >"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
}

# With -v: cases read its closing lines. Those of debugging are passed over by expect_lacks and expect_refusal.
record() {
	run_duet record -v "$@"
}

# The same in the background; $recorder is its pid. Returns when it samples.
start_record() {
	${DUET_AS[@]+"${DUET_AS[@]}"} "$duet" record -v "$@" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	if [[ " $* " == *" -p ${jvm:-} "* && " $* " =~ " --agent always "|" --signals always " ]]; then
		wait_for_agent "$jvm"
	fi
	wait_for_ticks
	sleep 0.3
	kill -0 "$recorder" 2>/dev/null || fail "duet record ended at once: $(cat "$here/stderr")"
}

# Waits for the agent, or until the recorder ends. The limit is for a busy machine.
wait_for_agent() { # PID
	local end=$((SECONDS + 60))
	until grep -qsx 'duet agent' "/proc/$1/task"/*/comm || ! kill -0 "$recorder" 2>/dev/null; do
		[ $SECONDS -lt $end ] || fail "no agent in JVM $1 within 60 s: $(cat "$here/stderr")"
		nap 0.05
	done
}

# A cgroup that a user may freeze: $freezer. It goes with the case.
make_freezer() { # UID KIND SWITCH
	local tree
	tree=$(awk -v kind="$2" '$3 == kind || (kind == "freezer" && $4 ~ /(^|,)freezer(,|$)/) { print $2; exit }' \
		/proc/mounts)
	[ -n "$tree" ] && mkdir "$tree/duet-test-$$" 2>/dev/null || skip "no $2 to write to"
	freezer=$tree/duet-test-$$
	[ -e "$freezer/$3" ] || skip "no freezer"
	chown -R "$1" "$freezer"
}

thaw() {
	echo 0 >"$freezer/cgroup.freeze" || echo THAWED >"$freezer/freezer.state"
} 2>/dev/null

# Prints the pid of the process that reads $jvm: it has a pidfd of it.
reader() {
	local at
	for at in /proc/[0-9]*; do
		grep -qsx duet-outside "$at/comm" && grep -qsx "Pid:	$jvm" "$at/fdinfo"/* || continue
		echo "${at#/proc/}"
		return
	done
	return 1
}

# Prints "N M": samples of Java threads with named Java frames down to the thread's entry, and all samples of Java
# threads. A sample counts as right without Java frames if its walk shows how the thread began and no call of Java. The
# others are listed in $2.
named_to_the_root() { # FILE LIST
	perl -e '
		while (<STDIN>) {
			my ($stack, $n) = /^(.*) (\d+)$/ or next;
			my ($process, $thread, $rest) = split /;/, $stack, 3;
			next if $thread =~ /Compiler|^\[?(GC|G1|VM|Reference|Signal|Finalizer|Service|Monitor|Common)/;
			push @all, [$process . $thread, $rest, $n];
			$java{$process . $thread} = 1 if $rest =~ m{\w/[\w\$/]+\.[\w\$<]};
		}
		for (@all) {
			my ($thread, $stack, $n) = @$_;
			next if !$java{$thread};
			my $rooted = $stack =~ /start_thread|clone3|__libc_start|^_start|^libc\.so\.6\+/;
			my $named = $stack =~ m{\w/[\w\$/]+\.[\w\$<]};
			my $hole = $stack =~ /\[(un|not_|no_|trunc|deopt)/;
			next if !$named && !$hole && ($stack =~ /_\[k\]/ && $stack =~ /do_exit|^entry_SYSCALL/
				|| $rooted && $stack !~ /JavaCalls::call/);
			$sum += $n;
			if ($rooted && $named && !$hole) { $good += $n } else { print STDERR "$n $stack\n" }
		}
		printf "%d %d\n", $good, $sum' <"$1" 2>"$2"
}

# Prints the number of descriptors of perf events that a process has.
count_perf_events() { # PID
	find "/proc/$1/fd" -lname 'anon_inode:*perf_event*' 2>/dev/null | wc -l
}

# Returns true if the agent's timers or perf events, or BPF's events, are started, as far as /proc shows them.
has_ticks() { # RECORDER JVM
	grep -qsE '^(link_type:.*perf|(tp_name|raw_tracepoint):.*(sys_enter|sched_switch|block_rq_issue))$' \
		"/proc/$1/fdinfo"/* ||
		grep -qs . "/proc/$2/timers" ||
		[ "$(count_perf_events "$2")" != 0 ]
}

# Waits until has_ticks(). The limit is for a busy machine.
wait_for_ticks() {
	local end=$((SECONDS + 60))
	until has_ticks "$recorder" "${jvm:-none}" ||
			! kill -0 "$recorder" 2>/dev/null || [ $SECONDS -ge $end ]; do
		nap 0.05
	done
}

# Records process $jvm until it has used so much CPU time. So the number of samples does not depend on the load.
record_cpu() { # CPU_SECONDS RECORD-OPTIONS...
	local until
	start_record -d 90 "${@:2}"
	until=$(($(cpu_ticks "$jvm") + $1 * ticks_per_second))
	until [ "$(cpu_ticks "$jvm")" -ge $until ] || ! kill -0 "$recorder" 2>/dev/null; do
		expect_alive "$jvm"
		nap 0.1
	done
	end_record INT
	expect_status 0
}

# Waits for the background recorder, after sending it the signal, if one is named.
end_record() { # [SIGNAL]
	[ $# = 0 ] || kill -s "$1" "$recorder"
	wait "$recorder" 2>/dev/null
	status=$?
}

# Makes a copy of a library with rows of its own: three digits in its tables differ (tests/workloads/libraries.c).
copy_library() { # small|large NUMBER FILE
	LC_ALL=C sed "s/A\x130A\x130A\x130/A\x13${2:0:1}A\x13${2:1:1}A\x13${2:2:1}/" \
		"$workloads/liblarge_$1.so" >"$3"
}

# Prints N of the closing line "N samples in S s (engine E)".
reported_samples() {
	sed -n 's/^duet: \([0-9]*\) samples in .*(engine.*/\1/p' "$here/stderr"
}

# Prints "N M" of a closing line like "joined: N of M samples of JVM threads (P %)".
reported() { # joined|walked|agreed
	sed -n "s/.*$1: \([0-9]*\) of \([0-9]*\) .*/\1 \2/p" "$here/stderr" | tail -n 1
}

# Prints the percentage of that line, for tables.
reported_joined() {
	sed -n 's/.*joined: .*(\([0-9.]*\) %).*/\1/p' "$here/stderr" | tail -n 1
}

# Prints "N M" of "agreed: ... of M Java stacks ... contradicted N (...)".
reported_contradicted() {
	sed -n 's/.*agreed: [0-9]* of \([0-9]*\) .* contradicted \([0-9]*\) .*/\2 \1/p' "$here/stderr" | tail -n 1
}

expect_status() { # CODE [WHAT]
	[ "$status" = "$1" ] || fail "${2:-duet}: exit code $status, not $1: $(tail -n 3 "$here/stderr")"
}

# Expects one sentence that names what is wrong, and the exit code 1 (failed) or 2 (wrong usage).
expect_refusal() { # CODE PATTERN
	expect_status "$1"
	grep -qiE -- "$2" "$here/stderr" || fail "the message does not say \"$2\": $(cat "$here/stderr")"
	[ "$(grep -cv '^duet: debug: ' "$here/stderr")" -le 3 ] || fail "more than a sentence: $(cat "$here/stderr")"
	[ ! -s "$here/stdout" ] || fail "an error wrote to stdout: $(head -n 3 "$here/stdout")"
}

# ---- profiles in the collapsed format --------------------------------------------------------

total() { # FILE
	awk '{ sum += $NF } END { print sum + 0 }' "$1"
}

# Prints "N M": the number of samples whose stack matches, and of all samples.
matching() { # FILE PATTERN
	awk -v pattern="$2" '{ all += $NF } $0 ~ pattern { hit += $NF } END { print hit + 0, all + 0 }' "$1"
}

# Prints the percentage of the samples whose stack matches.
share() { # FILE PATTERN
	awk -v pattern="$2" '{ all += $NF } $0 ~ pattern { hit += $NF }
		END { printf "%.2f\n", all ? 100 * hit / all : 0 }' "$1"
}

# ---- expectations ------------------------------------------------------------------------------

expect() { # WHAT GOT OPERATOR WANT
	awk -v got="$2" -v want="$4" "BEGIN { exit !(got != \"\" && got + 0 $3 want + 0) }" ||
		fail "$1: ${2:-nothing}, expected $3 $4"
	echo "# $1: $2 ($3 $4)"
}

# Tolerates two samples that a busy host loses or delays: of few samples, these are more than a percent or two.
expect_share() { # WHAT "N M" OPERATOR PERCENT
	awk -v counts="$2" -v want="$4" "BEGIN {
		split(counts, n)
		n[1] += \"$3\" ~ />/ ? 2 : -2
		exit !(n[2] >= 10 && 100 * n[1] $3 want * n[2])
	}" || fail "$1: ${2/ / of }, expected $3 $4 %"
	echo "# $1: ${2/ / of } ($3 $4 %)"
}

is_near() { # GOT WANT TOLERANCE
	awk -v got="$1" -v want="$2" -v by="$3" 'BEGIN { d = got - want; exit !(got != "" && d <= by && d >= -by) }'
}

expect_near() { # WHAT GOT WANT TOLERANCE
	is_near "$2" "$3" "$4" || fail "$1: ${2:-nothing}, expected $3 +- $4"
	echo "# $1: $2 ($3 +- $4)"
}

expect_contains() { # FILE PATTERN
	grep -qE -- "$2" "$1" || fail "$(basename "$1") has no \"$2\": $(head -c 300 "$1")"
}

expect_lacks() { # FILE PATTERN
	local found
	found=$(grep -v '^duet: debug: ' "$1" | grep -E -m 1 -- "$2") || return 0
	fail "$(basename "$1") has \"$2\": ${found:0:300}"
}

expect_file() {
	[ -s "$1" ] || fail "no output file $(basename "$1"); duet said: $(tail -n 3 "$here/stderr")"
}

expect_same() { # FILE FILE
	cmp -s "$1" "$2" || fail "$(basename "$1") and $(basename "$2") differ: $(diff "$1" "$2" | head -n 4)"
	expect_file "$1"
}

# Expects that the recording has left no file but the finished one.
expect_no_leftover() { # FILE
	local found
	found=$(find "$(dirname "$1")" -maxdepth 1 -name "*$(basename "$1")*" ! -path "$1")
	[ -z "$found" ] || fail "left behind: $found"
}

if [ "${1:-}" = --list ] && grep -qE '^(jdk_)?case_' "$0"; then
	list_cases
	exit
fi
