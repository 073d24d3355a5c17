#!/bin/bash
# SPDX-License-Identifier: MIT
# async-profiler's own tests on duet's asprof and library: tests/matrix/async_profiler.sh CHECKOUT [TEST...]
# CHECKOUT is a clone of async-profiler, in which `make build/test.jar build/test/build-test-libs
# build/test/build-test-bins build/jar/jfr-converter.jar` was run. JAVA_HOME is the JDK of the tests. Its build/bin and
# build/lib are replaced. Prints a line for each failed test with its first reason, and the sums.
set -u

checkout=${1:?a clone of async-profiler, whose tests are built}
shift
build=${DUET_BUILD:-$(realpath "$(dirname "$0")/../../build")}
java=${JAVA_HOME:-$(realpath /usr/bin/java | sed 's|/bin/java$||')}/bin/java
log=$(mktemp)
trap 'rm -f "$log"' EXIT

[ -e "$checkout/build/test.jar" ] || {
	echo "$checkout/build/test.jar is missing: build the tests of async-profiler there" >&2
	exit 1
}
[ -e "$build/libasyncProfiler.so" ] || {
	echo "$build/libasyncProfiler.so is missing: run make" >&2
	exit 1
}
cd "$checkout" || exit 1
mkdir -p build/bin build/lib
ln -sf "$build/duet" build/bin/asprof
ln -sf "$build/libasyncProfiler.so" build/lib/libasyncProfiler.so
"$java" -DlogDir=build/test/logs -DlogLevel=WARNING -Dskip= -DretryCount="${RETRIES:-0}" \
	-DthreadCount="${THREADS:-2}" -ea -cp "build/test.jar:build/jar/*:test/deps/*:test/gen/*" \
	one.profiler.test.Runner "$@" >"$log" 2>&1
awk '/^(OK)?FAIL \[/ { sub(/^.*tid\[[0-9]+\] /, ""); sub(/ took .*/, ""); name = $1; next }
	name { print name ": " substr($0, 1, 150); name = "" }' "$log" | sort
grep -E '^(PASS|FAIL|SKIP|TOTAL)' "$log" | grep -v '\['
