/* SPDX-License-Identifier: MIT */
#include "proc/interrupts.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/io.h"

#define NAMES_BYTES 256

void interrupt_name(uint32_t number, char *ret, size_t room)
{
	struct buf text;
	char path[64];
	size_t len = 0;

	buf_init(&text);
	snprintf(path, sizeof(path), "/sys/kernel/irq/%u/actions", number); /* Linux 4.9 */
	if (!io_read_file(AT_FDCWD, path, NAMES_BYTES, &text))
		len = strcspn(text.data, "\n");
	if (len)
		snprintf(ret, room, "%.*s", (int)len, text.data);
	else
		snprintf(ret, room, "%u", number);
	buf_release(&text);
}
