#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
#
# A whole host at its worst: processes that live for a millisecond, a JVM of thousands of threads, dozens of JVMs, of
# which many in containers. DUET_LONG=1: a minute of the first, and as many JVMs as the memory allows, up to 50; else
# ten seconds, and up to 12.
. "$(dirname "$0")/lib.sh"

long=${DUET_LONG:-0}

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	[ -z "${recorder:-}" ] || kill -KILL "$recorder"
}

resident_kb() { # PID
	awk '$1 == "VmRSS:" { print $2 }' "/proc/$1/status"
}

descriptors() { # PID
	find "/proc/$1/fd" -mindepth 1 | wc -l
}

# ---- processes without end -----------------------------------------------------------------

# What duet has when $1 of $2 parts of the time are over.
look() { # PART
	held_fds[$1]=$(descriptors "$recorder")
	held_kb[$1]=$(resident_kb "$recorder")
}

# 2,000 children a second, as far as the machine can; those that $samples_of tell of burn as long as they say.
churn() { # SECONDS RECORD_OPTIONS...
	local seconds=$1
	shift
	start_record --no-attach --by process -d 600 "$@"
	"$workloads/mayfly" 2000 $((seconds + 2)) >"$here/mayfly" &
	jvms+=($!)
	sleep 2 # tables that grow once
	look 0
	sleep $((seconds / 2))
	look 1
	sleep $((seconds - seconds / 2))
	look 2
	wait "${jvms[-1]}"
	end_record INT
	expect_status 0
	recorder=
	echo "# children a second: $(($(said CHILDREN 2) / (seconds + 2)))"
	echo "# descriptors ${held_fds[*]}, kB of RAM ${held_kb[*]}"
}

said() { # KEY COLUMN
	awk -v key="$1" -v column="$2" '$1 == key { print $column }' "$here/mayfly"
}

# One or two more while a file is read.
expect_no_more_descriptors() {
	expect "descriptors, later" $((held_fds[2] - held_fds[0])) '<=' 2
}

# The truth is CPU time in two functions; the half of the children that burns in one of them is known by no name.
expect_truth() { # FILE...
	cat "$@" >"$here/all"
	grep -E '^mayfly_child;(.*;)?burn_(long|short)(;|\ )' "$here/all" >"$here/burnt"
	expect "samples in the two functions" "$(total "$here/burnt")" '>=' 300
	expect_near "share of burn_long, %" "$(share "$here/burnt" burn_long)" \
		"$(awk '$1 == "BURNED" { print 100 * $2 / ($2 + $3) }' "$here/mayfly")" 3
	expect "named, % of what children had of the user's time" \
		"$(share <(grep '^mayfly_child;' "$here/all" | grep -v '_\[k\]') burn_)" '>=' 90
}

# Fast enough that the time has samples enough for three points. Nothing but the children: symbols of whatever else runs
# here are memory too.
case_short_processes() {
	need_bpf
	if [ "$long" = 0 ]; then
		churn 10 --comm mayfly_child -i 997us -o collapsed -f "$here/out"
	else
		churn 60 --comm mayfly_child -i 4999us -o collapsed -f "$here/out"
	fi
	expect_no_more_descriptors
	expect "kB of RAM at the end" "${held_kb[2]}" '<=' $((held_kb[1] * 105 / 100))
	expect_truth "$here/out"
}

case_short_processes_in_windows() {
	need_bpf
	churn $((long ? 60 : 10)) --host -i 997us --continuous --window 2s -o collapsed -f "$here/out"
	expect_no_more_descriptors
	expect "kB of RAM at the end" "${held_kb[2]}" '<' $((128 << 10)) # what --continuous is limited to
	expect_truth "$here/out"/profile_20*.collapsed
}

# ---- one JVM of many threads -----------------------------------------------------------------

# Milliseconds to the first sample of a JVM with so many threads, and what duet and the JVM have of descriptors then.
start_threads() { # COUNT
	JVM_OPTS=(-Xss256k -XX:+UseSerialGC)
	JVM_PATIENCE=60 start_jvm "$jdk" workload.Idle "$1" busy
	first_ms=() held=
	for _ in 1 2 3; do
		start_record -v -p "$jvm" -d 60 -i 5ms -o collapsed -f "$here/out"
		held="$(descriptors "$recorder") $(descriptors "$jvm")"
		end_record INT
		expect_status 0
		first_ms+=("$(sed -n 's/.*first sample \([0-9]*\) ms after.*/\1/p' "$here/stderr")")
	done
	recorder=
	kill "$jvm"
	first_ms=$(printf '%s\n' "${first_ms[@]}" | sort -n | head -n 1)
	echo "# $1 threads: $first_ms ms to the first sample, descriptors of duet and the JVM: $held"
}

# As fast as the fastest of three, for the machine may be busy: beside a JVM of ten, in the same run.
jdk_case_threads() {
	local few few_held
	need_bpf
	start_threads 10
	[ -n "$first_ms" ] || fail "duet does not say when the first sample came"
	few=$first_ms few_held=$held
	start_threads 5000
	[ "$held" = "$few_held" ] || fail "descriptors of duet and the JVM: $few_held with 10 threads, $held with 5000"
	expect "times as long as with 10 threads" $((first_ms / few)) '<=' 5
}

run_cases "$@"
