#!/bin/bash
# SPDX-License-Identifier: MIT
#
# Measures how much the loader can process (loader_replay.c): SECONDS of a host (default 40), then the same with a tenth
# of the stacks. The memory must grow only with the stacks.
. "$(dirname "$0")/../system/lib.sh"
libjvm=$(find "$(any_jdk)/" -name libjvm.so | head -n 1)
echo "$(date +%Y-%m-%d), Linux $(uname -r), $(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -n 1)"
for stacks in 100000 10000; do
	echo
	"$DUET_BUILD/tests/bench/loader_replay" "${1:-40}" "$stacks" "$libjvm" || exit 1
done
