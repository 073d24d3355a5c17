#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 400
#
# The unit in a booted systemd: its sandbox, its watchdog, a reload and a stop, beside a service that is a JVM of
# another user. The machine is a container of systemd-nspawn: it has its own processes and cgroups, and the host's
# kernel.
TMPDIR=${DUET_SCRATCH:-/var/tmp/duet-matrix} # an overlay cannot lie on another, which /tmp may be
mkdir -p "$TMPDIR"
. "$(dirname "$0")/cells.sh"

top=$matrix/../..
unit=$top/user/packaging/duet.service
exposure_max=49 # tenths; it is higher when an option of the sandbox is missing
# Rights of the container that the unit needs, in addition to those that systemd-nspawn gives it.
rights=CAP_BPF,CAP_PERFMON,CAP_SYSLOG

# ---- the machine ----------------------------------------------------------------------------------

# Prints the cgroup hierarchies that systemd may need, as they are mounted on the host.
hierarchies() {
	local folder
	for folder in /sys/fs/cgroup /sys/fs/cgroup/unified /sys/fs/cgroup/systemd; do
		[ ! -e "$folder/cgroup.procs" ] || echo "$folder"
	done
}

after_case() {
	local folder tries
	[ -z "${leader-}" ] || kill -KILL "$leader" # the container ends with it
	[ -z "${machine-}" ] || timeout 10 tail -f --pid="$machine" /dev/null
	umount --lazy "$here/root"
	for ((tries = 0; tries < 50; tries++)); do
		for folder in $(hierarchies); do
			find "$folder/duet-service.$$" -depth -type d -exec rmdir {} + && continue
			[ ! -e "$folder/duet-service.$$" ] || break
		done && break
		sleep 0.1
	done
} 2>/dev/null

make_root() {
	tree=$("$matrix/root_tree.sh" trixie 21 systemd procps) ||
		skip "Debian's archive does not give systemd and a JRE"
	root=$here/root
	mkdir -p "$here/upper" "$here/work" "$root"
	mount -t overlay overlay -o "lowerdir=$tree,upperdir=$here/upper,workdir=$here/work" "$root" ||
		fail "cannot mount an overlay file system"
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$top" O="$DUET_BUILD" DESTDIR="$root" PREFIX=/usr install \
		>"$here/install" 2>&1 || fail "make install: $(tail -n 1 "$here/install")"
	printf '%s\n' 'window = 2s' 'output = collapsed' 'by = container,process' 'max-overhead = 50' \
		>"$root/etc/duet/duet.conf"
	cat >"$root/etc/systemd/system/app.service" <<-END
		[Service]
		User=nobody
		ExecStart=/usr/lib/jvm/java-21-openjdk-$(dpkg --print-architecture)/bin/java -Xmx256m -cp /mnt shop.Demo
	END
	# As in a container: its own network, and no folder that is both writable and executable.
	{
		cat "$root/etc/systemd/system/app.service"
		printf '%s\n' PrivateNetwork=yes ProtectSystem=strict PrivateTmp=yes \
			'NoExecPaths=/tmp /var/tmp /dev /run'
	} >"$root/etc/systemd/system/walled.service"
	mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
	ln -s ../app.service ../walled.service /usr/lib/systemd/system/duet.service \
		"$root/etc/systemd/system/multi-user.target.wants"
	ln -sf /usr/lib/systemd/system/multi-user.target "$root/etc/systemd/system/default.target"
	: >"$root/etc/machine-id"
	echo ID=duet >"$root/etc/os-release" # systemd-nspawn requires it
}

# Runs in its own cgroup, and changes no other cgroup. The filter for system calls would not allow bpf().
in_nspawn() {
	local folder
	for folder in $(hierarchies); do
		mkdir "$folder/duet-service.$$" && echo "$BASHPID" >"$folder/duet-service.$$/cgroup.procs"
	done
	export SYSTEMD_SECCOMP=0
	[ ! -e /sys/fs/cgroup/systemd ] || export SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1
	exec systemd-nspawn --boot --console=pipe --register=no --keep-unit --link-journal=no --private-network \
		--capability=$rights --bind-ro="$workloads:/mnt" -D "$root"
}

inside() { # COMMAND...
	timeout 20 nsenter -t "$leader" -m -u -i -n -p -C "$@" </dev/null
}

boot() {
	local command
	need_root
	need_bpf
	for command in systemd-nspawn nsenter make; do
		command -v $command >/dev/null || skip "$command is not installed"
	done
	make_root
	in_nspawn >"$here/console" 2>&1 </dev/null &
	machine=$!
	jvms+=("$machine")
	wait_for "systemd does not boot here" skip booted
	wait_for "duet.service" fail inside systemctl -q is-active duet
}

booted() {
	leader=$(pgrep -P "$machine")
	[ -n "$leader" ] && inside systemctl is-active multi-user.target
}

wait_for() { # WHAT fail|skip COMMAND...
	local end=$((SECONDS + 60))
	until "${@:3}" >/dev/null 2>&1; do
		kill -0 "$machine" 2>/dev/null && [ $SECONDS -lt $end ] ||
			"$2" "$1: $(tail -n 1 "$here/console"; inside journalctl -o cat -u duet | tail -n 3)"
		sleep 0.2
	done
}

property() { # NAME
	inside systemctl show --value -p "$1" duet
}

# Prints all windows so far.
windows() {
	find "$root/var/lib/duet" -name '*.collapsed' -exec cat {} +
}

# ---- cells ----------------------------------------------------------------------------------------

# Uses the systemd that is installed in the machine.
case_unit_is_sound() {
	local said exposure
	need_root
	make_root
	mount -t proc proc "$root/proc"
	said=$(chroot "$root" systemd-analyze verify --man=no duet.service 2>&1) || fail "$said"
	! grep duet <<<"$said" || fail "$said"
	exposure=$(chroot "$root" systemd-analyze security --offline=yes --no-pager duet.service |
		sed -nE 's/.*Overall exposure level[^:]*: ([0-9.]+).*/\1/p')
	seen "exposure $exposure of 10"
	expect "exposure, tenths" "${exposure/./}" '<=' $exposure_max
}

has_windows() { # FOLDER
	compgen -G "$root/var/lib/duet/$1/*.collapsed"
}

has_java() { # SERVICE
	windows | grep -qE "$1\.service.*;java;.*shop/Pricing\.averages"
}

case_profiles_another_service() {
	local pid status wanted
	boot
	wait_for "no window with Java names" fail has_java app
	wait_for "no window with Java names behind walls" fail has_java walled
	windows >"$here/all"
	expect_contains "$here/all" 'shop/.*_\[k\]'
	expect_lacks "$here/all" '\[kernel\]\+0x' # CAP_SYSLOG
	pid=$(property MainPID)
	status=$(cat "/proc/$leader/root/proc/$pid/status")
	wanted=$(sed -n '/^CapabilityBoundingSet=/,/[^\]$/p' "$unit" | grep -o 'CAP_[A-Z_]*')
	[ $((16#$(awk '/^CapEff/ { print $2 }' <<<"$status"))) = "$(mask_of $wanted)" ] ||
		fail "it has other capabilities than the unit names: $(grep ^Cap <<<"$status")"
	grep -q '^NoNewPrivs:.1' <<<"$status" || fail "NoNewPrivileges is not in force"
	grep -q '^Seccomp:.2' <<<"$status" || fail "no system calls are filtered"
	seen "systemd $(inside systemctl --version | awk 'NR == 1 { print $2 }')" \
		"$(share <(grep ';java;' "$here/all") 'shop/') % of its samples with Java frames"
}

mask_of() { # CAPABILITY...
	local name number mask=0
	while read -r name number; do
		[[ " $* " != *" ${name^^} "* ]] || mask=$((mask | 1 << number))
	done < <(inside systemd-analyze capability)
	echo "$mask"
}

# duet notifies the watchdog in time; a duet that hangs is started again.
case_watchdog() {
	boot
	mkdir -p "$root/etc/systemd/system/duet.service.d"
	printf '%s\n' '[Service]' WatchdogSec=5 RestartSec=0 >"$root/etc/systemd/system/duet.service.d/test.conf"
	inside systemctl daemon-reload
	inside systemctl restart duet
	sleep 12
	expect "restarts of one that works" "$(property NRestarts)" '==' 0
	inside systemctl kill -s STOP duet
	wait_for "is not started again" fail restarted
	expect_contains <(inside journalctl -o cat -u duet) 'Watchdog timeout|watchdog'
}

restarted() {
	[ "$(property NRestarts)" -ge 1 ] && inside systemctl -q is-active duet
}

case_reload_and_stop() {
	local pid
	boot
	pid=$(property MainPID)
	wait_for "no window" fail has_windows .
	echo 'file = /var/lib/duet/other' >>"$root/etc/duet/duet.conf"
	inside systemctl reload duet || fail "systemctl reload: $(inside systemctl status duet)"
	wait_for "no window in the new folder" fail has_windows other
	echo 'nonsense = 1' >>"$root/etc/duet/duet.conf"
	inside systemctl reload duet
	wait_for "nothing is said of the wrong line" fail eval 'inside journalctl -o cat -u duet | grep -q nonsense'
	[ "$(property MainPID)" = "$pid" ] || fail "it was started again"
	inside systemctl stop duet || fail "systemctl stop: $(inside systemctl status duet)"
	expect "exit code" "$(property ExecMainStatus)" '==' 0
	[ "$(property Result)" = success ] || fail "it ended with $(property Result)"
}

run_matrix Service "$@"
