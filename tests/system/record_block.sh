#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 200
# -e block: requests to a block device have their number, time and submitter. The kernel's own trace is the truth.
. "$(dirname "$0")/lib.sh"

# Makes a file on a disk: each direct read of 4 KiB of it is a request.
prepare() {
	need_bpf
	need_root
	local number
	dd if=/dev/zero of="$here/data" bs=1M count=80 conv=fsync status=none
	number=$(stat -c %d "$here/data")
	disk=$(realpath "/sys/dev/block/$((number >> 8 & 4095)):$((number & 255 | number >> 12 & 0xfff00))" 2>/dev/null)
	[ -e "$disk/partition" ] && disk=$(dirname "$disk")
	[ -e "$disk/mq" ] || skip "$here is not on a disk with requests"
	disk=$(basename "$disk")
	reader=reads_$$ # a name that no other process has, nor the other cases of this script
	cp "$(command -v dd)" "$here/$reader"
	dd if="$here/data" of=/dev/null bs=4k count=1 iflag=direct status=none 2>/dev/null ||
		skip "the file system of $here has no direct reads"
}

# Traces the block device in an instance of its own. The kernel removes it with its events.
begin_trace() {
	tracing=$here/tracing
	mkdir "$tracing"
	mount -t tracefs none "$tracing" || skip "tracefs cannot be mounted"
	trace=$tracing/instances/duet-test-$$
	mkdir "$trace" || skip "tracefs has no instances"
	echo 16384 >"$trace/buffer_size_kb"
	echo mono >"$trace/trace_clock"
	echo 1 >"$trace/events/block/block_rq_issue/enable"
	echo 1 >"$trace/events/block/block_rq_complete/enable"
}

after_case() {
	[ -z "${trace:-}" ] || rmdir "$trace"
	[ -z "${tracing:-}" ] || umount "$tracing"
}

# Prints the number of requests that the program has issued, and their time in ns, from issue to completion.
traced() {
	tr -d '()' <"$trace/trace" | awk -v reader="[$reader]" '
		{
			for (i = 1; i <= NF && $i !~ /^block_rq_/; i++);
			if (i > NF) next
			at = $(i - 1)
			sub(":", "", at)
		}
		$i ~ /issue/ && $NF == reader {
			for (j = i; $j != "+"; j++);
			issued[$(i + 1) " " $(j - 1)] = at
		}
		$i ~ /complete/ {
			for (j = i; $j != "+"; j++);
			key = $(i + 1) " " $(j - 1)
			if (key in issued) { count++; sum += at - issued[key]; delete issued[key] }
		}
		END { printf "%d %.0f\n", count, 1e9 * sum }'
}

record_reads() { # INTERVAL COUNT [RECORD-OPTIONS...]: of 4 KiB each
	record -e "block=$1" -o collapsed -f "$here/out" "${@:3}" -- \
		"$here/$reader" if="$here/data" of=/dev/null bs=4k count="$2" iflag=direct status=none
	expect_status 0
}

# Each request that takes the interval or more is a sample. If others use the disk, a thread of the kernel issues some.
case_number() { # alone
	prepare
	record_reads 1us 2000
	expect_near "requests" "$(matching "$here/out" . | cut -d ' ' -f 1)" 2000 20
	expect_near "of them with the device, kind and callers" \
		"$(matching "$here/out" ";ksys_read_\\[k\\];.*;$disk: read [0-9]+\$" | cut -d ' ' -f 1)" 2000 20
}

# Prints the recorded time as a percentage of what the kernel has traced.
told_of_traced() {
	traced >"$here/truth"
	awk 'NR == FNR { truth = $2; next } { sum += $NF } END { print 100 * sum / truth }' "$here/truth" "$here/out"
}

case_time() { # alone
	prepare
	begin_trace
	record_reads 1us 2000 --total
	expect_near "time, % of what the kernel has traced" "$(told_of_traced)" 100 8
	expect "requests that the kernel has traced" "$(cut -d ' ' -f 1 "$here/truth")" '>=' 1980
}

# Most requests take less: some are chosen, and stand for all.
case_time_at_the_default() { # alone
	prepare
	begin_trace
	record_reads 1ms 5000 --total
	expect_near "time, % of what the kernel has traced" "$(told_of_traced)" 100 25
}

# What is written later, and the flushes of a device with a cache, are submitted by threads of the kernel.
case_by_the_kernel() {
	prepare
	grep -q 'write back' "/sys/block/$disk/queue/write_cache" || skip "$disk has no cache to flush"
	start_record --no-attach -e block=1us --host -d 100 -o collapsed -f "$here/out"
	dd if=/dev/zero of="$here/data" bs=64k count=10 conv=notrunc,fsync status=none
	sleep 0.5
	end_record INT
	expect_contains "$here/out" ': write [0-9]+$'
	grep ": flush, by the kernel's thread [0-9]*\$" "$here/out" >"$here/flushes" ||
		skip "the files here are not on a device that is flushed"
	expect "of the flushes, with a frame of a program, %" "$(share "$here/flushes" '(^|;)(main|fsync);')" '==' 0
}

run_cases "$@"
