#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 300
# The owners of stacks: the test's own cgroups; processes that move between them, run another program, or start late.
. "$(dirname "$0")/lib.sh"

# Finds where cgroup v2 is mounted: alone, or beside v1.
for cgroups in /sys/fs/cgroup /sys/fs/cgroup/unified ''; do
	[ "$(stat -fc %T "$cgroups" 2>/dev/null)" != cgroup2fs ] || break
done

# The parser takes these names for Docker's. There is no state of Docker for them, so nothing is looked up.
id_a=$(sha256sum <<<"a $scratch" | cut -c 1-64) id_b=$(sha256sum <<<"b $scratch" | cut -c 1-64)
label_a=${id_a:0:12} label_b=${id_b:0:12}

need_cgroups() {
	need_bpf
	[ -n "$cgroups" ] || skip "no cgroup v2 on /sys/fs/cgroup"
	top=$(basename "$scratch")
	mkdir "$cgroups/$top" 2>/dev/null || skip "cgroups cannot be made in $cgroups"
	mkdir -p "$cgroups/$top/docker/$id_a/inner" "$cgroups/$top/docker/$id_b"
	in_a=$cgroups/$top/docker/$id_a in_b=$cgroups/$top/docker/$id_b
}

# shellcheck disable=SC2317 # called by lib.sh
after_case() {
	local tries
	[ -n "${top:-}" ] || return 0
	[ ${#jvms[@]} = 0 ] || kill -KILL "${jvms[@]}"
	for ((tries = 0; tries < 50; tries++)); do
		find "$cgroups/$top" -depth -type d -exec rmdir {} + 2>/dev/null && return
		sleep 0.1 # until the killed processes have left it
	done
}

# Starts a child that spins under the name NAME. Its pid is $!.
spin() { # NAME
	perl -e '$0 = shift; my $end = time + 60; 1 while time < $end' "$1" >/dev/null 2>&1 </dev/null &
	jvms+=($!)
}

move() { # PID CGROUP
	echo "$1" >"$2/cgroup.procs" || fail "process $1 cannot be moved to $2"
}

# Prints the number of samples in $here/out whose stacks match.
sum_of() { # PATTERN
	awk -v pattern="$1" '$0 ~ pattern { sum += $NF } END { print sum + 0 }' "$here/out"
}

case_two_cgroups() { # apart
	need_cgroups
	spin duet-one && move $! "$in_a"
	spin duet-two && move $! "$in_b"
	record --host -d 3 -i 2ms --by container,process -o collapsed -f "$here/out"
	expect_status 0
	expect "samples of one" "$(sum_of "^$label_a;duet-one;")" '>' 5
	expect "samples of two" "$(sum_of "^$label_b;duet-two;")" '>' 5
	expect "wrong labels" "$(($(sum_of ';duet-(one|two);') - $(sum_of "^$label_a;duet-one;") - \
		$(sum_of "^$label_b;duet-two;")))" '==' 0
}

# The workload's name says in which cgroup it is. It changes its name in a third cgroup, so a name with another cgroup
# is an error.
case_moves_in_mid_recording() { # apart
	need_cgroups
	mkdir "$cgroups/$top/between"
	cat >"$here/mover.pl" <<-'END'
		use strict;
		my ($between, $moves, @homes) = @ARGV;
		sub move {
			open(my $file, '>', "$_[0]/cgroup.procs") or die;
			syswrite($file, "$$\n") or die;
			close $file;
		}
		for my $turn (1 .. $moves) {
			my $home = $turn % 2;
			move($between);
			open(my $comm, '>', "/proc/$$/comm") or die;
			syswrite($comm, $home ? "duet-b" : "duet-a");
			close $comm;
			move($homes[$home]);
			my $end = times + 0.01;
			1 while times < $end;
		}
	END
	start_record --host -d 60 -i 500us --by process,container -o collapsed -f "$here/out"
	local movers=() i
	for i in 1 2 3; do
		perl "$here/mover.pl" "$cgroups/$top/between" 100 "$in_a" "$in_b" 2>>"$here/mover.err" &
		movers+=($!)
	done
	wait "${movers[@]}" || fail "a mover ended early: $(tail -n 1 "$here/mover.err")"
	end_record INT
	expect_status 0
	expect "samples in a" "$(sum_of "^duet-a;$label_a;")" '>' 5
	expect "samples in b" "$(sum_of "^duet-b;$label_b;")" '>' 5
	expect "wrong labels" "$(($(sum_of "^duet-a;$label_b;") + $(sum_of "^duet-b;$label_a;")))" '==' 0
	expect "labels without a cgroup" "$(sum_of '\[unknown cgroup\]')" '==' 0
}

# Another process, in another cgroup, gets the same pid.
case_pid_reused() { # apart
	need_cgroups
	[ -w /proc/sys/kernel/ns_last_pid ] || skip "the next process's number cannot be chosen"
	start_record --host -d 60 -i 2ms --by process,container -o collapsed -f "$here/out"
	spin duet-first && local first=$!
	move "$first" "$in_a"
	sleep 1
	{ kill -KILL "$first" && wait "$first"; } 2>/dev/null
	for _ in {1..50}; do
		echo $((first - 1)) >/proc/sys/kernel/ns_last_pid
		spin duet-second && [ $! != "$first" ] || break
		kill -KILL $! # another process got the pid
	done
	[ $! = "$first" ] || skip "others took the number each time"
	move "$first" "$in_b"
	sleep 1
	end_record INT
	expect_status 0
	expect "samples of the first" "$(sum_of "^duet-first;$label_a;")" '>' 5
	expect "samples of the second" "$(sum_of "^duet-second;$label_b;")" '>' 5
	expect "wrong labels" "$(($(sum_of "^duet-first;$label_b;") + $(sum_of "^duet-second;$label_a;")))" '==' 0
}

# Processes with the same pid follow each other within one tick of the clock that distinguishes processes, in two
# cgroups in turn. Before it burns CPU time, each gives itself and its thread a name; until then it has another.
case_pid_reused_at_once() { # apart
	need_cgroups
	[ -w /proc/sys/kernel/ns_last_pid ] || skip "the next process's number cannot be chosen"
	mkdir "$cgroups/$top/between"
	cat >"$here/reuse.pl" <<-'END'
		use strict;
		my ($between, $turns, @homes) = @ARGV;
		sub put {
			open(my $file, '>', $_[0]) or die "$_[0]: $!";
			syswrite($file, $_[1]) or die "$_[0]: $!";
			close $file;
		}
		put("$between/cgroup.procs", $$);
		put("/proc/$$/comm", 'duet-parent');
		my ($wanted, $reused);
		for my $turn (1 .. $turns) {
			put('/proc/sys/kernel/ns_last_pid', $wanted - 1) if $wanted;
			my $home = $turn % 2;
			my $pid = fork();
			if (!$pid) {
				put("/proc/$$/comm", $home ? 'duet-b' : 'duet-a');
				put("$homes[$home]/cgroup.procs", $$);
				my $left = 60_000; # two milliseconds or three
				1 while $left--;
				exit 0;
			}
			$reused++ if $wanted && $pid == $wanted;
			$wanted ||= $pid;
			waitpid($pid, 0);
		}
		print "$reused\n";
	END
	start_record --host --no-attach -d 60 -i 500us --by process,container,thread -o collapsed -f "$here/out"
	perl "$here/reuse.pl" "$cgroups/$top/between" 300 "$in_a" "$in_b" >"$here/reused" ||
		fail "the parent ended early"
	end_record INT
	expect_status 0
	[ "$(cat "$here/reused")" -ge 30 ] || skip "others took the number: $(cat "$here/reused") of 300 were reused"
	echo "# reused: $(cat "$here/reused") times"
	expect "samples in a" "$(sum_of "^duet-a;$label_a;")" '>' 50
	expect "samples in b" "$(sum_of "^duet-b;$label_b;")" '>' 50
	expect "wrong containers" "$(($(sum_of "^duet-a;$label_b;") + $(sum_of "^duet-b;$label_a;")))" '==' 0
	expect "samples with their thread" "$(sum_of '^duet-(a;[^;]*;[^;]*duet-a|b;[^;]*;[^;]*duet-b)')" '>' 100
	expect "wrong threads" "$(sum_of '^duet-(a;[^;]*;[^;]*duet-b|b;[^;]*;[^;]*duet-a)')" '==' 0
	expect "labels without a cgroup" "$(sum_of '^duet-[ab];\[unknown cgroup\]')" '==' 0
}

# A container is made, used for some milliseconds and removed before its first sample is read.
case_gone_at_once() {
	need_cgroups
	cat >"$here/brief.pl" <<-'END'
		use strict;
		my ($parent, $turns) = @ARGV;
		sub put {
			open(my $file, '>', $_[0]) or die "$_[0]: $!";
			syswrite($file, $_[1]) or die "$_[0]: $!";
			close $file;
		}
		for my $turn (1 .. $turns) {
			my $home = sprintf('%s/%064x', $parent, $turn);
			mkdir($home) or die;
			my $pid = fork();
			if (!$pid) {
				put("$home/cgroup.procs", $$);
				put("/proc/$$/comm", 'duet-brief');
				my $left = 200_000;
				1 while $left--;
				exit 0;
			}
			waitpid($pid, 0);
			rmdir($home) or die "rmdir: $!";
		}
	END
	start_record --host --no-attach -d 60 -i 1ms --by process,container -o collapsed -f "$here/out"
	perl "$here/brief.pl" "$cgroups/$top/docker" 50 || fail "it ended early"
	end_record INT
	expect_status 0
	expect "samples" "$(sum_of '^duet-brief;')" '>' 50
	expect "samples in such a container, %" \
		"$(share <(grep '^duet-brief;' "$here/out") '^duet-brief;000000000000;')" '==' 100
}

case_cgroup_chooses() {
	need_cgroups
	spin duet-out && move $! "$in_b"
	spin duet-deep && move $! "$in_a/inner"
	start_record --cgroup "/$top/docker/$id_a" -d 60 -i 2ms --by process -o collapsed -f "$here/out"
	spin duet-late && move $! "$in_a"
	sleep 2
	end_record INT
	expect_status 0
	expect "samples below it" "$(sum_of '^duet-deep;')" '>' 5
	expect "samples of one that came later" "$(sum_of '^duet-late;')" '>' 5
	expect "samples of others" "$(($(total "$here/out") - $(sum_of '^(duet-deep|duet-late|perl|bash);')))" '==' 0
}

# A user who was given a part of the tree makes a cgroup of the same name: it is neither chosen nor in the way.
case_container_by_digits() {
	need_cgroups
	mkdir "$cgroups/$top/theirs" && chown 65534 "$cgroups/$top/theirs"
	setpriv --reuid=65534 --regid=65534 --clear-groups mkdir "$cgroups/$top/theirs/docker-$id_a.scope" ||
		fail "no cgroup of a user's"
	spin duet-mimic && move $! "$cgroups/$top/theirs/docker-$id_a.scope"
	spin duet-in && move $! "$in_a/inner"
	spin duet-out && move $! "$in_b"
	record --container "$label_a" -d 2 -i 2ms --by container,process -o collapsed -f "$here/out"
	expect_status 0
	expect "samples inside" "$(sum_of "^$label_a;duet-in;")" '>' 5
	expect "samples outside" "$(($(total "$here/out") - $(sum_of "^$label_a;")))" '==' 0
}

case_unknown_targets() {
	need_bpf
	record --container no-such-container -d 1
	expect_refusal 1 "no container 'no-such-container' runs here"
	record --cgroup /no/such/cgroup -d 1
	expect_refusal 1 "no cgroup '/no/such/cgroup'|needs cgroup v2"
	record --cgroup / --comm java -d 1
	expect_refusal 2 'more than one kind of target'
	record --host --by pods -d 1
	expect_refusal 2 "'pods': container, service, process, thread, trace and span"
}

case_comm_chooses() {
	need_bpf
	spin duet-comm
	spin duet-common
	start_jvm "$(any_jdk)" workload.Locks
	record --comm duet-comm -d 2 -i 2ms --by process -o collapsed -f "$here/out"
	expect_status 0
	expect "samples of the name" "$(sum_of '^duet-comm;')" '>' 5
	expect "samples of others" "$(($(total "$here/out") - $(sum_of '^duet-comm;')))" '==' 0
}

# Starts a JVM with its own namespaces and /tmp, in a cgroup with a name like Docker's. Its pid on the host is $jvm.
start_contained() { # HOME CLASS
	local outer classes=$workloads workloads=/mnt # the new /tmp may hide the build folder
	# shellcheck disable=SC2016 # for the inner shells
	JVM_AS=(sh -c 'echo $$ >"$0/cgroup.procs" && exec unshare -f -p -m -n --mount-proc --kill-child "$@"' "$in_a"
		sh -c 'mount --bind "$0" /mnt && mount -t tmpfs tmpfs /tmp && exec "$@"' "$classes")
	start_jvm "$@"
	outer=$jvm
	jvm=$(pgrep -P "$outer" -x java) || fail "no java below $outer"
	jvms+=("$jvm")
}

# A JVM that starts in the target during the recording is noticed.
case_jvm_in_a_container() {
	need_cgroups
	start_record --cgroup "$in_a" -d 60 -i 2ms --by container,process -o collapsed -f "$here/out"
	start_contained "$(any_jdk)" workload.Locks
	sleep 2
	end_record INT
	expect_status 0
	expect "Java samples" "$(sum_of "^$label_a;java;.*workload/Locks.fight")" '>' 5
	expect_share "joined" "$(reported joined)" '>=' 90
}

# A JVM is noticed as soon as it runs code of its libjvm: one that lives for a second has named frames.
case_short_jvms() { # apart
	local i
	need_bpf
	start_record --host -d 300 -i 2ms --by process -o collapsed -f "$here/out"
	for i in 1 2 3; do
		start_jvm "$(any_jdk)" workload.Shares 1
		wait_for_line "$jvm_out" DONE 20
		kill -KILL "$jvm"
	done
	end_record INT
	expect_status 0
	expect_share "of their samples in their methods" \
		"$(sum_of '^java;.*workload/Shares') $(sum_of '^java;')" '>=' 80
}

# Scripts read the output of java -version. On a host that is profiled, JDK 21 and later would warn of the agent there.
case_tiny_jvms_are_spared() { # apart
	local home said
	need_bpf
	start_record --host -d 90 -i 2ms --by process -o collapsed -f "$here/out"
	for home in $(jdks); do
		said=$("$home/bin/java" -version 2>&1)
		[ "$(wc -l <<<"$said")" = 3 ] || fail "java -version said: $said"
	done
	sleep 1.5
	end_record INT
	expect_status 0
	expect_lacks "$here/stderr" 'native frames only'
}

# The obstacle to an attach may disappear: duet tries again and reports it.
case_tried_again() { # apart
	local first stopped
	need_bpf
	start_jvm "$(any_jdk)" workload.Shares
	stopped=$jvm
	kill -STOP "$stopped"
	start_jvm "$(any_jdk)" workload.TwoBusy
	"$duet" record --agent always -p "$jvm" -d 60 -o collapsed -f "$here/first" >"$here/first.said" \
		2>&1 </dev/null &
	first=$! recorder=$!
	wait_for_ticks
	start_record --host --agent always -d 60 -i 2ms --by process -o collapsed -f "$here/out"
	wait_for_line "$here/stderr" "JVM $stopped is stopped.*trying again in 2 s" 40
	wait_for_line "$here/stderr" "another duet is profiling JVM $jvm.*trying again in 2 s" 40
	kill -INT "$first"
	kill -CONT "$stopped"
	wait "$first"
	wait_for_line "$here/stderr" "JVM $jvm: the agent is attached now" 40
	wait_for_line "$here/stderr" "JVM $stopped: the agent is attached now" 40
	sleep 2
	end_record INT
	expect_status 0
	expect "samples of the stopped one" "$(sum_of '^java;.*workload/Shares')" '>' 100
	expect "samples of the held one" "$(sum_of '^java;.*workload/TwoBusy')" '>' 100
}

# --leave-alone: by main class, by cgroup and by user. It also holds for a JVM that starts later.
case_left_alone() { # apart
	local pid others=() listed=()
	need_cgroups
	printf '%s\n' "file = $here/out" 'window = 1s' 'agent = always' 'leave-alone = workload.Loc*' \
		"leave-alone = $label_a*" 'leave-alone = nobody' 'leave-alone = uid:65534' >"$here/conf"
	start_jvm "$(any_jdk)" workload.Locks
	listed+=("$jvm")
	start_jvm "$(any_jdk)" workload.TwoBusy 60
	others+=("$jvm")
	"$duet" daemon -v --config "$here/conf" --lock "$here/lock" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	jvms+=("$recorder")
	start_jvm "$(any_jdk)" workload.Locks
	listed+=("$jvm")
	start_jvm "$(any_jdk)" workload.TwoBusy 60
	others+=("$jvm")
	JVM_AS=(sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$in_a")
	start_jvm "$(any_jdk)" workload.TwoBusy 60
	listed+=("$jvm")
	JVM_AS=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	start_jvm "$(any_jdk)" workload.TwoBusy 60
	listed+=("$jvm")
	for pid in "${others[@]}"; do
		wait_for_agent "$pid"
	done
	sleep 2 # the same time again
	for pid in "${listed[@]}"; do
		expect_lacks "/proc/$pid/maps" libduet
		expect_contains "$here/stderr" "JVM $pid: left alone"
	done
}

# A JVM that is not on the list at the first attach, which another duet prevents, and is on it at the second.
case_left_alone_at_the_second_try() { # apart
	local first
	need_cgroups
	printf '%s\n' "file = $here/out" 'window = 1s' 'agent = always' "leave-alone = $label_a*" >"$here/conf"
	start_jvm "$(any_jdk)" workload.TwoBusy 60
	"$duet" record --agent always -p "$jvm" -d 60 -f "$here/first" >/dev/null 2>"$here/first.err" </dev/null &
	first=$!
	recorder=$first
	jvms+=("$first")
	wait_for_agent "$jvm"
	"$duet" daemon -v --config "$here/conf" --lock "$here/lock" >"$here/stdout" 2>"$here/stderr" </dev/null &
	recorder=$!
	jvms+=("$recorder")
	wait_for_line "$here/stderr" "another duet is profiling JVM $jvm.*trying again" 40
	move "$jvm" "$in_a"
	kill -INT "$first"
	wait_for_line "$here/stderr" "JVM $jvm: left alone" 40
	sleep 1
	expect_lacks "$here/stderr" "JVM $jvm: the agent is attached now"
}

# The name comes from the launcher's arguments, or from the JVM's counters if the arguments are in a file.
case_application() {
	need_bpf
	start_jvm "$(any_jdk)" workload.Locks
	local first=$jvm
	printf -- '-cp %s\nworkload.TwoBusy 60\n' "$workloads" >"$here/arguments"
	"$(jdks | tail -n 1)/bin/java" "@$here/arguments" >/dev/null 2>&1 </dev/null &
	jvms+=($!)
	sleep 1
	record -p "$first,$!" -d 2 -i 5ms -o text=full -f "$here/out"
	expect_status 0
	expect_contains "$here/out" "^JVM +: $first: .*, java: workload\.Locks, read from outside\$"
	expect_contains "$here/out" "^JVM +: $!: .*, java: workload\.TwoBusy, read from outside\$"
}

# As YARN unpacks it: the working directory has a link to the jar. Without the link, the executor's name is only an id.
case_spark_names() {
	need_bpf
	local executor=org.apache.spark.executor.CoarseGrainedExecutorBackend by_file by_id by_option
	mkdir "$here/container" "$here/filecache"
	ln -s "$here/filecache" "$here/container/__spark_conf__"
	printf '%s\n' '#Spark configuration.' 'spark.app.name=Daily report\: EU' spark.master=yarn \
		>"$here/filecache/__spark_conf__.properties"
	JVM_AS=(env -C "$here/container")
	start_jvm "$(any_jdk)" $executor --driver-url spark://x@y:1 --app-id application_1_0042
	by_file=$jvm
	JVM_AS=()
	start_jvm "$(any_jdk)" $executor --driver-url spark://x@y:1 --app-id application_1_0043
	by_id=$jvm
	JVM_OPTS=(-Dspark.app.name=Embedded)
	start_jvm "$(any_jdk)" workload.Locks
	by_option=$jvm
	JVM_OPTS=()
	record -p "$by_file,$by_id,$by_option" -d 2 -i 5ms -o col --java-collect-spark-app-name-as-appid -f "$here/out"
	expect_status 0
	expect "stacks named by the file" \
		"$(sum_of "^[0-9]+;[^;]*;java;appid: java: $executor, spark: Daily report: EU;")" '>' 5
	expect "stacks named by the id" "$(sum_of ";appid: java: $executor, spark: application_1_0043;")" '>' 5
	expect "stacks named by the option" "$(sum_of ';appid: java: workload.Locks, spark: Embedded;')" '>' 5
	record -p "$by_file,$by_option" -d 1 -i 5ms -o col -f "$here/out"
	expect_status 0
	expect "stacks without being asked" "$(sum_of "appid: java: ($executor|workload.Locks);")" '>' 2
	expect_lacks "$here/out" ', spark: '
}

# Its pid in its own namespace differs from that on the host, and the name is found nevertheless.
case_pid_namespace() {
	need_cgroups
	unshare -pf --kill-child --mount-proc true 2>/dev/null || skip "unshare -p is refused"
	unshare -pf --kill-child --mount-proc \
		sh -c 'echo 0 >"$0/cgroup.procs"; exec perl -e "\$0 = q(duet-inner); 1 while 1"' "$in_a" \
		>/dev/null 2>&1 </dev/null &
	jvms+=($!)
	sleep 0.3
	record --comm duet-inner -d 2 -i 2ms --by container,process -o collapsed -f "$here/out"
	expect_status 0
	expect "samples" "$(sum_of "^$label_a;duet-inner;")" '>' 5
	expect "samples of others" "$(($(total "$here/out") - $(sum_of "^$label_a;duet-inner;")))" '==' 0
}

# A process executes another program: each sample has the name of the program at its time.
case_exec_keeps_names_apart() { # apart
	need_bpf
	cat >"$here/before.pl" <<-'END'
		$0 = 'duet-before'; my $end = times + 0.2; 1 while times < $end;
		exec 'perl', '-e', '$0 = q(duet-after); my $end = times + 0.4; 1 while times < $end';
	END
	start_record --host -d 60 -i 2ms --by process -o collapsed -f "$here/out"
	perl "$here/before.pl"
	end_record INT
	expect_status 0
	expect "samples before" "$(sum_of '^duet-before;')" '>' 5
	expect "samples after" "$(sum_of '^duet-after;')" '>' 5
}

# A slow loader reads the record of the exec when /proc already shows the JVM: the agent that it starts then belongs to
# that JVM.
case_exec_told_late() { # apart
	need_bpf
	start_record --host -d 60 -i 2ms --by process -o collapsed -f "$here/out"
	kill -STOP "$recorder"
	JVM_AS=(perl -e '1 while times < 0.2; exec @ARGV' perl -e '1 while times < 0.2; exec @ARGV')
	start_jvm "$(any_jdk)" workload.Shares
	kill -CONT "$recorder"
	sleep 3
	end_record INT
	expect_status 0
	expect_lacks "$here/stderr" "JVM $jvm"
	expect "samples with their names" "$(sum_of '^java;.*workload/Shares')" '>' 200
	expect "samples without" "$(sum_of '^java;.*unknown_method')" '<=' \
		"$(($(sum_of '^java;.*workload/Shares') / 50))"
}

run_cases "$@"
