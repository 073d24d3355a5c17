#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# The tools that users open our files with: speedscope in Chromium, and Mozilla's own reader of the Firefox Profiler.
# They come from npm, once; without network the cases are skipped.
. "$(dirname "$0")/lib.sh"
driver=$(dirname "$(realpath "$0")")/convert_judges
judges=$DUET_BUILD/tests/judges

need_judges() {
	command -v npm >/dev/null || skip "no npm"
	mkdir -p "$judges"
	cp "$driver/"* "$judges/"
	[ -d "$judges/node_modules/speedscope" ] ||
		npm install --prefix "$judges" --no-audit --no-fund --silent >"$judges/npm.log" 2>&1 ||
		skip "npm could not install the tools: $(tail -n 1 "$judges/npm.log")"
}

# Thread "busy" has 40 ms in four samples: leaf 30, other 10, and call 30 with what it calls; "idle" has 10 ms.
make_text() {
	local leaf=$'\t1 leaf (x)\n' call=$'\t1 a/B.call (/tmp/perf-1.map)\n'
	local other=$'\t1 other (x)\n' main=$'\t1 main (x)\n'
	printf '%s %s: 10000000 cpu-clock:\n%s\n' \
		'busy 1/2' 100.00 "$leaf$call$main" 'busy 1/2' 100.01 "$leaf$call$main" 'idle 1/3' 100.015 "$main" \
		'busy 1/2' 100.02 "$other$main" 'busy 1/2' 100.03 "$leaf$call$main" >"$here/a.perf"
}

case_speedscope() {
	need_judges
	command -v "${CHROMIUM:-chromium}" >/dev/null || skip "no chromium"
	make_text
	local file
	for file in a.speedscope.json a.pb.gz a.collapsed a.trace.json; do
		run_duet convert "$here/a.perf" "$here/$file"
		expect_status 0
	done
	cd "$judges" || fail "no folder $judges"
	node speedscope.mjs "$here" a.speedscope.json leaf a/B.call '30.00ms (60%)' '50.00ms (100%)' 2>"$here/why" ||
		fail "a.speedscope.json: $(cat "$here/why")"
	for file in a.pb.gz a.collapsed; do
		node speedscope.mjs "$here" $file leaf main 2>"$here/why" || fail "$file: $(cat "$here/why")"
	done
}

cli() {
	HOME=$here timeout 120 "$judges/node_modules/.bin/profiler-cli" "$@"
}

# Its daemon has half a second to start, which a busy machine exceeds: it is asked until it is there.
load() { # FILE
	local try
	cli load "$1" >"$here/load" 2>&1 && return
	for try in 1 1 1 2 2 2 3 3 3; do
		sleep "$try"
		cli profile info >"$here/info" 2>&1 && return
	done
	fail "$1: $(cat "$here/load" "$here/info")"
}

after_case() {
	[ ! -d "$here/.profiler-cli" ] || cli stop --all
}

# What profiler-cli prints of a file, and of its busiest thread.
functions_of() { # FILE
	load "$1"
	cli thread functions >"$here/functions" 2>&1
	cli profile info >"$here/info" 2>&1
	cli stop --all >"$here/stop" 2>&1
}

case_firefox() {
	need_judges
	make_text
	run_duet convert "$here/a.perf" "$here/a.firefox.json"
	expect_status 0
	functions_of "$here/a.firefox.json"
	expect_contains "$here/info" 'contains 2 threads across 1 processes'
	expect_contains "$here/info" 'busy \[tid 2\]'
	expect_contains "$here/functions" 'leaf - self: 30ms \(75[.]0%\), total: 30ms \(75[.]0%\)'
	expect_contains "$here/functions" 'other - self: 10ms \(25[.]0%\), total: 10ms \(25[.]0%\)'
	expect_contains "$here/functions" 'main - self: 0ms.*total: 40ms \(100[.]0%\)|main .*total: 40ms'
	run_duet convert "$here/a.perf" "$here/a.trace.json"
	expect_status 0
	functions_of "$here/a.trace.json"
	expect_contains "$here/info" 'busy'
}

run_cases "$@"
