#!/bin/bash
# SPDX-License-Identifier: MIT
#
# convert.sh [FILE.duet]: what `duet convert` takes for a recording of SAMPLES=10000000 samples, for each format, as a
# Markdown table, and then for each format that can be read, to collapsed stacks. The recording is a made-up day, or
# FILE, merged with itself until it has so many samples. With JFRCONV=/path/to/jfrconv, that program converts the JFR
# file beside it. FORMATS="jfr html" takes these alone. Else the last line is the heat map of a made-up day of
# DAY=100000000 samples.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

samples=${SAMPLES:-10000000}
all="duet jfr pb.gz otlp otlp.json perf html heatmap.html tree.html tree-text collapsed col txt flat traces callgrind"
all+=" speedscope.json firefox.json trace.json"
read -ra readable <<<"${READABLE-duet jfr pb.gz otlp otlp.json perf html collapsed}"
read -ra formats <<<"${FORMATS:-$all}"

samples_of() { # FILE
	"$duet" convert "$1" - -o collapsed 2>/dev/null | awk '{ sum += $NF } END { print sum + 0 }'
}

grow() { # FILE: makes $here/all.duet of it
	local copies i have inputs
	cp "$1" "$here/all.duet"
	for ((have = $(samples_of "$here/all.duet"); have < samples; have *= copies)); do
		copies=$(((samples + have - 1) / have))
		[ $copies -le 32 ] || copies=32
		inputs=()
		for ((i = 0; i < copies; i++)); do inputs+=("$here/all.duet"); done
		"$duet" convert "${inputs[@]}" -o duet "$here/more.duet" || die "the recording cannot be merged"
		mv "$here/more.duet" "$here/all.duet"
	done
	count=$have
}

row() { # NAME COMMAND...: time, CPU time, peak memory, size of $here/out.NAME
	local name=$1 start end kb cpu
	shift
	start=$(date +%s%N)
	"$DUET_BUILD/tests/system/peak_memory" "$here/usage" "$@" 2>"$here/why" >&2 || {
		echo "| $name | failed: $(tail -n 1 "$here/why") | | | |"
		return
	}
	end=$(date +%s%N)
	read -r kb cpu <"$here/usage"
	echo "| $name | $(((end - start) / 1000000)) ms | $cpu ms | $((kb / 1024)) MB |" \
		"$(du -sbc "$here"/out*."$name" | awk 'END { printf "%.1f MB", $1 / 1e6 }') |"
	rm -f "$here"/out*."$name"
}

# The name of a format without an extension is given by -o.
convert_row() { # NAME
	case $1 in
	*-* | flat | traces) row "$1" "$duet" convert -e cpu -o "$1" "$here/all.duet" "$here/out.$1" ;;
	*) row "$1" "$duet" convert -e cpu "$here/all.duet" "$here/out.$1" ;;
	esac
}

if [ $# -gt 0 ]; then
	grow "$1"
else
	count=$samples
	TMPDIR=$here "$DUET_BUILD/tests/bench/made_up_day" "$count" "$here/all.duet" >/dev/null
fi
echo "$count samples, $(du -b "$here/all.duet" | awk '{ printf "%.1f MB", $1 / 1e6 }'):"
echo
echo "| to | time | CPU time | most memory | size |"
echo "|---|---|---|---|---|"
for format in "${formats[@]}"; do
	convert_row "$format"
done
printf '\n| from | time | CPU time | most memory | size as collapsed |\n|---|---|---|---|---|\n'
for format in "${readable[@]}"; do
	"$duet" convert -e cpu "$here/all.duet" "$here/in.$format" 2>/dev/null
	row "$format" "$duet" convert -o collapsed "$here/in.$format" "$here/out.$format"
	rm "$here/in.$format"
done
if [ -n "${JFRCONV-}" ]; then
	"$duet" convert "$here/all.duet" "$here/all.jfr" 2>/dev/null
	for format in html collapsed pb.gz otlp; do
		row "$format" "$duet" convert "$here/all.jfr" "$here/out.$format"
		echo "from JFR, jfrconv: $(row "$format" "$JFRCONV" "$here/all.jfr" "$here/out.$format")"
	done
fi
if [ -z "${FORMATS-}" ]; then
	printf '\nHeat map of a day, '
	TMPDIR=$here "$DUET_BUILD/tests/bench/made_up_day" "${DAY:-100000000}" "$here/day.heatmap.html"
fi
