#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Runs the benches and puts their tables into README.md, between the two marks there.
set -euo pipefail
here=$(dirname "$0")
readme=$here/../../README.md
tables=$(mktemp)
trap 'rm -f "$tables"' EXIT

{
	"$here/run.sh"
	echo "Beside other profilers:"
	echo
	"$here/peers.sh"
	echo "The loader alone, records of a large host replayed:"
	echo
	"$here/loader.sh"
} >"$tables"
grep -q '^<!-- bench: begin' "$readme" && grep -q '^<!-- bench: end' "$readme" ||
	{ echo "$readme has no marks for the tables" >&2; exit 1; }
awk -v tables="$tables" '
	/^<!-- bench: end/ { inside = 0 }
	!inside
	/^<!-- bench: begin/ { inside = 1; while ((getline line <tables) > 0) print line }' "$readme" >"$tables.readme"
cat "$tables.readme" >"$readme"
rm -f "$tables.readme"
