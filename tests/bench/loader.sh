#!/bin/bash
# SPDX-License-Identifier: MIT
#
# What the loader itself can take, see loader_replay.c: SECONDS of the host (default 40), then again with a tenth of
# the stacks, for memory must grow with these alone.
. "$(dirname "$0")/../system/lib.sh"
libjvm=$(find "$(any_jdk)/" -name libjvm.so | head -n 1)
echo "$(date +%Y-%m-%d), Linux $(uname -r), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
for stacks in 100000 10000; do
	echo
	"$DUET_BUILD/tests/bench/loader_replay" "${1:-40}" "$stacks" "$libjvm" || exit 1
done
