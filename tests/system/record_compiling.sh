#!/bin/bash
# SPDX-License-Identifier: MIT
# The methods that HotSpot's compilers work for. -XX:+PrintCompilation names all of them.
. "$(dirname "$0")/lib.sh"

# Some Java code runs after the agent knows the JVM, and is compiled before it runs.
compiled=(-Xcomp -XX:+PrintCompilation -XshowSettings:vm -version)

# Prints the names of methods, each once. Those of hidden classes have a number that differs.
names() {
	sed -E 's/::/./; s/\//./g; s/\.0x[0-9a-f:]*//' | sort -u
}

# Of the samples in compile_method, at least half have a method above it; each is one that the JVM has printed.
expect_printed() {
	local samples with
	awk -v methods="$here/methods" '
		match($0, /;(C2)?Compiler::compile_method[; ]/) {
			samples += $NF
			above = substr($0, RSTART + RLENGTH)
			sub(/[; ].*/, "", above)
			if (above ~ /^[^:]*\/[^:]*\.[^:]*$/) {
				with += $NF
				print above >methods
			}
		}
		END { print samples + 0, with + 0 }' "$here/out.collapsed" >"$here/counts"
	read -r samples with <"$here/counts"
	expect "samples of compilers" "$samples" '>=' 20
	expect "of $samples samples of compilers with a method" "$with" '>=' $((samples / 2))
	grep -oE '[^ ]+::[^ ]+' "$here/printed" | names >"$here/known"
	expect "methods that were not compiled" "$(names <"$here/methods" | comm -23 - "$here/known" | wc -l)" == 0
}

run_java() { # FEATURES
	"$jdk/bin/java" "-agentpath:$DUET_BUILD/libasyncProfiler.so=start,event=ctimer,interval=1ms,$1,collapsed,$(
	)file=$here/out.collapsed" "${compiled[@]}" >"$here/printed" 2>"$here/stderr"
}

jdk_case_outside() {
	need_bpf
	"$duet" record -e cpu -i 1ms --compiling -o collapsed -f "$here/out.collapsed" -- \
		"$jdk/bin/java" "${compiled[@]}" >"$here/printed" 2>"$here/stderr"
	status=$?
	expect_status 0
	expect_printed
}

jdk_case_timers() {
	run_java features=comptask
	expect_printed
}

jdk_case_unasked() {
	run_java features=vtable
	expect_contains "$here/out.collapsed" 'Compiler::compile_method;'
	expect_lacks "$here/out.collapsed" 'Compiler::compile_method;[^:; ]*/'
}

run_cases "$@"
