#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 1200
# What must be reached when JVMs are read from outside, with all defaults: names, lines, every JVM, and the cost.
. "$(dirname "$0")/lib.sh"

# ---- rows of short JVMs --------------------------------------------------------------------

# The life of each is shorter than an attach takes. An agent would print a warning in some (JDK 21 and later).
jdk_case_a_row_of_programs() { # apart
	need_bpf
	[ -x "$jdk/bin/javac" ] || skip "no javac in $jdk"
	echo 'object H { sealed trait T; case class A(x: Int) extends T
		def f(t: T) = t match { case A(x) => x } }' >"$here/H.scala"
	mkdir "$here/classes" "$here/windows"
	start_record --host --continuous --by process,thread -i 5ms -o collapsed -f "$here/windows"
	{
		"$jdk/bin/javac" -proc:none -d "$here/classes" -cp "$workloads" tests/workloads/S*.java
		"$jdk/bin/java" -Dends=true -cp "$workloads" workload.Shares 0 2>&1 >"$here/program"
		! command -v scalac >/dev/null || JAVA_HOME=$jdk scalac -d "$here/classes" "$here/H.scala"
	} >"$here/said" 2>&1
	end_record INT
	expect_status 0
	[ ! -s "$here/said" ] || fail "a JVM said: $(head -n 3 "$here/said")"
	cat "$here/windows"/*.collapsed >"$here/out"
	expect_share "named to the root" "$(named_to_the_root "$here/out" "$here/missing")" '>=' 97
	sort "$here/missing" | cut -c 1-400 | sed 's/^/# missing: /' | head -n 5
	expect_contains "$here/stderr" 'walked: .* 0 needed a signal .* 0 got one as a check'
	expect_contains "$here/stderr" 'read: [0-9]+ JVMs from outside, 0 by an agent, 0 from outside until'
	expect_contains "$here/stderr" 'agreed: read from outside: no witness'
}

# ---- methods, lines and inlining -------------------------------------------------------------

# Prints from the byte code of a package which method calls which: lines "CLASS.METHOD LINE CALLEE", and "CLASS.METHOD
# LINE" for each line of a method.
call_sites() { # PACKAGE
	"$jdk/bin/javap" -c -l -p -cp "$workloads" $(cd "$workloads" && find "$1" -name '*.class' |
		sed 's|/|.|g; s|\.class$||') 2>/dev/null | perl -ne '
		sub flush {
			for my $at (sort { $a <=> $b } keys %call) {
				my ($line) = map { $lines{$_} } grep { $_ <= $at } sort { $b <=> $a } keys %lines;
				print "$class.$method $line $call{$at}\n" if $line;
			}
			print "$class.$method $_\n" for values %lines;
			%call = %lines = ();
		}
		if (/^\S.*\b(?:class|interface|enum) ([\w.\$]+)/) { flush(); ($class = $1) =~ tr{.}{/} }
		elsif (/^  static \{\};/) { flush(); $method = "<clinit>" }
		elsif (/^  \S.*?([\w.\$]+)\(.*;$/) { flush(); $method = $1 =~ /\./ ? "<init>" : $1 }
		elsif (/^ +(\d+): invoke\w+ .*(?:Method|InterfaceMethod) (?:\S+\.)?"?([\w\$<>]+)"?:/) { $call{$1} = $2 }
		elsif (/^ +line (\d+): (\d+)/) { $lines{$2} = $1 }
		END { flush() }'
}

# Prints "N M": samples in whose stacks each frame has a line of its method and calls the next frame at that line, and
# all samples. Compiled code has line numbers only where it can be stopped: elsewhere the method has to call the next
# one at any line.
as_the_code_says() { # FILE SITES
	perl -e '
		open my $sites, "<", $ARGV[0];
		while (<$sites>) {
			my ($in, $line, $callee) = split;
			$known{$in} = $has{"$in:$line"} = 1;
			$calls{"$in:$line"}{$callee} = $calls{$in}{$callee} = 1 if defined $callee;
		}
		while (<STDIN>) {
			my ($stack, $n) = /^(.*) (\d+)$/ or next;
			my ($caller, $ok, $met) = (undef, 1, 0);
			for (split /;/, $stack) {
				my ($in, $line) = m{^([\w\$/]+\.[\w\$<>]+)(:\d+)?$};
				if (!defined $in || !$known{$in}) { undef $caller; next }
				my ($method) = $in =~ /\.([^.]+)$/;
				$ok = 0 if $line && !$has{"$in$line"} || $caller && !$calls{$caller}{$method};
				($caller, $met) = ($in . ($line // ""), 1);
			}
			next if !$met;
			$all += $n;
			if ($ok) { $good += $n } else { print STDERR "$n $stack\n" }
		}
		printf "%d %d\n", $good, $all' "$2" <"$1" 2>"$here/wrong"
}

expect_as_the_code_says() { # WHAT JAVA-OPTIONS...
	local what=$1
	shift
	"$jdk/bin/java" "$@" -version 2>/dev/null >&2 || return 0 # a JVM without this collector
	JVM_OPTS=("$@")
	start_jvm "$jdk" shop.Demo
	warm_up 1
	record_cpu 1 -p "$jvm" -i 1ms --lines -o collapsed -f "$here/out"
	end_jvm
	expect_share "$what: as the byte code says" "$(as_the_code_says "$here/out" "$here/sites")" '>=' 99.9
	sort -rn "$here/wrong" | cut -c 1-600 | sed 's/^/# wrong: /' | head -n 3
}

jdk_case_lines_and_inlining() {
	need_bpf
	[ -x "$jdk/bin/javap" ] || skip "no javap in $jdk"
	call_sites shop >"$here/sites"
	expect "call sites" "$(awk 'NF == 3' "$here/sites" | wc -l)" '>=' 50
	expect_as_the_code_says "warm"
	expect_as_the_code_says "interpreted" -Xint
	expect_as_the_code_says "all compiled" -Xcomp
	expect_as_the_code_says "C1" -XX:TieredStopAtLevel=1
}

jdk_case_lines_with_each_collector() {
	local collector
	need_bpf
	[ -x "$jdk/bin/javap" ] || skip "no javap in $jdk"
	call_sites shop >"$here/sites"
	for collector in Serial Parallel G1 Z Shenandoah; do
		expect_as_the_code_says "$collector" "-XX:+Use${collector}GC"
	done
}

# The agent is attached when another duet ends. Until then the JVM is read from outside: both describe the same code,
# and the same methods that are interpreted.
named_by_both() { # WORKLOAD JAVA-OPTIONS...
	local first workload=$1
	shift
	rm -rf "$here"/out* "$here/first"
	"$jdk/bin/java" "$@" -version 2>/dev/null >&2 || return 0 # a JVM without this collector
	JVM_OPTS=("$@")
	start_jvm "$jdk" "$workload"
	warm_up 1
	"$duet" record --agent always -p "$jvm" -d 90 -o collapsed -f "$here/first" >"$here/first.said" \
		2>&1 </dev/null &
	first=$! recorder=$!
	wait_for_agent "$jvm"
	start_record --host --agent always -d 90 -i 1ms -o text=full -f "$here/out"
	wait_for_line "$here/stderr" 'another duet .*trying again in 2 s' 20
	kill -INT "$first"
	wait_for_line "$here/stderr" 'the agent is attached now' 20
	warm_up $(($(cpu_ticks "$jvm") / ticks_per_second + 2))
	end_record INT
	expect_status 0
	expect_contains "$here/out" 'JVM .*read from outside, then by an agent: --agent always'
	kill -KILL "$jvm"
	wait "$jvm" "$first" 2>/dev/null
	expect_share "$workload $*: stacks that both named alike" "$(
		sed -n 's/.*both named \([0-9]*\) of \([0-9]*\) Java stacks alike.*/\1 \2/p' "$here/stderr")" '>=' 99.9
}

jdk_case_both_sources() { # apart
	need_bpf
	named_by_both workload.Mixed
	named_by_both shop.Demo -XX:+UseParallelGC -XX:TieredStopAtLevel=1
	named_by_both shop.Demo -XX:+UseSerialGC -Xcomp
}

jdk_case_both_sources_interpreted() { # apart
	need_bpf
	named_by_both shop.Demo -Xint
	! is_jdk 21 || named_by_both workload.Virtual -Xint
}

# One way that is drawn. DUET_LONG=1: all, in five minutes.
jdk_case_both_sources_each_way() { # apart
	local count=1 way
	need_bpf
	[ "${DUET_LONG:-0}" = 0 ] || count=20
	while read -r -a way; do
		named_by_both shop.Demo "${way[@]}"
	done < <(ways_to_run -Xint -Xmixed -XX:TieredStopAtLevel=1 -Xcomp | shuf -n $count)
}

jdk_case_both_sources_where_objects_move() { # apart
	need_bpf
	named_by_both shop.Demo -XX:+UseZGC
	named_by_both shop.Demo -XX:+UseShenandoahGC
	! is_jdk 21 || named_by_both workload.Virtual
}

# ---- code that comes and goes ------------------------------------------------------------------

# Prints "N M L": samples in whose stacks a method or a line is wrong, all that have a line of one of the methods, and
# those in which the lines of outer() are not those of the version that has this callee. The program has said the lines
# of version 0.
of_no_version() { # FILE
	perl -e '
		open my $said, "<", $ARGV[0];
		while (<$said>) {
			my ($what, $method, @lines) = split;
			$has{"$method $_"} = 1 for $what eq "LINES" ? @lines : ();
		}
		while (<STDIN>) {
			my ($stack, $n) = /^(.*) (\d+)$/ or next;
			my ($wrong, $met, $caller, $version) = (0, 0);
			next if $stack !~ s/.*;[^;]*Redefined\.main:\d+;/main;/;
			for (split /;/, $stack) {
				my ($method, $line) = /Redefined\$Work\.(\w+):(\d+)/;
				($caller = $_ eq "main" ? $_ : ""), next if !defined $method; # [unloaded_class]: any
				$met = 1;
				$wrong = 1 if !$has{"$method " . $line % 100};
				$wrong = 1 if $caller && $caller ne ($method eq "outer" ? "main" : "outer");
				$older += $n if $caller eq "outer" && $method ne ($version % 2 ? "odd" : "even");
				($caller, $version) = ($method, int($line / 100));
			}
			$all += $n if $met;
			if ($wrong) { $bad += $n; print STDERR "$n $stack\n" }
		}
		printf "%d %d %d\n", $bad, $all, $older' "$jvm_out" <"$1" 2>"$here/wrong"
}

# A thread runs a class while another redefines it. HotSpot puts a version where an older one was, with the same names
# and size. Names are never wrong, and lines are those of the version that ran.
record_redefined() { # CPU_SECONDS JAVA-OPTIONS...
	local cpu=$1 wrong all older
	shift
	JVM_OPTS=("-javaagent:$here/agent.jar" "$@")
	start_jvm "$jdk" workload.Redefined 20
	record_cpu "$cpu" -p "$jvm" --no-attach -i "$interval" --lines -o collapsed -f "$here/out"
	read -r wrong all older < <(of_no_version "$here/out")
	echo "# $*: of unloaded classes: $(matching "$here/out" unloaded)"
	sort -rn "$here/wrong" | cut -c 1-300 | sed 's/^/# wrong: /' | head -n 3
	expect "samples with a line" "$all" '>=' $((cpu * 300))
	expect "of them with a wrong method or line" "$wrong" == 0
	expect_share "with a line of an older version" "$older $all" '<=' 0.1
	kill -KILL "$jvm"
	wait "$jvm" 2>/dev/null
}

# Prints "N M": samples in whose stacks a class has another number than the methods that stay, if these are there: they
# are not while the class is made. And all that have a number.
of_another_class() { # FILE
	perl -ne '
		my ($stack, $n) = /^(.*) (\d+)$/ or next;
		my @numbers = $stack =~ /\D(\d{10})\b/g or next;
		my $bits = join "", map { $_ eq "one" ? 1 : 0 } $stack =~ /Unloading\.(zero|one)\b/g;
		$all += $n;
		next if $bits ne "" && length $bits < 10 && $stack =~ /\[(un|no)/;
		next if !grep { $_ != $numbers[0] } @numbers and
			$bits eq "" || length $bits == 10 && $numbers[0] % 1024 == oct "0b$bits";
		$bad += $n;
		print STDERR;
		}{ printf "%d %d\n", $bad, $all' "$1" 2>"$here/wrong"
}

# Classes with numbers come and go, and others soon have their memory. A sample has the JVM's number of unloaded
# classes, so no stack has the number of another class.
record_unloading() { # CPU_SECONDS JAVA-OPTIONS...
	local cpu=$1 wrong all
	shift
	JVM_OPTS=("$@")
	start_jvm "$jdk" workload.Unloading 5
	record_cpu "$cpu" -p "$jvm" --no-attach -i "$interval" -o collapsed -f "$here/out"
	read -r wrong all < <(of_another_class "$here/out")
	echo "# $*: of unloaded classes: $(matching "$here/out" unloaded)"
	cut -c 1-300 "$here/wrong" | sed 's/^/# wrong: /' | head -n 3
	expect "samples with a number" "$all" '>=' $((cpu * 100))
	expect "of them with the number of another class" "$wrong" == 0
	# The loader comes too late for 0 to 4.5 %, beside other tests.
	[ "$interval" != 1ms ] || expect_share "of unloaded classes" "$(matching "$here/out" unloaded_class)" '<=' 15
	kill -KILL "$jvm"
	wait "$jvm" 2>/dev/null
}

# The JVM has no counter memory then: its number of unloaded classes is on its C heap.
jdk_case_unloading_without_counters() {
	local interval=1ms
	need_bpf
	record_unloading 4 -XX:-UsePerfData
	record_unloading 4 -XX:-UsePerfData -XX:+UseSerialGC -Xint
}

jdk_case_redefinition() {
	local interval=1ms
	need_bpf
	"$jdk/bin/java" -cp "$workloads" workload.Redefined jar "$here/agent.jar"
	record_redefined 4
	record_redefined 3 -XX:+UseSerialGC -Xint
	record_redefined 3 -XX:+UseZGC
}

# Prints each collector with each of these options.
ways_to_run() { # JAVA-OPTION...
	local collector compiler
	for collector in Serial Parallel G1 Z Shenandoah; do
		for compiler; do
			echo "-XX:+Use${collector}GC $compiler"
		done
	done
}

# Two ways that are drawn. DUET_LONG=1: all, a million samples, in ten minutes.
jdk_case_storms() {
	local interval=1ms cpu=3 count=2 way
	need_bpf
	[ "${DUET_LONG:-0}" = 0 ] || interval=200us cpu=5 count=20
	"$jdk/bin/java" -cp "$workloads" workload.Redefined jar "$here/agent.jar"
	while read -r -a way; do
		"$jdk/bin/java" "${way[@]}" -version 2>/dev/null >&2 || continue # a JVM without this collector
		record_unloading "$cpu" "${way[@]}"
		record_redefined "$cpu" "${way[@]}"
	done < <(ways_to_run -Xint -Xmixed -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=3m | shuf -n $count)
}

# ---- every JVM ---------------------------------------------------------------------------------

expect_read_outside() {
	record_cpu 1 -p "$jvm" -i 2ms -o collapsed -f "$here/out"
	expect_contains "$here/stderr" 'read: 1 JVMs from outside, 0 by an agent'
	expect_share "walked to the entry" "$(reported walked)" '>=' 99
	expect_contains "$here/out" 'workload/Shares.main;workload/Shares'
	expect_alive "$jvm"
}

case_of_another_user() {
	need_bpf
	need_root
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start_jvm "$(any_jdk)" workload.Shares 60
	expect_read_outside
}

case_in_other_namespaces() {
	local outer
	need_bpf
	need_root
	JVM_AS=(unshare --pid --mount --net --ipc --uts --fork --kill-child --mount-proc)
	start_jvm "$(any_jdk)" workload.Shares 60
	outer=$jvm
	jvm=$(pgrep -P "$outer" -x java) || fail "no java below $outer"
	jvms+=("$jvm")
	expect_read_outside
}

# A JDK of links in $here/jdk, whose libjvm.so is a file of its own.
copy_jdk() {
	local home file
	home=$(any_jdk)
	cp -rs "$home/." "$here/jdk"
	for file in bin/java lib/server/libjvm.so; do
		cp --remove-destination "$(realpath "$home/$file")" "$here/jdk/$file"
	done
}

# The file of libjvm is replaced, as by an update of the JDK.
case_libjvm_deleted_or_replaced() {
	need_bpf
	copy_jdk
	start_jvm "$here/jdk" workload.Shares 60
	rm "$here/jdk/lib/server/libjvm.so"
	expect_read_outside
	cp "$workloads/libworkload.so" "$here/jdk/lib/server/libjvm.so"
	expect_read_outside
}

case_stripped_libjvm() {
	need_bpf
	command -v strip >/dev/null || skip "no strip here"
	copy_jdk
	strip "$here/jdk/lib/server/libjvm.so"
	start_jvm "$here/jdk" workload.Shares 60
	expect_read_outside
}

# The JVM has no counter memory then.
jdk_case_without_counters() {
	need_bpf
	JVM_OPTS=(-XX:-UsePerfData)
	start_jvm "$jdk" workload.Shares 60
	expect_read_outside
}

# Expects that the JVM cannot be read for this reason, which is told once, and that it gets an agent.
expect_agent_instead() { # REASON
	expect_status 0
	expect "times that the reason is told" "$(grep -cE "JVM $jvm: $1: it gets an agent" "$here/stderr")" == 1
	expect_contains "$here/out" "JVM .*by an agent: $1"
	expect_contains "$here/out" 'workload.Shares.main'
	expect_alive "$jvm"
}

# The table of structures has another name, as in another vendor's JVM.
case_unknown_layout() {
	need_bpf
	copy_jdk
	LC_ALL=C sed -i 's/gHotSpotVMStructs/gHotSpotVMUnknown/g' "$here/jdk/lib/server/libjvm.so"
	start_jvm "$here/jdk" workload.Shares 60
	record_cpu 2 -p "$jvm" -i 2ms -o text=full -f "$here/out"
	expect_agent_instead 'its libjvm.so does not describe its structures as HotSpot does'
}

# As with ptrace_scope 3, or a policy that protects the JVM's memory.
case_memory_must_not_be_read() {
	need_bpf
	need_root
	DUET_AS=("$DUET_BUILD/tests/matrix/refuse" EPERM process_vm_readv --)
	start_jvm "$(any_jdk)" workload.Shares 60
	record_cpu 2 -p "$jvm" -i 2ms -o text=full -f "$here/out"
	expect_agent_instead 'its memory must not be read: .*'
}

# ---- what it costs -----------------------------------------------------------------------------

safepoints() {
	"$jdk/bin/jstat" -J-Djstat.showUnsupported=true -snap "$jvm" | sed -n 's/^sun.rt.safepoints=//p'
}

# A JVM that runs one loop has no safepoint of its own. Neither its threads nor its descriptors nor its handlers change.
jdk_case_the_jvm_notices_nothing() {
	local before held signals
	need_bpf
	[ -x "$jdk/bin/jstat" ] || skip "no jstat in $jdk"
	JVM_OPTS=(-XX:+UnlockDiagnosticVMOptions -XX:GuaranteedSafepointInterval=0)
	start_jvm "$jdk" workload.Shares 60
	warm_up 2
	before=$(safepoints) held=$(held_by "$jvm") signals=$(grep -E '^Sig(Cgt|Ign)' "/proc/$jvm/status")
	record_cpu 2 -p "$jvm" -i 1ms -o collapsed -f "$here/out"
	expect "safepoints more" $(($(safepoints) - before)) '<=' 0
	[ "$(held_by "$jvm")" = "$held" ] || fail "descriptors, threads, mappings: $(held_by "$jvm"), before $held"
	[ "$(grep -E '^Sig(Cgt|Ign)' "/proc/$jvm/status")" = "$signals" ] || fail "its signal handlers have changed"
	[ ! -s "$jvm_out.err" ] || fail "it said: $(head -n 3 "$jvm_out.err")"
}

# Prints for each batch but the first the us of the loader and the reader for each of its methods that samples met, the
# us for a sample without new methods, and those methods' number. What a sample costs is taken from the phase in which
# no method is new.
us_of_batches() { # COLLAPSED CPU_MS_OF_A_PHASE
	sed 's/ [0-9]*$//' "$1" | tr ';' '\n' | sed -n 's/.*Copy\([0-9]*\)\.\(\w*\).*/\1 \2/p' | sort -u |
		awk -v ms="$2" 'FNR == NR { met[int($1 / 1000)]++; next }
			$1 == "BATCH" && $2 > 0 && met[$2] { n = met[$2]
				printf "%.1f %.1f %d\n", ($3 + $4 - 2 * $5) / n, $5 / ms / 2, n }' - "$jvm_out"
}

# Each batch is compared with itself, and the median counts: other work on the machine disturbs some batches only.
# Most of what a method costs is system calls that read a few words each.
jdk_case_cost_of_a_method() { # alone
	need_bpf
	need_root
	JVM_OPTS=(-Dgate="$here/gate" -XX:TieredStopAtLevel=1)
	JVM_PATIENCE=60 start_jvm "$jdk" workload.Batches 10 60 500
	start_record -p "$jvm" -d 300 -i 500us -o collapsed -f "$here/out"
	echo "$recorder $(reader)" >"$here/gate.new"
	mv "$here/gate.new" "$here/gate"
	wait_for_line "$jvm_out" '^DONE' 60
	end_record INT
	expect_status 0
	us_of_batches "$here/out" 500 | sort -n >"$here/batches"
	expect "methods met" "$(awk '{ sum += $3 } END { print sum }' "$here/batches")" '>=' 1000
	sed 's/^/# us a method, us a sample, methods: /' "$here/batches"
	expect "us of loader and reader a method" "$(sed -n 's/\..*//; 5p' "$here/batches")" '<=' 20
}

run_cases "$@"
