/* SPDX-License-Identifier: MIT */
/* /proc/kallsyms: the kernel writes it, but any user may choose names of BPF programs in it. */
#include <stdio.h>

#include "fuzz.h"
#include "sym/kallsyms.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = input_file(data, size);
	struct kallsyms kallsyms;
	const char *name, *module;
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	kallsyms = (struct kallsyms){0};
	kallsyms_refresh(&kallsyms, path, 1);
	for (size_t i = 0; i < kallsyms.table.rows.len; i++) {
		name = kallsyms_find(&kallsyms, kallsyms.table.rows.items[i].start, &module, NULL);
		FUZZ_CHECK(!name || (name[0] && module[0]));
	}
	symbol_table_release(&kallsyms.table);
	close(fd);
	return 0;
}
