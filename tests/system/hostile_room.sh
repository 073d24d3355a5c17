#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
#
# Processes of user 1500 fill what all users share: the profile by random stacks in ever new processes, the unwind
# tables by thousands of mappings. The process of user 1501, which begins later, keeps its stacks.
. "$(dirname "$0")/lib.sh"

# Names the program as no other of the host: the recording is by name.
prepare() {
	need_bpf
	need_root
	room=$here/room.$BASHPID
	install -m 755 "$DUET_BUILD/tests/system/hostile_neighbour" "$room"
}

start_as() { # UID ATTACK COUNT
	setpriv --reuid "$1" --regid "$1" --clear-groups "$room" "$2" 240 "$here" "$3" >"$here/of_$1" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	wait_for_line "$here/of_$1" '^READY' 10
}

# Records the attackers until their share is used up, and then the victim, too, for two seconds of its CPU time. Its
# stacks are in $here/honest.
record_both() { # WHAT
	local until
	nice -n -10 timeout --kill-after=60 240 "$duet" record -v --comm "${room##*/}" --no-attach -d 200 -i 1ms -t \
		--max-memory 64m -o collapsed -f "$here/out" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	wait_for_line "$here/stderr" "user 1500 has used up a share of $1" 60
	start_as 1501 victim 100
	renice -n -10 -p "$jvm" >"$here/renice" 2>&1 # a busy machine has little time for it
	until=$(($(cpu_ticks "$jvm") + 2 * ticks_per_second))
	until [ "$(cpu_ticks "$jvm")" -ge $until ] || ! kill -0 "$recorder" 2>/dev/null; do
		sleep 0.1
	done
	end_record INT
	expect_status 0
	expect_lacks "$here/stderr" 'user 1501'
	grep "pid=$jvm\]" "$here/out" >"$here/honest"
	expect_share "the victim's whole stacks" "$(matching "$here/honest" ';main;victim;(left|right)')" '>=' 95
}

case_stacks() { # apart
	prepare
	start_as 1500 stacks 2
	record_both "the profile's stacks"
	expect "the attackers' samples without a stack" "$(share "$here/out" 'too_many_stacks')" '>' 0
}

# BPF walks functions without a frame pointer only by the rows of their file.
case_mappings() { # apart
	prepare
	start_as 1500 mappings 15
	record_both '\(the unwind tables\|the mappings of processes\)'
}

run_cases "$@"
