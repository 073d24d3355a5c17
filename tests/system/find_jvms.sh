#!/bin/bash
# SPDX-License-Identifier: MIT
# JVMs are found by what they run. Each case has its own process ids, so no other JVM has the name.
. "$(dirname "$0")/lib.sh"

# Prints a line of duet list: "PID CPU JDK USER CONTAINER PROGRAM", with one blank.
listed() { # PID
	sed -nE "s/ %//; s/  +/ /g; s/^ ($1 .*)/\1/p" "$here/stdout"
}

java_version() { # HOME
	"$1/bin/java" -version 2>&1 | sed -nE '1s/.*"(.*)".*/\1/p'
}

jdk_case_list() { # apart
	need_root
	local quiet busy version pid cpu java user container program
	version=$(java_version "$jdk")
	start_jvm "$jdk" workload.Idle
	quiet=$jvm
	JVM_OPTS=(-XX:-UsePerfData) # the version is that of its JDK's file
	JVM_AS=(setpriv --reuid=54321 --regid=54321 --clear-groups)
	start_jvm "$jdk" workload.TwoBusy 60 60
	busy=$jvm
	run_duet list
	expect_status 0
	expect_contains "$here/stdout" '^ +pid +CPU now +JDK +user +container +program$'
	read -r pid cpu java user container program <<<"$(listed "$quiet")"
	[ "$java $user $container $program" = "$version root - workload.Idle" ] || fail "of $quiet: $(listed "$quiet")"
	expect "CPU of the idle one" "$cpu" '<' 50
	read -r pid cpu java user container program <<<"$(listed "$busy")"
	[ "$java $user $container $program" = "$version 54321 - workload.TwoBusy" ] ||
		fail "of $busy: $(listed "$busy")"
	expect "CPU of the busy one" "$cpu" '>' 0
	expect "JVMs" "$(grep -cE '^ +[0-9]+ +[0-9.]+ %' "$here/stdout")" == 2
}

jdk_case_by_jar_and_class() { # apart
	need_bpf
	local name first
	"$(dirname "$(realpath "$(command -v javac)")")/jar" cfe "$here/shop-1.2.jar" shop.Demo -C "$workloads" shop
	"$jdk/bin/java" -Xmx256m -jar "$here/shop-1.2.jar" >/dev/null 2>&1 &
	jvms+=($!)
	start_jvm "$jdk" workload.Idle
	for name in shop-1.2.jar workload.Idle Idle; do
		run_duet $name -d 500ms -o collapsed
		expect_status 0 "duet $name"
	done
	record -p "Idle,shop-1.2.jar" -d 1 -o collapsed -f "$here/out"
	expect_contains "$here/out" "^\[java pid=${jvms[0]}\].*shop/"
	record -p workload.Idel -d 1
	expect_refusal 2 "no JVM runs 'workload.Idel': did you mean workload.Idle"
	first=$jvm
	start_jvm "$jdk" workload.Idle
	run_duet Idle -d 1
	expect_refusal 2 "2 JVMs run 'Idle': choose one by its number: .*$first \(workload.Idle\)"
	expect_contains "$here/stderr" " $jvm \(workload.Idle\)"
}

case_completion() { # apart
	completed() { # WORDS...
		COMP_WORDS=("$duet" "$@") COMP_CWORD=$#
		COMPREPLY=()
		_duet "$duet"
		printf '<%s>' "${COMPREPLY[@]}"
	}
	# shellcheck source=user/packaging/duet.bash
	. "$(dirname "$0")/../../user/packaging/duet.bash"
	local first
	start_jvm "$(any_jdk)" workload.Idle
	first=$jvm
	run_duet complete record -- -p
	[ "$(cat "$here/stdout")" = "$jvm"$'\tworkload.Idle' ] || fail "duet complete says $(cat "$here/stdout")"
	[ "$(completed record -p "")" = "<$jvm>" ] || fail "one: $(completed record -p "")"
	[ "$(completed workl)" = "<workload.Idle>" ] || fail "by name: $(completed workl)"
	start_jvm "$(any_jdk)" shop.Demo
	[ "$(completed -d 5 "")" = "<$first  workload.Idle><$jvm  shop.Demo>" ] || fail "two: $(completed -d 5 "")"
}

run_cases "$@"
