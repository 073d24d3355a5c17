#!/bin/bash
# SPDX-License-Identifier: MIT
# Run by `make demo`: profiles a shop with Java, native, kernel, allocation and lock work for 10 s.
set -eu

build=${DUET_BUILD:-build}
java=$(find -L /usr/lib/jvm -maxdepth 3 -path '*/bin/java' | sort | head -n 1)
output=$(mktemp)
"$java" -Xmx256m -cp "$build/workloads" shop.Demo 120 >"$output" 2>&1 &
jvm=$!
trap '{ kill $jvm; wait $jvm; } 2>/dev/null || true; rm -f "$output"' EXIT
for _ in $(seq 100); do
	grep -q READY "$output" && break
	kill -0 $jvm 2>/dev/null || { cat "$output" >&2; exit 1; }
	sleep 0.1
done
sleep 2 # until the hot methods are compiled

echo
echo "The demo is a JVM with pid $jvm. For 10 seconds:"
echo "  duet record -p $jvm -d 10 -i 2ms -t -f $build/demo.html -f $build/demo.txt"
"$build/duet" record -p $jvm -d 10 -i 2ms -t -f "$build/demo.html" -f "$build/demo.txt" \
	--title "duet demo: a small shop"

echo
cat "$build/demo.txt"
echo
echo "Flame graph: $build/demo.html"
