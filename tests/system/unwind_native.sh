#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# Native stacks without frame pointers, of programs whose frames are all known, down to the thread's entry.
. "$(dirname "$0")/lib.sh"

chain=$(printf 'link_%d;' {30..0})
entry='^[^;]+;([^;]+;)*main;'
trampoline='(__restore_rt|__kernel_rt_sigreturn)'
kernel='(;[^;]*_\[k\])* [0-9]+$'

# Its pid is $native; it is ended with the case.
start_native() { # PROGRAM ARGS...
	jvm_out=$here/native.out
	rm -f "$jvm_out" # the last one's READY
	"$@" >"$jvm_out" 2>"$jvm_out.err" &
	native=$! jvm=$!
	jvms+=("$native")
	wait_for_line "$jvm_out" '^READY' 10
}

record_native() { # OPTIONS...
	record_cpu 1 --engine bpf --no-attach -p "$native" -i "${native_interval:-500us}" "$@" -o collapsed \
		-f "$here/out"
	expect_file "$here/out"
	expect_alive "$native"
}

need_objcopy() {
	objcopy --version >/dev/null 2>&1 || skip "no objcopy"
}

# Expects that the samples that match OF also match PATTERN: all of them, or FLOOR percent.
expect_whole() { # PATTERN OF [FLOOR]
	grep -E "$2" "$here/out" >"$here/of"
	expect "samples of $2" "$(total "$here/of")" '>=' 20
	grep -E "$1" "$here/of" >"$here/whole"
	grep -vE "$1" "$here/of" | head -n 3 | cut -c 1-1500 | sed 's/^/# not whole: /'
	expect "whole, %" "$(awk -v of="$(total "$here/of")" -v whole="$(total "$here/whole")" \
		'BEGIN { printf "%.2f", 100 * whole / of }')" '>=' "${3:-100}"
}

expect_nothing_cut() {
	expect_lacks "$here/stderr" 'lost: .*(user stacks|walked by frame pointer)'
}

# Expects that the samples of one function have everything above link_0 as the first pattern says.
native_case() { # LEAF PATTERN FUNCTION [PROGRAM]
	need_bpf
	start_native "${4:-$workloads/native}" "$1"
	record_native
	expect_whole "${entry}run;$chain$2$kernel" ";$3( |;)"
	expect_whole "$entry" .
	expect_nothing_cut
}

case_thirty_calls() {
	native_case compute leaf_compute leaf_compute
}

# The C library calls a function of the program.
case_through_qsort() {
	native_case sort 'leaf_sort;([^;]+;)+compare' compare
}

case_static_pie() {
	native_case sort 'leaf_sort;([^;]+;)+compare' compare "$workloads/native_static"
}

case_in_memcpy() {
	native_case copy 'leaf_copy(;touch|;[^;]*mem(cpy|move)[^;]*)?' leaf_copy
}

# At its first and last instruction the function has no frame. How often a CPU is sampled there depends on its address.
case_in_the_linkage_table() {
	local native_interval=197us there=0 i
	for ((i = 0; i < 8 && there < 5; i++)); do
		native_case stub 'leaf_stub(;touch|;memcpy@plt|;[^;]*mem(cpy|move)[^;]*)?' leaf_stub
		there=$((there + $(total <(grep -E ";memcpy@plt$kernel" "$here/out"))))
	done
	expect "samples in memcpy@plt" "$there" '>=' 5
}

case_in_a_system_call() {
	native_case system_call 'leaf_system_call(;[^;]+)?' leaf_system_call
}

case_in_the_vdso() {
	native_case clock 'leaf_clock(;[^;]+)*' leaf_clock
}

# The stack is deeper than kernels' perf_event_max_stack.
case_six_hundred_calls() {
	native_case deep "leaf_deep;$(printf 'recurse;%.0s' {0..600})leaf_compute" leaf_compute
}

# The stack is deeper than one record, and no frame is left out. A larger -j than the maximum is accepted, as
# async-profiler accepts it.
case_five_thousand_calls() {
	local calls='n = gsub(/;recurse/, ""); all += $NF; if (n == 5001) whole += $NF'
	need_bpf
	start_native "$workloads/native" deeper
	record_native -j 100000
	expect "times -j was said to be clamped" "$(grep -c -- '-j 100000: .* 16384 frames' "$here/stderr")" '==' 1
	calls=$(awk "/leaf_compute/ { $calls } END { print whole + 0, all + 0 }" "$here/out")
	expect_share "with all calls" "$calls" '>=' 97
	expect_nothing_cut
}

case_in_a_thread() {
	need_bpf
	start_native "$workloads/native" thread
	record_native
	expect_whole "^[^;]+;([^;]+;)?thread_main;run;${chain}leaf_compute$kernel" ';leaf_compute'
	expect_nothing_cut
}

# From the handler through the kernel's frame to the interrupted function, which is mostly, but not always, the leaf.
signal_case() { # LEAF
	need_bpf
	start_native "$workloads/native" "$1"
	record_native -i 997us # out of step with the timer that interrupts
	expect_whole "${entry}run;${chain}leaf_interrupted;(leaf_compute;)?$trampoline;handle;leaf_compute$kernel" \
		';handle;leaf_compute' 95
	expect_whole "${entry}run;(link_[0-9]+;)*([a-z_]+;)*$trampoline;handle;leaf_compute$kernel" \
		';handle;leaf_compute'
	expect_nothing_cut
}

case_in_a_signal_handler() {
	signal_case signal
}

case_in_a_signal_handler_on_its_own_stack() {
	signal_case signal_stack
}

# The trampoline of musl has no table, and is found by its bytes.
case_in_a_signal_handler_of_musl() {
	need_bpf
	[ -x "$workloads/native_musl_static" ] || skip "no musl-gcc"
	start_native "$workloads/native_musl_static" signal
	record_native -i 997us
	expect_whole "main;run;${chain}leaf_interrupted;(leaf_compute;)?__restore_rt;handle;leaf_compute$kernel" \
		';handle;leaf_compute' 95
	# Below main, musl has no tables either.
	expect_whole '^\[truncated\];([^;]+;)*main;' . 90
	expect_contains "$here/stderr" 'lost: [0-9]+ user stacks cut'
}

# Neither the trampoline nor any other code of the stripped C library has a name of its own.
case_names_of_a_stripped_musl() {
	need_bpf
	[ -x "$workloads/native_musl" ] || skip "no musl-gcc"
	start_native "$workloads/native_musl" sort
	record_native
	expect_whole ';libc\.so\+0x[0-9a-f]+;compare' ';compare'
	expect_lacks "$here/out" ';libc\.so\+0x15000' # the linkage table
	kill "$native"
	start_native "$workloads/native_musl" signal
	record_native -i 997us
	expect_whole ';libc\.so\+0x[0-9a-f]+;handle' ';handle;leaf_compute'
}

# Go's runtime calls on stacks of its own. What it does for a goroutine has the goroutine's stack below it.
case_stacks_of_go() {
	local root='^(\[truncated\];)?(runtime\.(goexit|mcall|morestack|clone|mstart|rt0_go)|_rt0_amd64)[^;]*[; ]'
	need_bpf
	[ -x "$workloads/goroutines" ] || skip "no go"
	start_native "$workloads/goroutines"
	record_native
	expect_whole '^runtime.goexit[^;]*;runtime.main;main.main;' ';main.main;' 100
	expect_whole '^runtime.(goexit|mcall|clone|mstart)[^;]*;' ';clock_gettime' 95
	expect_whole '^runtime.goexit[^;]*;' ';runtime.systemstack' 95
	expect_whole "$root" . 98
}

# ---- files with fewer tables -----------------------------------------------------------------------

# The tables are in a debug file, which the stripped file names, and compressed.
case_debug_frame_alone() {
	expect_lacks <(readelf --debug-dump=frames "$workloads/native_debug_frame" | sed '/\.debug_frame/,$d') 'link_'
	native_case sort 'leaf_sort;([^;]+;)+compare' compare "$workloads/native_debug_frame"
}

case_debug_frame_in_a_debug_file() {
	need_objcopy
	objcopy --only-keep-debug --compress-debug-sections "$workloads/native_debug_frame" "$here/native.debug"
	objcopy --strip-all --add-gnu-debuglink="$here/native.debug" "$workloads/native_debug_frame" "$here/native"
	native_case sort 'leaf_sort;([^;]+;)+compare' compare "$here/native"
}

guessed() {
	local stacks
	stacks=$(sed -n 's/.*lost: \([0-9]*\) user stacks with frames found by frame pointer.*/\1/p' "$here/stderr")
	echo "${stacks:-0}"
}

# Without tables and frame pointers, frames are guessed, and marked as a guess.
case_no_tables_and_no_frame_pointers() {
	need_bpf
	need_objcopy
	objcopy --strip-debug "$workloads/native_debug_frame" "$here/native"
	start_native "$here/native" compute
	record_native
	expect "guessed stacks" "$(guessed)" '>=' "$(($(total "$here/out") / 2))"
}

# V8 compiles at run time and has built-in functions without tables in its file; all of this code has frame pointers.
case_javascript() {
	need_bpf
	command -v node >/dev/null || skip "no node"
	cat >"$here/deep.js" <<-'EOF'
		function leaf(n) {
			let sum = 0;
			for (let i = 0; i < n; i++)
				sum = (sum * 31 + i) % 1000003;
			return sum;
		}
		function down(depth, n) { return depth === 0 ? leaf(n) : down(depth - 1, n) + 1; }
		let sum = 0;
		for (let i = 0; i < 20000; i++) sum += down(9, 500);
		console.log("READY");
		const until = Date.now() + 60000;
		while (Date.now() < until) sum += down(9, 2000000);
		console.log(sum);
	EOF
	start_native env -C "$here" node --perf-basic-prof --no-turbo-inlining deep.js
	native_interval=4ms record_native
	rm -f "/tmp/perf-$native.map"
	local calls outer='(Builtins_InterpreterEntryTrampoline|JS:[^;]*deep\.js:1:1)'
	calls=$(printf '(JS:[^;]*down [^;]*|Builtins_InterpreterEntryTrampoline);%.0s' {1..10}) # not compiled yet
	expect_whole "^_start;([^;]+;)*node::Start;([^;]+;)+Builtins_JSEntry;([^;]+;)*$outer;${calls}JS:[^;]*leaf " \
		'JS:[^;]*leaf ' 95
	expect "guessed stacks" "$(guessed)" '<=' "$(($(total "$here/out") / 20))"
}

# The symbols of functions that are not exported, in an ELF file of their own, compressed, as Fedora ships them.
case_mini_debug_info() {
	need_objcopy
	xz --version >/dev/null 2>&1 || skip "no xz"
	objcopy --only-keep-debug "$workloads/native" "$here/debug"
	objcopy -S --wildcard --keep-symbol='l*' --keep-symbol='run' --keep-symbol='compare' --keep-symbol='main' \
		"$here/debug" "$here/mini"
	xz "$here/mini"
	objcopy --strip-all --add-section .gnu_debugdata="$here/mini.xz" "$workloads/native" "$here/native"
	native_case sort 'leaf_sort;([^;]+;)+compare' compare "$here/native"
}

# The library is mapped during the recording; samples until the loader notices it are not whole.
case_library_loaded_later() {
	need_bpf
	start_native "$workloads/native" library "$(realpath "$workloads")/libnative.so"
	record_native -d 5
	expect_whole "${entry}([^;]+;)*run;${chain}leaf_compute$kernel" 'leaf_compute' 60
}

# While the runtime's unwinder loads the handler's registers into its own frame, the caller cannot be found.
case_exceptions() {
	local calls
	calls=$(printf 'chained<%d>::run;' {10..1})
	need_bpf
	[ -x "$workloads/native_throw" ] || skip "no C++ compiler"
	start_native "$workloads/native_throw"
	record_native
	expect_whole "${entry}catch_it;${calls}chained<0>::run$kernel" ';chained<0>::run( |;[^;]*_\[k\])'
	expect_whole "$entry" . 95
}

case_deleted_file() {
	need_bpf
	cp "$workloads/native" "$here/gone"
	start_native "$here/gone" compute
	rm "$here/gone"
	record_native
	expect_whole "${entry}run;${chain}leaf_compute$kernel" ';leaf_compute'
}

# Only the target's mount namespace has the file.
case_mount_namespace() {
	need_bpf
	need_root
	mkdir "$here/own"
	unshare -m true 2>/dev/null || skip "no mount namespaces"
	# shellcheck disable=SC2016 # for the inner shell
	start_native unshare -m sh -c 'mount -t tmpfs none "$1" && cp "$2" "$1" && exec "$1/native" compute' sh \
		"$here/own" "$workloads/native"
	[ ! -e "$here/own/native" ] || fail "the file is visible here too"
	record_native
	expect_whole "${entry}run;${chain}leaf_compute$kernel" ';leaf_compute'
}

# A child of the command is sampled from its exec on. Samples from before the loader has read its mappings are not
# whole.
case_command() {
	need_bpf
	record --engine bpf --no-attach -i 1ms -d 3 -o collapsed -f "$here/out" -- timeout 3 "$workloads/native" compute
	expect_whole "${entry}run;${chain}leaf_compute$kernel" 'leaf_compute' 60
}

# The kernel returns the mappings of a process to BPF.
need_find_vma() {
	need_bpf
	"$duet" check 2>&1 | grep -q 'yes *mappings of new processes' || skip "this kernel has no bpf_find_vma()"
}

# The rows of its program are there before it runs, however long the loader then needs to see its mappings.
case_start_of_a_command() {
	need_find_vma
	cp "$workloads/native" "$here/native_once"
	record --engine bpf --no-attach -i 1ms -d 500ms -o collapsed -f "$here/out" -- "$here/native_once" compute
	jvms+=("$(pgrep -f "^$here/native_once")") # the command goes on
	expect_whole "${entry}run;${chain}leaf_compute$kernel" 'leaf_compute' 98
}

# Each lives for less than a millisecond, so that the loader never knows the mappings of a living one. It makes the rows
# of their common file on behalf of one that has ended.
case_processes_of_a_millisecond() {
	need_find_vma
	start_record --engine bpf --no-attach --comm mayfly_child -i 997us -d 60 -o collapsed -f "$here/out"
	"$workloads/mayfly" 300 6 >"$here/mayfly"
	end_record INT
	grep -E 'burn_(long|short) 1$' "$here/out" >"$here/burnt"
	expect "samples of the two functions" "$(wc -l <"$here/burnt")" '>=' 50
	expect_share "whole" "$(matching "$here/burnt" ';_start;')" '>=' 90
}

# The processes run for some 20 ms each, with code in three files.
case_processes_of_some_milliseconds() {
	local i
	need_find_vma
	# shellcheck disable=SC2016 # $i is the inner shell's
	for ((i = 0; i < 60; i++)); do
		echo "bash -c 'for ((i = 0; i < 5000; i++)); do :; done'"
	done >"$here/script"
	record --engine bpf --no-attach -i 997us -o collapsed -f "$here/out" -- bash "$here/script"
	expect_share "from the entry on" "$(matching "$here/out" '^\[bash[^;]*;_start;')" '>=' 80
	# Mappings that were read after an exec are not those of the samples before it, nor the other way round.
	expect_share "of unknown files" "$(matching "$here/out" '^\[bash[^;]*;\[unmapped')" '<=' 2
}

# What runs at the start has its rows before the first sample, however busy the host is.
case_whole_host() {
	need_bpf
	start_native "$workloads/native" sort
	record --engine bpf --no-attach --host -i 1ms -d 1 -o collapsed -f "$here/out"
	expect_status 0
	expect_whole "${entry}run;${chain}leaf_sort;([^;]+;)+compare$kernel" "^\[native pid=$native\].*;compare( |;)" 95
}

run_cases "$@"
