#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 900
#
# The real OpenTelemetry Collector receives our profiles and prints them. It is built once, from Debian's packages of
# its sources, below $DUET_SCRATCH; OTELCOL=FILE is one that is there already.
. "$(dirname "$0")/cells.sh"
kept=${DUET_SCRATCH:-/var/tmp/duet-matrix}/collector
collector=${OTELCOL:-$kept/collector}
server=

# Debian's compiler of that suite runs on this host.
build_collector() {
	local tree go
	tree=$("$matrix/root_tree.sh" sid golang-go golang-opentelemetry-collector-dev) || return
	go=("$tree"/usr/lib/go-1.*)
	mkdir -p "$kept"
	cp "$matrix/collector/main.go" "$kept/" && cd "$kept" || return
	GOROOT=${go[0]} GO111MODULE=off GOPATH=$tree/usr/share/gocode GOCACHE=$kept/cache GOTOOLCHAIN=local \
		CGO_ENABLED=0 "${go[0]}/bin/go" build -o collector.new main.go || return
	rm -rf "$kept/cache"
	mv collector.new collector
}

need_collector() {
	command -v curl >/dev/null || skip "no curl"
	[ -x "$collector" ] || (build_collector) >"$here/build" 2>&1 ||
		skip "the collector could not be fetched or built: $(tail -n 1 "$here/build")"
}

after_case() {
	[ -z "$server" ] || { kill "$server" && wait "$server"; } 2>/dev/null
	server=
}

# Sets $address.
start_collector() {
	address=127.0.0.1:$((20000 + $$ % 10000))
	cat >"$here/config.yaml" <<-END
		receivers: {otlp: {protocols: {http: {endpoint: "$address"}}}}
		exporters: {debug: {verbosity: detailed}}
		service:
		  telemetry: {metrics: {level: none}}
		  pipelines: {profiles: {receivers: [otlp], exporters: [debug]}}
	END
	"$collector" --config "$here/config.yaml" --feature-gates=+service.profilesSupport >>"$here/log" 2>&1 &
	server=$!
	wait_for 240 grep -qs "Everything is ready" "$here/log"
}

send() { # FILE TYPE: sets $status
	status=$(curl -s -o "$here/answer" -w '%{http_code}' -H "Content-Type: $2" --data-binary "@$1" \
		"http://$address/v1development/profiles")
}

# Thread "main" has leaf for 30 ms, in three samples of two stacks.
make_profiles() {
	local leaf=$'\t1 leaf (libx.so)\n' call=$'\t1 a/B.call (/tmp/perf-1.map)\n'
	printf 'main 1/2 %s: 10000000 cpu-clock:\n%s\n' 100.00 "$leaf$call" 100.01 "$leaf$call" 100.02 "$leaf" \
		>"$here/a.perf"
	run_duet convert "$here/a.perf" "$here/a.otlp"
	expect_status 0
	run_duet convert "$here/a.perf" "$here/a.otlp.json"
	expect_status 0
}

# What the collector has printed since the last call.
expect_printed() {
	local text
	wait_for 120 grep -q 'Values:' "$here/log"
	for text in 'thread.name: main' 'process.pid: Int.1.' '^ *leaf$' '^ *a[.]B[.]call$' '^ *libx.so$' \
		nanoseconds; do
		expect_contains "$here/log" "$text"
	done
	expect "nanoseconds of all samples" "$(awk '/Values:/ {
		gsub(/[^0-9 ]/, "")
		for (i = 1; i <= NF; i++)
			sum += $i
	} END { print sum }' "$here/log")" == 30000000
	: >"$here/log"
}

case_collector() {
	need_collector
	make_profiles
	start_collector
	send "$here/a.otlp" application/x-protobuf
	expect "status of the binary file" "$status" == 200
	expect_printed
	send "$here/a.otlp.json" application/json
	expect "status of the JSON file" "$status" == 200
	expect_printed
	send "$here/a.perf" application/x-protobuf
	expect "status of another file" "$status" == 400
	seen "the binary and the JSON form"
}

run_matrix "judge of OTLP" "$@"
