#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints as a Markdown table how right the inlined methods of a profile are. Each program runs by turns without and with
# -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints ("exact"), and is recorded read from outside, with an agent,
# and as a command that duet starts; with ASPROF, async-profiler records in the same window.
#   ROUNDS=2 WARM=8 WINDOW=5 (seconds of CPU time) INTERVAL=1ms JDK=HOME ASPROF=/path/to/asprof KEEP=FOLDER
#   WORKLOADS="leafs mixed numeric arrays javac scalac jruby tomcat"
#
# Columns; what the figures mean: tests/system/inlined.pl.
#   own, peer's   sum of the differences of the total shares of all Java methods against the exact run of the same
#                 profiler, and of async-profiler, in points; "exact" the same of two exact runs: what is chance
#   lacking       samples that lack a caller, %, and of those in leaf calls; for leafs and mixed by what is known of the
#                 program, for the others by callers that no exact run shows. "silent": without a mark. "exact": of the
#                 exact run, for the others against another exact run
#   marked        samples with [inlined?], %
#   clock         sum of the differences against the program's own clock, in points
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/programs.sh"

rounds=${ROUNDS:-2}
window=${WINDOW:-5}
warm=${WARM:-8}
interval=${INTERVAL:-1ms}
exact_options=(-XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints)
ways=(outside agent start)
files=${KEEP:-$scratch/files}
read -ra kinds <<<"${WORKLOADS:-leafs mixed numeric arrays javac scalac jruby tomcat}"

# ---- programs ----------------------------------------------------------------------------------------

own_command() { # CLASS ARGS...
	command=("$jdk/bin/java" -Xmx256m ${JVM_OPTS[@]+"${JVM_OPTS[@]}"} -cp "$workloads" "$@")
}

command_leafs() { own_command workload.Leafs 3600; }
command_mixed() { own_command workload.Intrinsics 3600; }
command_numeric() { own_command workload.Numeric 3600; }
command_arrays() { own_command workload.Stubs 3600; }

# Prints the first package that a program needs and that is not there.
missing_for() { # KIND
	local home
	case $1 in
	javac)
		for home in "$jdk" $(jdks); do
			[ ! -e "$home/lib/src.zip" ] || return 0
		done
		echo openjdk-17-source
		;;
	scalac) [ -e /usr/share/java/scala-compiler.jar ] || echo scala ;;
	jruby) command -v jruby >/dev/null || echo jruby ;;
	tomcat)
		if ! command -v tomcat10-instance-create >/dev/null; then
			echo tomcat10-user
		elif [ ! -e /usr/share/tomcat10-examples ]; then
			echo tomcat10-examples
		elif ! command -v wrk >/dev/null; then
			echo wrk
		fi
		;;
	esac
}

burn() { # CPU_SECONDS
	local until=$(($(cpu_ticks "$jvm") + $1 * hz)) end=$((SECONDS + 60 * $1))
	until [ "$(cpu_ticks "$jvm")" -ge $until ]; do
		kill -0 "$jvm" 2>/dev/null || die "$kind is gone: $(tail -n 5 "$jvm_out" "$jvm_out.err")"
		[ $SECONDS -lt $end ] || die "$kind uses no CPU time"
		sleep 0.1
	done
}

load_it() {
	[ "$kind" = tomcat ] || return 0
	await_tomcat
	wrk -t 1 -c 8 -d 3600 "$page" >/dev/null 2>&1 &
	jvms+=("$!")
}

end_program() {
	kill -KILL "${jvms[@]}" 2>/dev/null
	wait "${jvms[@]}" 2>/dev/null
	jvms=()
}

# ---- one recording -------------------------------------------------------------------------------------

file_of() { # PROFILER WAY EXACT ROUND
	echo "$files/$kind.$1.$2.$3.$4"
}

peer_does() {
	[ ${#asprof[@]} = 0 ] || asprof_do "$@"
}

# Prints the program's own clock: "KIND NANOSECONDS" for each.
clock_now() {
	awk '$1 == "TRUTH" { ns[$2] = $3 "" } END { for (of in ns) print of, ns[of] }' "$jvm_out" | sort
}

note_clock() { # BEFORE WAY EXACT ROUND
	join -a 2 <(echo "$1") <(clock_now) | awk '{ printf "%s %.0f\n", $1, $NF - (NF > 2 ? $2 : 0) }' \
		>"$(file_of clock "${@:2}")"
}

record_attached() { # WAY EXACT ROUND
	local agent=never before
	[ "$1" = outside ] || agent=always
	before=$(clock_now)
	peer_does start -e cpu -i "$interval" -t
	start_record -p "$jvm" -d 3600 -i "$interval" -t -a -o collapsed -f "$(file_of duet "$@")" --agent $agent
	burn "$window"
	end_record INT
	[ "$status" = 0 ] || die "duet failed: $(cat "$scratch/stderr")"
	peer_does stop -t -a -o collapsed -f "$(file_of peer "$@")"
	note_clock "$before" "$@"
}

run_attached() { # EXACT ROUND
	local way
	"command_$kind"
	jvm_out=$scratch/program
	"${command[@]}" >"$jvm_out" 2>"$jvm_out.err" </dev/null &
	jvm=$!
	jvms=("$jvm")
	load_it
	burn "$warm"
	for way in outside agent; do
		progress "$kind: $way, exact: $1, round $2 of $rounds"
		record_attached "$way" "$@"
	done
	end_program
}

run_started() { # EXACT ROUND
	progress "$kind: started, exact: $1, round $2 of $rounds"
	"command_$kind"
	jvm_out=$scratch/stdout
	"$duet" record -d 3600 -i "$interval" -t -a -o collapsed -f "$(file_of duet start "$@")" -- "${command[@]}" \
		>"$jvm_out" 2>"$jvm_out.err" </dev/null &
	recorder=$!
	until jvm=$(pgrep -P "$recorder" -x java); do
		kill -0 "$recorder" 2>/dev/null || die "duet failed: $(cat "$jvm_out.err")"
		sleep 0.1
	done
	jvms=("$jvm")
	load_it
	burn 1 # a JVM that has just begun refuses agents
	peer_does start -e cpu -i "$interval" -t
	burn $((warm + window))
	peer_does stop -t -a -o collapsed -f "$(file_of peer start "$@")"
	kill -TERM "$jvm"
	end_record
	note_clock "" start "$@"
	end_program
}

# ---- the table -----------------------------------------------------------------------------------------

judge() { # FIGURE PROFILE TRUTH...
	"$(dirname "$0")/../system/inlined.pl" "${@:2}" 2>/dev/null | awk -v of="$1" '$1 == of { print $2; exit }'
}

all_rounds() { # PROFILER WAY EXACT
	cat "$files/$kind.$1.$2.$3".[0-9]*
}

is_known() {
	[[ $kind = leafs || $kind = mixed ]]
}

# Prints the sum of the differences of the shares of the program's methods against its clock.
against_clock() { # WAY PROFILE
	"$(dirname "$0")/../system/inlined.pl" "$2" 2>/dev/null | sed -n 's/^of //p' |
		awk 'NR == FNR { ns[$1] += $2; sum += $2; next } { told[$1] = $2 } END {
			for (of in ns) { d = told[of] - 100 * ns[of] / sum; by += d < 0 ? -d : d }
			printf "%.1f", by }' <(all_rounds clock "$1" no) -
}

one_row() { # WORDS PROFILER WAY
	local test=$scratch/test true=$scratch/true first=$scratch/first others=$scratch/others figures=()
	all_rounds "$2" "$3" no >"$test" && all_rounds "$2" "$3" yes >"$true" || return
	cat "$files/$kind.$2.$3.yes.1" >"$first"
	cat /dev/null "$files/$kind.$2.$3.yes".[2-9]* >"$others"
	[ -s "$others" ] || cp "$first" "$others"
	figures+=("$(judge difference "$test" "$true")")
	if [ ${#asprof[@]} != 0 ]; then
		figures+=("$(judge difference "$test" <(all_rounds peer "$3" yes))")
	else
		figures+=(-)
	fi
	figures+=("$(judge difference "$first" "$others")")
	if is_known; then
		figures+=("$(judge lacking "$test")" "$(judge leaf_lacking "$test")" "$(judge silent "$test")"
			"$(judge leaf_silent "$test")" "$(judge lacking "$true")" "$(judge leaf_lacking "$true")")
	else
		figures+=("$(judge unseen "$test" "$true")" "$(judge leaf_unseen "$test" "$true")"
			"$(judge silent_unseen "$test" "$true")" "$(judge leaf_silent_unseen "$test" "$true")"
			"$(judge unseen "$first" "$others")" "$(judge leaf_unseen "$first" "$others")")
	fi
	figures+=("$(judge marked "$test")" "$(if is_known; then against_clock "$3" "$test"; else echo -; fi)")
	printf '| %s |' "$kind, $1"
	printf ' %s |' "${figures[@]}"
	echo
}

rows_of_kind() {
	local way words
	for way in "${ways[@]}"; do
		case $way in
		outside) words="read from outside" ;;
		agent) words="--agent always" ;;
		start) words="record -- java" ;;
		esac
		one_row "$words" duet "$way"
		[ ${#asprof[@]} = 0 ] || one_row "async-profiler in the same window" peer "$way"
	done
}

[ -x "$duet" ] || die "no $duet: run make first"
trap end_bench EXIT
mkdir -p "$files"
echo "$(date +%Y-%m-%d), Linux $(uname -r), $(uname -m), $(nproc) CPUs, $("$jdk/bin/java" -version 2>&1 | sed -n 2p)," \
	"$rounds rounds of $window s of CPU time, each $interval"
echo
echo "| program, way | own | peer's | exact | lacking | leaf | silent | leaf silent | exact | leaf exact | marked |" \
	"clock |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|"
for kind in "${kinds[@]}"; do
	missing=$(missing_for "$kind")
	if [ -n "$missing" ]; then
		echo "| $kind | skipped: $missing is not installed |"
		continue
	fi
	for ((round = 1; round <= rounds; round++)); do
		for exact in no yes; do
			JVM_OPTS=()
			[ $exact = no ] || JVM_OPTS=("${exact_options[@]}")
			run_attached $exact $round
			run_started $exact $round
		done
	done
	progress ""
	rows_of_kind
done
