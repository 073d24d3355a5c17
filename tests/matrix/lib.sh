# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# A matrix is a table: a row for each JDK, kernel or container, a column for each thing that is tested.
# A script sources this file and defines
#
#   columns=(NAME...)   and cell_NAME() for each of them, a case in the sense of tests/system/lib.sh
#   prepare_row()       what the cells of row $row have in common; with $row_lacks set to a reason they are skipped
#
# and ends with run_rows ROW... and end_matrix; with --list it names its rows. CELLS="NAME..." in the environment
# chooses columns. Mounts made by a script end with it: it runs in a mount namespace of its own.
[ -n "${MATRIX_APART-}" ] || [ "$(id -u)" != 0 ] || MATRIX_APART=1 exec unshare --mount --propagation private "$0" "$@"

DUET_BUILD=$(realpath -m "${DUET_BUILD:-build}")
matrix=$(dirname "${BASH_SOURCE[0]}")
default_mark=alone # the cases change settings of the whole host, and build
. "$matrix/../system/lib.sh"
lanes=$(nproc) # rows at a time
figures=       # folder of the values that the cells of this row have measured: see figure()
row_lacks=     # the reason why the row cannot be run

# Sets the text that the table shows for this cell instead of "ok".
figure() { # VALUE
	echo "$1" >"$figures/$column"
}

run_cell() {
	[ -z "$row_lacks" ] || skip "$row_lacks"
	"cell_$column"
}

run_row() { # ROW
	row=$1
	figures=$scratch/row.$row
	mkdir -p "$figures"
	prepare_row
	for column in "${columns[@]}"; do
		run_case "$column ($row)" run_cell
	done
}

list_rows() { # ROW...
	printf '%s alone\n' "$@"
}

# Rows run at the same time; the trace of each is printed in one piece.
run_rows() { # ROW...
	local row
	rows=("$@")
	[ -z "${CELLS-}" ] || read -ra columns <<<"$CELLS"
	for row; do
		while [ "$(jobs -rp | wc -l)" -ge "$lanes" ]; do
			wait -n
		done
		{
			run_row "$row" >"$scratch/log.$row" 2>&1
			cat "$scratch/log.$row"
		} &
	done
	wait
}

cell_text() { # ROW COLUMN
	case $(grep -E "^(ok|not ok|skip) $2 \(" "$scratch/log.$1") in
	ok*) cat "$scratch/row.$1/$2" 2>/dev/null || echo ok ;;
	skip*) echo - ;;
	*) echo '**failed**' ;;
	esac
}

# Prints the table in Markdown, then the sum. The exit code is not 0 when a cell has failed.
end_matrix() { # TITLE
	local row column line
	line="| $1 |"
	for column in "${columns[@]}"; do
		line+=" ${column//_/ } |"
	done
	echo "$line"
	echo "|---|${columns[*]/*/---|}" | tr -d ' '
	for row in "${rows[@]}"; do
		line="| $row |"
		for column in "${columns[@]}"; do
			line+=" $(cell_text "$row" "$column") |"
		done
		echo "$line"
	done
	cat "$scratch"/log.* | awk '
		/^ok / { passed++ } /^not ok / { failed++ } /^skip / { skipped++ }
		END { print passed + 0 " passed, " failed + 0 " failed, " skipped + 0 " skipped"; exit failed > 0 }'
}
