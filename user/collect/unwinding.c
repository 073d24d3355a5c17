// SPDX-License-Identifier: MIT
#include "collect/unwinding.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/counters.h"
#include "base/log.h"
#include "collect/collected.h"
#include "sym/debug_file.h"
#include "sym/target_file.h"
#include "sym/vdso.h"
#include "unwind/unwind_file.h"

#define MAPS_MIN_AGE_NS (100 * NS_PER_MS) /* wild pcs must not cause a read of the maps for every sample */
#define YOUNG_MIN_AGE_NS (5 * NS_PER_MS) /* the same for a process that is still loading its libraries */
#define YOUNG_NS NS_PER_SEC
#define VDSO_IDENTITY 1 /* all processes have the same vdso */
/* one file comes back in each interval, so that reading costs little however many are missed */
#define LOOK_NS NS_PER_SEC
#define MAX_FILES 16384 /* about 8 MB; above, all files are forgotten, but their rows stay in the tables */

/* What is cached of a file. Its rows are only in the tables, while there is room. */
struct native_file {
	struct unwind_file elf; /* without its rows */
	uint64_t key; /* key of its module in the tables, a hash of its rows; 0: they have not been made yet */
	bool has_rows; /* true as well before they have been made; false: do not try again */
	uint32_t refused_rows; /* not 0: so many rows and pages had no room */
	uint32_t refused_pages;
};

void unwinding_init(struct unwinding *unwinding, struct unwind_tables *tables)
{
	*unwinding = (struct unwinding){.tables = tables};
}

void unwinding_forget_files(struct unwinding *unwinding)
{
	for (size_t i = 0; i < unwinding->owned.len; i++) {
		unwind_file_release(&unwinding->owned.items[i]->elf);
		free(unwinding->owned.items[i]);
	}
	vec_release(&unwinding->owned);
	map_release(&unwinding->files);
}

void unwinding_release(struct unwinding *unwinding)
{
	unwinding_forget_files(unwinding);
	vec_release(&unwinding->mappings);
}

/* ---- one file ---- */

/* NULL when out of memory. */
static struct native_file *own_file(struct unwinding *unwinding, uint64_t identity)
{
	struct native_file *file = calloc(1, sizeof(*file));

	if (unwinding->owned.len >= MAX_FILES)
		unwinding_forget_files(unwinding);
	if (!file || vec_push(&unwinding->owned, file) < 0) {
		free(file);
		return NULL;
	}
	file->has_rows = true;
	(void)map_put_ptr(&unwinding->files, identity, file); /* may fail: it is a cache */
	return file;
}

static int note_refused(struct unwinding *unwinding, const struct native_file *file)
{
	return unwind_tables_note(unwinding->tables, file->key, file->refused_rows, file->refused_pages);
}

/*
 * Files share a module when their rows are equal: copies of one build do, in several containers for example. A build id
 * would tell that sooner, but whoever makes a file chooses its build id.
 */
static uint64_t key_of_rows(const struct unwind_rows *rows)
{
	uint64_t hash = hash_bytes(&rows->base, sizeof(rows->base), hash_secret());

	hash = hash_bytes(rows->pages.items, rows->pages.len * sizeof(*rows->pages.items), hash);
	return hash_bytes(rows->rows.items, rows->rows.len * sizeof(*rows->rows.items), hash);
}

/* True if the tables have the file's rows, or a note of them and no room. */
static bool are_in_tables(struct unwinding *unwinding, const struct native_file *file, int *ret_module)
{
	*ret_module = file->key ? unwind_tables_find(unwinding->tables, file->key) : -ENOENT;
	return *ret_module >= 0 && !unwind_tables_bring_back(unwinding->tables, *ret_module);
}

/* Moves the rows into the tables, unless another file's equal ones are there. Returns the module or -errno. */
static int add_rows(struct unwinding *unwinding, struct native_file *file)
{
	bool is_first = !file->key; /* else they come back: the tables have a note of them */
	int module;

	file->key = key_of_rows(&file->elf.rows);
	if (!is_first || !are_in_tables(unwinding, file, &module))
		module = unwind_tables_add(unwinding->tables, file->key, &file->elf.rows);
	if (module == -ENOSPC) {
		loader_counters[DUET_LOADER_UNWIND_FILES] += !file->refused_rows;
		file->refused_rows = (uint32_t)file->elf.rows.rows.len;
		file->refused_pages = (uint32_t)file->elf.rows.pages.len;
		module = note_refused(unwinding, file);
	}
	unwind_rows_release(&file->elf.rows);
	file->elf.rows = (struct unwind_rows){0};
	return module;
}

/* Returns false for a file whose rows would not fit: otherwise each process that maps it would cause another read. */
static bool may_be_read(struct unwinding *unwinding, const struct native_file *file)
{
	return !file->refused_rows ||
	       unwind_tables_have_room(unwinding->tables, file->refused_rows, file->refused_pages);
}

/* HotSpot's assembler (os_cpu/linux_x86: copying, SafeFetch, SpinPause) has no call frame information and no frames. */
static bool has_frameless_gaps(const char *path)
{
	const char *name = strrchr(path, '/');

	return name && !strncmp(name, "/libjvm.so", strlen("/libjvm.so")); /* also "/libjvm.so (deleted)" */
}

static bool maps_libjvm(const struct process *process)
{
	for (size_t i = 0; i < process->maps.list.len; i++)
		if (has_frameless_gaps(process->maps.list.items[i].path))
			return true;
	return false;
}

static bool take_debug_frame(void *context, int fd)
{
	return !unwind_file_add_debug(context, fd);
}

/*
 * Adds .debug_frame from the separate debug file. Few files have functions that only it describes, but those were built
 * that way as a whole.
 */
static void add_debug_file(struct unwind_file *elf, const struct target_file *target, const char *path)
{
	struct elf_identity identity;

	if (!elf_identity_read_fd(&identity, target->fd))
		(void)debug_file_find(&identity, target, path, take_debug_frame, elf);
}

static int read_rows(struct unwinding *unwinding, struct native_file *file, struct target_file *target,
		     const char *path)
{
	uint64_t started_ns = clock_monotonic_ns();
	struct unwind_file elf;
	int module, fd = target_file_read(target, 0), err = fd < 0 ? fd : unwind_file_read(&elf, fd);
	size_t rows;

	file->has_rows = false;
	loader_counters[DUET_LOADER_UNWIND_FILES] += err == -ENOMEM;
	if (err)
		return err;
	add_debug_file(&elf, target, path);
	file->has_rows = elf.rows.rows.len != 0;
	if (has_frameless_gaps(path))
		unwind_file_fill_gaps(&elf);
	unwind_file_release(&file->elf);
	file->elf = elf;
	rows = elf.rows.rows.len;
	module = rows ? add_rows(unwinding, file) : -ENODATA;
	log_debug("%zu unwind rows of %s in %.1f ms", rows, path, (double)(clock_monotonic_ns() - started_ns) / 1e6);
	return module;
}

/*
 * Returns the file's entry, or NULL when out of memory. Its rows depend on its name too (see has_frameless_gaps()),
 * which is the process's choice.
 */
static struct native_file *identify(struct unwinding *unwinding, struct target_file *target, const char *path)
{
	uint64_t identity = hash_u64(target_file_identity(target) + has_frameless_gaps(path));
	struct native_file *file = map_get_ptr(&unwinding->files, identity);

	return file ? file : own_file(unwinding, identity);
}

static int module_with_rows(struct unwinding *unwinding, struct native_file *file, struct target_file *target,
			    const char *path)
{
	int module;

	if (are_in_tables(unwinding, file, &module))
		return module;
	if (module < 0 && !may_be_read(unwinding, file))
		return note_refused(unwinding, file);
	return read_rows(unwinding, file, target, path);
}

/* Returns the file's module or -errno. `path` is the file's path in the process. Releases `target`. */
static int module_of(struct unwinding *unwinding, struct target_file *target, const char *path,
		     struct native_file **ret)
{
	struct native_file *file = identify(unwinding, target, path);
	int module = -ENODATA;

	if (file && file->has_rows) {
		*ret = file;
		module = module_with_rows(unwinding, file, target, path);
	}
	target_file_release(target);
	return module;
}

static int file_module(struct unwinding *unwinding, const struct process *process, const struct mapping *mapping,
		       struct native_file **ret)
{
	struct target_file target;
	int err = target_file_find_mapping(&target, process, mapping);

	return err ? err : module_of(unwinding, &target, mapping->path, ret);
}

void unwinding_prepare(struct unwinding *unwinding, const char *path)
{
	struct target_file target;
	struct native_file *file;

	if (unwinding->tables && !target_file_find(&target, getpid(), getpid(), path))
		module_of(unwinding, &target, path, &file);
}

static struct native_file *identify_vdso(struct unwinding *unwinding)
{
	struct native_file *file = map_get_ptr(&unwinding->files, VDSO_IDENTITY);

	return file ? file : own_file(unwinding, VDSO_IDENTITY);
}

static int module_of_image(struct unwinding *unwinding, struct native_file *file, uint8_t *image, size_t bytes)
{
	struct unwind_file elf;
	int module;

	if (are_in_tables(unwinding, file, &module))
		return module;
	if (unwind_file_read_memory(&elf, image, bytes))
		return -ENODATA;
	unwind_file_release(&file->elf);
	file->elf = elf;
	return elf.rows.rows.len ? add_rows(unwinding, file) : -ENODATA;
}

static int vdso_module(struct unwinding *unwinding, const struct mapping *mapping, struct native_file **ret)
{
	size_t bytes;
	void *image = vdso_of(mapping, &bytes);

	if (image)
		*ret = identify_vdso(unwinding);
	return image && *ret ? module_of_image(unwinding, *ret, image, bytes) : -ENODATA;
}

/* ---- one process ---- */

static void set_module(struct unwinding *unwinding, const struct process *process, const struct mapping *mapping,
		       struct duet_unwind_mapping *published)
{
	struct native_file *file = NULL;
	uint64_t vaddr;
	int module = -ENODATA;

	if (!strcmp(mapping->path, "[vdso]"))
		module = vdso_module(unwinding, mapping, &file);
	else if (mapping->inode && mapping->path[0] == '/')
		module = file_module(unwinding, process, mapping, &file);
	if (module < 0 || !unwind_file_vaddr(&file->elf, mapping->offset, mapping->end - mapping->start, &vaddr))
		return;
	published->module = (uint32_t)module;
	published->base = mapping->start - vaddr + file->elf.base;
}

/* Named memory does not count as a file: .NET puts its code into a memfd, to write it where it is not executable. */
static bool mapping_is_file(const struct mapping *mapping)
{
	static const char *const memory[] = {"/memfd:", "/dev/shm/", "/dev/zero", "/SYSV"};

	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		if (!strncmp(mapping->path, memory[i], strlen(memory[i])))
			return false;
	return mapping->inode != 0 || !strcmp(mapping->path, "[vdso]");
}

/*
 * HotSpot's compilers use the frame pointer as a general register; other JITs keep it. In a JVM's process, code in
 * memory may be HotSpot's or anybody's.
 */
static enum duet_code mapping_code(const struct mapping *mapping, bool is_jvm)
{
	if (mapping_is_file(mapping))
		return DUET_CODE_FILE;
	return is_jvm ? DUET_CODE_UNKNOWN : DUET_CODE_MEMORY;
}

static int collect_mappings(struct unwinding *unwinding, const struct process *process)
{
	bool is_jvm = maps_libjvm(process);
	int err = 0;

	vec_clear(&unwinding->mappings);
	for (size_t i = 0; !err && i < process->maps.list.len; i++) {
		const struct mapping *mapping = &process->maps.list.items[i];
		struct duet_unwind_mapping published = {
			.start = mapping->start,
			.end = mapping->end,
			.module = DUET_UNWIND_NO_MODULE,
			.code = mapping_code(mapping, is_jvm),
		};

		set_module(unwinding, process, mapping, &published);
		err = vec_push(&unwinding->mappings, published);
	}
	return err;
}

static void publish(struct unwinding *unwinding, struct process *process)
{
	collected_of(process)->published_version = process->maps_version + 1;
	if (collect_mappings(unwinding, process) < 0 ||
	    unwind_tables_publish(unwinding->tables, process->pid, process->start_ticks, unwinding->mappings.items,
				  unwinding->mappings.len) < 0)
		loader_counters[DUET_LOADER_UNWIND_PROCESSES]++;
}

void unwinding_publish(struct unwinding *unwinding, struct process *process)
{
	uint64_t before_ns, begin_ns;

	if (!unwinding->tables || process->exited ||
	    collected_of(process)->published_version == process->maps_version + 1)
		return;
	before_ns = clock_cpu_ns();
	begin_ns = process_cost_begin();
	publish(unwinding, process);
	process_cost_end(process, begin_ns);
	unwinding->work_ns += clock_cpu_ns() - before_ns;
}

void unwinding_step(struct unwinding *unwinding, struct process_table *processes, uint64_t now_ns)
{
	struct process *process;
	pid_t pid;

	if (!unwinding->tables || now_ns - unwinding->looked_ns < LOOK_NS)
		return;
	unwinding->looked_ns = now_ns;
	pid = unwind_tables_look(unwinding->tables, now_ns);
	process = pid ? process_find(processes, pid) : NULL;
	if (!process)
		return;
	collected_of(process)->published_version = 0;
	unwinding_publish(unwinding, process);
}

void unwinding_read_maps(struct unwinding *unwinding, struct process *process)
{
	uint64_t min_age_ns = process_age_ns(process) < YOUNG_NS ? YOUNG_MIN_AGE_NS : MAPS_MIN_AGE_NS;

	if (unwinding->tables)
		process_refresh_maps(process, clock_monotonic_ns(), min_age_ns);
}

void unwinding_refresh(struct unwinding *unwinding, struct process *process)
{
	unwinding_read_maps(unwinding, process);
	unwinding_publish(unwinding, process);
}

void unwinding_forget(struct unwinding *unwinding, struct process *process)
{
	if (!unwinding->tables || !collected_of(process)->published_version)
		return;
	collected_of(process)->published_version = 0;
	unwind_tables_forget(unwinding->tables, process->pid);
}
