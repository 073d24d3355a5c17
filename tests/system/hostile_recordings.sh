#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 2400
#
# Recordings of strangers: formed as their format wants it, with sizes that are meant to harm (hostile_recordings.c).
# No conversion takes more than 64 MB and 50 times the file's bytes, or more than 2 s of CPU time and 1 s for each MB;
# what is refused is refused in one sentence. The output is at most 256 MB and 400 times as long.
# C=for_long tries more: SEED=N FORMATS="jfr pprof" CONVERSIONS_SECONDS=1800
. "$(dirname "$0")/lib.sh"

make=$DUET_BUILD/tests/system/hostile_recordings
peak=$DUET_BUILD/tests/system/peak_memory
inputs=(${FORMATS:-duet jfr pprof otlp json collapsed perf page async})
outputs=(html tree.html heatmap.html collapsed col full.txt duet pb.gz jfr perf speedscope.json otlp otlp.json
	firefox.json trace.json callgrind flat traces)

# Sets `bytes`, `written`, `cpu_ms`, `kb` and `status` of a conversion of $here/in.
measure() { # OUTPUT
	bytes=$(stat -c %s "$here/in")
	timeout --kill-after=1 $((60 + bytes / 200000)) "$peak" "$here/cost" "$duet" convert "$here/in" "$here/out.$1" \
		>"$here/stdout" 2>"$here/stderr" </dev/null
	status=$?
	read -r kb cpu_ms <"$here/cost" || kb=0 cpu_ms=999999
	written=$(cat "$here/out"*."$1" 2>/dev/null | wc -c)
	rm -f "$here/out"*."$1"
}

# Prints what is wrong with the conversion, if anything is.
judge() {
	if [ $status -gt 1 ]; then
		echo "exit code $status: $(tail -n 1 "$here/stderr")"
	elif [ $status = 1 ] && [ "$(grep -c 'error: ' "$here/stderr")" != 1 ]; then
		echo "refused without one sentence: $(cat "$here/stderr")"
	elif grep -q 'out of memory' "$here/stderr"; then
		echo "out of memory"
	elif [ "$kb" -gt $((65536 + 50 * bytes / 1024)) ]; then
		echo "$kb kB of memory"
	elif [ "$cpu_ms" -gt $((2000 + bytes / 1000)) ]; then
		echo "$cpu_ms ms of CPU time"
	# the limit, its half, and what comes with each sample
	elif [ "$written" -gt $((256000000 + 400 * bytes)) ]; then
		echo "$written bytes were written"
	fi
}

try() { # FORMAT SEED OUTPUTS...
	local format=$1 number=$2 what output wrong
	shift 2
	what=$("$make" "$format" "$number" "$here/in") || fail "$format $number was not made"
	for output; do
		measure "$output"
		wrong=$(judge)
		tried=$((tried + 1))
		[ -n "$wrong" ] || continue
		echo "# $format $number to $output, $bytes bytes: $wrong ($what)"
		failed=$((failed + 1))
	done
}

finish() {
	echo "# $tried conversions"
	[ $failed = 0 ] || fail "$failed of $tried conversions cost too much"
}

# Two outputs of each file, all of them in turn.
case_seeded() {
	local format number i=0
	tried=0 failed=0
	for number in 1 2; do
		for format in "${inputs[@]}"; do
			try "$format" "$number" "${outputs[i++ % ${#outputs[@]}]}" "${outputs[i++ % ${#outputs[@]}]}"
		done
	done
	finish
}

# For CONVERSIONS_SECONDS.
case_for_long() {
	local number=${SEED:-1} end=$((SECONDS + ${CONVERSIONS_SECONDS:-60})) format
	tried=0 failed=0
	while [ $SECONDS -lt $end ]; do
		for format in "${inputs[@]}"; do
			[ $SECONDS -ge $end ] || try "$format" "$number" "${outputs[@]}"
		done
		number=$((number + 1))
	done
	finish
}

run_cases "$@"
