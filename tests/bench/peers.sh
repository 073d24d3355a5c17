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

# ---- workloads that need more than a JVM -----------------------------------------------------------

start_tomcat() {
	local base=$scratch/tomcat end=$((SECONDS + 30))
	jvm_out=$here/requests
	tomcat10-instance-create -p 18080 -c 18005 "$base" >/dev/null || die "no Tomcat instance"
	cp -r /usr/share/tomcat10-examples/examples "$base/webapps/"
	CATALINA_BASE=$base JAVA_HOME=$jdk CATALINA_OPTS="${JVM_OPTS[*]}" /usr/share/tomcat10/bin/catalina.sh run \
		>"$scratch/tomcat.log" 2>&1 </dev/null &
	jvm=$!
	jvms+=("$jvm")
	until wrk -t 1 -c 1 -d 1 "$page" 2>/dev/null | grep -q 'Requests/sec'; do
		[ $SECONDS -lt $end ] || die "Tomcat does not answer: $(tail -n 5 "$scratch/tomcat.log")"
	done
	load_tomcat &
	jvms+=("$!")
}

page=http://localhost:18080/examples/servlets/servlet/HelloWorldExample

# Prints the number of requests so far, every second.
load_tomcat() {
	local total=0 count
	while :; do
		count=$(wrk -t 1 -c 8 -d 1 "$page" | sed -n 's/ *\([0-9]*\) requests in.*/\1/p')
		total=$((total + count))
		echo "OPS $total $(($(cpu_ticks "$jvm") * (1000000000 / hz)))"
	done >"$jvm_out"
}

start_javac() {
	local sources=$scratch/javac home
	mkdir -p "$sources"
	JVM_OPTS+=(-Xmx1g)
	for home in "$jdk" $(jdks); do
		[ ! -e "$home/lib/src.zip" ] || break
	done
	(cd "$sources" && "$home/bin/jar" xf "$(realpath "$home/lib/src.zip")" jdk.compiler) ||
		die "$home has no sources of the compiler"
	start_jvm "$home" workload.Bench javac "$sources/jdk.compiler"
}

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
