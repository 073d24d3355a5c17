/* SPDX-License-Identifier: MIT */
/* Programs of other kinds than duet. A 32-bit one is made up, and runs where the kernel allows it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "proc/process.c"

static Elf64_Ehdr header(unsigned char class, uint16_t machine)
{
	Elf64_Ehdr head = {.e_ident = {0x7f, 'E', 'L', 'F', class}, .e_machine = machine};

	return head;
}

static void by_the_header(void **state)
{
	Elf64_Ehdr ours = header(ELFCLASS64, MACHINE_ELF), narrow = header(ELFCLASS32, EM_386);
	Elf64_Ehdr x32 = header(ELFCLASS32, EM_X86_64), other = header(ELFCLASS64, EM_S390);
	Elf64_Ehdr script = {.e_ident = {'#', '!'}};

	assert_null(judge(&ours));
	assert_null(judge(&script));
	assert_non_null(strstr(judge(&narrow), "32-bit"));
	assert_non_null(strstr(judge(&x32), "32-bit"));
	assert_non_null(strstr(judge(&other), "another processor"));
}

/* An i386 program that calls pause(). */
static int make_program(void)
{
	static const unsigned char code[] = {0xb8, 29, 0, 0, 0, 0xcd, 0x80};
	static const uint32_t base = 0x10000;
	struct {
		Elf32_Ehdr head;
		Elf32_Phdr part;
		unsigned char code[16];
	} file = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_EXEC,
			 .e_machine = EM_386,
			 .e_version = EV_CURRENT,
			 .e_entry = base + offsetof(__typeof__(file), code),
			 .e_phoff = offsetof(__typeof__(file), part),
			 .e_ehsize = sizeof(Elf32_Ehdr),
			 .e_phentsize = sizeof(Elf32_Phdr),
			 .e_phnum = 1},
		.part = {.p_type = PT_LOAD, .p_vaddr = base, .p_filesz = sizeof(file), .p_memsz = sizeof(file),
			 .p_flags = PF_R | PF_X, .p_align = 4096},
	};
	int fd = memfd_create("i386", MFD_CLOEXEC);

	memcpy(file.code, code, sizeof(code));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, &file, sizeof(file)), sizeof(file));
	return fd;
}

static void by_the_process(void **state)
{
	static char *const none[] = {NULL};
	const char *what = NULL;
	int fd = make_program();
	pid_t child;

	assert_null(machine_foreign(getpid()));
	child = fork();
	if (!child) {
		fexecve(fd, none, none);
		_exit(1);
	}
	for (int i = 0; i < 2000 && !what && !waitpid(child, NULL, WNOHANG); i++, usleep(1000))
		what = machine_foreign(child);
	if (!what)
		skip(); /* this kernel runs no such programs */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	assert_string_equal(what, "it is a 32-bit program");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_the_header),
		cmocka_unit_test(by_the_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
