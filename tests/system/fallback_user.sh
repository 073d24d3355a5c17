#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# Without BPF: an ordinary user, on that user's JVM, with the agent's own timers.
. "$(dirname "$0")/lib.sh"

nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all)

# From here on JVM and duet are an ordinary user's, as far as that takes a change of user.
become_ordinary() {
	[ "$(id -u)" = 0 ] || return 0
	"${nobody[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	JVM_AS=("${nobody[@]}") DUET_AS=("${nobody[@]}")
}

profile_as_user() { # HOME OPTIONS...
	local home=$1
	shift
	become_ordinary
	start_jvm "$home" shop.Demo
	record -p "$jvm" -d 4 -i 5ms "$@" -o collapsed -f "$here/out"
	expect_status 0
	expect_file "$here/out"
	expect_contains "$here/out" 'shop/Pricing\.averages'
	expect_contains "$here/out" 'shop/Archiver\.compress'
	expect_contains "$here/out" '[Dd]eflate'
	expect_lacks "$here/out" '_\[k\]'
	expect_alive "$jvm"
}

jdk_case_ctimer() {
	profile_as_user "$jdk" --engine ctimer
}

jdk_case_itimer() {
	profile_as_user "$jdk" --engine itimer
}

# Without being asked: the choice and its reason are said once.
case_automatic() {
	profile_as_user "$(any_jdk)"
	expect "lines that name the engine" "$(grep -cE 'ctimer|itimer' "$here/stderr")" '>=' 1
	expect_contains "$here/stderr" 'BPF|bpf'
}

case_recorded_in_the_file() {
	become_ordinary
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 2 -o text -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'ctimer|itimer'
}

# Asked for by name, a rung is not replaced by another.
case_forced_bpf_fails() {
	become_ordinary
	start_jvm "$(any_jdk)" shop.Demo
	record -p "$jvm" -d 2 --engine bpf -o collapsed -f "$here/out"
	expect_refusal 1 'CAP_BPF|CAP_PERFMON|root|permission|permitted'
	expect_alive "$jvm"
}

# What could not be profiled does not run either.
case_refused_command_does_not_run() {
	become_ordinary
	record --engine bpf -o collapsed -f "$here/out" -- touch "$here/ran"
	expect_refusal 1 'CAP_BPF|CAP_PERFMON|root|permission|permitted'
	sleep 1
	[ ! -e "$here/ran" ] || fail "the command ran"
}

# Threads born after the start have their timer too.
case_new_threads() {
	become_ordinary
	JVM_OPTS=("-Dgate=$here/gate")
	start_jvm "$(any_jdk)" workload.TwoBusy 2
	start_record -p "$jvm" -d 30 -i 5ms --engine ctimer -t -o collapsed -f "$here/out"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 30
	end_record INT
	expect_contains "$here/out" '^\[busy-0 tid=[0-9]+\]'
	expect_contains "$here/out" '^\[busy-1 tid=[0-9]+\]'
}

# root, on the JVM of another user: credentials are taken on for the attach.
jdk_case_root_profiles_a_users_jvm() {
	need_root
	need_bpf
	JVM_AS=("${nobody[@]}")
	start_jvm "$jdk" shop.Demo
	record -p "$jvm" -d 3 -i 5ms -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'shop/Pricing'
	expect_alive "$jvm"
}

run_cases "$@"
