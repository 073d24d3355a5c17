/* SPDX-License-Identifier: MIT */
/*
 * The CPU time for reading an ELF file is proportional to its size, whatever it contains. Files of two sizes are read:
 * the large one may take little more than its share of the small one's time.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "unwind/unwind_file.h"
#include "sym/elf_file.h"

#define TIMES 8 /* the large file has so many times the size */
#define MOST (3 * TIMES) /* it may take so many times as long; TIMES * TIMES if the time grew with the square */
#define TRIES 5
#define LEAST_NS 2000000 /* shorter times depend more on the caches than on the size */
#define CODE_AT 4096
#define CODE_BYTES 4096
#define STARTS 3000 /* of symbols, which are all different */

enum { SECTION_CODE = 1, SECTION_NAMES, SECTION_STRINGS, SECTION_SYMBOLS, SECTION_FRAMES, SECTIONS };

struct deep_stacks {
	struct buf names; /* of sections */
	struct buf strings; /* of symbols */
	struct buf symbols;
	struct buf frames; /* .eh_frame */
	size_t more; /* sections, without contents */
};

/* ---- files ---- */

static void parts_init(struct deep_stacks *parts)
{
	*parts = (struct deep_stacks){0};
	buf_init(&parts->names);
	buf_init(&parts->strings);
	buf_init(&parts->symbols);
	buf_init(&parts->frames);
	buf_add(&parts->names, "\0.eh_frame", sizeof("\0.eh_frame"));
}

static void deep_stacks_release(struct deep_stacks *parts)
{
	buf_release(&parts->names);
	buf_release(&parts->strings);
	buf_release(&parts->symbols);
	buf_release(&parts->frames);
}

static void fill(struct buf *buf, char byte, size_t count)
{
	char chunk[4096];

	memset(chunk, byte, sizeof(chunk));
	for (size_t len; count; count -= len) {
		len = count < sizeof(chunk) ? count : sizeof(chunk);
		buf_add(buf, chunk, len);
	}
}

static void add_section(struct buf *file, Elf64_Shdr *section, Elf64_Shdr header, const struct buf *contents)
{
	fill(file, 0, -file->len % 8);
	header.sh_offset = file->len;
	header.sh_size = contents->len;
	header.sh_addralign = 1;
	buf_add(file, contents->data, contents->len);
	*section = header;
}

/* Returns a descriptor of the file. */
static int make_file(const struct deep_stacks *parts)
{
	Elf64_Shdr sections[SECTIONS] = {{0}}, none = {.sh_type = SHT_PROGBITS};
	Elf64_Phdr code = {.p_type = PT_LOAD, .p_flags = PF_X, .p_offset = CODE_AT, .p_vaddr = CODE_AT,
			   .p_filesz = CODE_BYTES, .p_memsz = CODE_BYTES};
	Elf64_Ehdr header = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(header),
		.e_phoff = sizeof(header),
		.e_phentsize = sizeof(code),
		.e_phnum = 1,
		.e_shentsize = sizeof(sections[0]),
		.e_shnum = (uint16_t)(SECTIONS + parts->more),
		.e_shstrndx = SECTION_NAMES,
	};
	int fd = memfd_create("elf", MFD_CLOEXEC);
	struct buf file;

	buf_init(&file);
	fill(&file, 0, CODE_AT);
	fill(&file, (char)0x90, CODE_BYTES);
	sections[SECTION_CODE] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_EXECINSTR, .sh_addr = CODE_AT,
					      .sh_offset = CODE_AT, .sh_size = CODE_BYTES};
	add_section(&file, &sections[SECTION_NAMES], (Elf64_Shdr){.sh_type = SHT_STRTAB}, &parts->names);
	add_section(&file, &sections[SECTION_STRINGS], (Elf64_Shdr){.sh_type = SHT_STRTAB}, &parts->strings);
	add_section(&file, &sections[SECTION_SYMBOLS],
		    (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_link = SECTION_STRINGS, .sh_entsize = sizeof(Elf64_Sym)},
		    &parts->symbols);
	add_section(&file, &sections[SECTION_FRAMES], (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_name = 1},
		    &parts->frames);
	fill(&file, 0, -file.len % 8);
	header.e_shoff = file.len;
	buf_add(&file, (const char *)sections, sizeof(sections));
	for (size_t i = 0; i < parts->more; i++)
		buf_add(&file, (const char *)&none, sizeof(none));
	memcpy(file.data, &header, sizeof(header));
	memcpy(file.data + sizeof(header), &code, sizeof(code));
	assert_int_equal(pwrite(fd, file.data, file.len, 0), file.len);
	buf_release(&file);
	return fd;
}

/* ---- time ---- */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t time_to_read(int fd)
{
	uint64_t begin_ns = cpu_ns();
	struct unwind_file rows;
	struct elf_file file;

	if (!elf_file_read(&file, fd))
		elf_file_release(&file);
	if (!unwind_file_read(&rows, fd))
		unwind_file_release(&rows);
	return cpu_ns() - begin_ns;
}

/* Returns the best of some tries: other processes use the machine too. */
static uint64_t time_of(void (*make)(struct deep_stacks *parts, size_t size), size_t size)
{
	uint64_t best_ns = UINT64_MAX, ns;
	struct deep_stacks parts;
	int fd;

	parts_init(&parts);
	make(&parts, size);
	fd = make_file(&parts);
	deep_stacks_release(&parts);
	for (int i = 0; i < TRIES; i++) {
		ns = time_to_read(fd);
		if (ns < best_ns)
			best_ns = ns;
	}
	close(fd);
	return best_ns;
}

static void expect_linear(void (*make)(struct deep_stacks *parts, size_t size))
{
	uint64_t small_ns = time_of(make, 1), large_ns = time_of(make, TIMES);

	if (small_ns < LEAST_NS)
		small_ns = LEAST_NS;
	if (large_ns > MOST * small_ns)
		fail_msg("%d times as large, and %.1f times as long: %.2f ms", TIMES,
			 (double)large_ns / (double)small_ns, (double)large_ns / 1e6);
}

/* ---- attacks ---- */

static void add_symbols(struct deep_stacks *parts, size_t count, unsigned char type, const char *strings,
			size_t strings_len)
{
	Elf64_Sym symbol = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, type), .st_shndx = SECTION_CODE};

	buf_add(&parts->strings, strings, strings_len);
	for (size_t i = 0; i < count; i++) {
		symbol.st_value = CODE_AT + i % STARTS;
		symbol.st_size = 4 + i / STARTS;
		buf_add(&parts->symbols, (const char *)&symbol, sizeof(symbol));
	}
}

/* Functions that no table describes: their code is searched. */
static void make_functions(struct deep_stacks *parts, size_t size)
{
	add_symbols(parts, 4000 * size, STT_FUNC, "\0f", 3);
}

/* Symbols that are not functions, whose names are as long as the file. */
static void make_endless_names(struct deep_stacks *parts, size_t size)
{
	add_symbols(parts, 2000 * size, STT_OBJECT, "\0o", 2);
	fill(&parts->strings, 'o', size << 20);
}

static void make_endless_section_names(struct deep_stacks *parts, size_t size)
{
	fill(&parts->names, 's', size << 20);
	parts->more = 1000 * size;
}

static void add_u32(struct buf *buf, uint32_t number)
{
	buf_add(buf, (const char *)&number, sizeof(number));
}

/* A CIE as long as the table, and many functions that refer to it. */
static void make_frames(struct deep_stacks *parts, size_t size, const char *start, size_t start_len, char rest)
{
	size_t cie_bytes = size << 20;

	add_u32(&parts->frames, (uint32_t)cie_bytes);
	add_u32(&parts->frames, 0);
	buf_add(&parts->frames, start, start_len);
	fill(&parts->frames, rest, cie_bytes - 4 - start_len);
	for (size_t i = 0; i < 4000 * size; i++) {
		add_u32(&parts->frames, 4);
		add_u32(&parts->frames, (uint32_t)parts->frames.len);
	}
}

static void make_endless_augmentation(struct deep_stacks *parts, size_t size)
{
	make_frames(parts, size, "\1", 1, 'z');
}

static void make_endless_number(struct deep_stacks *parts, size_t size)
{
	make_frames(parts, size, "\1", 2, (char)0x80);
}

static void test_functions_without_rows(void **state)
{
	expect_linear(make_functions);
}

static void test_names_without_end(void **state)
{
	expect_linear(make_endless_names);
	expect_linear(make_endless_section_names);
}

static void test_frames_without_end(void **state)
{
	expect_linear(make_endless_augmentation);
	expect_linear(make_endless_number);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions_without_rows),
		cmocka_unit_test(test_names_without_end),
		cmocka_unit_test(test_frames_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
