#!/bin/bash
# SPDX-License-Identifier: MIT
# timeout: 3000
#
# Debian's kernels from 5.10 to the newest, in virtual machines with JVMs and the static duet, and one for aarch64 with
# the cross-built files. Machines are emulated: they show that the BPF object loads, stacks are walked and halves are
# joined, but no rates. Arguments choose rows: 6.1@bookworm:amd64. Only the cases of the chosen columns are run.
. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin:/sbin

all_rows=(5.10@bullseye:amd64 6.1@bookworm:amd64 6.12@trixie:amd64 6.18@trixie-backports:amd64 newest@sid:amd64
	6.12@trixie:arm64)
columns=(release check check_as_user joined_21 joined_25 ctimer fallback command targets events block sleeps suspend
	frames inlined_21 inlined_25 native_methods native_memory)
packages=(bash busybox-static coreutils findutils grep libc-bin mawk perl-base procps sed util-linux)
# Seconds of CPU time. A machine boots in 5, or 15 beside others that use the caches. There the cases of frames and of
# inlined methods take 200, and all others as much. A machine that hangs spins until it has used up its time.
boot_limit=60 cpu_limit=1000

# What differs between the architectures, by Debian's name for them.
declare -A jdks_of=([amd64]="21 25" [arm64]=21)
declare -A machine_of=([amd64]=x86_64 [arm64]=aarch64)
declare -A console_of=([amd64]=ttyS0 [arm64]=ttyAMA0)
declare -A emulator_options=([arm64]="-M virt -cpu max,pauth-impdef=on")

# ---- what a machine is made of ---------------------------------------------------------------

# The root file system, made once for a list of packages.
make_disk() { # ARCHITECTURE
	local tree
	tree=$("$matrix/root_tree.sh" "trixie:$1" ${jdks_of[$1]} "${packages[@]}") || return
	if [ ! -e "$tree.ext4" ]; then
		mke2fs -q -t ext4 -O ^has_journal -m 0 -d "$tree" "$tree.ext4.new" \
			$(($(du -sm "$tree" | cut -f 1) * 12 / 10))M && mv "$tree.ext4.new" "$tree.ext4" || return
	fi
	ln -s "$tree.ext4" "$scratch/disk.$1"
	ln -s "$tree/usr/bin/busybox" "$scratch/busybox.$1"
}

# Makes the initial memory file system: the script that mounts the disk, the static duet, workloads, cases.
make_memory() { # ARCHITECTURE
	local built=$DUET_BUILD/static-$1 files=$scratch/files.$1
	mkdir -p "$DUET_BUILD"
	env -u MAKEFLAGS -u MAKELEVEL make -s -C "$matrix/../.." -j "$(nproc)" STATIC=1 ARCH="${machine_of[$1]}" \
		O="$built" all workloads >"$built.log" 2>&1 || { tail -n 5 "$built.log"; exit 1; }
	mkdir -p "$files"/build "$files"/tests/{matrix,system}
	cp "$matrix/guest_init.sh" "$files/init"
	cp "$scratch/busybox.$1" "$files/busybox"
	cp -r "$built"/{duet,workloads} "$files/build"
	cp "$matrix/guest_cases.sh" "$files/tests/matrix"
	cp "$matrix/../system"/*.{sh,pl} "$files/tests/system"
	(cd "$files" && find . | cpio --quiet -o -H newc) >"$scratch/memory.$1"
}

# Prepares the rows of one architecture. Prints what is missing.
prepare_machines() { # ARCHITECTURE
	local tool tools=("qemu-system-${machine_of[$1]}" mke2fs cpio xz)
	[ "${machine_of[$1]}" = "$(uname -m)" ] || tools+=("${machine_of[$1]}-linux-gnu-gcc")
	for tool in "${tools[@]}"; do
		command -v "$tool" >/dev/null || echo "there is no $tool"
	done >"$scratch/missing.$1"
	[ ! -s "$scratch/missing.$1" ] || return
	if make_disk "$1" 2>"$scratch/log"; then
		make_memory "$1"
	else
		echo "no disk could be made for $1: $(tail -n 1 "$scratch/log")" >"$scratch/missing.$1"
	fi
}

# ---- running one -----------------------------------------------------------------------------

begun='^cases begin' # on the console

# Before 6.5 Linux waits for its second CPU without end when the clock counts instructions.
cpus() {
	if [[ $row = 5.10@* || $row = 6.1@* ]]; then echo 1; else echo 2; fi
}

# CMPXCHG16B spoils the flags in QEMU 7.2 when an interrupt follows it, and the kernel panics now and then. Without it,
# BPF has no storage of tasks in Linux 7.2: kmalloc_nolock() gives no memory then.
cpu_model() {
	if [[ $row = newest@* ]]; then echo max; else echo max,-cx16; fi
}

# A second disk, which can be written: what is read from and written to it are the requests of the case `block`.
make_second_disk() {
	truncate -s 192M "$figures/disk"
	mke2fs -q -t ext4 "$figures/disk"
}

# The machine's clock counts instructions of 4 ns, so that its timers leave it time to work, however slow the host is.
# The machine is turned off when the cases have not begun within $boot_limit.
run_machine() { # ARCHITECTURE KERNEL
	local machine cases
	: >"$console"
	cases=$(printf '%s\n' "${columns[@]%_[0-9]*}" | sort -u)
	prlimit --cpu="$cpu_limit" \
		"qemu-system-${machine_of[$1]}" ${emulator_options[$1]:--cpu "$(cpu_model)"} -accel tcg,thread=single \
		-icount shift=2,sleep=off -smp "$(cpus)" -m 1024 -net none -nographic -no-reboot \
		-kernel "$2/vmlinuz" -initrd "$figures/memory" \
		-drive "file=$(realpath "$scratch/disk.$1"),if=virtio,format=raw,readonly=on" \
		-drive "file=$figures/disk,if=virtio,format=raw,cache=unsafe" \
		-append "console=${console_of[$1]} panic=-1 quiet -- ${cases//$'\n'/ }" >"$console" 2>&1 </dev/null &
	machine=$!
	until grep -q "$begun" "$console" || ! kill -0 $machine 2>/dev/null; do
		[ "$(cpu_ticks $machine)" -lt $((boot_limit * ticks_per_second)) ] || kill $machine
		sleep 1
	done
	wait $machine
}

# Runs all cases of a row one after the other. $console has the machine's console. A machine that does not reach the
# cases is started a second time, and that is reported. The cases are run only once.
prepare_row() {
	local arch=${row#*:} from=${row#*@} kernel
	console=$figures/console missing=$(cat "$scratch/missing.$arch")
	[ -z "$missing" ] || return
	kernel=$("$matrix/kernel.sh" "${from%:*}" "$arch" "${row%@*}" 2>"$figures/kernel") || {
		missing="Debian's archive does not give this kernel: $(tail -n 1 "$figures/kernel")"
		return
	}
	cat "$scratch/memory.$arch" "$kernel/modules.cpio" >"$figures/memory"
	make_second_disk
	booted=
	run_machine "$arch" "$kernel"
	if ! grep -q "$begun" "$console"; then
		echo "# this machine did not boot, it is started once more: $(tail -n 1 "$console")"
		booted=", at its second boot"
		run_machine "$arch" "$kernel"
	fi
	rm "$figures/memory" "$figures/disk"
	sed -i -E -e 's/\r//g' -e 's/ \(java-([0-9]+)-[^)]*\)/_\1/' "$console"
	grep -q '^cases are over' "$console" || tail -n 30 "$console" | sed 's/^/# console: /'
}

# Prints what the machine reported for the case of this column.
of_machine() {
	local said verdict
	[ -z "$missing" ] || skip "$missing"
	[[ $column != *_[0-9]* || " ${jdks_of[${row#*:}]} " = *" ${column##*_} "* ]] ||
		skip "not with JDK ${column##*_}"
	said=$(awk -v name="$column" '$0 == "# " name { on = 1 }
		on { print } on && /^(ok|not ok|skip) / { exit }' "$console")
	verdict=$(tail -n 1 <<<"$said")
	sed -n '2,$ { /^#/p }' <<<"$said"
	case $verdict in
	"ok $column") sed -n 's/^= //p' <<<"$said" >"$figures/$column" ;;
	"skip $column: "*) skip "${verdict#*: }" ;;
	"not ok $column: "*) fail "${verdict#*: }" ;;
	*) fail "the machine ended before" ;;
	esac
	[ -s "$figures/$column" ] || rm -f "$figures/$column"
	[ "$column" != release ] || [ -z "$booted" ] || figure "$(cat "$figures/release")$booted"
}

for column in "${columns[@]}"; do
	eval "cell_$column() { of_machine; }"
done
[ "${1:-}" != --list ] || { list_rows "${all_rows[@]}"; exit; }
[ $# -gt 0 ] || set -- "${all_rows[@]}"
for arch in $(printf '%s\n' "${@#*:}" | sort -u); do
	prepare_machines "$arch"
done
run_rows "$@"
end_matrix Kernel
