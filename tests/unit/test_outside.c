/* SPDX-License-Identifier: MIT */
/* Memory of another process, and what its libraries export: here the process is this one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "reader/exports.h"
#include "reader/memory.h"

#define PAGE 4096

/* Returns where a library of this process has its ELF header. */
static uintptr_t base_of(const void *symbol)
{
	Dl_info info;

	assert_int_not_equal(dladdr(symbol, &info), 0);
	return (uintptr_t)info.dli_fbase;
}

static void finds_what_libc_exports(void **state)
{
	static const char *const names[] = {"environ", "stdout", "optarg", "memccpy", "pthread_create"};

	assert_int_equal(memory_open(getpid(), base_of(dlsym(RTLD_DEFAULT, "memccpy"))), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		void *libc = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);

		assert_int_equal(memory_symbol(names[i]), (uintptr_t)dlsym(libc, names[i]));
	}
	assert_int_equal(memory_symbol("gHotSpotVMStructs"), 0);
	assert_int_equal(memory_symbol(""), 0);
}

#define NAMES 40

/* The image of a library with the hash table of the System V ABI only, as with --hash-style=sysv. */
struct old_library {
	Elf64_Ehdr head;
	Elf64_Phdr parts[2];
	Elf64_Dyn dynamic[4];
	Elf64_Sym symbols[NAMES + 1];
	uint32_t buckets, count, bucket[7], next[NAMES + 1];
	char strings[16 * (NAMES + 1)];
};

static uint32_t elf_hash(const char *name)
{
	uint32_t hash = 0, high;

	while (*name) {
		hash = (hash << 4) + (unsigned char)*name++;
		high = hash & 0xf0000000;
		hash ^= high >> 24;
		hash &= ~high;
	}
	return hash;
}

static void add_name(struct old_library *library, uint32_t index)
{
	char *name = library->strings + 16 * index;
	uint32_t *bucket;

	snprintf(name, 16, "gExported%u", index * 7919);
	bucket = &library->bucket[elf_hash(name) % library->buckets];
	library->symbols[index] = (Elf64_Sym){.st_name = 16 * index, .st_value = 64 + index};
	library->next[index] = *bucket;
	*bucket = index;
}

static void make_old_library(struct old_library *library)
{
	*library = (struct old_library){
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64},
			 .e_phoff = offsetof(struct old_library, parts),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 2},
		.parts = {{.p_type = PT_LOAD},
			  {.p_type = PT_DYNAMIC, .p_vaddr = offsetof(struct old_library, dynamic)}},
		.dynamic = {{.d_tag = DT_SYMTAB, .d_un.d_ptr = offsetof(struct old_library, symbols)},
			    {.d_tag = DT_STRTAB, .d_un.d_ptr = offsetof(struct old_library, strings)},
			    {.d_tag = DT_HASH, .d_un.d_ptr = offsetof(struct old_library, buckets)}},
		.buckets = 7,
		.count = NAMES + 1,
	};
	for (uint32_t i = 1; i <= NAMES; i++)
		add_name(library, i);
}

static void finds_by_the_old_hash_table(void **state)
{
	static struct old_library library;
	char name[16];

	make_old_library(&library);
	assert_int_equal(memory_open(getpid(), (uintptr_t)&library), 0);
	for (uint32_t i = 1; i <= NAMES; i++) {
		snprintf(name, sizeof(name), "gExported%u", i * 7919);
		assert_int_equal(memory_symbol(name), (uintptr_t)&library + 64 + i);
	}
	assert_int_equal(memory_symbol("gExported"), 0);
	assert_int_equal(memory_symbol(""), 0);
	for (uint32_t i = 1; i <= NAMES; i++) /* chains without an end */
		library.next[i] = i;
	memory_renew();
	assert_int_equal(memory_symbol("gExported"), 0);
	library.buckets = 0;
	memory_renew();
	assert_int_equal(memory_symbol("gExported7919"), 0);
}

static void is_no_library(void **state)
{
	static unsigned char bytes[2 * PAGE] = "\177ELF\2";

	assert_int_equal(memory_open(getpid(), (uintptr_t)bytes), -ENOEXEC);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(memory_open(getpid(), (uintptr_t)bytes), -ENOEXEC);
	assert_int_equal(memory_open(getpid(), 4096), -ENOEXEC);
}

/* Two pages, after which nothing is mapped. */
static unsigned char *map_pages(void)
{
	unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(munmap(pages + 2 * PAGE, PAGE), 0);
	memset(pages, 'x', 2 * PAGE);
	return pages;
}

/* Memory that is taken is cached, and notes are compared with the memory as it is now. */
static void notes_what_was_taken(void **state)
{
	unsigned char *pages = map_pages(), copy[PAGE];
	uintptr_t at = (uintptr_t)pages;

	memory_forget();
	memory_note_all();
	assert_int_equal(memory_take(copy, at + PAGE - 8, 16), 16); /* across two pages */
	memory_note(at + PAGE - 8, copy, 16);
	pages[0] = 'y';
	assert_true(memory_is_as_noted()); /* that byte was not noted */
	assert_int_equal(memory_take(copy, at, 1), 1);
	assert_int_equal(copy[0], 'x');
	memory_forget();
	assert_int_equal(memory_take(copy, at, 1), 1);
	assert_int_equal(copy[0], 'y');

	memory_note_all();
	memory_note(at + PAGE, "x", 1);
	memory_note(at, "y", 1);
	pages[PAGE] = 'z';
	assert_false(memory_is_as_noted());
	assert_int_equal(memory_take(copy, at + PAGE, 1), 1);
	assert_int_equal(copy[0], 'z'); /* the page that had changed was dropped */
	memory_note_all();
	memory_note(at + 2 * PAGE, "x", 1); /* not mapped */
	assert_false(memory_is_as_noted());
	assert_int_equal(memory_take(copy, at + 2 * PAGE - 5, 16), 5);
	munmap(pages, 2 * PAGE);
}

static void reads_up_to_what_is_mapped(void **state)
{
	unsigned char *pages = map_pages(), copy[2 * PAGE];
	const uint64_t word = 0x1122334455667788;
	uintptr_t at = (uintptr_t)pages;
	char text[16];

	memcpy(pages + PAGE - 3, &word, sizeof(word));
	memory_renew();
	assert_true(memory_word(at + PAGE - 3) == word); /* across two pages */
	assert_int_equal(memory_half(at + PAGE - 3), 0x7788);
	assert_int_equal(memory_word(at + 2 * PAGE - 4), 0);
	assert_int_equal(memory_byte(at + 2 * PAGE), 0);
	assert_int_equal(memory_copy(copy, at + PAGE, sizeof(copy)), PAGE);
	assert_int_equal(memory_copy(copy, UINTPTR_MAX - 8, 64), 0);
	memory_text(text, at + 2 * PAGE - 5, sizeof(text));
	assert_string_equal(text, "xxxxx");
	memory_text(text, at, sizeof(text));
	assert_string_equal(text, "xxxxxxxxxxxxxxx");
	memory_text(text, 0, sizeof(text));
	assert_string_equal(text, "");
	munmap(pages, 2 * PAGE);
}

static void keeps_pages_until_renewed(void **state)
{
	unsigned char *pages = map_pages();
	uintptr_t at = (uintptr_t)pages;

	memory_renew();
	assert_int_equal(memory_byte(at), 'x');
	pages[0] = 'y';
	assert_int_equal(memory_byte(at), 'x');
	memory_renew();
	assert_int_equal(memory_byte(at), 'y');
	munmap(pages, 2 * PAGE);
	memory_renew();
	assert_int_equal(memory_byte(at), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_what_libc_exports),
		cmocka_unit_test(finds_by_the_old_hash_table),
		cmocka_unit_test(is_no_library),
		cmocka_unit_test(notes_what_was_taken),
		cmocka_unit_test(reads_up_to_what_is_mapped),
		cmocka_unit_test(keeps_pages_until_renewed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
