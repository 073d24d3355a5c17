#!/busybox sh
# SPDX-License-Identifier: MIT
#
# The first process of a virtual machine, in its initial memory file system. It mounts the disk, which has JVMs and a
# shell, makes it the root, and executes the cases that the kernel's command line names.
/busybox mkdir -p /dev /root
/busybox mount -t devtmpfs devtmpfs /dev
for module in /modules/*.ko; do
	/busybox insmod "$module"
done
/busybox mount -t ext4 -o ro /dev/vda /root
/busybox mount -t ext4 /dev/vdb /root/mnt
/busybox mount -t devtmpfs devtmpfs /root/dev
/busybox mount -t proc proc /root/proc
/busybox ln -s /proc/self/fd /root/dev/fd
/busybox mount -t sysfs sysfs /root/sys
/busybox mount -t tmpfs tmpfs /root/run
/busybox mount -t tmpfs -o mode=1777 tmpfs /root/tmp
/busybox cp -r /build /tests /root/run
exec /busybox switch_root /root /bin/bash /run/tests/matrix/guest_cases.sh "$@"
