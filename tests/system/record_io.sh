#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# -e io and io-bytes: times and bytes are what the threads themselves have measured, with the file or the peer.
. "$(dirname "$0")/lib.sh"

record_transfers() { # EVENTS SECONDS [RECORD-OPTIONS...]
	rm -rf "$here"/out* "$here/gate" "$here/files"
	mkdir "$here/files"
	jvm_out=$here/transfers.out
	"$workloads/transfers" "$here/gate" "$here/files" "$2" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY' 10
	start_record -p "$jvm" -e "$1" "${@:3}" --total -t -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
}

# Prints the recorded amount of a thread, as a percentage of what it says in this column.
told_of_said() { # FILE NAME COLUMN
	grep -F "[$2 " "$1" | awk -v name="$2" -v column="$3" 'NR == FNR { told += $NF; next }
		$1 == name { said += $column }
		END { print said ? 100 * told / said : 0 }' - "$jvm_out"
}

expect_leaf() { # FILE NAME LEAF
	grep -F "[$2 " "$1" >"$here/thread"
	expect "amount of $2 with the leaf $3, %" "$(share "$here/thread" ";$2(;[^;]*)?;$3 ")" '>=' 99
}

expect_leaves() { # FILE
	expect_leaf "$1" in_file "$here/files/moved"
	expect_leaf "$1" in_tcp "127\\.0\\.0\\.1:$(jvm_said PORT)"
	expect_leaf "$1" in_unix "unix:$here/files/peer"
	expect_leaf "$1" in_pipe '\[pipe\]'
}

# Calls as long as the interval are recorded with their exact length. A thread may wait for a CPU when its call has
# ended but is not in user mode yet: the thread measures that, too.
case_time() {
	need_bpf
	local name
	record_transfers io=100us 5
	for name in in_tcp in_unix in_pipe; do
		expect_near "$name, % of what it has measured" "$(told_of_said "$here/out.collapsed" $name 2)" 100 3
	done
	for name in in_file in_sync; do
		expect_near "$name, % of what it has measured" "$(told_of_said "$here/out.collapsed" $name 2)" 100 35
	done
	expect_leaves "$here/out.collapsed"
	expect_leaf "$here/out.collapsed" in_sync "$here/files/moved"
	grep -F '[in_' "$here/out.collapsed" >"$here/all"
	expect "stacks with the thread's entry, %" "$(share "$here/all" '\];(__)?clone[0-9]*;.*;moves;')" '>=' 99
}

case_bytes() {
	need_bpf
	local name
	record_transfers io-bytes=1 3
	for name in in_tcp in_unix in_pipe; do
		expect "$name, % of what it has moved" "$(told_of_said "$here/out.collapsed" $name 3)" '==' 100
	done
	expect_near "in_file, % of what it has moved" "$(told_of_said "$here/out.collapsed" in_file 3)" 100 2
	expect_leaves "$here/out.collapsed"
}

# A path longer than what is told keeps its end, and no control character of a name gets into the output.
case_odd_names() {
	need_bpf
	local deep=$here i
	for ((i = 0; i < 30; i++)); do
		deep+=/folder_$i
	done
	mkdir -p "$deep"
	(cd "$deep" && exec dd if=/dev/zero of=$'odd\e[31m' bs=4k count=100000 oflag=sync status=none) &
	jvms+=($!)
	sleep 0.5
	record -p $! -e io=1us --total -d 1 -o collapsed -f "$here/odd"
	expect_status 0
	expect_contains "$here/odd" ';…/.*folder_29/odd[^;]*31m [0-9]+$'
	expect_lacks "$here/odd" $'\e'
	kill "${jvms[-1]}"
}

record_kinds() { # WORKLOAD EVENTS
	rm -rf "$here"/out* "$here/gate" "$here/files"
	mkdir "$here/files"
	jvm_out=$here/kinds.out
	local workload=$1
	"$workloads/$workload" "$here/gate" "$here/files" >"$jvm_out" 2>"$jvm_out.err" &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$jvm_out" '^READY\|^NONE' 10
	! grep -q '^NONE' "$jvm_out" || skip "the kernel refuses what $workload does"
	shift
	start_record -p "$jvm" -e "$1" --total -t -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record
	expect_status 0
}

# Prints the amount of a kind with this leaf, or with any.
told_of_kind() { # NAME [LEAF]
	awk -v name=";$1" -v leaf="${2:-}" '
		{ amount = $NF; sub(/ [0-9]+$/, "") }
		index($0, name) && (leaf == "" || substr($0, length($0) - length(leaf)) == ";" leaf) { sum += amount }
		END { print sum + 0 }' "$here/out.collapsed"
}

# Files that are in no folder, connections, datagrams of sockets without a peer, calls that move several messages, and
# calls of another architecture.
case_odd_files() {
	need_bpf
	local name bytes leaf
	record_kinds odd_files io=1us
	while read -r name bytes leaf; do
		expect "time of $name" "$(told_of_kind "$name")" '>' 0
		expect_near "time of $name with the leaf $leaf, %" \
			"$((100 * $(told_of_kind "$name" "$leaf") / $(told_of_kind "$name")))" 100 1
	done < <(grep '^in_' "$jvm_out")
	record_kinds odd_files io-bytes=1
	while read -r name bytes leaf; do
		expect "bytes of $name" "$(told_of_kind "$name" "$leaf")" '==' "$bytes"
	done < <(grep '^in_' "$jvm_out")
	expect "bytes of calls that are not of this architecture" "$(told_of_kind no_other)" '==' 0
}

need_rings() {
	"$duet" check | grep -q 'yes  *requests of io_uring' || skip "this kernel does not show requests of io_uring"
}

# Requests of io_uring: from the submission, whose stack they have, to each completion.
case_rings() {
	need_bpf
	need_rings
	local name ns bytes leaf
	record_kinds rings io=1us
	while read -r name ns bytes leaf; do
		case $name in
		in_pipe | in_worker | in_cancelled | in_repeated)
			expect_near "time of $name with the leaf $leaf, %" \
				"$((100 * $(told_of_kind "$name;" "$leaf") / ns))" 100 3
			;;
		in_kernel)
			expect_near "time of $name, %" "$((100 * $(told_of_kind io_sq_thread "$leaf") / ns))" 100 25
			;;
		*)
			expect "time of $name with the leaf $leaf" "$(told_of_kind "$name;" "$leaf")" '>' 0
			expect "the same" "$(told_of_kind "$name;" "$leaf")" '<' "$ns"
			;;
		esac
	done < <(grep '^in_' "$jvm_out")
	expect_contains "$here/out.collapsed" ';in_pipe;.*;syscall;.*;io_submit_sqes_\[k\];\[io_uring read\];'
	expect_lacks "$here/out.collapsed" 'bpf_'
	record_kinds rings io-bytes=1
	while read -r name ns bytes leaf; do
		[ "$name" != in_kernel ] || continue
		expect "bytes of $name" "$(told_of_kind "$name;" "$leaf")" '==' "$bytes"
	done < <(grep '^in_' "$jvm_out")
	expect "bytes of requests by the kernel" \
		"$(told_of_kind io_sq_thread "[io_uring read, by the kernel's thread];[pipe]")" '==' 1000
}

# Both at once, and sampled: 64 kB a sample.
case_both() {
	need_bpf
	record_transfers io,io-bytes 3
	expect_near "time of in_tcp, %" "$(told_of_said "$here/out.collapsed" in_tcp 2)" 100 5
	expect_near "bytes of in_file, %" "$(told_of_said "$here/out.io-bytes.collapsed" in_file 3)" 100 5
}

jdk_case_java() {
	need_bpf
	JVM_OPTS=(-Dgate="$here/gate")
	start_jvm "$jdk" workload.Sleeps 4
	start_record -p "$jvm" -e io=100us --total -t -d 100 -o collapsed -f "$here/out.collapsed"
	touch "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	grep -F '[inSocket ' "$here/out.collapsed" >"$here/thread"
	expect "time that the thread reads its socket, from Java, %" \
		"$(share "$here/thread" ';workload/Sleeps.inSocket[;_].*;(127.0.0.1|\[::.*\]):[0-9]+ ')" '>=' 95
}

run_cases "$@"
