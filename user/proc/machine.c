/* SPDX-License-Identifier: MIT */
#include "proc/machine.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

/* Both classes of ELF files have the same first fields. */
static const char *judge(const Elf64_Ehdr *head)
{
	if (memcmp(head->e_ident, ELFMAG, SELFMAG))
		return NULL;
	if (head->e_ident[EI_CLASS] == ELFCLASS32)
		return "it is a 32-bit program";
	return head->e_machine == MACHINE_ELF ? NULL : "it is a program for another processor";
}

const char *machine_foreign(pid_t pid)
{
	Elf64_Ehdr head;
	IO_FD(fd) = -1;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return pread(fd, &head, sizeof(head), 0) == sizeof(head) ? judge(&head) : NULL;
}
