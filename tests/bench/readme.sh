#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   readme.sh [BLOCK...]    bench, matrix; both unless told otherwise
#
# Puts tables into README.md, each block between its two marks there: `bench` runs the benches, `matrix` takes the cells
# from the logs of the last `make test-matrix`.
set -euo pipefail
here=$(dirname "$0")
readme=$here/../../README.md
logs=${DUET_BUILD:-build}/tests/log
tables=$(mktemp)
trap 'rm -f "$tables" "$tables.readme"' EXIT

bench_block() {
	"$here/run.sh"
	echo "Beside other profilers:"
	echo
	"$here/peers.sh"
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
	"$@" || { echo "readme.sh: $what" >&2; exit 1; }
}

has_marks() { # BLOCK
	grep -q "^<!-- $1: begin" "$readme" && grep -q "^<!-- $1: end" "$readme"
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
		' "$readme" >"$tables.readme"
	cat "$tables.readme" >"$readme"
}

[ $# -gt 0 ] || set -- bench matrix
for block; do
	require "there is no block \"$block\"" declare -F "${block}_block" >/dev/null
	require "$readme has no marks <!-- $block: begin ... --> and <!-- $block: end -->" has_marks "$block"
	[ "$block" != matrix ] || require "no tables in $logs: run make test-matrix first" has_logs
done
for block; do
	"${block}_block" >"$tables"
	put "$block"
done
