/* SPDX-License-Identifier: MIT */
/* How much memory and time a small file can cost the loader. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/elf_reader.h"
#include "sym/elf_file.h"

#define HOLES 24
#define SEGMENTS (12ul << 20) /* 672 MB of them */
#define HOLE_BYTES (sizeof(Elf64_Rela) << 21) /* a multiple of each entry */

/* Sections of one type that all have the same bytes, a hole in the file. */
static int make_holes(uint32_t type)
{
	Elf64_Shdr sections[HOLES] = {{0}};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_shoff = sizeof(header),
		.e_shentsize = sizeof(*sections),
		.e_shnum = HOLES,
	};
	char path[] = "/tmp/duet-holes-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	for (size_t i = 1; i < HOLES; i++)
		sections[i] = (Elf64_Shdr){
			.sh_type = type, .sh_offset = 4096, .sh_size = HOLE_BYTES, .sh_addralign = 8};
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, sections, sizeof(sections)), sizeof(sections));
	assert_int_equal(ftruncate(fd, 4096 + HOLE_BYTES), 0);
	return fd;
}

/* Program headers in a hole as well: section 0 tells their number when there are 65535 or more. */
static int make_hole_of_segments(void)
{
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phoff = 4096,
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = PN_XNUM,
		.e_shoff = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = 1,
	};
	const Elf64_Shdr zero = {.sh_info = SEGMENTS};
	char path[] = "/tmp/duet-holes-XXXXXX";
	int fd = mkstemp(path);

	unlink(path);
	assert_int_equal(write(fd, &header, sizeof(header)), sizeof(header));
	assert_int_equal(write(fd, &zero, sizeof(zero)), sizeof(zero));
	assert_int_equal(ftruncate(fd, 4096 + SEGMENTS * sizeof(Elf64_Phdr)), 0);
	return fd;
}

/* Returns the most RAM that reading takes, as measured in a child. */
static size_t bytes_to_read(int fd)
{
	struct elf_file file;
	struct rusage usage;
	pid_t pid = fork();

	if (!pid) {
		if (!elf_file_read(&file, fd))
			elf_file_release(&file);
		_exit(0);
	}
	assert_int_equal(wait4(pid, &(int){0}, 0, &usage), pid);
	close(fd);
	return (size_t)usage.ru_maxrss << 10;
}

static void test_one_budget_for_all_sections(void **state)
{
	static const uint32_t types[] = {SHT_NOTE, SHT_RELA, SHT_SYMTAB};

	for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++)
		assert_in_range(bytes_to_read(make_holes(types[i])), 0, ELF_READER_MAX_BYTES + (64 << 20));
}

static void test_hole_of_segments(void **state)
{
	assert_in_range(bytes_to_read(make_hole_of_segments()), 0, 64 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_budget_for_all_sections),
		cmocka_unit_test(test_hole_of_segments),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
