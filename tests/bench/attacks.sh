#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   attacks.sh [ATTACK...]      ATTACK_EVENTS="cpu wall offcpu daemon" ATTACK_SECONDS=5 ATTACK_STRENGTH=1
#
# A user (1500) attacks who profiles the host, in each of the ways of hostile_neighbour.c, at ten times the strength
# that has done harm. A JVM and a program of another user (1501) keep their samples: as many, with all their frames, for
# each second that they have had by their own clocks, as without the attack, which is measured before. The recording
# begins and ends in time, and the attack takes little of duet's time. Each event has a row:
#
#   samples a second of the JVM and of the program, without and with the attack, and what is kept in percent; how late
#   the first sample may come and how late the recording ends, in ms; CPU time of duet in percent of one CPU
#
# Attackers that take all CPU time that they get have the lowest priority: what is measured is the work that they cause.
. "$(dirname "$0")/../system/lib.sh"

neighbour=$DUET_BUILD/tests/system/hostile_neighbour
seconds=${ATTACK_SECONDS:-5}
# What the victims keep, in percent; how much later a recording may begin or end, in ms; CPU time of duet more, in
# percent of a CPU.
least_kept=95 most_late=2000 most_cpu=10

as() { # UID COMMAND...
	exec setpriv --reuid="$1" --regid="$1" --clear-groups "${@:2}"
}

start_victims() {
	JVM_AS=(setpriv --reuid=1501 --regid=1501 --clear-groups)
	start_jvm "$(any_jdk)" workload.Victim
	java_victim=$jvm
	as 1501 "$neighbour" victim 100000 "$here" 512 >"$here/native" &
	native_victim=$!
	jvms+=("$native_victim")
	wait_for_line "$here/native" '^READY' 10
}

# A part of the tree of cgroups that belongs to the attacker: $folder/cgroup.
give_cgroup() {
	cgroup=/sys/fs/cgroup/unified
	[ -d $cgroup ] || cgroup=/sys/fs/cgroup
	cgroup+=/duet-attack-$$
	mkdir "$cgroup" 2>/dev/null || skip "no cgroup v2 to write to"
	chown -R 1500 "$cgroup"
	ln -s "$cgroup" "$folder/cgroup"
}

start_attack() { # NAME COUNT
	local name=$1 folder=$here/attack nice=0 i
	mkdir -m 777 "$folder"
	cp "$(find "$(any_jdk)/" -name libjvm.so | head -n 1)" "$folder"
	chmod 644 "$folder/libjvm.so"
	[ "$name" != cgroups ] || give_cgroup
	if [ "$name" = pids ]; then # each is used again after a second
		name=forks
		echo 1000 >/proc/sys/kernel/pid_max
	fi
	case $name in
	arguments | cgroups | deep_burners | execs | files | forks | names | remaps | short_threads | stacks | switches)
		nice=19
		;;
	esac
	as 1500 nice -n $nice "$neighbour" "$name" 100000 "$folder" $(($2 * ${ATTACK_STRENGTH:-10} / 10)) \
		>"$here/attacker" 2>&1 &
	attacker=$!
	for ((i = 0; i < 600; i++)); do
		grep -qs ^READY "$here/attacker" && return
		sleep 0.1
	done
	fail "the attack did not begin: $(tail -n 1 "$here/attacker")"
}

# All processes of the namespace that are the attacker's.
end_attack() {
	local i
	for ((i = 0; i < 20; i++)); do
		(as 1500 kill -KILL -1)
		sleep 0.1
	done
	wait "$attacker"
	rm -rf "$here/attack" /tmp/perf-*.map /tmp/hsperfdata_attack
	[ -z "${cgroup:-}" ] || find "$cgroup" -depth -type d -exec rmdir {} +
	cgroup=
} 2>/dev/null

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	[ -z "${attacker:-}" ] || end_attack
}

# Runs duet in ten times the time at most; its CPU time in ms goes to $here/usage.
record_host() { # RECORD-OPTIONS...
	began=$(date +%s%N)
	timeout -s INT -k 20 $((seconds * 10 + 30)) "$DUET_BUILD/tests/system/peak_memory" "$here/usage" \
		"$duet" record -v --host "$@" -d "$seconds" -f "$here/out.duet" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	ended=$(date +%s%N)
	window_ended=$ended
}

# The second window, the first whole one, of the daemon with its defaults: three times as long, as it samples rarely.
run_daemon() {
	local folder=$here/windows daemon files=() i
	rm -rf "$folder"
	wanted=$((seconds * 3))
	printf '%s\n' "file = $folder" "window = ${wanted}s" >"$here/conf"
	chmod 600 "$here/conf"
	"$DUET_BUILD/tests/system/peak_memory" "$here/usage" \
		"$duet" daemon --config "$here/conf" --lock "$here/lock" >"$here/stdout" 2>"$here/stderr" </dev/null &
	daemon=$!
	began=$(date +%s%N)
	for ((i = 0; i < wanted * 100 + 300 && ${#files[@]} < 2; i++)); do
		sleep 0.1
		mapfile -t files < <(find "$folder" -name '*.duet' -type f 2>/dev/null | sort)
	done
	window_ended=$(date +%s%N)
	kill -TERM "$(pgrep -P "$daemon")"
	wait "$daemon"
	ended=$(date +%s%N)
	[ ${#files[@]} -lt 2 ] || cp "${files[1]}" "$here/out.duet"
}

# Prints samples whose stacks have all nine frames of a victim, and the ns that it has had: of CPU, of waiting, or of
# both. A sample of a wait may stand for a long one: there the sum in units of 10 ms is printed.
kept_samples() { # EVENT FRAME FILE-OF-CLOCKS PID
	awk -v event="$1" -v frames="$2[^;]*;" -v pid=" pid=$4];" -v start="$start" -v end="$((start + duration))" '
		NR == FNR {
			if ($1 <= start) { first = $1; first_cpu = $2 }
			else if (!last || last < end) { last = $1; last_cpu = $2 }
			next
		}
		index($0, pid) {
			weight = event ~ /wall|offcpu/ ? $NF / 1e7 : $NF
			if (gsub(frames, "") >= 9) n += weight
		}
		END {
			cpu = last_cpu - first_cpu
			all = last - first
			had = event == "wall" ? all : event == "offcpu" ? all - cpu : cpu
			printf "%d %.0f\n", n, (all > 0 ? had * (end - start) / all : 0)
		}' <(grep -E '^[0-9]+ [0-9]+$' "$3") "$here/out.collapsed"
}

number_of() { # KEY
	grep -o "\"$1\":\"[0-9]*" "$here/out.otlp.json" | head -n 1 | tr -dc 0-9
}

# Prints "JAVA NS NATIVE NS START-MS LATE-MS CPU-PERCENT".
measure() { # EVENT
	local total= wanted=$seconds
	local java=(0 0) native=(0 0) start duration began ended window_ended cpu_ms start_ms=99999 late_ms=99999
	rm -f "$here"/out.*
	case $1 in
	daemon) run_daemon ;;
	cpu) record_host -e cpu -i 1ms ;;
	*) record_host -e "$1" && total=--total ;;
	esac
	read -r _ cpu_ms <"$here/usage"
	if [ -e "$here/out.duet" ] && "$duet" convert "$here/out.duet" "$here/out.otlp.json" 2>/dev/null &&
		"$duet" convert ${total:+"$total"} "$here/out.duet" "$here/out.collapsed" 2>/dev/null; then
		start=$(number_of timeUnixNano)
		duration=$(number_of durationNano)
		read -ra java < <(kept_samples "$1" 'Victim[.](left|right)' "$jvm_out" "$java_victim")
		read -ra native < <(kept_samples "$1" '(left|right)' "$here/native" "$native_victim")
		start_ms=$(((start - began) / 1000000))
		late_ms=$(((window_ended - start) / 1000000 - wanted * 1000))
	fi
	echo "${java[*]} ${native[*]} $start_ms $late_ms $((${cpu_ms:-0} * 100000 / ((ended - began) / 1000)))"
}

# Prints the row, and then what is short of the floors. Samples are counted, so chance has its part in them: two
# standard deviations are allowed.
judge() { # ATTACK EVENT
	awk -v what="$1 | $2" -v least="$least_kept" -v late="$most_late" -v cpu="$most_cpu" '
		function rate(n, ns) { return ns > 0 ? n * 1e9 / ns : 0 }
		function percent(with, ns_with, without, ns_without) {
			return without && ns_with ? 100 * rate(with, ns_with) / rate(without, ns_without) : 0
		}
		function short(kept, with, without) {
			return !with || kept < least - 200 * sqrt(1 / with + 1 / without)
		}
		NR == 1 { split($0, a) }
		NR == 2 { split($0, b) }
		END {
			java = percent(b[1], b[2], a[1], a[2])
			native = percent(b[3], b[4], a[3], a[4])
			printf "| %s | %.0f | %.0f | %.0f | %.0f | %.0f | %.0f | %d | %d | %d | %d | %d | %d |\n", what,
				rate(a[1], a[2]), rate(b[1], b[2]), java, rate(a[3], a[4]), rate(b[3], b[4]), native,
				a[5], b[5], a[6], b[6], a[7], b[7]
			if (short(java, b[1], a[1])) printf "the JVM keeps %.0f %%; ", java
			if (short(native, b[3], a[3])) printf "the program keeps %.0f %%; ", native
			if (b[5] - a[5] > late) printf "it begins %d ms later; ", b[5] - a[5]
			if (b[6] - a[6] > late) printf "it ends %d ms later; ", b[6] - a[6]
			if (b[7] - a[7] > cpu) printf "%d %% of a CPU more; ", b[7] - a[7]
		}' "$here/figures"
}

attack() { # NAME COUNT
	local event short=
	need_plain "it would be slow"
	need_root
	need_bpf
	if [ -z "${CASE_APART:-}" ]; then
		run_apart "$1" >"$here/inside" 2>&1
		grep -E '^[|#]' "$here/inside"
		! grep -q ^skip "$here/inside" || skip "$(sed -n 's/^skip [^:]*: //p' "$here/inside")"
		grep -q ^ok "$here/inside" || fail "$(sed -n 's/^not ok [^:]*: //p' "$here/inside")"
		return
	fi
	echo "| attack | event | java | with | % | native | with | % | start | with | late | with | CPU | with |"
	echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
	start_victims
	warm_up 3
	for event in ${ATTACK_EVENTS:-cpu wall offcpu daemon}; do
		measure "$event" >"$here/figures"
		start_attack "$@"
		measure "$event" >>"$here/figures"
		end_attack
		judge "$1" "$event" >"$here/verdict"
		sed -n 1p "$here/verdict"
		[ -z "${ATTACK_KEEP:-}" ] || cp "$here/stderr" "$ATTACK_KEEP/$1.$event"
		short+=$(sed -n "2s/^/$event: /p" "$here/verdict")
	done
	[ -z "$short" ] || fail "${short%; }"
}

# ---- cases -----------------------------------------------------------------------------------

case_libjvm_sleepers() { # alone
	attack libjvm_sleepers 5150
}

case_arguments() { # alone
	attack arguments 120
}

case_deep_sleepers() { # alone
	attack deep_sleepers 4000
}

case_deep_burners() { # alone
	attack deep_burners 20
}

case_plain_sleepers() { # alone
	attack plain_sleepers 10000
}

case_switches() { # alone
	attack switches 20
}

case_short_threads() { # alone
	attack short_threads 20
}

case_stacks() { # alone
	attack stacks 20
}

case_mappings() { # alone
	attack mappings 450
}

case_forks() { # alone
	attack forks 20
}

case_execs() { # alone
	attack execs 20
}

case_pids() { # alone
	attack pids 20
}

case_names() { # alone
	attack names 20
}

case_remaps() { # alone
	attack remaps 20
}

case_threads() { # alone
	attack threads 10
}

case_perf_maps() { # alone
	attack perf_maps 20
}

case_counters() { # alone
	attack counters 200
}

case_libjvms() { # alone
	attack libjvms 20
}

case_cgroups() { # alone
	attack cgroups 10
}

case_files() { # alone
	attack files 10
}

run_cases "$@"
