#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   tests/matrix/root_tree.sh SUITE[:ARCHITECTURE] JDK... [PACKAGE...]
#
# Prints the folder of a Debian root file system with these JREs and packages, which is made unless it is there:
# packages are unpacked, not installed, so it takes seconds and the host's own packages stay as they are. It lies below
# $DUET_SCRATCH and is kept between runs. Whoever starts a JVM in there mounts /proc first.
[ $# -ge 2 ] || { echo "usage: $0 SUITE[:ARCHITECTURE] JDK... [PACKAGE...]" >&2; exit 2; }
. "$(dirname "$0")/apt.sh"
native=$(dpkg --print-architecture)
suite=${1%:*}
arch=${1#"$suite"}
arch=${arch#:}
shift
tree=$scratch/$suite-$(IFS=-; echo "$*")${arch:+-$arch}

complete() { # FOLDER
	local name
	for name in bin lib lib64 sbin; do
		[ -e "$1/$name" ] || ln -s "usr/$name" "$1/$name"
	done
	# Else an alternative, which is chosen at installation.
	[ ! -e "$1/usr/bin/mawk" ] || ln -sf mawk "$1/usr/bin/awk"
	mkdir -p "$1"/{dev,etc,mnt,proc,root,run,sys,tmp,var/tmp}
	chmod 1777 "$1/tmp" "$1/var/tmp"
	printf 'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n' >"$1/etc/passwd"
	printf 'root:x:0:\nnogroup:x:65534:\n' >"$1/etc/group"
}

make_tree() { # JDK... [PACKAGE...]
	local new=$tree.new jres=() packages=() what
	for what; do
		[[ $what = [0-9]* ]] && jres+=("openjdk-$what-jre-headless") || packages+=("$what")
	done
	rm -rf "$new"
	mkdir "$new"
	open_apt "$suite" "${arch:-$native}"
	# What a JVM needs to run; the rest of what the package depends on is for fonts, sounds and certificates.
	download libc6 zlib1g libgcc-s1 libstdc++6 "${jres[@]}"
	[ ${#packages[@]} = 0 ] || download_with_dependencies "${packages[@]}"
	unpack "$new"
	complete "$new"
	mv "$new" "$tree"
}

[ -d "$tree" ] || make_tree "$@" >&2
echo "$tree"
