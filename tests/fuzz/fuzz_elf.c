/* SPDX-License-Identifier: MIT */
/* A file that a process has mapped as code: symbols, stubs, build id, debug link, .eh_frame_hdr, unwind rows. */
#include <errno.h>

#include "fuzz.h"
#include "sym/debug_file.h"
#include "sym/elf_file.h"
#include "sym/elf_places.h"
#include "unwind/unwind_file.h"

static void ask(struct elf_file *file)
{
	uint64_t vaddr;

	for (uint64_t offset = 0; offset < 8192; offset += 61) {
		if (elf_segments_vaddr(&file->segments, offset, &vaddr))
			elf_file_function_start(file, vaddr);
		elf_file_name(file, offset, NULL);
	}
	FUZZ_CHECK(memchr(file->identity.debuglink, '\0', sizeof(file->identity.debuglink)));
	FUZZ_CHECK(file->identity.build_id_len <= sizeof(file->identity.build_id));
	elf_file_release(file);
}

/* The file is its own debug file, too. */
static void read_rows(int fd)
{
	struct unwind_file file;
	struct unwind_rows more;

	if (unwind_file_read(&file, fd))
		return;
	if (!unwind_file_read_debug(&more, fd, file.code_start, file.code_end)) {
		(void)unwind_rows_merge(&file.rows, &more);
		unwind_rows_release(&more);
	}
	unwind_file_release(&file);
}

static void find_places(int fd)
{
	struct elf_probes probes = {0};
	struct elf_reader reader;
	struct buf names;
	uint64_t at;

	if (elf_reader_open(&reader, fd))
		return;
	buf_init(&names);
	(void)elf_places_symbol(&reader, "main", true, &at, &names);
	elf_places_probes(&reader, "libc", "setjmp", &probes, &names);
	FUZZ_CHECK(probes.list.len <= ELF_PLACES_MAX_PROBES);
	vec_release(&probes.list);
	buf_release(&names);
	elf_reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = input_file(data, size);
	struct input input = {data, size};
	void *image = input_block(&input, size);
	struct unwind_file unwind;
	struct elf_file file;

	if (!elf_file_read(&file, fd)) {
		mini_debug_apply(&file, fd);
		ask(&file);
	}
	if (!elf_file_read_memory(&file, image, size))
		ask(&file);
	read_rows(fd);
	find_places(fd);
	if (!unwind_file_read_memory(&unwind, image, size))
		unwind_file_release(&unwind);
	free(image);
	close(fd);
	return 0;
}
