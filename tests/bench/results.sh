#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   results.sh [BLOCK...]    bench, matrix; both unless told otherwise
#
# Writes tables into RESULTS.md, each block between its two marks. `bench` runs the benches for tests/bench/RESULTS.md;
# `matrix` takes the cells from the logs of the last `make test-matrix` for tests/matrix/RESULTS.md.
set -euo pipefail
here=$(dirname "$0")
logs=${DUET_BUILD:-build}/tests/log
tables=$(mktemp)
trap 'rm -f "$tables" "$tables.new"' EXIT

bench_block() {
	"$here/run.sh"
	echo "Beside other profilers:"
	echo
	"$here/peers.sh"
	echo "For how long an attach holds the JVM, beside what the JVM does anyway:"
	echo
	"$here/attach.sh"
	echo "Events of memory, locks and methods:"
	echo
	"$here/events.sh"
	echo "Time off CPU:"
	echo
	"$here/offcpu.sh"
	echo
	echo "The loader alone, records of a large host replayed:"
	echo
	"$here/loader.sh"
}

matrix_block() {
	local name
	echo "$(date -r "$logs/jdks.log" +%Y-%m-%d), Linux $(uname -r), $(uname -m), $(nproc) CPUs"
	for name in jdks kernels containers privileges service; do
		echo
		sed -n '/^|/p' "$logs/$name.log"
	done
}

require() { # WHAT COMMAND...
	local what=$1
	shift
	"$@" || { echo "results.sh: $what" >&2; exit 1; }
}

results_of() { # BLOCK
	echo "$here/../$1/RESULTS.md"
}

has_marks() { # BLOCK
	grep -q "^<!-- $1: begin" "$(results_of "$1")" && grep -q "^<!-- $1: end" "$(results_of "$1")"
}

has_logs() {
	grep -qs '^|' "$logs/jdks.log" && grep -qs '^|' "$logs/kernels.log" && grep -qs '^|' "$logs/containers.log" &&
		grep -qs '^|' "$logs/privileges.log" && grep -qs '^|' "$logs/service.log"
}

put() { # BLOCK
	awk -v block="$1" -v tables="$tables" '
		$0 ~ "^<!-- " block ": end" { inside = 0 }
		!inside
		$0 ~ "^<!-- " block ": begin" { inside = 1; while ((getline line <tables) > 0) print line }
		' "$(results_of "$1")" >"$tables.new"
	cat "$tables.new" >"$(results_of "$1")"
}

[ $# -gt 0 ] || set -- bench matrix
for block; do
	require "there is no block \"$block\"" declare -F "${block}_block" >/dev/null
	require "$(results_of "$block") has no marks <!-- $block: begin and end -->" \
		has_marks "$block"
	[ "$block" != matrix ] || require "no tables in $logs: run make test-matrix first" has_logs
done
for block; do
	"${block}_block" >"$tables"
	put "$block"
done
