#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 900
# Other ways to build: for aarch64, an installation, other flags into the same folder.
. "$(dirname "$0")/lib.sh"
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL O
output=$(realpath --relative-to=. "$DUET_BUILD") # with another spelling of it all would be built anew

build() { # make's arguments
	make "$@" >"$here/make.log" 2>&1 ||
		fail "make $*: $(grep -m 5 -E 'not ok|error' "$here/make.log" || tail -n 5 "$here/make.log")"
}

case_aarch64() {
	[ "$(uname -m)" = x86_64 ] || skip "cross-building is tested from x86-64"
	command -v aarch64-linux-gnu-gcc >/dev/null || skip "no aarch64-linux-gnu-gcc"
	build -j "$(nproc)" ARCH=aarch64 O="$output/aarch64"
	local file
	for file in duet libduet.so; do
		# e_machine 183 is AArch64
		expect "machine of $file" "$(od -An -t u2 -j 18 -N 2 "$DUET_BUILD/aarch64/$file")" '==' 183
	done
}

case_unit_tests_with_sanitizers() {
	build -j "$(nproc)" unit SAN=address,undefined O="$output/san"
}

case_install() {
	build install O="$output" DESTDIR="$here/root" PREFIX=/opt/duet
	"$here/root/opt/duet/bin/duet" version >"$here/version" || fail "the installed duet does not run"
	expect_contains "$here/version" '^duet '
	"$here/root/opt/duet/bin/asprof" -v >"$here/asprof_version" || fail "the installed asprof does not run"
	expect_contains "$here/asprof_version" '^Async-profiler '
	"$here/root/opt/duet/bin/jfrconv" -h >"$here/usage" || fail "the installed jfrconv does not run"
	expect_contains "$here/usage" '^Usage: jfrconv '
	expect_file "$here/root/opt/duet/lib/duet/libasyncProfiler.so"
	expect_file "$here/root/opt/duet/lib/libasyncProfiler.so"
	expect_file "$here/root/opt/duet/share/man/man1/duet.1"
	expect_file "$here/root/opt/duet/share/bash-completion/completions/duet"
	expect_file "$here/root/opt/duet/share/zsh/vendor-completions/_duet"
	expect_file "$here/root/opt/duet/share/fish/vendor_completions.d/duet.fish"
}

# The agent is one build for glibc 2.17 and later, and for musl: it needs the C library only.
case_agent_needs_libc_only() {
	local needed
	needed=$(readelf -d "$DUET_BUILD/libduet.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
		grep -vE '^lib(c|pthread|rt|dl)\.so')
	[ -z "$needed" ] || fail "also needs $needed"
	expect_newest_glibc "$DUET_BUILD/libduet.so" 2.17
	expect_newest_glibc "$DUET_BUILD/libasyncProfiler.so" 2.17
}

# What the library adds to each JVM. A large table belongs into .bss, whose unused pages take no room.
case_agent_is_small() {
	local bytes
	bytes=$(size -B "$DUET_BUILD/libduet.so" | awk 'NR == 2 { print $1 + $2 }')
	expect "bytes of code and initialized data" "$bytes" '<' 1000000
	expect "bytes of the file" "$(stat -c %s "$DUET_BUILD/libduet.so")" '<' $((4 << 20)) # room of attach/place.c
}

# All symbols are bound when the library is loaded: the first call may come from a signal handler that interrupted the
# dynamic linker.
case_agent_is_bound_at_load() {
	readelf -d "$DUET_BUILD/libduet.so" >"$here/dynamic"
	expect_contains "$here/dynamic" 'Flags:.* NOW|BIND_NOW'
}

# Programs load the library late. Room beside the thread pointer is for the libraries that they began with: musl never
# gives it later, glibc only while it has some left.
case_library_is_loaded_late() {
	local library
	for library in libduet.so libasyncProfiler.so; do
		readelf -dWr "$DUET_BUILD/$library" >"$here/dynamic"
		expect_lacks "$here/dynamic" 'STATIC_TLS|TPOFF'
	done
}

expect_newest_glibc() { # FILE VERSION
	local newest
	newest=$(readelf -V "$1" | grep -oE 'GLIBC_[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
	[ "$(printf '%s\n' "${newest:-0}" "$2" | sort -V | tail -n 1)" = "$2" ] || fail "needs glibc $newest"
}

# The functions of a chain of calls may have 512 bytes of stack together, each rounded up to 32. Since Linux 6.13 each
# program function has its own stack, so that only older kernels would refuse the object.
case_bpf_stack_fits() {
	command -v llvm-objdump >/dev/null || skip "no llvm-objdump"
	llvm-objdump -dr --no-show-raw-insn "$DUET_BUILD/gen/duet.bpf.o" | awk '
		function deepest(name,    i, n, called, most, depth) {
			n = split(calls[name], called, " ")
			for (i = 1; i <= n; i++)
				if ((depth = deepest(called[i])) > most)
					most = depth
			return most + (used[name] > 32 ? int((used[name] + 31) / 32) * 32 : 32)
		}
		/^[0-9a-f]+ <[^>]*>:$/ && !/<LBB/ { name = substr($2, 2, length($2) - 3); used[name] = 0; pointer = "" }
		match($0, /r10 - [0-9]+/) && substr($0, RSTART + 6, RLENGTH - 6) + 0 > used[name] {
			used[name] = substr($0, RSTART + 6, RLENGTH - 6) + 0
		}
		/ = r10$/ { pointer = $(NF - 2) }
		NF > 2 && $(NF - 2) == pointer && $(NF - 1) == "+=" && -$NF > used[name] && -$NF <= 512 {
			used[name] = -$NF
		}
		/R_BPF_64_32/ && !index(calls[name] " ", " " $NF " ") { calls[name] = calls[name] " " $NF }
		END { for (name in used) print deepest(name), name }' | sort -n >"$here/stacks"
	expect_contains "$here/stacks" '^[0-9]+ perf_cookie$'
	expect "bytes of stack that $(tail -n 1 "$here/stacks" | cut -d ' ' -f 2) needs" \
		"$(tail -n 1 "$here/stacks" | cut -d ' ' -f 1)" '<=' 512
}

# The verifier refuses a call of a global function without one of its arguments, and clang does not pass an argument
# that the function does not use. So each argument is used before the first call in the function, on each
# architecture.
case_bpf_arguments_are_used() {
	command -v llvm-objdump >/dev/null || skip "no llvm-objdump"
	local arch object=$output/arguments/bpf/unwind_java.bpf.o
	for arch in aarch64 x86_64; do
		build ARCH=$arch O="$output/arguments" "$object"
		sed -n -e 's/^__noinline int \([a-z_]*\)(\(.*\))$/\1 \2/p' \
			-e 's/^HOOK(\([a-z_]*\), (\([^)]*\)).*/unwind_java_\1 \2/p' \
			bpf/unwind_java.bpf.c >"$here/functions"
		llvm-objdump -d --no-show-raw-insn "$object" | awk '
			FNR == NR { of[$1] = gsub(/,/, ","); next }
			/^[0-9a-f]+ <[^>]*>:$/ && !/<LBB/ {
				name = substr($2, 2, length($2) - 3)
				is_over = !(name in of)
			}
			/\tcall / { is_over = 1 }
			is_over { next }
			{
				set = match($0, /\t[rw][0-9] = /) ? substr($0, RSTART + 2, 1) : ""
				line = set == "" ? $0 : substr($0, RSTART + RLENGTH)
				for (i = 2; i <= of[name] + 1; i++)
					if (!((name, i) in is_set) && line ~ "(^|[^0-9a-z])[rw]" i "($|[^0-9])")
						used[name, i] = 1
				if (set != "")
					is_set[name, set] = 1
			}
			END {
				for (name in of)
					for (i = 2; i <= of[name] + 1; i++)
						if (!((name, i) in used))
							print name, "does not use its argument", i
			}' "$here/functions" - >"$here/unused"
		expect "functions of $arch" "$(wc -l <"$here/functions")" '>=' 15
		[ ! -s "$here/unused" ] || fail "$arch: $(cat "$here/unused")"
	done
}

# A second make with the same flags has nothing to do.
case_nothing_to_do() {
	build O="$output" all
	make O="$output" all >"$here/again" 2>&1
	expect_lacks "$here/again" '^  (CC|BPF|LINK|AR|SKEL)'
}

run_cases "$@"
