#!/bin/bash
# SPDX-License-Identifier: MIT
#
# The bench beside other profilers, `perf record -a -g` and async-profiler, and with more workloads:
#   ROUNDS=3 WINDOW=3 (seconds) WORKLOADS="compute mixed churn idle tomcat javac" ASPROF=/path/to/asprof JDK=HOME
# Without ASPROF it is Debian's, with a JRE 17 of the same suite. Both run in their own root file system, which is kept
# in $DUET_SCRATCH (/var/tmp/duet-matrix). Tomcat and javac need the host's JDK; async-profiler takes part in them only
# if ASPROF names one.
[ -n "${BENCH_APART-}" ] || BENCH_APART=1 exec unshare --mount --propagation private "$0" "$@"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/asprof.sh"
. "$(dirname "$0")/programs.sh"

# ---- the run ----------------------------------------------------------------------------------------

peers() { # WORKLOAD...
	settings=("duet 10ms" "duet 1ms" "ctimer 10ms" "perf 10ms" "perf 1ms")
	[ ${#asprof[@]} = 0 ] || settings+=("asprof 10ms" "asprof 1ms")
	kinds=("$@")
	bench_all
	describe_host
	throughput_table
	figure_table
}

read -ra wanted <<<"${WORKLOADS:-compute mixed churn idle tomcat javac}"
own=() other=()
for kind in "${wanted[@]}"; do
	case $kind in
	tomcat | javac) other+=("$kind") ;;
	*) own+=("$kind") ;;
	esac
done
if [ ${#other[@]} != 0 ]; then
	peers "${other[@]}"
fi
if [ ${#own[@]} != 0 ]; then
	[ ${#asprof[@]} != 0 ] || fetch_asprof
	peers "${own[@]}"
fi
