#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 600
#
# Every HotSpot since 8. Each JVM of Debian's archive runs with chroot in its own root file system, while duet attaches
# from the host. JDKs of the host are tested too. Arguments choose rows: 8@sid.
. "$(dirname "$0")/lib.sh"

versions=(8 11 17 21 25 26 27)
suites=(sid forky trixie bookworm) # the first suite that has the JDK is used
columns=(version joined failed_walks compiled interpreted short_lives gc_and_compilers ctimer perf alloc sums traced
	syscalls agentpath exit check_jni jfr sigprof_owner attach_50_times)

# A row is named VERSION@SUITE, or FOLDER@host for a JDK of the host's.
prepare_row() {
	local root
	JVM_AS=() JVM_OPTS=()
	jdk=/usr/lib/jvm/${row%@host}
	[[ $row != *@host ]] || return
	jdk=/usr/lib/jvm/java-${row%@*}-openjdk-$(dpkg --print-architecture)
	if [ "$(id -u)" != 0 ]; then
		row_lacks="chroot needs root"
	elif ! root=$("$matrix/root_tree.sh" "${row#*@}" "${row%@*}" 2>/dev/null); then
		row_lacks="Debian's archive cannot be reached or does not have it: ${suites[*]}"
	else
		JVM_AS=(chroot "$root")
		enter "$root"
	fi
}

# Mounts what the JVM, the workload and duet look for below the root. Its /tmp is not the host's.
enter() { # ROOT
	local folder
	mount -t tmpfs tmpfs "$1/tmp"
	mount -t proc proc "$1/proc"
	for folder in /dev /sys "$DUET_BUILD" "$scratch"; do
		mkdir -p "$1$folder"
		mount --rbind "$folder" "$1$folder"
	done
}

# Makes the trees, one after the other, before the first row runs.
archive_rows() {
	local version suite found
	for version in "${versions[@]}"; do
		found=${suites[0]}
		for suite in "${suites[@]}"; do
			[ "$(id -u)" = 0 ] && "$matrix/root_tree.sh" "$suite" "$version" >/dev/null 2>&1 || continue
			found=$suite
			break
		done
		echo "$version@$found"
	done
}

host_rows() {
	jdks | sed 's:.*/::; s:$:@host:'
}

# ---- cells -----------------------------------------------------------------------------------

cell_version() {
	"${JVM_AS[@]}" "$jdk/bin/java" -version >"$here/stdout" 2>"$here/stderr" </dev/null
	figure "$(sed -n 's/.*version "\(.*\)".*/\1/p' "$here/stderr")"
	expect_contains "$here/stderr" "64-Bit Server VM"
}

# The result is $here/out.
record_jvm() { # OPTIONS...
	record -p "$jvm" -d 2 "$@" -a -o collapsed -f "$here/out"
	expect_status 0
	expect_file "$here/out"
	expect_alive "$jvm"
}

expect_joined() { # PERCENT
	expect_share "joined" "$(reported joined)" '>=' "$1"
}

# Keeps the file for the cells that check the same recording.
cell_joined() {
	need_bpf
	JVM_OPTS=(-Xmx64m -Xmn2m) # the collector runs, even if the JVM gets little CPU time
	start_jvm "$jdk" shop.Demo
	record_jvm -d 3 -i 1ms -t
	cp "$here/out" "$figures/recorded"
	figure "$(reported_joined)"
	failed_walks >"$figures/walks"
	expect_contains "$here/out" 'shop/Pricing\.averages'
	expect_contains "$here/out" 'shop/Archiver\.compress.*[Dd]eflate'
	expect_contains "$here/out" 'shop/Journal\.append.*_\[k\]'
	expect_joined 98
}

# "N M": walks that AsyncGetCallTrace refused, joined samples.
failed_walks() {
	awk '/^duet: joined: / { joined = $3 } /Java stacks not walked/ { failed += $3 }
		END { print failed + 0, joined + 0 }' "$here/stderr"
}

need_recording() {
	[ -s "$figures/recorded" ] || skip "there is no recording"
}

cell_failed_walks() {
	need_recording
	figure "$(awk '{ printf "%.2f", $2 ? 100 * $1 / $2 : 100 }' "$figures/walks")"
	expect_share "failed walks" "$(cat "$figures/walks")" '<=' 5
}

# Allows 2 percent, or four standard deviations if the JVM gets little CPU time and so has few samples.
expect_near_share() { # METHOD PERCENT
	local room
	room=$(awk -v n="$(total "$here/out")" -v p="$2" 'BEGIN {
		chance = n ? 4 * sqrt(p * (100 - p) / n) : 0
		print (chance > 2 ? chance : 2)
	}')
	expect_near "share of $1" "$(share "$here/out" "Shares.$1")" "$2" "$room"
}

# The three methods call the same code 5, 3 and 2 times: their shares of the stacks with that code are known.
expect_shares() { # KIND-OF-FRAME
	record_jvm -d 3 -i 200us -I 'workload/Shares.kernel*'
	expect_share "frames of that kind" "$(matching "$here/out" "Shares.kernel_\\\\[$1\\\\]")" '>=' 95
	expect_near_share fifty 50
	expect_near_share thirty 30
	expect_near_share twenty 20
}

cell_compiled() {
	need_bpf
	JVM_OPTS=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,workload.Shares::*')
	start_jvm "$jdk" workload.Shares 60
	expect_shares j
}

cell_interpreted() {
	need_bpf
	JVM_OPTS=(-Xint)
	start_jvm "$jdk" workload.Shares 60 20000
	expect_shares 0
}

row_java() { # ARGUMENTS...
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cgroup" \
		${JVM_AS[@]+"${JVM_AS[@]}"} "$jdk/bin/java" -Xmx256m "$@" 2>&1
}

# JRE 8 has no javac.
compile_java() {
	row_java --list-modules 2>/dev/null | grep -q ^jdk.compiler || return 0
	row_java -m jdk.compiler/com.sun.tools.javac.Main -proc:none -d "$here" -cp "$workloads" "$here"/sources/S*.java
}

compile_scala() {
	local jars
	jars=$(printf ':%s' "$here"/sources/*.jar)
	[ "$jars" = : ] || row_java -cp "${jars#:}" scala.tools.nsc.Main -cp "$here/sources/scala-library.jar" \
		-d "$here" "$here/sources/H.scala"
}

# The life of each is shorter than an attach takes. Everything has its default, and no JVM prints a word. They are all
# that is in a cgroup: what else the host runs makes no difference.
cell_short_lives() {
	local cgroup i found
	need_bpf
	cgroup=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)/duet-${scratch##*/}-${row//[^0-9a-z]/-}
	mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made: $cgroup"
	mkdir -p "$here/sources" "$here/windows"
	cp tests/workloads/S*.java "$here/sources"
	cp -L /usr/share/java/scala-{compiler,library,reflect}.jar "$here/sources" 2>/dev/null
	cp -L /usr/share/java/scala-{xml,parser-combinators}_2.11.jar "$here/sources" 2>/dev/null
	echo 'object H { sealed trait T; case class A(x: Int) extends T
		def f(t: T) = t match { case A(x) => x } }' >"$here/sources/H.scala"
	start_record --cgroup "$cgroup" --continuous --by process,thread -i 5ms -o collapsed -f "$here/windows"
	for i in 1 2 3; do
		compile_java
		row_java -Dends=true -cp "$workloads" workload.Shares 0 >/dev/null
		compile_scala
	done >"$here/said"
	end_record INT
	rmdir "$cgroup"
	expect_status 0
	[ ! -s "$here/said" ] || fail "a JVM said: $(head -n 3 "$here/said")"
	cat "$here/windows"/*.collapsed >"$here/out"
	found=$(named_to_the_root "$here/out" "$here/missing")
	figure "$(awk '{ printf "%.1f of %d", $2 ? 100 * $1 / $2 : 0, $2 }' <<<"$found")"
	sort -rn "$here/missing" | cut -c 1-400 | sed 's/^/# missing: /' | head -n 3
	expect_share "named to the root" "$found" '>=' 97
	expect_contains "$here/stderr" 'walked: .* 0 needed a signal .* 0 got one as a check'
}

cell_gc_and_compilers() {
	need_recording
	expect_contains "$figures/recorded" '^\[(GC|G1) '
	expect_contains "$figures/recorded" '^\[C[12] Comp'
}

cell_ctimer() {
	start_jvm "$jdk" shop.Demo
	record_jvm --engine ctimer -i 2ms
	expect_contains "$here/out" 'shop/Pricing\.averages'
	expect_contains "$here/out" 'shop/Archiver\.compress'
	expect "Java frames, % of samples" "$(share "$here/out" '_\\[[0ij]\\]')" '>=' 50
}

cell_perf() {
	start_jvm "$jdk" workload.FileIo 60
	record_jvm --engine perf -i 2ms
	expect_contains "$here/out" 'workload/FileIo\..*_\[k\]'
	expect "Java frames, % of samples" "$(share "$here/out" '_\\[[0ij]\\]')" '>=' 50
}

# JDK 8 does not sample its allocations: BPF does.
cell_alloc() {
	[[ $row != 8@* ]] || need_bpf
	start_jvm "$jdk" workload.Allocations 20000
	record_jvm -e cpu=1ms,alloc=64k --total
	expect_lacks "$here/stderr" 'no samples of alloc'
	expect_contains "$here/out.alloc" 'Allocations\.one_\[[0ij]\];workload\.Allocations\$Node_\[i\]'
	expect_contains "$here/out.alloc" 'Allocations\.four_\[[0ij]\];java\.lang\.String\[\]\[\]_\[i\]'
}

# The bytes of each site and class are those that the workload has by construction.
cell_sums() {
	local collector collectors=(Serial Parallel G1 Z) megabytes=3000
	need_bpf
	[[ $row != 11@* ]] || skip "its own sampler takes up to 7 % too many small objects beside large ones"
	[[ $row != 8@* ]] || skip "BPF samples them: tests/system/record_tlab.sh"
	for collector in "${collectors[@]}"; do
		JVM_FLAGS=("-XX:+Use${collector}GC" -Xmx512m)
		record_gated workload.Sums $megabytes 2 -- -e alloc=4k
		expect_sums "$here/out.collapsed" $megabytes 'workload/Sums.Work[.]one;'
		kill "$jvm" 2>/dev/null
	done
}

# Calls end in each known way, and the classes are verified.
cell_traced() {
	local recorded stack
	JVM_FLAGS=(-Xverify:all -Xcheck:jni)
	record_gated workload.Traced 3 -- --trace 'workload.Traced.*:45ms'
	recorded=$(matching "$here/out.collapsed" "Traced[.]callAll;workload/Traced[.]slow ")
	expect_near "ns in slow" "${recorded% *}" "$(jvm_said SLEPT)" $(($(jvm_said SLEPT) / 20))
	for stack in early throwing 'slow;workload/Traced.pause' 'level;workload/Traced.level'; do
		recorded=$(matching "$here/out.collapsed" "Traced[.]callAll;workload/Traced.$stack ")
		expect "ns in $stack" "${recorded% *}" '>=' $((3 * 45000000))
	done
	expect_alive "$jvm"
}

cell_syscalls() {
	need_bpf
	start_jvm "$jdk" workload.FileIo 60
	record_jvm -e syscalls=10
	expect_contains "$here/out" 'workload/FileIo\..*write'
}

# duet starts the JVM in the same root file system, and stays until the JVM ends.
cell_agentpath() {
	need_bpf
	DUET_AS=(${JVM_AS[@]+"${JVM_AS[@]}"})
	record -i 1ms -a -o collapsed -f "$here/out" -- "$jdk/bin/java" -Xmx256m -cp "$workloads" shop.Demo 3
	expect_status 0
	expect_file "$here/out"
	expect_contains "$here/out" 'shop/Worker\.run_\[[0ij]\];shop/'
	expect_contains "$here/stdout" '^READY'
	expect_joined 98
	# JDK 8 counts its properties only when its agents have begun
	timeout 60 ${JVM_AS[@]+"${JVM_AS[@]}"} "$jdk/bin/java" \
		-agentpath:"$DUET_BUILD/libasyncProfiler.so=start,file=$here/out.jfr" -cp "$workloads" shop.Demo 2 \
		>"$here/stdout" 2>"$here/stderr" || fail "the JVM failed: $(head "$here/stderr")"
	grep -qa 'java\.vm\.specification\.version' "$here/out.jfr" || fail "the JFR file has no system properties"
}

# The samples until then are written, and the JVM ends with its own exit code.
expect_sound_end() {
	record -p "$jvm" -d 30 -i 1ms -o collapsed -f "$here/out"
	expect_status 0
	wait "$jvm"
	expect "exit code of the JVM" $? == 0
	expect_contains "$jvm_out" '^SOUND'
	expect_contains "$here/out" 'workload/Checksum\.inJava'
}

cell_exit() {
	need_bpf
	start_jvm "$jdk" workload.Checksum 4
	expect_sound_end
}

# JDK 8 prints a warning about its own launcher before.
cell_check_jni() {
	need_bpf
	JVM_OPTS=(-Xcheck:jni)
	start_jvm "$jdk" workload.Checksum 2
	expect_sound_end
	sed '1,/^READY/d' "$jvm_out" | cat - "$jvm_out.err" >"$here/said"
	expect_lacks "$here/said" 'WARNING(:| in) (JNI|native)|FATAL ERROR'
}

# JFR's sampler suspends threads with a signal; CPUTimeSample of JDK 25 and later has another one.
cell_jfr() {
	local options=settings=profile,dumponexit=true,filename=$here/jfr
	need_bpf
	JVM_OPTS=("-XX:StartFlightRecording=$options,jdk.CPUTimeSample#enabled=true")
	[[ $row =~ ^(8|11)@ ]] && JVM_OPTS=("-XX:StartFlightRecording=$options")
	start_jvm "$jdk" workload.Checksum 5
	expect_sound_end
	expect_joined 98
	expect "bytes of JFR's recording" "$(stat -c %s "$here/jfr")" '>=' 50000
}

cell_sigprof_owner() {
	need_bpf
	start_jvm "$jdk" workload.SecondProfiler
	record_jvm -i 1ms
	expect_joined 98
	expect_contains "$here/out" 'workload/SecondProfiler\.burn'
	local before end=$((SECONDS + 10))
	before=$(jvm_said TICKS)
	until [ $(($(jvm_said TICKS) - before)) -ge 5 ] || [ $SECONDS -ge $end ]; do
		sleep 0.2
	done
	expect "the other's ticks afterwards" $(($(jvm_said TICKS) - before)) '>=' 5
	expect_lacks "$jvm_out" STOLEN
}

no_more() { # HELD BEFORE
	awk -v now="$1" -v before="$2" 'BEGIN {
		n = split(now, a)
		split(before, b)
		for (i = 1; i <= n; i++)
			if (a[i] > b[i])
				exit 1
	}'
}

# The JVM starts and ends threads with its load: these would hide one of the agent's.
cell_attach_50_times() {
	local before after until once=$DUET_BUILD/tests/system/attach_once
	JVM_OPTS=(-XX:+IgnoreUnrecognizedVMOptions -XX:-UseDynamicNumberOfCompilerThreads
		-XX:-UseDynamicNumberOfGCThreads)
	start_jvm "$jdk" workload.Idle 2
	"$once" "$jvm" 0 2 >"$here/stderr" || fail "$(cat "$here/stderr")"
	sleep 0.1
	before=$(held_by "$jvm")
	"$once" "$jvm" 0 50 >"$here/stderr" || fail "$(cat "$here/stderr")"
	# The thread of the last agent has not ended yet.
	for ((until = SECONDS + 10; SECONDS < until; )); do
		after=$(held_by "$jvm")
		! no_more "$after" "$before" || break
		sleep 0.1
	done
	no_more "$after" "$before" || fail "fds, threads, mappings: $before before, $after after"
	expect_alive "$jvm"
}

# The first suite usually has all JDKs. To list the rows downloads nothing.
[ "${1:-}" != --list ] || { list_rows "${versions[@]/%/@${suites[0]}}" $(host_rows); exit; }
[ $# -gt 0 ] || mapfile -t found < <(archive_rows; host_rows)
[ $# -gt 0 ] || set -- "${found[@]}"
run_rows "$@"
end_matrix JDK
