/* SPDX-License-Identifier: MIT */
#include "sym/symbols.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/intern.h"
#include "proc/room.h"
#include "sym/debug_file.h"
#include "sym/demangle.h"
#include "sym/elf_file.h"
#include "sym/kallsyms.h"
#include "sym/parsed_file.h"
#include "sym/perf_map.h"
#include "sym/target_file.h"

#define MAPS_MIN_AGE_NS (100 * NS_PER_MS) /* wild addresses must not make us read the maps for every sample */
#define VDSO_IDENTITY 1 /* all processes share one vdso, see vdso_of() */

#define TRIMMED_NAMES (8u << 20) /* bytes */
#define NAMES_MAX (32u << 20)
#define TRIMMED_MAPPINGS (1u << 16)

/* A file, shared by all mappings of it. */
struct shared_file {
	struct elf_file elf;
	struct payer payer; /* for whom it was read */
	size_t bytes; /* of its symbols, in ROOM_SYMBOLS */
	uint64_t identity;
	uint32_t round; /* the round in which a name in it was last looked up */
};

/* The perf map of a process. */
struct own_map {
	struct perf_map map;
	struct payer payer; /* of the process at first */
	size_t bytes;
};

struct symbols {
	struct map mappings;  /* hash of process and mapping -> struct shared_file */
	struct map files;     /* hash of the file's identity -> struct shared_file */
	struct map demangled; /* address of the mangled name in its table -> readable name */
	struct map perf_maps; /* process -> struct own_map, owned */
	struct vec(struct shared_file *) owned;
	uint32_t round; /* number of calls of symbols_trim() */
	struct shared_file unreadable; /* replaces files that could not be read, so that each is tried only once */
	kernel_namer namer; /* NULL: there is none */
	void *namer_context;
	struct kallsyms kallsyms;
	struct intern names;
	uint64_t work_ns; /* CPU time spent on reading files */
};

struct symbols *symbols_new(void)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));

	if (!symbols || !intern_init(&symbols->names))
		return symbols;
	free(symbols);
	return NULL;
}

static void file_free(struct shared_file *file)
{
	room_give(ROOM_SYMBOLS, &file->payer, file->bytes);
	elf_file_release(&file->elf);
	free(file);
}

static void own_map_free(struct own_map *own)
{
	if (!own)
		return;
	room_give(ROOM_SYMBOLS, &own->payer, own->bytes);
	symbol_table_release(&own->map.table);
	free(own);
}

/* Frees the files and perf maps of this payer, or of all (NULL), but not `kept`. */
static void free_files(struct symbols *symbols, const struct payer *payer, const struct own_map *kept)
{
	uint64_t key, value;
	size_t left = 0, count = symbols->owned.len;

	for (size_t cursor = 0; map_next(&symbols->mappings, &cursor, &key, &value);)
		if (!payer || ((const struct shared_file *)(uintptr_t)value)->payer.key == payer->key)
			map_remove(&symbols->mappings, key);
	for (size_t cursor = 0; map_next(&symbols->perf_maps, &cursor, &key, &value);) {
		struct own_map *own = (void *)(uintptr_t)value;

		if (own == kept || (payer && own->payer.key != payer->key))
			continue;
		map_remove(&symbols->perf_maps, key);
		own_map_free(own);
	}
	for (size_t i = 0; i < count; i++) {
		struct shared_file *file = symbols->owned.items[i];

		if (payer && file->payer.key != payer->key) {
			symbols->owned.items[left++] = file;
			continue;
		}
		map_remove(&symbols->files, file->identity);
		file_free(file);
	}
	symbols->owned.len = left;
	map_release(&symbols->demangled); /* its keys are addresses in tables that are freed now */
}

static void free_all(struct symbols *symbols)
{
	free_files(symbols, NULL, NULL);
	map_release(&symbols->perf_maps);
	vec_release(&symbols->owned);
	map_release(&symbols->mappings);
	map_release(&symbols->files);
	intern_release(&symbols->names);
}

/* Notes the payer's symbols. If he has no room for them, his others are freed. */
static void take_room(struct symbols *symbols, const struct payer *payer, size_t bytes, const struct own_map *kept)
{
	if (!room_has(ROOM_SYMBOLS, payer, bytes))
		free_files(symbols, payer, kept);
	room_add(ROOM_SYMBOLS, payer, bytes);
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	free_all(symbols);
	symbol_table_release(&symbols->kallsyms.table);
	free(symbols);
}

void symbols_forget(struct symbols *symbols)
{
	free_all(symbols);
	(void)intern_init(&symbols->names); /* when out of memory, names are "[unknown]" */
}

/* Drops the names if they have so many bytes: addresses without a symbol, of which there is no end, have one, too. */
static void trim_names(struct symbols *symbols, size_t bytes)
{
	struct intern names;

	if (intern_memory(&symbols->names) < bytes || intern_init(&names) < 0)
		return;
	map_release(&symbols->demangled);
	intern_release(&symbols->names);
	symbols->names = names;
}

/* Returns a copy of the text that is valid until names are dropped; never empty. */
static const char *keep_name(struct symbols *symbols, const char *text)
{
	const char *kept = intern_text(&symbols->names, intern_str(&symbols->names, text));

	return kept[0] ? kept : "[unknown]";
}

static const char *offset_name(struct symbols *symbols, const char *module, uint64_t offset)
{
	BUF(buf);

	buf_printf(&buf, "%s+0x%" PRIx64, module, offset);
	return keep_name(symbols, buf.data);
}

/* `mangled` is in a table that never changes, so its address is used as the key. */
static const char *readable_name(struct symbols *symbols, const char *mangled)
{
	const char *known = map_get_ptr(&symbols->demangled, (uintptr_t)mangled);
	const char *name = mangled;
	BUF(buf);

	if (mangled[0] != '_' || known)
		return known ? known : mangled;
	if (demangle(mangled, &buf) && buf.len)
		name = keep_name(symbols, buf.data);
	(void)map_put_ptr(&symbols->demangled, (uintptr_t)mangled, (void *)(uintptr_t)name); /* only a cache */
	return name;
}

/* Takes ownership of `file`. Returns where it is now, or NULL when out of memory; then `file` is released. */
static struct shared_file *own_file(struct symbols *symbols, const struct payer *payer, struct elf_file *file,
				    uint64_t identity)
{
	size_t bytes = symbol_table_bytes(&file->symbols) + symbol_table_bytes(&file->stubs) +
		       file->function_starts.count * 2 * sizeof(uint32_t);
	struct shared_file *owned = malloc(sizeof(*owned));

	take_room(symbols, payer, bytes, NULL);
	if (!owned || vec_push(&symbols->owned, owned) < 0) {
		room_give(ROOM_SYMBOLS, payer, bytes);
		free(owned);
		elf_file_release(file);
		return NULL;
	}
	*owned = (struct shared_file){
		.elf = *file, .payer = *payer, .bytes = bytes, .identity = identity, .round = symbols->round};
	(void)map_put_ptr(&symbols->files, identity, owned); /* only a cache */
	return owned;
}

static struct shared_file *read_file(struct symbols *symbols, const struct charge *charge, struct target_file *target,
				     const char *path)
{
	struct elf_file file;
	int fd = target_file_read(target, charge, 0), err = fd < 0 ? fd : parsed_symbols(&file, charge, target);

	if (fd < 0)
		return NULL;
	if (err) /* without anything, so that it is not tried again */
		file = (struct elf_file){0};
	else if (!file.has_symtab || file.is_mini)
		debug_file_apply(&file, charge, target, path);
	return own_file(symbols, &charge->payer, &file, target_file_identity(target));
}

static struct shared_file *load_file(struct symbols *symbols, const struct charge *charge,
				     const struct process *process, const struct mapping *mapping)
{
	struct target_file target;
	struct shared_file *owned;

	if (target_file_find_mapping(&target, charge, process, mapping))
		return NULL;
	owned = map_get_ptr(&symbols->files, target_file_identity(&target));
	if (!owned)
		owned = read_file(symbols, charge, &target, mapping->path);
	target_file_release(&target);
	return owned;
}

static struct shared_file *load_vdso(struct symbols *symbols, const struct mapping *mapping)
{
	size_t bytes;
	void *image = vdso_of(mapping, &bytes);
	const struct payer nobody = {0};
	struct shared_file *owned;
	struct elf_file file;

	if (!image)
		return NULL;
	owned = map_get_ptr(&symbols->files, VDSO_IDENTITY);
	if (!owned && !elf_file_read_memory(&file, image, bytes))
		owned = own_file(symbols, &nobody, &file, VDSO_IDENTITY);
	return owned;
}

static struct shared_file *load(struct symbols *symbols, const struct charge *charge, const struct process *process,
				const struct mapping *mapping)
{
	uint64_t before_ns = charge_all_ns();
	struct shared_file *file = NULL;

	if (!strcmp(mapping->path, "[vdso]"))
		file = load_vdso(symbols, mapping);
	else if (mapping->inode && mapping->path[0] == '/')
		file = load_file(symbols, charge, process, mapping);
	symbols->work_ns += charge_all_ns() - before_ns;
	return file;
}

/* Never NULL: &symbols->unreadable if it cannot be read. What the allowance does not cover is tried again. */
static const struct shared_file *find_file(struct symbols *symbols, const struct process *process,
					   const struct mapping *mapping)
{
	uint64_t identity = process_mapping_id(process, mapping);
	struct shared_file *file = map_get_ptr(&symbols->mappings, identity);
	struct charge charge;

	if (!file && !charge_begin(&charge, process))
		return &symbols->unreadable;
	if (!file) {
		file = load(symbols, &charge, process, mapping);
		(void)charge_end(&charge);
		file = file ? file : &symbols->unreadable;
		(void)map_put_ptr(&symbols->mappings, identity, file); /* only a cache */
	}
	file->round = symbols->round;
	return file;
}

static const char *jit_name(struct symbols *symbols, const struct process *process, uint64_t address)
{
	struct own_map *own = map_get_ptr(&symbols->perf_maps, (uintptr_t)process);
	const char *name;
	size_t bytes;

	if (!own) {
		own = calloc(1, sizeof(*own));
		if (!own || map_put_ptr(&symbols->perf_maps, (uintptr_t)process, own) < 0) {
			free(own);
			return NULL;
		}
		own->payer = process->payer;
	}
	name = perf_map_find(&own->map, process, address);
	bytes = symbol_table_bytes(&own->map.table);
	if (bytes != own->bytes) {
		room_give(ROOM_SYMBOLS, &own->payer, own->bytes);
		take_room(symbols, &own->payer, bytes, own);
		own->bytes = bytes;
	}
	return name ? keep_name(symbols, name) : NULL;
}

static int32_t offset_from(uint64_t start, uint64_t address)
{
	return start <= address && address - start <= INT32_MAX ? (int32_t)(address - start) : -1;
}

/* Sets the name and the offset. The name is NULL if neither a file nor a perf-map has the address. */
static void find_mapped(struct symbols *symbols, const struct process *process, const struct mapping *mapping,
			uint64_t address, struct symbol *ret)
{
	const struct shared_file *shared = find_file(symbols, process, mapping);
	const struct elf_file *file = &shared->elf;
	uint64_t vaddr, start;
	const char *name;

	if (shared == &symbols->unreadable ||
	    !elf_segments_vaddr(&file->segments, address - mapping->start + mapping->offset, &vaddr)) {
		ret->name = jit_name(symbols, process, address);
		return;
	}
	name = elf_file_name(file, vaddr, &start);
	if (!name)
		start = elf_file_function_start(file, vaddr);
	ret->name = name ? readable_name(symbols, name) : offset_name(symbols, ret->module, start);
	ret->offset = offset_from(start, vaddr);
}

void symbols_user(struct symbols *symbols, struct process *process, uint64_t address, bool is_return,
		  struct symbol *ret)
{
	uint64_t at = address - (is_return && address);
	const struct mapping *mapping = maps_find(&process->maps, at);
	const char *module;

	trim_names(symbols, NAMES_MAX);
	if (!mapping && process_refresh_maps(process, clock_monotonic_ns(), MAPS_MIN_AGE_NS) == 1)
		mapping = maps_find(&process->maps, at);
	if (!mapping) {
		*ret = (struct symbol){offset_name(symbols, "[unmapped]", at), "", -1, true};
		return;
	}
	module = basename(mapping->path);
	*ret = (struct symbol){.module = module[0] ? keep_name(symbols, module) : "", .offset = -1};
	find_mapped(symbols, process, mapping, at, ret);
	ret->is_guess = !ret->name;
	if (!ret->name)
		ret->name = offset_name(symbols, ret->module[0] ? ret->module : "[anon]",
					at - mapping->start + mapping->offset);
}

static bool refresh_kallsyms(struct symbols *symbols)
{
	uint64_t before_ns = charge_all_ns();
	int is_new = kallsyms_refresh(&symbols->kallsyms, "/proc/kallsyms", clock_monotonic_ns());

	symbols->work_ns += charge_all_ns() - before_ns;
	return is_new == 1;
}

void symbols_ask_kernel(struct symbols *symbols, kernel_namer namer, void *context)
{
	symbols->namer = namer;
	symbols->namer_context = context;
}

void symbols_prepare_kernel(struct symbols *symbols)
{
	if (!symbols->namer)
		(void)refresh_kallsyms(symbols);
}

/* If the kernel hides its addresses, there is no name. */
static void find_in_kallsyms(struct symbols *symbols, uint64_t at, struct kernel_name *ret)
{
	uint64_t start = at;

	ret->module = "kernel";
	ret->name = kallsyms_find(&symbols->kallsyms, at, &ret->module, &start);
	if (!ret->name && refresh_kallsyms(symbols))
		ret->name = kallsyms_find(&symbols->kallsyms, at, &ret->module, &start);
	ret->offset = at - start;
}

void symbols_kernel(struct symbols *symbols, uint64_t address, bool is_return, struct symbol *ret)
{
	uint64_t at = address - (is_return && address);
	struct kernel_name found;

	trim_names(symbols, NAMES_MAX);
	/* The kernel does not report the trampolines of ftrace, which are in kallsyms. */
	if (!symbols->namer || symbols->namer(symbols->namer_context, at, &found) < 0 || !found.name)
		find_in_kallsyms(symbols, at, &found);
	/* The name is copied: the next call changes it. Without one, the name is the offset. */
	ret->name = found.name ? readable_name(symbols, keep_name(symbols, found.name))
			       : offset_name(symbols, "[kernel]", at);
	ret->module = keep_name(symbols, found.module);
	ret->offset = found.name ? offset_from(at - found.offset, at) : -1;
	ret->is_guess = false; /* hidden addresses stay hidden */
}

uint64_t symbols_work_ns(const struct symbols *symbols)
{
	return symbols->work_ns;
}

void symbols_forget_process(struct symbols *symbols, const struct process *process)
{
	own_map_free(map_get_ptr(&symbols->perf_maps, (uintptr_t)process));
	map_remove(&symbols->perf_maps, (uintptr_t)process);
}

/* Frees files in which no name was looked up since the call before the last. True if there were any. */
static bool free_idle_files(struct symbols *symbols)
{
	size_t kept = 0, before = symbols->owned.len;

	for (size_t i = 0; i < before; i++) {
		struct shared_file *file = symbols->owned.items[i];

		if (file->round + 1 >= symbols->round) {
			symbols->owned.items[kept++] = file;
			continue;
		}
		map_remove(&symbols->files, file->identity);
		file_free(file);
	}
	symbols->owned.len = kept;
	return kept < before;
}

void symbols_trim(struct symbols *symbols)
{
	bool is_freed = free_idle_files(symbols);

	symbols->round++;
	if (is_freed || symbols->mappings.len > TRIMMED_MAPPINGS)
		map_release(&symbols->mappings);
	if (is_freed) /* its keys are addresses in tables that are freed now */
		map_release(&symbols->demangled);
	trim_names(symbols, TRIMMED_NAMES);
}
