# SPDX-License-Identifier: MIT
# shellcheck shell=bash
#
# Debian's async-profiler in its own root file system, for a bench that has sourced lib.sh in a mount namespace.

# The JVM runs in that file system too, with the JDK that JDK names, or with one of the same suite.
fetch_asprof() {
	local library
	jvm_root=$("$(dirname "$0")/../matrix/root_tree.sh" sid 17 async-profiler-java) ||
		die "Debian's async-profiler cannot be had"
	mount -t proc proc "$jvm_root/proc"
	mount --bind "$workloads" "$jvm_root/mnt"
	JVM_AS=(chroot "$jvm_root")
	asprof=(chroot "$jvm_root" /usr/bin/asprof)
	library=$(cd "$jvm_root" && echo usr/lib/*/jni/libasyncProfiler.so)
	ln -sf "/$library" "$jvm_root/usr/lib/" # where asprof looks
	workloads=/mnt
	if [ -n "${JDK:-}" ]; then
		mount -t tmpfs tmpfs "$jvm_root/run"
		mkdir "$jvm_root/run/jdk"
		mount --bind "$JDK" "$jvm_root/run/jdk"
		jdk=/run/jdk
	else
		jdk=$(cd "$jvm_root" && echo usr/lib/jvm/java-17-openjdk-*)
		jdk=/${jdk%% *}
	fi
}
