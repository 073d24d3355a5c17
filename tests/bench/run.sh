#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Prints the cost of profiling as Markdown tables, beside `perf record -a -g` if perf is installed. Takes five minutes
# unless these are set:
#   ROUNDS=3 WINDOW=3 (seconds) WORKLOADS="compute mixed" ASPROF=/path/to/asprof JDK=/usr/lib/jvm/...
#   SETTINGS="duet@1ms perf@1ms": these profilers and intervals alone
. "$(dirname "$0")/lib.sh"

[ ${#asprof[@]} = 0 ] || [ -x "${asprof[0]}" ] || die "no program ${asprof[0]}"
settings=("duet 10ms" "duet 1ms" "ctimer 10ms")
! command -v perf >/dev/null || settings+=("perf 10ms" "perf 1ms")
[ ${#asprof[@]} = 0 ] || settings+=("asprof 10ms" "asprof 1ms")
if [ -n "${SETTINGS-}" ]; then
	read -ra settings <<<"$SETTINGS"
	settings=("${settings[@]/@/ }")
fi
read -ra kinds <<<"${WORKLOADS:-compute mixed}"
bench_all
describe_host
throughput_table
figure_table
