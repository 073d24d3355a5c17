/* SPDX-License-Identifier: MIT */
#include "reader/image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"
#include "duet_jvm.h"
#include "hotspot/jvmstructs.h"
#include "hotspot/metadata.h"
#include "hotspot/nmethods.h"
#include "hotspot/vmstructs.h"
#include "proc/maps.h"
#include "reader/memory.h"

#define JDK8_VERSION 25 /* HotSpot's own number in JDK 8, see is_jdk8() */

/* Returns where a line of /proc/PID/maps has the beginning of a libjvm.so, or 0. */
static uintptr_t image_in_line(const char *line)
{
	uint64_t start, offset;

	if (!duet_is_libjvm(line) || sscanf(line, "%" SCNx64 "-%*x %*s %" SCNx64, &start, &offset) != 2)
		return 0;
	return offset ? 0 : start;
}

static uintptr_t find_libjvm(pid_t pid)
{
	char path[32];
	uintptr_t found = 0;
	BUF(text);

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	(void)io_read_file(AT_FDCWD, path, MAPS_MAX_FILE, &text);
	for (char *next = text.data, *line; !found && (line = strsep(&next, "\n"));)
		found = image_in_line(line);
	return found;
}

static void read_version(struct image *image)
{
	uintptr_t major = 0, release = 0, about = 0, heap = 0;
	const struct vmstructs_row wanted[] = {
		{"Abstract_VM_Version", "_vm_major_version", NULL, &major},
		{"Abstract_VM_Version", "_s_vm_release", NULL, &release},
		{"Abstract_VM_Version", "_s_internal_vm_info_string", NULL, &about},
		{"CodeCache", "_heap", NULL, &heap},
	};
	char *end;

	(void)vmstructs_read(wanted, sizeof(wanted) / sizeof(wanted[0]));
	image->java_version = major ? (int)memory_int(major) : 0;
	if (image->java_version == JDK8_VERSION && heap) /* JDK 25's as well, but only JDK 8 has a single code heap */
		image->java_version = 8;
	memory_text(image->release, release ? memory_word(release) : 0, sizeof(image->release));
	memory_text(image->name, about ? memory_word(about) : 0, sizeof(image->name));
	end = strstr(image->name, " ("); /* "NAME (RELEASE) for linux-amd64 …", vm_version.cpp */
	if (end)
		*end = '\0';
	else
		strcpy(image->name, "HotSpot");
}

int image_open(struct image *image, pid_t pid, const char **ret_why)
{
	uintptr_t libjvm = find_libjvm(pid);
	int err = libjvm ? memory_open(pid, libjvm) : -ESRCH;

	*image = (struct image){.libjvm = libjvm};
	*ret_why = "its libjvm.so cannot be read";
	if (err == -EPERM)
		*ret_why = "its memory must not be read: it takes CAP_SYS_PTRACE";
	if (err)
		return err;
	*ret_why = "its libjvm.so does not describe its structures as HotSpot does";
	if (jvmstructs_open())
		return -ENOTSUP;
	read_version(image);
	*ret_why = "its version of HotSpot is not known";
	if (image->java_version < 8 || !metadata_open(image->java_version, true) || !nmethods_open(image->java_version))
		return -ENOTSUP;
	return 0;
}
