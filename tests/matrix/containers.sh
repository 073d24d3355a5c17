#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
#
# JVMs in containers of every common kind, profiled from the host, and duet in a container. All mounts are made in this
# script's own mount namespace. The daemons are its children. Nothing is pulled.
TMPDIR=${DUET_SCRATCH:-/var/tmp/duet-matrix} # an overlay cannot lie on another, which /tmp may be
mkdir -p "$TMPDIR"
. "$(dirname "$0")/cells.sh"

jre=/usr/lib/jvm/java-21-openjdk-$(dpkg --print-architecture) # in the tree
hex=$(head -c 32 /dev/urandom | od -An -vtx1 | tr -d ' \n')    # the id of a container
state=$scratch/state
classes=$workloads
mkdir "$state"
# The script needs no configured network. To raise a limit needs CAP_SYS_RESOURCE, which CI's root may lack.
podman=(podman --runtime runc --cgroup-manager cgroupfs --root "$state/podman" --runroot /run/duet-podman
	--tmpdir /run/duet-podman-tmp)
podman_run=("${podman[@]}" run --rm --network none --cgroupns private --ulimit nofile=4096:4096
	--ulimit nproc=4096:4096 --log-driver=none -v "$classes:/mnt:ro" -v "$DUET_BUILD:/opt:ro")
docker_socket=unix:///run/duet-docker.sock
docker=(docker --host "$docker_socket")
docker_run=("${docker[@]}" run --rm --network none -v "$classes:/mnt:ro" -v "$DUET_BUILD:/opt:ro")
containerd=/run/duet-containerd

# ---- the daemons, and the end of all -------------------------------------------------------------

daemons=()
start_daemon() { # NAME COMMAND...
	local name=$1
	shift
	command -v "$1" >/dev/null || return
	"$@" >"$state/$name.log" 2>&1 </dev/null &
	daemons+=($!)
}

start_daemons() {
	[ "$(id -u)" = 0 ] || return
	mount -t tmpfs tmpfs /run # for the daemons alone: sockets, locks, pid files
	start_daemon dockerd dockerd --data-root "$state/docker" --exec-root /run/duet-docker \
		--pidfile /run/duet-docker.pid --host "$docker_socket" --bridge none --iptables=false
	start_daemon containerd containerd --root "$state/containerd" --state "$containerd/state" \
		--address "$containerd/sock"
}

wait_for() { # WHAT SECONDS COMMAND...
	local what=$1 end=$((SECONDS + $2))
	shift 2
	until "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $end ] || fail "$what is not ready: $(tail -n 3 "$state"/*.log)"
		sleep 0.1
	done
}

# Prints the JVMs of this run in all namespaces, by a mark on their command line.
our_jvms() { # [MARK]
	local pid
	for pid in $(pgrep -x java); do
		! grep -qs "duet.cell=${1:-$hex}" "/proc/$pid/cmdline" || echo "$pid"
	done
}

# A container ends with its JVM. Its engine removes its files before the command that started it ends.
after_case() {
	kill -KILL $(our_jvms "$hex-${here##*/}")
	[ ${#jvms[@]} = 0 ] || timeout 10 tail -f --pid="${jvms[0]}" /dev/null
	umount --lazy "$here/root" # the container has it in its own mount namespace
} 2>/dev/null

end_everything() {
	kill -KILL $(our_jvms)
	[ ${#daemons[@]} = 0 ] || kill "${daemons[@]}"
	wait
	cgroups | grep -vxF "$cgroups_before" | xargs -r rmdir
	rm -rf --one-file-system "$scratch" || :
} 2>/dev/null

# Removes folders that the engines make for their containers, when they are empty.
cgroups() {
	find /sys/fs/cgroup -depth -type d \( -path '*/libpod_parent*' -o -path '*/docker*' -o -path '*/default*' \
		-o -path '*/kubepods*' \)
}
cgroups_before=$(cgroups)

# ---- ways into a container: each is put before the command that is to run in there ---------------

overlay() { # a fresh root file system at $here/root
	mkdir -p "$here/upper" "$here/work" "$here/root"
	mount -t overlay overlay -o "lowerdir=$tree,upperdir=$here/upper,workdir=$here/work" "$here/root" ||
		fail "cannot mount an overlay file system"
}

in_chroot() {
	cd "$here/root" || exit
	exec unshare -f -p -m -i -u -C --kill-child --mount-proc="$here/root/proc" \
		sh -c 'mount --rbind /dev dev && mount --bind -o ro "$0" mnt && exec chroot . "$@"' "$classes" "$@"
}

in_nspawn() {
	exec systemd-nspawn -q --console=pipe -D "$here/root" --register=no --keep-unit --bind-ro="$classes:/mnt" "$@"
}

in_ctr() {
	exec ctr -a "$containerd/sock" run --rm --env PATH=/usr/bin:/bin --mount \
		"type=bind,src=$classes,dst=/mnt,options=rbind:ro" --rootfs "$here/root" "duet-${here##*/}" "$@"
}

# As kubelet starts a pod, in its own user namespace.
in_runc() {
	local capabilities='"CAP_CHOWN","CAP_DAC_OVERRIDE","CAP_KILL","CAP_SETUID","CAP_SETGID","CAP_NET_BIND_SERVICE"'
	local range='"containerID": 0, "hostID": 100000, "size": 65536'
	cat >"$here/config.json" <<-END
		{
			"ociVersion": "1.0.2",
			"root": {"path": "$here/root"},
			"process": {
				"user": {"uid": 0, "gid": 0}, "cwd": "/", "env": ["PATH=/usr/bin:/bin"],
				"args": [$(printf '"%s"\n' "$@" | paste -s -d ,)],
				"capabilities": {"bounding": [$capabilities], "effective": [$capabilities],
					"permitted": [$capabilities]},
				"noNewPrivileges": true
			},
			"hostname": "pod",
			"mounts": [
				{"destination": "/proc", "type": "proc", "source": "proc"},
				{"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["mode=755"]},
				{"destination": "/dev/shm", "type": "tmpfs", "source": "shm", "options": ["mode=1777"]},
				{"destination": "/mnt", "type": "bind", "source": "$classes",
					"options": ["rbind", "ro"]}
			],
			"linux": {
				"cgroupsPath": "/kubepods/burstable/pod7d1f3b52-9f4e-4a0e-8c9d-5e1a2b3c4d5e/$hex",
				"namespaces": [{"type": "pid"}, {"type": "mount"}, {"type": "network"}, {"type": "ipc"},
					{"type": "uts"}, {"type": "user"}],
				"uidMappings": [{$range}], "gidMappings": [{$range}]
			}
		}
	END
	exec runc --root /run/duet-runc run -b "$here" "duet-${here##*/}"
}

# ---- what a cell does -------------------------------------------------------------------------------

need() { # COMMAND...
	need_root
	for command; do
		command -v "$command" >/dev/null || skip "$command is not installed"
	done
	tree=$("$matrix/root_tree.sh" trixie 21) ||
		skip "Debian's archive does not give a JRE for the containers"
}

need_docker() {
	need dockerd docker
	wait_for dockerd 30 "${docker[@]}" version
	"${docker[@]}" image inspect duet >/dev/null 2>&1 ||
		tar -C "$tree" -c . | "${docker[@]}" import - duet >/dev/null ||
		fail "cannot import the image"
}

# Sets $jvm to its pid on the host. Every engine passes the JVM's stdout on.
start_contained() { # WAY-IN...
	local workloads=/mnt
	JVM_AS=("$@")
	JVM_OPTS=(-XX:+EnableDynamicAgentLoading "-Dduet.cell=$hex-${here##*/}")
	start_jvm "$jre" shop.Demo
	jvm=$(our_jvms "$hex-${here##*/}" | head -n 1)
	[ -n "$jvm" ] || fail "the JVM is not among the processes of the host"
	jvms+=("$jvm")
	files=$(files_of "$jvm")
	sleep 1 # the first second belongs to the compilers
}

# Prints all files that it sees, except HotSpot's attach socket and the workload's file, which is unlinked when it is
# open.
files_of() { # PID
	local root=/proc/$1/root
	find "$root/" "$root/tmp/" "$root/dev/shm/" "$root/var/tmp/" "$root/run/" -xdev 2>/dev/null |
		grep -v -e '/\.java_pid[0-9]*$' -e '/duet-demo[0-9]*\.journal$' | sort -u
}

expect_untouched() {
	local left
	expect_alive "$jvm"
	left=$(diff <(echo "$files") <(files_of "$jvm"))
	[ -z "$left" ] || fail "files in the container: $left"
	[ "$(cat "$jvm_out")" = READY ] || fail "the JVM's stdout: $(head -c 300 "$jvm_out")"
}

# Expects kernel, native and Java names of threads whose tids are those of /proc. NSpid: counts them from the host
# inwards.
expect_profile() { # FILE first|last
	local name tid got
	expect_contains "$1" '\[pricing tid=[0-9]+\];.*shop/Pricing\.averages'
	expect_contains "$1" '\[archiver tid=[0-9]+\];.*shop/Archiver\.compress.*[Dd]eflate'
	expect_contains "$1" '\[journal tid=[0-9]+\];.*shop/Journal\.append'
	for name in pricing archiver journal carts cashier-1 cashier-2 cashier-3; do
		tid=$(tid_of "$name" "$2")
		got=$(grep -oE "\[$name tid=[0-9]+\]" "$1" | sort -u)
		[ "$got" = "[$name tid=$tid]" ] || fail "thread $name is $tid, the profile says $got"
	done
}

tid_of() { # NAME first|last
	local task
	for task in "/proc/$jvm/task"/*; do
		[ "$(cat "$task/comm")" != "$1" ] ||
			awk -v which="$2" '/^NSpid/ { print which == "first" ? $2 : $NF }' "$task/status"
	done
}

expect_joined() {
	expect_share "joined" "$(reported joined)" '>=' 98
	seen "${1-}$(reported_joined) % joined"
}

profile_pid() {
	record -p "$jvm" -d 3 -i 1ms -t -o collapsed -f "$here/out"
	expect_status 0
	expect_profile "$here/out" first
	expect_joined
	expect_untouched
}

# The output may have other JVMs of the host, so the shares are those of the JVM's own threads. Fewer samples have Java
# frames than are joined: a JVM is found by its first sample, its agent starts later on a busy machine, and some walks
# fail, mostly those from libjvm's allocation when memory is short.
profile_host() {
	local java unjoined='\[(no_agent_record|pc_mismatch|not_signalled[a-z_]*)\]'
	record --host -d 2 -i 1ms -t -o collapsed -f "$here/all"
	expect_status 0
	grep "^\[java pid=$jvm\];" "$here/all" >"$here/out"
	expect_profile "$here/out" first
	expect_share "not joined with --host" "$(matching "$here/out" "$unjoined")" '<=' 2
	java=$(share <(grep -E '\[(pricing|archiver|journal|carts|cashier-.) ' "$here/out") 'shop/')
	expect "Java stacks with --host, %" "$java" '>=' 60
	seen "--host: $java % with Java frames"
	expect_untouched
}

profile_from_host() {
	profile_pid
	profile_host
}

# ---- a JVM in there, duet out here -------------------------------------------------------------------

case_podman_runc() {
	need podman runc
	start_contained "${podman_run[@]}" --memory 600m --rootfs "$tree:O"
	profile_from_host
}

case_dockerd() {
	need_docker
	start_contained "${docker_run[@]}" duet
	profile_from_host
}

case_containerd() {
	need containerd ctr runc
	overlay
	wait_for containerd 20 ctr -a "$containerd/sock" version
	start_contained in_ctr
	profile_from_host
}

case_runc_kubepods_user_namespace() {
	need runc
	overlay
	start_contained in_runc
	grep -q "/kubepods/burstable/pod.*/$hex" "/proc/$jvm/cgroup" ||
		fail "not in the pod's cgroup: $(cat "/proc/$jvm/cgroup")"
	profile_from_host
}

case_systemd_nspawn() {
	need systemd-nspawn
	overlay
	start_contained in_nspawn
	profile_from_host
}

case_unshare_chroot() {
	need unshare
	overlay
	start_contained in_chroot
	profile_from_host
}

# ---- the same where hardly anything can be written ------------------------------------------------------

# The agent is put in another folder than /tmp.
case_podman_read_only_root() {
	need podman runc
	start_contained "${podman_run[@]}" --read-only --read-only-tmpfs=false --tmpfs /tmp:rw,noexec \
		--tmpfs /run:rw,exec --rootfs "$tree"
	profile_pid
}

# Docker mounts /tmp and /dev/shm noexec by default.
case_docker_read_only_root() {
	need_docker
	start_contained "${docker_run[@]}" --read-only --tmpfs /tmp:exec duet
	profile_pid
}

case_docker_read_only_root_noexec_tmp() {
	need_docker
	start_contained "${docker_run[@]}" --read-only --tmpfs /tmp duet
	mounts=$(grep -c . "/proc/$jvm/mountinfo")
	profile_pid
	[ "$(grep -c . "/proc/$jvm/mountinfo")" = "$mounts" ] || fail "mounts left: $(tail -n 3 "/proc/$jvm/mountinfo")"
}

# ---- JVM and duet both in there -------------------------------------------------------------------------

# A container has its own pids: the JVM is 1.
start_named() { # PODMAN-OPTIONS...
	need podman runc
	start_contained "${podman_run[@]}" --name "duet-${here##*/}" "$@" --rootfs "$tree:O"
}

# From here on duet runs in the container and writes to stdout, the only output of a container.
go_inside() { # COMMAND...
	DUET_AS=("$@")
	duet=/opt/duet
}

exec_inside() {
	go_inside "${podman[@]}" exec "duet-${here##*/}"
}

# Runs duet in its own container, which sees the processes and the network of the other.
sidecar() { # PODMAN-OPTIONS...
	local run=("${podman_run[@]/#none/container:duet-${here##*/}}")
	go_inside "${run[@]}" --pid "container:duet-${here##*/}" --security-opt seccomp=unconfined --cap-drop all "$@" \
		--rootfs "$tree:O"
}

# Tries again when the engine failed: it sometimes cannot join another container's namespaces.
record_inside() {
	record "$@"
	[ "$status" != 126 ] || record "$@"
}

profile_inside() { # ENGINE
	record_inside -p 1 -d 2 -i 1ms -t -o collapsed
	expect_status 0
	expect_contains "$here/stderr" "engine $1"
	expect_profile "$here/stdout" last
	expect_untouched
}

expect_fallback() { # CAUSE
	run_duet check
	expect_contains "$here/stdout" "$1"
	expect_contains "$here/stdout" 'will use ctimer$'
	profile_inside ctimer
	expect_contains "$here/stderr" "using the ctimer engine.*$1"
	seen "ctimer: $(sed -nE 's/.*kernel frames: ([^:]*).*/\1/p' "$here/stderr")"
}

case_duet_inside_with_capabilities() {
	start_named --cap-drop all --cap-add BPF,PERFMON,SYS_PTRACE --security-opt seccomp=unconfined
	exec_inside
	profile_inside bpf
	expect_joined
	expect_lacks "$here/stderr" 'not names'
}

case_duet_inside_with_capabilities_under_seccomp() {
	start_named --cap-drop all --cap-add BPF,PERFMON,SYS_PTRACE
	exec_inside
	expect_fallback "bpf\(\) is refused .*: allow it in the container's seccomp profile"
}

case_duet_inside_with_nothing() {
	start_named --cap-drop all
	exec_inside
	expect_fallback 'BPF needs CAP_BPF and CAP_PERFMON: this root lacks them, give them to the container'
}

case_sidecar() {
	start_named
	sidecar --cap-add BPF,PERFMON,SYS_PTRACE
	profile_inside bpf
	expect_joined
}

# Proves each capability: without it, the message asks for it.
case_sidecar_without_cap_sys_ptrace() {
	start_named
	sidecar --cap-add BPF,PERFMON
	record_inside -p 1 -d 1
	expect_refusal 1 'process 1 cannot be inspected: give duet CAP_SYS_PTRACE'
	seen "refused: $(sed -n 's/.*error: //p' "$here/stderr")"
}

case_sidecar_of_another_user() {
	start_named --user 65534
	sidecar --cap-add BPF,PERFMON,SYS_PTRACE
	record_inside -p 1 -d 1
	expect_refusal 1 'belongs to user 65534.*give it CAP_SETUID and CAP_SETGID'
	sidecar --cap-add BPF,PERFMON,SYS_PTRACE,SETUID,SETGID
	profile_inside bpf
	expect_joined "with CAP_SETUID, CAP_SETGID "
}

# As in a DaemonSet: the host's processes, another network.
case_host_pid() {
	start_named
	go_inside "${podman_run[@]}" --pid host --security-opt seccomp=unconfined --cap-drop all \
		--cap-add BPF,PERFMON,SYS_PTRACE --rootfs "$tree:O"
	record -p "$jvm" -d 1
	expect_refusal 1 'cannot enter the network namespace of JVM .*give duet CAP_SYS_ADMIN'
	DUET_AS=("${DUET_AS[@]/%SYS_PTRACE/SYS_PTRACE,SYS_ADMIN}")
	record -p "$jvm" -d 2 -i 1ms -t -o collapsed
	expect_status 0
	expect_profile "$here/stdout" first
	expect_joined "with CAP_SYS_ADMIN "
	expect_untouched
}

trap end_everything EXIT
start_daemons
run_matrix containers "$@"
