/* SPDX-License-Identifier: MIT */
/*
 * hostile_crowd SECONDS FILE: maps an ELF file that costs a lot to read, runs its code long enough to be sampled, and
 * makes another file of it by its time, over and over. Then "COUNT n". For hostile_files.sh.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096ul
#define BURN_MS 10
#define SYMBOLS (1ul << 20) /* symbols of one function; each has to be examined */

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void burn(void (*code)(void))
{
	double end = now() + BURN_MS / 1e3;

	while (now() < end)
		code();
}

/* Counts down from 65536. */
static const unsigned char loop[] = {
#ifdef __x86_64__
	0xb9, 0x00, 0x00, 0x01, 0x00, 0xff, 0xc9, 0x75, 0xfc, 0xc3
#else
	0x20, 0x00, 0xa0, 0x52, 0x00, 0x04, 0x00, 0x71, 0xe1, 0xff, 0xff, 0x54, 0xc0, 0x03, 0x5f, 0xd6
#endif
};

struct image {
	Elf64_Ehdr head;
	Elf64_Phdr segment;
	Elf64_Shdr sections[4]; /* none, code, symbols, their names */
};

static struct image image(void)
{
	struct image image = {
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_DYN,
#ifdef __x86_64__
			 .e_machine = EM_X86_64,
#else
			 .e_machine = EM_AARCH64,
#endif
			 .e_version = EV_CURRENT,
			 .e_phoff = offsetof(struct image, segment),
			 .e_shoff = offsetof(struct image, sections),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 4},
		.segment = {.p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_filesz = 2 * PAGE, .p_memsz = 2 * PAGE},
	};

	image.sections[1] = (Elf64_Shdr){.sh_type = SHT_PROGBITS, .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					 .sh_addr = PAGE, .sh_offset = PAGE, .sh_size = PAGE};
	image.sections[2] = (Elf64_Shdr){.sh_type = SHT_SYMTAB, .sh_offset = 2 * PAGE, .sh_link = 3,
					 .sh_size = SYMBOLS * sizeof(Elf64_Sym), .sh_entsize = sizeof(Elf64_Sym)};
	image.sections[3] = (Elf64_Shdr){.sh_type = SHT_STRTAB, .sh_offset = offsetof(struct image, head.e_ident[1]),
					 .sh_size = PAGE}; /* the first name is "LF" */
	return image;
}

/* Returns a descriptor, or -1. */
static int make_file(const char *path)
{
	const struct image head = image();
	const Elf64_Sym symbol = {.st_name = 1, .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), .st_shndx = 1,
				  .st_value = PAGE, .st_size = sizeof(loop)};
	FILE *file = fopen(path, "w+");
	bool is_made = file && fwrite(&head, sizeof(head), 1, file) == 1 && !fseek(file, PAGE, SEEK_SET) &&
		       fwrite(loop, sizeof(loop), 1, file) == 1 && !fseek(file, 2 * PAGE, SEEK_SET);

	for (size_t i = 0; is_made && i < SYMBOLS; i++)
		is_made = fwrite(&symbol, sizeof(symbol), 1, file) == 1;
	return is_made && !fflush(file) ? fileno(file) : -1;
}

/* The file stays mapped, so that its samples find it. The next time it is mapped at another address. */
static bool run_as_another(int fd)
{
	void *code = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, PAGE);

	if (code == MAP_FAILED || futimens(fd, NULL) < 0)
		return false;
	burn((void (*)(void))(uintptr_t)code);
	return true;
}

int main(int argc, char **argv)
{
	int count = 0, fd = argc == 3 ? make_file(argv[2]) : -1;
	double end = now() + (argc == 3 ? atof(argv[1]) : 0);

	if (fd < 0)
		return 1;
	puts("READY");
	fflush(stdout);
	while (now() < end && run_as_another(fd))
		count++;
	printf("COUNT %d\n", count);
	return 0;
}
