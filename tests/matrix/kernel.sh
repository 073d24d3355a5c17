#!/bin/bash
# SPDX-License-Identifier: MIT
#
#   tests/matrix/kernel.sh SUITE ARCHITECTURE VERSION
#
# Prints a folder with Debian's cloud kernel of this version ("newest": the newest of the suite): vmlinuz, and
# modules.cpio with the modules for a virtual machine's disk. It lies below $DUET_SCRATCH and is kept between runs.
[ $# = 3 ] || { echo "usage: $0 SUITE ARCHITECTURE VERSION" >&2; exit 2; }
. "$(dirname "$0")/apt.sh"
suite=$1 arch=$2 version=$3
kernel=$scratch/kernel-$version-$suite-$arch
# In the order of loading; some kernels have some of them built in.
modules=(virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_blk)

find_image() {
	if [ "$version" = newest ]; then
		apt-cache depends "linux-image-cloud-$arch" | sed -n 's/.*Depends: \(linux-image-\)/\1/p'
	else
		apt-cache pkgnames "linux-image-$version." | grep -- "-cloud-$arch\$" | sort -V
	fi | tail -n 1
}

# Later kernels consist of several packages.
parts_of() { # IMAGE
	apt-cache depends "$1" | sed -nE 's/.*Depends: (linux-(binary|modules)-.*)/\1/p'
}

gather() { # FROM TO
	local module file number=0
	mkdir -p "$2/modules"
	cp "$(find "$1" -name 'vmlinuz*')" "$2/vmlinuz"
	for module in "${modules[@]}"; do
		number=$((number + 1))
		for file in $(find "$1" -name "$module.ko*"); do
			cp "$file" "$2/modules/$number-$(basename "$file")"
		done
	done
	find "$2/modules" -name '*.xz' -exec xz -d {} +
	(cd "$2" && find modules | cpio --quiet -o -H newc >modules.cpio)
}

fetch_kernel() {
	local image new=$kernel.new
	open_apt "$suite" "$arch"
	image=$(find_image)
	[ -n "$image" ] || { echo "the archive has no cloud kernel $version in $suite"; exit 1; }
	rm -rf "$new"
	mkdir -p "$new/all"
	mapfile -t parts < <(parts_of "$image")
	download "$image" ${parts[@]+"${parts[@]}"}
	unpack "$new/all"
	gather "$new/all" "$new"
	rm -rf "$new/all"
	mv "$new" "$kernel"
}

[ -d "$kernel" ] || fetch_kernel >&2
echo "$kernel"
