#!/bin/bash
# SPDX-License-Identifier: MIT
# Samples have the service and the attributes that their program publishes, in OpenTelemetry's layout: those that were
# there before the recording, and those that come late or change.
. "$(dirname "$0")/lib.sh"

record_services() { # WAY SECONDS
	rm -rf "$here"/out* "$here/gate"
	jvm_out=$here/services.out
	"$workloads/services" "$here/gate" "$2" "$1" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record -p "$jvm" -e cpu -i 1ms -d 100 -f "$here/out.duet"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	kill "$jvm"
}

convert() { # FORMAT [OPTION...]
	run_duet convert "${@:2}" "$here/out.duet" "$here/again.$1"
	expect_status 0
}

has_attribute() { # KEY VALUE, in the OTLP of again.json
	grep -q "\"$1\", *\"value\": *{\"stringValue\": *\"$2\"}" "$here/again.json" || fail "no $1=$2 in OTLP"
}

# Percent of the CPU time that is the service's.
share_of() { # SERVICE
	convert collapsed --by service --total
	awk -v service="$1" '{ all += $NF } $0 ~ "^" service ";" { its += $NF }
		END { printf "%.0f\n", all ? 100 * its / all : 0 }' "$here/again.collapsed"
}

case_published_before() {
	need_bpf
	record_services early 0.3
	expect "% of the CPU time that is of the service" "$(share_of shop)" == 100
	convert col
	expect "stacks with the name as appid" "$(grep -c ';appid: shop;' "$here/again.col")" '>' 0
	convert json -o otlp-json
	has_attribute service.name shop
	has_attribute service.version 1
	has_attribute deployment.environment.name test
	has_attribute service.instance.number 7
	has_attribute team 'a?\[31m?b;c=d?'
}

# It publishes after the first samples, and then another version.
case_late_and_changed() {
	need_bpf
	record_services late 3
	expect "% of the CPU time that is of the service" "$(share_of shop)" == 100
	convert json -o otlp-json
	has_attribute service.version 2
}

case_lies() {
	need_bpf
	record_services liar 1.5
	expect "samples" "$(run_duet convert --total "$here/out.duet" "$here/again.collapsed" &&
		wc -l <"$here/again.collapsed")" '>' 0
}

# 10,000 changes a second cost no more than a few reads.
case_storm() {
	need_bpf
	record_services storm 1
	expect "% of the CPU time that is of the service" "$(share_of shop)" '>=' 50
}

run_cases "$@"
