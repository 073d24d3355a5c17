/* SPDX-License-Identifier: MIT */
#include "jvm/tables.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "hotspot/ring.h"

#include "sigsafe.h"

int tables_map(struct tables *tables, int fd, uint64_t bytes, const char **ret_why)
{
	struct tables new_tables = {.bytes = bytes};
	struct duet_unwind_offsets at;
	void *file;

	*ret_why = "the unwind tables are not a sealed file of the size announced";
	if (bytes < DUET_UNWIND_FILE_PAGE || !ring_file_is_safe(fd, bytes))
		return -EPROTO;
	*ret_why = "the unwind tables could not be mapped";
	file = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return -errno;
	madvise(file, bytes, MADV_DONTFORK);
	new_tables.file = file;
	new_tables.head = *new_tables.file; /* a copy: what was checked must be what is used */
	at = duet_unwind_offsets(&new_tables.head);
	new_tables.rows = (const void *)((const char *)file + at.rows);
	new_tables.pages = (const void *)((const char *)file + at.pages);
	new_tables.modules = (const void *)((const char *)file + at.modules);
	new_tables.mappings = (const void *)((const char *)file + at.mappings);
	*ret_why = "the unwind tables are malformed or of another version";
	if (new_tables.head.magic != DUET_UNWIND_MAGIC || new_tables.head.version != DUET_UNWIND_VERSION ||
	    at.end != bytes) {
		tables_unmap(&new_tables);
		return -EPROTO;
	}
	*tables = new_tables;
	return 0;
}

void tables_unmap(struct tables *tables)
{
	if (tables->file)
		munmap((void *)(uintptr_t)tables->file, tables->bytes);
	memset(tables, 0, sizeof(*tables));
}

bool tables_unchanged(const struct tables *tables, const struct tables_slice *slice)
{
	/* The generation must be read after everything that was read before this call. */
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return tables->file && __atomic_load_n(&tables->file->generation, __ATOMIC_RELAXED) == slice->generation;
}

struct tables_slice tables_begin(const struct tables *tables)
{
	struct tables_slice slice = {0};
	const struct duet_unwind_process *process;

	if (!tables->file)
		return slice;
	/* Acquire pairs with the loader's release store: all that the slice leads to is visible. */
	slice.generation = __atomic_load_n(&tables->file->generation, __ATOMIC_ACQUIRE);
	process = &tables->file->slices[slice.generation % 2];
	slice.first = process->first;
	slice.count = process->mappings;
	if (slice.first > tables->head.mappings || slice.count > tables->head.mappings - slice.first ||
	    !tables_unchanged(tables, &slice))
		slice.generation = 0;
	if (!slice.generation)
		slice.count = 0;
	return slice;
}

bool tables_find_mapping(const struct tables *tables, const struct tables_slice *slice, uint64_t pc,
			 struct duet_unwind_mapping *ret)
{
	uint32_t low = slice->first, high = low + slice->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		struct duet_unwind_mapping mapping = tables->mappings[middle];

		if (pc >= mapping.start && pc < mapping.end) {
			*ret = mapping;
			return true;
		}
		if (mapping.start <= pc)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool tables_find_page(const struct tables *tables, uint32_t module, uint64_t offset, struct duet_unwind_page *ret)
{
	uint64_t index = offset >> DUET_UNWIND_PAGE_SHIFT;
	struct duet_unwind_module at;
	struct duet_unwind_page page;

	if (module >= tables->head.modules || offset > UINT32_MAX)
		return false;
	at = tables->modules[module];
	if (index >= at.pages || at.first_page + index >= tables->head.pages)
		return false;
	page = tables->pages[at.first_page + index];
	*ret = (struct duet_unwind_page){at.first_row + page.first, at.first_row + page.end};
	return true;
}

const struct duet_unwind_row *tables_row(const struct tables *tables, uint32_t index)
{
	return index < tables->head.rows ? &tables->rows[index] : NULL;
}
