/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "proc/maps.h"
#include "sym/debug_file.h"
#include "sym/elf_file.h"

#define SELF_MAX_BYTES (64 << 20)

void _ZN4duet4test4nameEv(void);
__attribute__((noinline)) void _ZN4duet4test4nameEv(void)
{
	__asm__ volatile("");
}

/* One function with many names, and one whose own name only old programs use. */
void usual(void);
__attribute__((noinline)) void usual(void)
{
	__asm__ volatile("nop");
}

#define ALIAS(kind, name, of) kind void name(void) __attribute__((alias(#of), used))

ALIAS(extern __attribute__((weak)), abc, usual);
ALIAS(extern, __usual, usual);
ALIAS(static, aaa, usual);
ALIAS(static, usual_alias_2, usual);
ALIAS(static, __GI_usual, usual);

void _replaced(void);
__attribute__((noinline)) void _replaced(void)
{
	__asm__ volatile("nop; nop");
}

ALIAS(extern, replaced, _replaced);

static char folder[] = "/tmp/duet-elf-XXXXXX";

static int enter_folder(void **state)
{
	return mkdtemp(folder) && chdir(folder) == 0 ? 0 : -1;
}

static int leave_folder(void **state)
{
	return chdir("/") == 0 && rmdir(folder) == 0 ? 0 : -1;
}

static struct elf_file read_file(const char *path)
{
	struct elf_file file;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_read(&file, fd), 0);
	close(fd);
	return file;
}

/* Returns the address in `file`, a copy of this program, of an address of this process. */
static uint64_t vaddr_of(const struct elf_file *file, const void *code)
{
	struct maps maps = {0};
	const struct mapping *mapping;
	uint64_t vaddr = 0;

	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	mapping = maps_find(&maps, (uintptr_t)code);
	assert_non_null(mapping);
	assert_true(elf_segments_vaddr(&file->segments, (uintptr_t)code - mapping->start + mapping->offset, &vaddr));
	maps_release(&maps);
	return vaddr;
}

static const char *name_of(const struct elf_file *file, const void *code)
{
	return symbol_table_find(&file->symbols, vaddr_of(file, code), NULL);
}

/* `path`: from the folder. */
static void apply_debug(struct elf_file *file, const char *path)
{
	struct target_file target;
	char whole[64];

	snprintf(whole, sizeof(whole), "%s/%s", folder, path);
	assert_int_equal(target_file_find(&target, CHARGE_OWN(getpid()), getpid(), whole), 0);
	debug_file_apply(file, CHARGE_OWN(getpid()), &target, whole);
	target_file_release(&target);
}

static void read_damaged(const char *bytes, size_t len)
{
	int fd = memfd_create("damaged", 0);
	struct elf_file file;

	assert_int_equal(io_write_all(fd, bytes, len), 0);
	if (!elf_file_read(&file, fd)) {
		symbol_table_find(&file.symbols, (uintptr_t)bytes, NULL);
		elf_file_function_start(&file, (uintptr_t)bytes);
		elf_file_release(&file);
	}
	close(fd);
}

static bool have_objcopy(void)
{
	return system("objcopy --version >/dev/null 2>&1") == 0;
}

/* stripped, and app.debug that belongs to it */
static void make_stripped(const char *link_option)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "objcopy --only-keep-debug /proc/%d/exe app.debug && "
		 "objcopy --strip-all %s /proc/%d/exe app",
		 getpid(), link_option, getpid());
	assert_int_equal(system(command), 0);
}

static void remove_stripped(void)
{
	unlink("app");
	unlink("app.debug");
}

static void test_own_functions(void **state)
{
	struct elf_file file = read_file("/proc/self/exe");
	uint64_t vaddr;

	assert_true(file.has_symtab);
	assert_string_equal(name_of(&file, (char *)_ZN4duet4test4nameEv), "_ZN4duet4test4nameEv");
	assert_string_equal(name_of(&file, (char *)test_own_functions + 4), "test_own_functions");
	assert_string_equal(name_of(&file, (char *)enter_folder), "enter_folder");
	assert_null(symbol_table_find(&file.symbols, 0, NULL));
	assert_null(symbol_table_find(&file.symbols, UINT64_MAX, NULL));
	assert_false(elf_segments_vaddr(&file.segments, UINT64_MAX, &vaddr));
	elf_file_release(&file);
	elf_file_release(NULL);
}

static void test_stripped_has_no_local_names(void **state)
{
	struct elf_file file;

	if (!have_objcopy())
		skip();
	make_stripped("");
	file = read_file("app");
	assert_false(file.has_symtab);
	assert_null(name_of(&file, (char *)enter_folder));
	apply_debug(&file, "app");
	assert_null(name_of(&file, (char *)enter_folder));
	elf_file_release(&file);
	remove_stripped();
}

static void test_stripped_knows_where_functions_start(void **state)
{
	struct elf_file file;
	uint64_t own, other;

	if (!have_objcopy())
		skip();
	make_stripped("");
	file = read_file("app");
	own = vaddr_of(&file, (char *)enter_folder);
	other = vaddr_of(&file, (char *)vaddr_of);
	assert_int_equal(elf_file_function_start(&file, own), own);
	assert_int_equal(elf_file_function_start(&file, own + 1), own);
	assert_int_equal(elf_file_function_start(&file, own + 9), own);
	assert_int_equal(elf_file_function_start(&file, other + 9), other);
	assert_int_equal(elf_file_function_start(&file, 1), 1); /* before all code */
	assert_int_equal(elf_file_function_start(&file, UINT64_MAX), UINT64_MAX); /* in no segment */
	elf_file_release(&file);
	remove_stripped();
}

static void test_versions_are_no_names(void **state)
{
	char command[256];
	struct elf_file file;

	if (!have_objcopy())
		skip();
	snprintf(command, sizeof(command),
		 "objcopy --redefine-sym enter_folder=enter_folder@@DUET_1.0 "
		 "--redefine-sym leave_folder=leave_folder@DUET_0.9 /proc/%d/exe app", getpid());
	assert_int_equal(system(command), 0);
	file = read_file("app");
	assert_string_equal(name_of(&file, (char *)enter_folder), "enter_folder");
	assert_string_equal(name_of(&file, (char *)leave_folder), "leave_folder");
	elf_file_release(&file);
	remove_stripped();
}

static void test_usual_name(void **state)
{
	char command[256];
	struct elf_file file;

	file = read_file("/proc/self/exe");
	assert_string_equal(name_of(&file, (char *)usual), "usual");
	assert_string_equal(name_of(&file, (char *)_replaced), "replaced");
	elf_file_release(&file);
	if (!have_objcopy())
		skip();
	snprintf(command, sizeof(command), "objcopy --redefine-sym replaced=replaced@DUET_0.9 /proc/%d/exe app",
		 getpid());
	assert_int_equal(system(command), 0);
	file = read_file("app");
	assert_string_equal(name_of(&file, (char *)_replaced), "_replaced");
	elf_file_release(&file);
	remove_stripped();
}

/* Assembly without unwind information, after a function of known size. */
static void test_no_name_behind_the_end(void **state)
{
	int32_t start = 0x100;
	uint32_t size = 0x40;
	struct elf_file file = {.function_starts = {0x1000, &start, &size, 1}};

	assert_int_equal(elf_file_function_start(&file, 0x113f), 0x1100);
	assert_int_equal(elf_file_function_start(&file, 0x1140), 0x1140);
}

/* The program header may point anywhere. */
static void test_damaged_eh_frame_segment(void **state)
{
	uint64_t values[] = {0, 1, 12, 4096, INT64_MAX, UINT64_MAX - 11, UINT64_MAX};
	Elf64_Ehdr *header;
	Elf64_Phdr *phdr, saved;
	struct buf self;

	buf_init(&self);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/exe", SELF_MAX_BYTES, &self), 0);
	header = (Elf64_Ehdr *)self.data;
	phdr = (Elf64_Phdr *)(self.data + header->e_phoff);
	while (phdr->p_type != PT_GNU_EH_FRAME)
		phdr++;
	saved = *phdr;
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		uint64_t *fields[] = {&phdr->p_offset, &phdr->p_vaddr, &phdr->p_filesz};

		for (size_t j = 0; j < sizeof(fields) / sizeof(*fields); j++) {
			*fields[j] = values[i];
			read_damaged(self.data, self.len);
			*phdr = saved;
		}
	}
	buf_release(&self);
}

static void apply_debug_file(const char *link_option, bool expected)
{
	struct elf_file file;

	make_stripped(link_option);
	file = read_file("app");
	assert_string_equal(file.identity.debuglink, "app.debug");
	apply_debug(&file, "app");
	assert_int_equal(file.has_symtab, expected);
	if (expected)
		assert_string_equal(name_of(&file, (char *)enter_folder), "enter_folder");
	elf_file_release(&file);
	remove_stripped();
}

static void test_debuglink(void **state)
{
	if (!have_objcopy())
		skip();
	apply_debug_file("--add-gnu-debuglink=app.debug", true);
	apply_debug_file("--add-gnu-debuglink=app.debug --remove-section=.note.gnu.build-id", true);
}

/* Without a build id, only the checksum shows that the debug file is of another build. */
static void test_debuglink_of_another_build(void **state)
{
	struct elf_file file;
	int fd;

	if (!have_objcopy())
		skip();
	make_stripped("--add-gnu-debuglink=app.debug --remove-section=.note.gnu.build-id");
	fd = open("app.debug", O_WRONLY | O_APPEND);
	assert_int_equal(write(fd, "x", 1), 1);
	close(fd);
	file = read_file("app");
	apply_debug(&file, "app");
	assert_false(file.has_symtab);
	elf_file_release(&file);
	remove_stripped();
}

/* Computing a checksum of it would take as long as its owner wants. */
static void test_debuglink_to_a_large_file(void **state)
{
	struct elf_file file;

	if (!have_objcopy())
		skip();
	make_stripped("--add-gnu-debuglink=app.debug --remove-section=.note.gnu.build-id");
	assert_int_equal(truncate("app.debug", 1ll << 40), 0);
	file = read_file("app");
	apply_debug(&file, "app");
	assert_false(file.has_symtab);
	elf_file_release(&file);
	remove_stripped();
}

/* Returns the address of the function's entry that the disassembler, which works in another way, reports. */
static uint64_t entry_by_objdump(const char *prefix, const char *options, const char *entry)
{
	char command[256];
	unsigned long vaddr = 0;
	FILE *pipe;

	snprintf(command, sizeof(command), "%sobjdump -d %s | sed -n 's/^\\([0-9a-f]*\\) <%s>:.*/\\1/p'", prefix,
		 options, entry);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	if (fscanf(pipe, "%lx", &vaddr) != 1)
		vaddr = 0;
	pclose(pipe);
	return vaddr;
}

static void test_linkage_table(void **state)
{
	struct elf_file file;
	uint64_t vaddr;
	char path[64];

	if (!have_objcopy())
		skip();
	snprintf(path, sizeof(path), "/proc/%d/exe", getpid());
	vaddr = entry_by_objdump("", path, "mkdtemp@plt");
	assert_int_not_equal(vaddr, 0);
	file = read_file(path);
	assert_string_equal(elf_file_name(&file, vaddr, NULL), "mkdtemp@plt");
	assert_string_equal(elf_file_name(&file, vaddr + 15, NULL), "mkdtemp@plt");
	assert_string_not_equal(elf_file_name(&file, vaddr + 16, NULL), "mkdtemp@plt");
	assert_null(symbol_table_find(&file.symbols, vaddr, NULL));
	elf_file_release(&file);
}

/* Compiled and linked in several ways, each of which has produced another layout once. */
static void linkage_table_of(const char *prefix, const char *options)
{
	char command[512];
	struct elf_file file;
	uint64_t vaddr;

	snprintf(command, sizeof(command),
		 "echo 'int _Z5outerv(void); void *p(void) { return (void *)_Z5outerv; } "
		 "int inner(void) { return _Z5outerv() + 1; }' >a.c && "
		 "%sgcc -O1 -fPIC -shared -nostdlib %s -o a.so a.c", prefix, options);
	assert_int_equal(system(command), 0);
	file = read_file("a.so");
	vaddr = entry_by_objdump(prefix, "a.so", "_Z5outerv@plt");
	assert_int_not_equal(vaddr, 0);
	assert_string_equal(elf_file_name(&file, vaddr, NULL), "_Z5outerv@plt");
	assert_string_equal(elf_file_name(&file, vaddr + 7, NULL), "_Z5outerv@plt");
	elf_file_release(&file);
	unlink("a.c");
	unlink("a.so");
}

static void test_linkage_tables_of_all_kinds(void **state)
{
	static const char *const x86[] = {"-Wl,-z,lazy", "-Wl,-z,now", "-s", "-fcf-protection -Wl,-z,ibtplt,-z,lazy",
					  "-fcf-protection -Wl,-z,ibtplt,-z,now"};
	static const char *const arm64[] = {"-Wl,-z,lazy", "-mbranch-protection=bti", "-mbranch-protection=standard"};
	bool done = false;

	for (size_t i = 0; !system("x86_64-linux-gnu-gcc --version >/dev/null 2>&1") && i < 5; i++, done = true)
		linkage_table_of("x86_64-linux-gnu-", x86[i]);
	for (size_t i = 0; !system("aarch64-linux-gnu-gcc --version >/dev/null 2>&1") && i < 3; i++, done = true)
		linkage_table_of("aarch64-linux-gnu-", arm64[i]);
	if (!done)
		skip();
}

/* Also entries that only push a number. */
static void test_lazy_entries_that_push(void **state)
{
#ifdef __x86_64__
	struct elf_file file;
	uint64_t vaddr;

	if (!have_objcopy() || system("echo 'int o(void); int i(void) { return o(); }' >a.c && "
				      "cc -fPIC -shared -fcf-protection -nostdlib -Wl,-z,ibtplt,-z,lazy -o a.so a.c"))
		skip();
	file = read_file("a.so");
	vaddr = entry_by_objdump("", "-j .plt.sec a.so", "o@plt");
	assert_string_equal(elf_file_name(&file, vaddr, NULL), "o@plt");
	assert_int_equal(file.stubs.rows.len, 2);
	assert_true(file.stubs.rows.items[0].start < vaddr - 15);
	assert_string_equal(elf_file_name(&file, file.stubs.rows.items[0].start, NULL), "o@plt");
	elf_file_release(&file);
	unlink("a.c");
	unlink("a.so");
#endif
}

/* app, stripped, with the bytes that a shell command writes as .gnu_debugdata */
static struct elf_file with_mini_debug(const char *make_bytes)
{
	char command[1024];
	struct elf_file file;
	int fd;

	if (!have_objcopy() || system("xz --version >/dev/null 2>&1"))
		skip();
	snprintf(command, sizeof(command),
		 "cp /proc/%d/exe full && objcopy --only-keep-debug full debug && "
		 "objcopy -S --keep-symbol=enter_folder debug mini && (%s) >mini.xz && "
		 "objcopy --strip-all --add-section .gnu_debugdata=mini.xz full app; rm full debug mini mini.xz",
		 getpid(), make_bytes);
	assert_int_equal(system(command), 0);
	file = read_file("app");
	assert_null(elf_file_name(&file, vaddr_of(&file, (char *)enter_folder), NULL));
	fd = open("app", O_RDONLY);
	mini_debug_apply(&file, fd);
	close(fd);
	unlink("app");
	return file;
}

static void test_mini_debug(void **state)
{
	struct elf_file file = with_mini_debug("xz -9 <mini");
	size_t exported = 0;

	assert_true(file.has_symtab);
	assert_string_equal(name_of(&file, (char *)enter_folder), "enter_folder");
	assert_null(name_of(&file, (char *)leave_folder)); /* the mini file has none else */
	for (size_t i = 0; i < file.stubs.rows.len; i++)
		exported += strstr(file.stubs.text.data + file.stubs.rows.items[i].name, "@plt") != NULL;
	assert_true(exported > 0);
	elf_file_release(&file);
}

/* Refused: bombs, truncated data, data that is not an ELF file, and data that needs too much memory. */
static void test_mini_debug_refused(void **state)
{
	static const char *const commands[] = {
		"head -c 100000000 /dev/zero | xz", "xz <mini | head -c 200", "echo text | xz", "echo text",
		"xz --lzma2=dict=512MiB <mini",
	};

	for (size_t i = 0; i < sizeof(commands) / sizeof(*commands); i++) {
		struct elf_file file = with_mini_debug(commands[i]);

		assert_false(file.has_symtab);
		assert_null(name_of(&file, (char *)enter_folder));
		elf_file_release(&file);
	}
}

/* What a parser hands over is as it was; what no parser makes is refused. */
static void test_symbols_cross_as_bytes(void **state)
{
	struct elf_file file = read_file("/proc/self/exe"), other;
	struct symbol_row *row = &file.symbols.rows.items[file.symbols.rows.len / 2];
	BUF(bytes);

	elf_file_pack(&bytes, &file);
	assert_int_equal(elf_file_unpack(&other, &bytes), 0);
	assert_string_equal(name_of(&other, (char *)enter_folder), "enter_folder");
	assert_int_equal(other.function_starts.count, file.function_starts.count);
	assert_int_equal(other.has_symtab, file.has_symtab);
	assert_memory_equal(&other.identity, &file.identity, sizeof(file.identity));
	elf_file_release(&other);
	for (size_t len = 0; len < bytes.len; len += 1 + len / 8) {
		struct buf cut = {.data = bytes.data, .len = len};

		assert_int_equal(elf_file_unpack(&other, &cut), -EBADMSG);
	}
	row->name = (uint32_t)file.symbols.text.len;
	buf_clear(&bytes);
	elf_file_pack(&bytes, &file);
	assert_int_equal(elf_file_unpack(&other, &bytes), -EBADMSG);
	row->name = 0;
	memset(file.identity.debuglink, 'a', sizeof(file.identity.debuglink));
	buf_clear(&bytes);
	elf_file_pack(&bytes, &file);
	assert_int_equal(elf_file_unpack(&other, &bytes), -EBADMSG);
	elf_file_release(&file);
}

static void test_no_elf_file(void **state)
{
	struct elf_file file;
	int fd = open("/dev/zero", O_RDONLY);

	assert_int_equal(elf_file_read(&file, fd), -EINVAL);
	close(fd);
	fd = memfd_create("empty", 0);
	assert_int_equal(elf_file_read(&file, fd), -ENOEXEC);
	assert_int_equal(io_write_all(fd, "#!/bin/sh\n", 10), 0);
	assert_int_equal(ftruncate(fd, 1 << 20), 0);
	assert_int_equal(elf_file_read(&file, fd), -ENOEXEC);
	close(fd);
}

/* libc's own vdso: a whole ELF file of two pages, cheap to damage in many ways. */
static void test_damaged_files(void **state)
{
	struct maps maps = {0};
	const struct mapping *vdso = NULL;
	size_t len;
	char *bytes;

	assert_int_equal(maps_read(&maps, CHARGE_OWN(getpid())), 0);
	for (size_t i = 0; i < maps.list.len; i++)
		if (!strcmp(maps.list.items[i].path, "[vdso]"))
			vdso = &maps.list.items[i];
	assert_non_null(vdso);
	len = vdso->end - vdso->start;
	bytes = malloc(len);
	srand(1);
	for (int i = 0; i < 4000; i++) {
		memcpy(bytes, (void *)(uintptr_t)vdso->start, len);
		for (int flips = rand() % 8; flips >= 0; flips--)
			bytes[(size_t)rand() % (flips % 2 ? len : 512)] = (char)rand();
		read_damaged(bytes, len);
	}
	for (size_t cut = 0; cut < len; cut += 7)
		read_damaged((char *)(uintptr_t)vdso->start, cut);
	free(bytes);
	maps_release(&maps);
}

/* The same with section headers and a large .symtab; the damage hits sizes and offsets. */
static void test_damaged_sections(void **state)
{
	Elf64_Ehdr *header;
	struct buf self;

	buf_init(&self);
	assert_int_equal(io_read_file(AT_FDCWD, "/proc/self/exe", SELF_MAX_BYTES, &self), 0);
	header = (Elf64_Ehdr *)self.data;
	srand(2);
	for (int i = 0; i < 200; i++) {
		Elf64_Shdr *section = (Elf64_Shdr *)(self.data + header->e_shoff) + rand() % header->e_shnum;
		Elf64_Shdr saved = *section;

		((char *)section)[(size_t)rand() % sizeof(*section)] = (char)rand();
		read_damaged(self.data, self.len);
		section->sh_size = (uint64_t)rand() << (rand() % 40);
		read_damaged(self.data, self.len);
		*section = saved;
	}
	header->e_shnum = 0;
	read_damaged(self.data, self.len);
	buf_release(&self);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_functions),
		cmocka_unit_test(test_stripped_has_no_local_names),
		cmocka_unit_test(test_stripped_knows_where_functions_start),
		cmocka_unit_test(test_versions_are_no_names),
		cmocka_unit_test(test_usual_name),
		cmocka_unit_test(test_no_name_behind_the_end),
		cmocka_unit_test(test_damaged_eh_frame_segment),
		cmocka_unit_test(test_debuglink),
		cmocka_unit_test(test_debuglink_of_another_build),
		cmocka_unit_test(test_debuglink_to_a_large_file),
		cmocka_unit_test(test_linkage_table),
		cmocka_unit_test(test_linkage_tables_of_all_kinds),
		cmocka_unit_test(test_lazy_entries_that_push),
		cmocka_unit_test(test_symbols_cross_as_bytes),
		cmocka_unit_test(test_mini_debug),
		cmocka_unit_test(test_mini_debug_refused),
		cmocka_unit_test(test_no_elf_file),
		cmocka_unit_test(test_damaged_files),
		cmocka_unit_test(test_damaged_sections),
	};

	return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
