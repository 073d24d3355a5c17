# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# A matrix whose rows have no columns in common. Each case, in the sense of tests/system/lib.sh, is a row, which shows
# what the case passes to `seen`. A script sources this file and ends with run_matrix TITLE.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

seen() { # TEXT
	echo "# = $*"
}

# Prints one row a cell, as Markdown for RESULTS.md.
table() { # TITLE
	printf '\n| %s | verdict | seen |\n|---|---|---|\n' "$1"
	awk '
	/^# = / { seen = seen (seen ? ", " : "") substr($0, 5) }
	/^(ok|not ok|skip) / {
		verdict = $1 == "not" ? "not ok" : $1
		cell = substr($0, length(verdict) + 2)
		if (verdict != "ok") {
			colon = index(cell, ": ")
			seen = substr(cell, colon + 2)
			cell = substr(cell, 1, colon - 1)
		}
		gsub(/_/, " ", cell)
		gsub(/\|/, "/", seen)
		printf "| %s | %s | %s |\n", cell, verdict, seen
		seen = ""
	}'
}

# Runs all cells, or those whose names are given. Prints their table and the sum. Returns 0 when none failed.
run_matrix() { # TITLE [CELL...]
	local title=$1 log=$scratch/cells passed failed skipped
	shift
	run_cases "$@" | tee "$log"
	table "$title" <"$log"
	passed=$(grep -c '^ok ' "$log")
	failed=$(grep -c '^not ok ' "$log")
	skipped=$(grep -c '^skip ' "$log")
	echo
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" = 0 ]
}
