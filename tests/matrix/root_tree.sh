#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   tests/matrix/root_tree.sh SUITE[:ARCHITECTURE] JDK... [PACKAGE...]
#
# Prints the folder of a Debian root file system with these JREs and packages, and makes it if it does not exist.
# Packages are unpacked, not installed: that takes seconds, and does not change the host's packages. The folder lies
# below $DUET_SCRATCH and is kept between runs. Mount /proc in it before you start a JVM. JDK 8 comes with its debug
# symbols: without them, its functions have no names.
[ $# -ge 2 ] || { echo "usage: $0 SUITE[:ARCHITECTURE] JDK... [PACKAGE...]" >&2; exit 2; }
. "$(dirname "$0")/apt.sh"
native=$(dpkg --print-architecture)
suite=${1%:*}
arch=${1#"$suite"}
arch=${arch#:}
shift
tree=$scratch/$suite-$(IFS=-; echo "${*/#8/8-dbg}")${arch:+-$arch}

complete() { # FOLDER
	local name
	for name in bin lib lib64 sbin; do
		[ -e "$1/$name" ] || ln -s "usr/$name" "$1/$name"
	done
	# Otherwise an alternative is missing, which is chosen at installation.
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
		[ "$what" != 8 ] || jres+=(openjdk-8-dbg)
	done
	rm -rf "$new"
	mkdir "$new"
	open_apt "$suite" "${arch:-$native}"
	# The packages that a JVM needs to run. The others that the package depends on have fonts, sounds and
	# certificates.
	download libc6 zlib1g libgcc-s1 libstdc++6 "${jres[@]}"
	[ ${#packages[@]} = 0 ] || download_with_dependencies "${packages[@]}"
	unpack "$new"
	complete "$new"
	mv "$new" "$tree"
}

[ -d "$tree" ] || make_tree "$@" >&2
echo "$tree"
