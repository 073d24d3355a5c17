#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
#
# What duet can record depends on its rights. With every set of rights it records with BPF, or `duet check` names the
# cause, and `duet record` reports the same cause and uses the agent's timers. Settings of the host that a cell changes
# are restored.
. "$(dirname "$0")/cells.sh"

refuse=$DUET_BUILD/tests/matrix/refuse
user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
powerless=("${user[@]}" --inh-caps=-all --bounding-set=-all)
capable=("${user[@]}" --inh-caps=-all,+bpf,+perfmon --ambient-caps=-all,+bpf,+perfmon
	--bounding-set=-all,+bpf,+perfmon)

# ---- settings of the host ---------------------------------------------------------------------

change() { # FILE VALUE
	[ -w "$1" ] || skip "$1 cannot be written"
	echo "$1 $(cat "$1")" >>"$scratch/settings"
	echo "$2" 2>/dev/null >"$1" || skip "$1 does not take $2"
}

# Restores settings; the oldest value of each comes last. Runs after each cell, and at the end, as a cell may be
# stopped.
after_case() {
	local file value
	while read -r file value; do
		echo "$value" >"$file"
	done < <(tac "$scratch/settings" 2>/dev/null)
	rm -f "$scratch/settings"
}

trap 'after_case; rm -rf "$scratch"' EXIT

# ---- what a cell does -----------------------------------------------------------------------------

# Starts the JVM as the user of the command DUET_AS, if that changes the user.
start_demo() {
	need_root
	"${DUET_AS[@]}" "$duet" version >/dev/null 2>&1 || skip "an ordinary user cannot read $duet"
	[ "${DUET_AS[0]-}" != setpriv ] || [ -n "${JVM_AS-}" ] || JVM_AS=("${powerless[@]}")
	start_jvm "$(any_jdk)" shop.Demo
	sleep 1 # the first second belongs to the compilers
}

record_demo() {
	record -p "$jvm" -d 2 -i 1ms -t -o collapsed -f "$here/out"
	expect_status 0
	expect_contains "$here/out" 'shop/Pricing\.averages'
	expect_contains "$here/out" 'shop/Archiver\.compress.*[Dd]eflate'
	expect_alive "$jvm"
}

expect_bpf() { # COMMAND...: in front of duet
	DUET_AS=("$@")
	start_demo
	run_duet check
	expect_contains "$here/stdout" '^bpf: ready'
	expect_contains "$here/stdout" 'will use bpf$'
	record_demo
	expect_contains "$here/stderr" 'engine bpf'
	expect_share "joined" "$(reported joined)" '>=' 98
	expect "samples with kernel frames, %" "$(share "$here/out" '_\[k\]')" '>' 0
	seen "bpf, $(reported_joined) % joined"
}

fallback=ctimer # the engine that is used instead of bpf

expect_fallback() { # CAUSE COMMAND...: `duet check` and the command name the same cause
	local cause=$1
	shift
	DUET_AS=("$@")
	start_demo
	run_duet check
	expect_contains "$here/stdout" "^bpf: not available"
	expect_contains "$here/stdout" "$cause"
	expect_contains "$here/stdout" "will use $fallback\$"
	record_demo
	expect_contains "$here/stderr" "using the $fallback engine.*$cause"
	if [ "$fallback" = perf ]; then
		expect_contains "$here/out" '_\[k\]'
	else
		expect_lacks "$here/out" '_\[k\]'
	fi
	seen "$fallback: $(sed -nE "s/.*using the $fallback engine[^:]*: ([^:]*).*/\1/p" "$here/stderr")"
	record -p "$jvm" -d 1 --engine bpf -o collapsed -f "$here/none"
	expect_refusal 1 "$cause"
}

# Kernel functions are called by their names: the kernel tells them to BPF (Linux 5.13) also where it hides addresses.
expect_names() {
	expect_contains "$here/out" ';[a-z_0-9]*(syscall|SYSCALL)[a-z_0-9]*_\[k\]'
	expect_lacks "$here/stderr" 'not names'
	seen "kernel names: yes"
}

# ---- users -------------------------------------------------------------------------------------------

case_root() {
	expect_bpf env
	expect_names
}

case_user_with_cap_bpf_cap_perfmon() {
	expect_bpf "${capable[@]}"
	expect_names
}

case_user_with_cap_syslog_too() {
	expect_bpf "${capable[@]//+perfmon/+perfmon,+syslog}"
	expect_names
}

case_user_without_cap_perfmon() {
	expect_fallback 'BPF needs CAP_BPF and CAP_PERFMON' "${capable[@]//,+perfmon/}"
}

case_user() {
	expect_fallback 'BPF needs CAP_BPF and CAP_PERFMON' "${powerless[@]}"
}

case_root_without_capabilities() {
	JVM_AS=(setpriv --bounding-set=-all --inh-caps=-all)
	expect_fallback 'BPF needs CAP_BPF and CAP_PERFMON: this root lacks them' "${JVM_AS[@]}"
}

# ---- settings ----------------------------------------------------------------------------------------

# With every value, capabilities are enough, and nothing else is.
paranoid() { # VALUE
	need_root
	change /proc/sys/kernel/perf_event_paranoid "$1"
	DUET_AS=("${powerless[@]}")
	run_duet check
	expect_contains "$here/stdout" "kernel.perf_event_paranoid is $1, so that perf events need CAP_PERFMON"
	expect_bpf "${capable[@]}"
}

case_perf_event_paranoid_3() {
	paranoid 3
}

case_perf_event_paranoid_2() {
	paranoid 2
}

case_perf_event_paranoid_1() {
	paranoid 1
}

case_user_with_perf_event_paranoid_1() {
	need_root
	change /proc/sys/kernel/perf_event_paranoid 1
	fallback=perf
	expect_fallback 'BPF needs CAP_BPF and CAP_PERFMON' "${powerless[@]}"
}

case_kptr_restrict_2() {
	need_root
	change /proc/sys/kernel/kptr_restrict 2
	expect_bpf env
	expect_names
}

# ---- limits -------------------------------------------------------------------------------------------

case_rlimit_nofile_64() {
	[ "$(nproc --all)" -le 16 ] || skip "BPF needs two descriptors for each of this host's CPUs"
	expect_bpf prlimit --nofile=64:64
}

# The message asks for a higher limit, not for another engine. --engine bpf alone reports it and does not record.
case_rlimit_nofile_too_small() {
	DUET_AS=(prlimit --nofile=12:12)
	start_demo
	record -p "$jvm" -d 1 --engine bpf -o collapsed -f "$here/out"
	expect_refusal 1 'too many open files.*ulimit -n'
	seen "$(sed 's/^duet: error: //' "$here/stderr")"
}

case_rlimit_memlock_0() {
	expect_bpf prlimit --memlock=0:0
}

# ---- seccomp filters --------------------------------------------------------------------------------------

refused() { # ERROR CAUSE CALL...
	local error=$1 cause=$2
	shift 2
	[ -x "$refuse" ] || skip "$refuse is not built"
	"$refuse" "$error" "$@" -- true || skip "this kernel has no seccomp filters"
	expect_fallback "$cause is refused .*: allow it in the container's seccomp profile" "$refuse" "$error" "$@" --
}

case_seccomp_bpf_eperm() {
	fallback=perf
	refused EPERM 'bpf\(\)' bpf
}

case_seccomp_bpf_enosys() {
	fallback=perf
	refused ENOSYS 'bpf\(\)' bpf
}

case_seccomp_perf_event_open_eperm() {
	refused EPERM 'perf_event_open\(\)' perf_event_open
}

case_seccomp_perf_event_open_enosys() {
	refused ENOSYS 'perf_event_open\(\)' perf_event_open
}

case_seccomp_both_eperm() {
	refused EPERM 'bpf\(\)' bpf perf_event_open
}

case_seccomp_both_enosys() {
	refused ENOSYS 'bpf\(\)' bpf perf_event_open
}

# The JVM lacks this call, with which the agent reads stacks: the results are the same.
case_seccomp_process_vm_readv() {
	[ -x "$refuse" ] || skip "$refuse is not built"
	JVM_AS=("$refuse" EPERM process_vm_readv --)
	expect_bpf env
	grep -E '^\[(pricing|archiver|journal|carts|cashier-.) ' "$here/out" >"$here/java"
	expect_share "Java stacks" "$(matching "$here/java" 'shop/')" '>=' 95
	record -p "$jvm" -d 2 -i 1ms --engine ctimer -t -o collapsed -f "$here/out"
	expect_contains "$here/out" 'shop/Archiver\.compress.*[Dd]eflate'
}

run_matrix privileges "$@"
