/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "sym/debug_file.h"
#include "sym/elf_file.h"
#include "proc/room.h"
#include "sym/symbols.h"

void _ZN4duet7mangledEv(void);
__attribute__((noinline)) void _ZN4duet7mangledEv(void)
{
	__asm__ volatile("");
}

static struct process_table table;
static struct symbols *symbols;

static int setup(void **state)
{
	process_table_init(&table);
	symbols = symbols_new();
	return !symbols;
}

static int teardown(void **state)
{
	symbols_free(symbols);
	symbols_free(NULL);
	process_table_release(&table);
	return 0;
}

static struct symbol lookup(pid_t pid, const void *code, bool is_return)
{
	struct symbol symbol = {0};

	symbols_user(symbols, process_get(&table, pid, 0), (uintptr_t)code, is_return, &symbol);
	assert_true(symbol.name && symbol.name[0]);
	assert_non_null(symbol.module);
	return symbol;
}

static void test_own_and_libc(void **state)
{
	struct symbol symbol = lookup(getpid(), (char *)setup, false);

	assert_string_equal(symbol.name, "setup");
	assert_string_equal(symbol.module, "test_symbols");
	assert_string_equal(lookup(getpid(), (char *)_ZN4duet7mangledEv, false).name, "duet::mangled");
	assert_string_not_equal(lookup(getpid(), (char *)setup, true).name, "setup"); /* the call is before it */
	symbol = lookup(getpid(), (char *)getsubopt, false);
	assert_string_equal(symbol.module, "libc.so.6");
	assert_string_equal(symbol.name, "getsubopt");
	assert_ptr_equal(lookup(getpid(), (char *)setup, false).name, lookup(getpid(), (char *)setup + 1, false).name);
}

static void test_vdso(void **state)
{
	const struct maps *maps = &process_get(&table, getpid(), 0)->maps;
	bool found = false;

	for (size_t i = 0; i < maps->list.len; i++) {
		const struct mapping *vdso = &maps->list.items[i];

		for (uint64_t at = vdso->start; !strcmp(vdso->path, "[vdso]") && at < vdso->end; at += 16) {
			struct symbol symbol = lookup(getpid(), (void *)(uintptr_t)at, false);

			assert_string_equal(symbol.module, "[vdso]");
			found |= strstr(symbol.name, "clock_gettime") != NULL;
		}
	}
	assert_true(found);
}

static void test_unknown_says_what_is_known(void **state)
{
	char expected[64];
	void *code;

	assert_string_equal(lookup(getpid(), (void *)0x10, false).name, "[unmapped]+0x10");
	assert_string_equal(lookup(getpid(), NULL, true).name, "[unmapped]+0x0");
	process_get(&table, getpid(), 0)->maps_ns = 0;
	code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	snprintf(expected, sizeof(expected), "[anon]+0x%x", 0x123);
	assert_string_equal(lookup(getpid(), (char *)code + 0x123, false).name, expected);
	munmap(code, 4096);
}

static void test_perf_map(void **state)
{
	char path[64];
	FILE *file;
	void *code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", getpid());
	file = fopen(path, "w");
	fprintf(file, "%lx 100 LazyCompile:fib app.js:1\n", (unsigned long)code);
	fclose(file);
	assert_string_equal(lookup(getpid(), (char *)code + 0x20, false).name, "LazyCompile:fib app.js:1");
	unlink(path);
	munmap(code, 4096);
}

/* Runs a copy of this program that the shell makes from $2 to $1. Where its mangled() is. */
static pid_t start_copy(const char *make_copy, char **ret_code, char *ret_path, size_t path_bytes)
{
	char command[256], line[64] = "";
	int out[2];
	pid_t pid;

	snprintf(ret_path, path_bytes, "/tmp/duet-copy-%d", getpid());
	snprintf(command, sizeof(command), "sh -c '%s' - %s /proc/%d/exe", make_copy, ret_path, getpid());
	assert_int_equal(system(command), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		execl(ret_path, ret_path, "wait", NULL);
		_exit(1);
	}
	assert_true(read(out[0], line, sizeof(line) - 1) > 0);
	*ret_code = (char *)strtoul(line, NULL, 16);
	close(out[0]);
	close(out[1]);
	return pid;
}

/* As after a package upgrade: the file is deleted while it runs. */
static void test_deleted_binary(void **state)
{
	struct symbol symbol;
	char path[64], *code;
	pid_t pid;

	if (geteuid())
		skip(); /* only map_files leads to a deleted file */
	pid = start_copy("cp $2 $1", &code, path, sizeof(path));
	unlink(path);
	symbol = lookup(pid, code, false);
	assert_string_equal(symbol.name, "duet::mangled");
	assert_string_equal(symbol.module, strrchr(path, '/') + 1);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* All samples of a function without a name are one frame, whatever their pc. */
static void test_stripped_binary(void **state)
{
	char path[64], *code;
	const char *name;
	pid_t pid;

	if (system("strip --version >/dev/null 2>&1"))
		skip();
	pid = start_copy("strip -o $1 $2", &code, path, sizeof(path));
	name = lookup(pid, code, false).name;
	unlink(path);
	assert_memory_equal(name, strrchr(path, '/') + 1, strlen(strrchr(path, '/') + 1));
	assert_ptr_equal(lookup(pid, code + 1, true).name, name);
	code += (char *)setup - (char *)_ZN4duet7mangledEv;
	assert_string_not_equal(lookup(pid, code, false).name, name);
	assert_ptr_equal(lookup(pid, code, false).name, lookup(pid, code + 8, false).name);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void *volatile returned_to;

__attribute__((noinline)) static void on_signal(int signo)
{
	returned_to = __builtin_return_address(0);
}

/* The C library's trampoline has no symbol in its stripped file; the kernel's, on arm64, has one. */
static void test_signal_trampoline(void **state)
{
	const char *name;

	signal(SIGUSR1, on_signal);
	raise(SIGUSR1);
	name = lookup(getpid(), returned_to, true).name;
	assert_string_equal(name, strstr(name, "kernel") ? "__kernel_rt_sigreturn" : "__restore_rt");
	assert_string_equal(lookup(getpid(), returned_to, false).name, name);
}

/* Returns the fewest leading underscores among the exported names of the address. */
static size_t fewest_underscores(const struct buf *exported, const char *address)
{
	size_t fewest = SIZE_MAX;

	for (const char *at = exported->data; (at = strstr(at, address)); at += strlen(address)) {
		size_t underscores = strspn(at + strlen(address) + strlen(" T "), "_");

		if (underscores < fewest)
			fewest = underscores;
	}
	return fewest;
}

/* Checks a line of nm: each name that programs can link with is the name of its address, or an equally good one is. */
static void check_exported(const struct elf_file *file, const struct buf *exported, const char *line)
{
	char address[32], wanted[64];
	const char *name = elf_file_name(file, strtoull(line, NULL, 16), NULL);

	snprintf(address, sizeof(address), "\n%.16s", line);
	snprintf(wanted, sizeof(wanted), "%s", name ? name : "none");
	for (const char *at = exported->data; (at = strstr(at, address)); at++) {
		const char *other = at + strlen(address) + strlen(" T ");
		size_t len = strcspn(other, "@\n");

		if (len == strlen(wanted) && !memcmp(other, wanted, len)) {
			assert_int_equal(strspn(wanted, "_"), fewest_underscores(exported, address));
			return;
		}
	}
	fail_msg("%s: %s is no name that is exported", address + 1, wanted);
}

static const char *libc_path(struct maps *maps)
{
	assert_int_equal(maps_read(maps, CHARGE_OWN(getpid())), 0);
	return maps_find(maps, (uintptr_t)getsubopt)->path;
}

/* Lines of nm's, each after a newline; nothing without nm. */
static void read_exported(struct buf *exported, const char *path)
{
	char command[512], part[4096];
	FILE *nm;
	size_t len;

	snprintf(command, sizeof(command), "nm -D --defined-only %s 2>/dev/null | grep ' [TW] ' | sed '1{x;p;x}'",
		 path);
	nm = popen(command, "r");
	while (nm && (len = fread(part, 1, sizeof(part), nm)))
		buf_add(exported, part, len);
	if (nm)
		pclose(nm);
}

/* Compares with nm -D, whether or not this machine has the library's debug file. */
static void test_names_of_libc(void **state)
{
	struct maps maps = {0};
	const char *path = libc_path(&maps);
	int fd = open(path, O_RDONLY | O_CLOEXEC), lines = 0;
	struct target_file target;
	struct elf_file file;
	struct buf exported;

	buf_init(&exported);
	read_exported(&exported, path);
	if (!exported.len)
		skip();
	assert_int_equal(elf_file_read(&file, fd), 0);
	close(fd);
	assert_int_equal(target_file_find(&target, CHARGE_OWN(getpid()), getpid(), path), 0);
	debug_file_apply(&file, CHARGE_OWN(getpid()), &target, path);
	target_file_release(&target);
	for (const char *at = exported.data; (at = strchr(at, '\n')) && at[1]; at++, lines++)
		check_exported(&file, &exported, at + 1);
	assert_true(lines > 500);
	elf_file_release(&file);
	buf_release(&exported);
	maps_release(&maps);
}

/* A file that was not needed for a while is read again when it is. Names stay the same. */
static void test_trim(void **state)
{
	char *libc = (char *)getsubopt;
	char before[128];

	snprintf(before, sizeof(before), "%s", lookup(getpid(), libc, false).name);
	assert_string_equal(lookup(getpid(), (char *)_ZN4duet7mangledEv, false).name, "duet::mangled");
	for (int i = 0; i < 5; i++) {
		symbols_trim(symbols);
		if (i % 2)
			assert_string_equal(lookup(getpid(), libc, false).name, before);
	}
	assert_string_equal(lookup(getpid(), (char *)_ZN4duet7mangledEv, false).name, "duet::mangled");
	symbols_forget_process(symbols, process_get(&table, getpid(), 0));
	symbols_forget_process(symbols, process_get(&table, getpid(), 0));
	assert_string_equal(lookup(getpid(), libc, false).name, before);
}

/* A user who has his share gives up his own files for new ones, and nobody else's. */
static void test_users_have_shares(void **state)
{
	const struct payer attacker = {1, 1}, honest = {2, 2};
	struct process *self = process_get(&table, getpid(), 0);
	size_t first, others;

	room_open(true);
	self->payer = attacker;
	assert_string_equal(lookup(getpid(), (char *)setup, false).name, "setup");
	first = room_held(ROOM_SYMBOLS, &attacker);
	self->payer = honest;
	assert_string_equal(lookup(getpid(), (char *)getsubopt, false).name, "getsubopt");
	others = room_held(ROOM_SYMBOLS, &honest);
	assert_true(first && others);
	room_set_size(ROOM_SYMBOLS, first + others);
	self->payer = attacker;
	assert_string_equal(lookup(getpid(), (char *)_cmocka_run_group_tests, false).name, "_cmocka_run_group_tests");
	assert_in_range(room_held(ROOM_SYMBOLS, &attacker), 1, first - 1);
	assert_int_equal(room_held(ROOM_SYMBOLS, &honest), others);
	assert_string_equal(lookup(getpid(), (char *)setup, false).name, "setup");
	assert_string_equal(lookup(getpid(), (char *)getsubopt, false).name, "getsubopt");
	assert_int_equal(room_held(ROOM_SYMBOLS, &honest), others);
	room_open(false);
}

static void test_kernel(void **state)
{
	struct symbol symbol = {0};

	symbols_kernel(symbols, 0x10, false, &symbol);
	assert_string_equal(symbol.name, "[kernel]+0x10");
	assert_string_equal(symbol.module, "kernel");
}

static void test_lookup_is_cheap(void **state)
{
	uint64_t start = clock_monotonic_ns();
	struct process *self = process_get(&table, getpid(), 0);
	struct symbol symbol;

	for (int i = 0; i < 100000; i++)
		symbols_user(symbols, self, (uintptr_t)getsubopt + (unsigned int)i % 16, false, &symbol);
	print_message("%.0f ns a lookup\n", (double)(clock_monotonic_ns() - start) / 100000);
	assert_true(clock_monotonic_ns() - start < 5 * NS_PER_SEC);
}

#define symbols_test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		symbols_test(test_own_and_libc),
		symbols_test(test_vdso),
		symbols_test(test_names_of_libc),
		symbols_test(test_signal_trampoline),
		symbols_test(test_trim),
		symbols_test(test_users_have_shares),
		symbols_test(test_unknown_says_what_is_known),
		symbols_test(test_perf_map),	 symbols_test(test_deleted_binary), symbols_test(test_stripped_binary),
		symbols_test(test_kernel),	 symbols_test(test_lookup_is_cheap),
	};

	if (argc > 1 && !strcmp(argv[1], "wait")) {
		printf("%lx\n", (unsigned long)_ZN4duet7mangledEv);
		fflush(stdout);
		pause();
		return 1;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
