/* SPDX-License-Identifier: MIT */
/*
 * A pass first lists the libraries that have places to change, then changes them one after the other. A library that is
 * being loaded must not be changed: the linker still writes to pages that it protects later. So each library is opened
 * again first, which waits until it is loaded, and keeps it from being unloaded. Only its own segments are read.
 */
#include "hook/linkage.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "jvm/stay.h"
#include "jvm/tables.h"
#include "libc_versions.h"
#include "peer/peer.h"
#include "sample/pages.h"

#define MOST_LIBRARIES 4096
#define MOST_SETS 4
#define STEP_NS 1000000
#define STEPS 1000
#define ROWS_MOST_STEPS 50 /* of a ms; the loader takes a few, unless the machine is busy */

#if defined(__x86_64__)
#define RELOCATION_SLOT R_X86_64_JUMP_SLOT
#define RELOCATION_DATA R_X86_64_GLOB_DAT
#define RELOCATION_WORD R_X86_64_64
#elif defined(__aarch64__)
#define RELOCATION_SLOT R_AARCH64_JUMP_SLOT
#define RELOCATION_DATA R_AARCH64_GLOB_DAT
#define RELOCATION_WORD R_AARCH64_ABS64
#endif

extern const char __ehdr_start[] __attribute__((visibility("hidden"))); /* of this library, set by the linker */
extern const char *gnu_get_libc_version(void) __attribute__((weak)); /* glibc's */

static struct {
	struct linkage_set *sets[MOST_SETS]; /* all that were ever opened; atomic */
	/* number of libraries loaded since the process began, when the hooks were installed last; atomic */
	unsigned long long adds;
	int passes; /* number of passes: the running one, and those requested since it began; atomic */
} linkage;

/* A loaded library, or the program. */
struct library {
	uintptr_t base, low, high; /* difference to the addresses in the file; the mapped range */
	const ElfW(Sym) *symbols;
	const char *strings;
	size_t strings_bytes;
	const ElfW(Rela) *tables[2]; /* relocations of data, and of the places for calls */
	size_t counts[2];
};

static bool is_inside(const struct library *library, uintptr_t address, size_t bytes)
{
	return address >= library->low && address <= library->high && bytes <= library->high - address;
}

static bool read_dynamic(struct library *library, const ElfW(Dyn) *dynamic)
{
	size_t skipped = 0, bytes[2] = {0, 0};
	uintptr_t tables[2] = {0, 0};

	for (; is_inside(library, (uintptr_t)dynamic, sizeof(*dynamic)) && dynamic->d_tag != DT_NULL; dynamic++) {
		uintptr_t value = dynamic->d_un.d_ptr;
		/* glibc stores addresses there, musl leaves the file's offsets */
		uintptr_t address = value < library->low ? value + library->base : value;

		if (dynamic->d_tag == DT_SYMTAB)
			library->symbols = (const ElfW(Sym) *)address;
		else if (dynamic->d_tag == DT_STRTAB)
			library->strings = (const char *)address;
		else if (dynamic->d_tag == DT_STRSZ)
			library->strings_bytes = dynamic->d_un.d_val;
		else if (dynamic->d_tag == DT_RELA)
			tables[0] = address;
		else if (dynamic->d_tag == DT_RELASZ)
			bytes[0] = dynamic->d_un.d_val;
		else if (dynamic->d_tag == DT_RELACOUNT) /* number of relocations without a symbol, which come first */
			skipped = dynamic->d_un.d_val;
		else if (dynamic->d_tag == DT_JMPREL)
			tables[1] = address;
		else if (dynamic->d_tag == DT_PLTRELSZ)
			bytes[1] = dynamic->d_un.d_val;
	}
	for (int i = 0; i < 2; i++) {
		library->tables[i] = (const ElfW(Rela) *)tables[i];
		library->counts[i] = is_inside(library, tables[i], bytes[i]) ? bytes[i] / sizeof(ElfW(Rela)) : 0;
	}
	if (skipped <= library->counts[0]) {
		library->tables[0] += skipped;
		library->counts[0] -= skipped;
	}
	return library->symbols && library->strings &&
	       is_inside(library, (uintptr_t)library->strings, library->strings_bytes);
}

/* Returns true for the agent, and for a program linked to a fixed address, which has other addresses of functions. */
static bool is_left_alone(const struct dl_phdr_info *info)
{
	return !info->dlpi_addr || info->dlpi_addr == (uintptr_t)__ehdr_start;
}

static bool read_library(struct library *library, const struct dl_phdr_info *info)
{
	const ElfW(Dyn) *dynamic = NULL;

	*library = (struct library){.base = info->dlpi_addr, .low = UINTPTR_MAX};
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *header = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + header->p_vaddr;

		if (header->p_type == PT_DYNAMIC)
			dynamic = (const ElfW(Dyn) *)start;
		if (header->p_type != PT_LOAD)
			continue;
		library->low = start < library->low ? start : library->low;
		library->high = start + header->p_memsz > library->high ? start + header->p_memsz : library->high;
	}
	return dynamic && read_dynamic(library, dynamic);
}

/* ---- the places of one library ---- */

struct linkage_place {
	uintptr_t *at;
	struct linkage_hook *hook;
	bool is_slot; /* for calls: its function may be looked up at the first of them */
	bool is_variable; /* a pointer in the library's data, which the library may have changed since */
	bool is_own; /* the library defines the function itself */
};

static struct linkage_hook *find_hook(const struct linkage_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (!strcmp(set->hooks[i].name, name) ||
		    (set->hooks[i].alias && !strcmp(set->hooks[i].alias, name)))
			return &set->hooks[i];
	return NULL;
}

static bool read_place(const struct library *library, const struct linkage_set *set, const ElfW(Rela) *relocation,
		       struct linkage_place *ret)
{
	uint32_t type = ELF64_R_TYPE(relocation->r_info);
	const ElfW(Sym) *symbol = &library->symbols[ELF64_R_SYM(relocation->r_info)];
	uintptr_t at = library->base + relocation->r_offset;

	if ((type != RELOCATION_SLOT && type != RELOCATION_DATA && type != RELOCATION_WORD) ||
	    (type == RELOCATION_WORD && relocation->r_addend) || at % sizeof(uintptr_t) ||
	    !is_inside(library, at, sizeof(uintptr_t)) || !is_inside(library, (uintptr_t)symbol, sizeof(*symbol)) ||
	    symbol->st_name >= library->strings_bytes)
		return false;
	*ret = (struct linkage_place){
		.at = (uintptr_t *)at,
		.hook = find_hook(set, library->strings + symbol->st_name),
		.is_slot = type == RELOCATION_SLOT,
		.is_variable = type == RELOCATION_WORD,
		.is_own = symbol->st_shndx != SHN_UNDEF,
	};
	return ret->hook;
}

/* Calls `visit` for each place that belongs to a hook of the set, until it returns false. */
static bool each_place(const struct library *library, const struct linkage_set *set,
		       bool (*visit)(void *context, const struct linkage_place *place), void *context)
{
	struct linkage_place place;

	for (int table = 0; table < 2; table++)
		for (size_t i = 0; i < library->counts[table]; i++)
			if (read_place(library, set, &library->tables[table][i], &place) && !visit(context, &place))
				return false;
	return true;
}

/* ---- what a pass changes ---- */

struct pass {
	const struct linkage_set *set;
	bool installs; /* false: removes */
	unsigned long long adds;
	char **names; /* libraries with places to change; "" is the program */
	size_t count;
	/* for one library: */
	uintptr_t base;
	const struct library *library;
	bool takes_unbound; /* also change places whose function is not looked up yet */
	size_t pending;
};

/* If a place's function is looked up at the first call, the place leads into its own library until then. */
static bool is_unbound(const struct pass *pass, const struct linkage_place *place, uintptr_t value)
{
	return place->is_slot && !place->is_own && value != place->hook->real && is_inside(pass->library, value, 1);
}

/* Returns true if the place is to be changed. */
static bool is_wanted(const struct pass *pass, const struct linkage_place *place, uintptr_t value)
{
	if (!pass->installs)
		return value == place->hook->hook;
	return value == place->hook->real || (pass->takes_unbound && is_unbound(pass, place, value));
}

/* Counts the places to change. Returns false if the library has an allocator of its own, or may have one. */
static bool count_place(void *context, const struct linkage_place *place)
{
	struct pass *pass = context;
	uintptr_t value = __atomic_load_n(place->at, __ATOMIC_RELAXED);
	bool is_glibc = gnu_get_libc_version && is_inside(pass->library, (uintptr_t)gnu_get_libc_version, 1);
	bool is_known = value == place->hook->real || value == place->hook->hook || is_unbound(pass, place, value);

	pass->pending += is_wanted(pass, place, value);
	if (!pass->installs || !place->hook->is_allocators || place->is_variable)
		return true;
	return is_known && (!place->is_own || is_glibc);
}

static bool has_work(struct pass *pass, const struct library *library)
{
	pass->library = library;
	pass->pending = 0;
	return each_place(library, pass->set, count_place, pass) && pass->pending;
}

static bool change_place(void *context, const struct linkage_place *place)
{
	const struct pass *pass = context;
	uintptr_t value = __atomic_load_n(place->at, __ATOMIC_RELAXED);
	uintptr_t wanted = pass->installs ? place->hook->hook : place->hook->real;
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *start = (void *)((uintptr_t)place->at & ~(page - 1));
	int rights;

	if (!is_wanted(pass, place, value))
		return true;
	rights = pages_rights((uintptr_t)place->at);
	if (rights < 0 || (!(rights & PROT_WRITE) && mprotect(start, page, rights | PROT_WRITE)))
		return true;
	/* Another profiler may have put its own function there since. */
	__atomic_compare_exchange_n(place->at, &value, wanted, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
	if (!(rights & PROT_WRITE))
		mprotect(start, page, rights);
	return true;
}

/* ---- all libraries ---- */

static int list_library(struct dl_phdr_info *info, size_t size, void *context)
{
	struct pass *pass = context;
	struct library library;
	char *name;

	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		pass->adds = info->dlpi_adds;
	if (pass->count >= MOST_LIBRARIES || is_left_alone(info) || !read_library(&library, info) ||
	    !has_work(pass, &library))
		return 0;
	name = strdup(info->dlpi_name);
	if (name)
		pass->names[pass->count++] = name;
	return 0;
}

static int change_library(struct dl_phdr_info *info, size_t size, void *context)
{
	struct pass *pass = context;
	struct library library;

	if (info->dlpi_addr != pass->base || is_left_alone(info))
		return 0;
	if (read_library(&library, info) && has_work(pass, &library))
		each_place(&library, pass->set, change_place, pass);
	return 1;
}

/* True if calls that are not bound yet will lead to the process's function: to libc's, and to no other library's. */
static bool is_bound_to_real(const struct linkage_set *set, void *handle)
{
	uintptr_t found = (uintptr_t)dlsym(handle, set->hooks[0].name);
	Dl_info of_found, of_libc;

	if (found == set->hooks[0].real)
		return true;
	return found && dladdr((const void *)found, &of_found) &&
	       dladdr((const void *)(uintptr_t)dl_iterate_phdr, &of_libc) && of_found.dli_fbase == of_libc.dli_fbase;
}

static void open_and_change(struct pass *pass, const char *name)
{
	void *handle = dlopen(*name ? name : NULL, RTLD_LAZY | RTLD_NOLOAD);
	struct link_map *map;

	if (!handle)
		return;
	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map)) {
		pass->base = map->l_addr;
		pass->takes_unbound = pass->installs && is_bound_to_real(pass->set, handle);
		dl_iterate_phdr(change_library, pass);
	}
	dlclose(handle);
}

/* Returns the libraries loaded in the life of the process, as the dynamic linker counts; 0: unknown. */
static unsigned long long run_pass(const struct linkage_set *set, bool installs)
{
	struct pass pass = {.set = set, .installs = installs, .takes_unbound = installs};

	pass.names = calloc(MOST_LIBRARIES, sizeof(*pass.names));
	if (!pass.names)
		return 0;
	dl_iterate_phdr(list_library, &pass);
	for (size_t i = 0; i < pass.count; i++) {
		open_and_change(&pass, pass.names[i]);
		free(pass.names[i]);
	}
	free(pass.names);
	return pass.adds;
}

static void work_on(struct linkage_set *set)
{
	enum linkage_state state = __atomic_load_n(&set->state, __ATOMIC_ACQUIRE);

	if (state == LINKAGE_OPEN)
		__atomic_store_n(&linkage.adds, run_pass(set, true), __ATOMIC_RELAXED);
	if (state != LINKAGE_CLOSING)
		return;
	run_pass(set, false);
	__atomic_store_n(&set->state, LINKAGE_CLOSED, __ATOMIC_RELEASE);
}

/* Two passes at once would take each other's right to write to a page. A thread that comes late asks for one more. */
static void work(void)
{
	if (__atomic_fetch_add(&linkage.passes, 1, __ATOMIC_ACQ_REL))
		return;
	do {
		__atomic_store_n(&linkage.passes, 1, __ATOMIC_RELAXED);
		for (int i = 0; i < MOST_SETS; i++) {
			struct linkage_set *set = __atomic_load_n(&linkage.sets[i], __ATOMIC_ACQUIRE);

			if (set)
				work_on(set);
		}
	} while (__atomic_sub_fetch(&linkage.passes, 1, __ATOMIC_ACQ_REL));
}

static int read_adds(struct dl_phdr_info *info, size_t size, void *adds)
{
	if (size >= offsetof(struct dl_phdr_info, dlpi_subs))
		*(unsigned long long *)adds = info->dlpi_adds;
	return 1;
}

void linkage_install(void)
{
	unsigned long long adds = 0;

	dl_iterate_phdr(read_adds, &adds);
	if (!adds || adds != __atomic_load_n(&linkage.adds, __ATOMIC_RELAXED))
		work();
}

static void close_set(struct linkage_set *set)
{
	const struct timespec step = {.tv_nsec = STEP_NS};

	__atomic_store_n(&set->state, LINKAGE_CLOSING, __ATOMIC_RELEASE);
	work();
	for (int i = 0; i < STEPS && __atomic_load_n(&set->state, __ATOMIC_ACQUIRE) == LINKAGE_CLOSING; i++)
		nanosleep(&step, NULL);
}

static bool take_real(void *context, const struct linkage_place *place)
{
	place->hook->real = __atomic_load_n(place->at, __ATOMIC_RELAXED);
	return true;
}

static int read_own(struct dl_phdr_info *info, size_t size, void *set)
{
	struct library library;

	if (info->dlpi_addr != (uintptr_t)__ehdr_start)
		return 0;
	if (read_library(&library, info))
		each_place(&library, set, take_real, NULL);
	return 1;
}

static bool add(struct linkage_set *set)
{
	for (int i = 0; i < MOST_SETS; i++) {
		if (!linkage.sets[i])
			__atomic_store_n(&linkage.sets[i], set, __ATOMIC_RELEASE);
		if (linkage.sets[i] == set)
			return true;
	}
	return false;
}

static bool open_set(struct linkage_set *set)
{
	dl_iterate_phdr(read_own, set);
	for (size_t i = 0; i < set->count; i++)
		if (!set->hooks[i].real)
			return false;
	__atomic_store_n(&set->state, LINKAGE_OPEN, __ATOMIC_RELEASE);
	__atomic_store_n(&linkage.adds, 0, __ATOMIC_RELAXED);
	return add(set);
}

/* ---- libraries that are loaded later ---- */

struct code_search {
	const struct tables *tables;
	struct tables_slice slice;
	size_t unknown;
};

static int search_code(struct dl_phdr_info *info, size_t size, void *context)
{
	struct code_search *search = context;
	struct duet_unwind_mapping mapping;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD && segment->p_flags & PF_X &&
		    !tables_find_mapping(search->tables, &search->slice, info->dlpi_addr + segment->p_vaddr, &mapping))
			search->unknown++;
	}
	return 0;
}

/*
 * Returns how many segments of the libraries' code have no rows yet. Returns 0 without tables, as no rows will come.
 * Returns SIZE_MAX if the loader changed the tables meanwhile: the number is not known.
 */
static size_t count_unknown(void)
{
	STAY(stay);
	struct code_search search = {0};

	if (stay && stay->tables.file) {
		search.tables = &stay->tables;
		search.slice = tables_begin(&stay->tables);
		if (search.slice.generation)
			dl_iterate_phdr(search_code, &search);
		if (!tables_unchanged(&stay->tables, &search.slice))
			search.unknown = SIZE_MAX;
	}
	return search.unknown;
}

static void notify_loader(void)
{
	STAY(stay);

	if (stay && stay->loader >= 0)
		peer_send_note(stay->loader, DUET_MESSAGE_MAPPED);
}

/* Stacks through code without rows end there, and a library's first calls may be all that it does. */
static void await_rows(size_t unknown_before)
{
	const struct timespec step = {.tv_nsec = STEP_NS};

	for (int i = 0; i < ROWS_MOST_STEPS && count_unknown() > unknown_before; i++) {
		notify_loader();
		nanosleep(&step, NULL);
	}
}

/*
 * The result of dlopen() may depend on the calling library, unless the file is named by its path. Without a path, this
 * function jumps to dlopen(), which then sees the real caller, and the next rescan hooks the library.
 */
static void *hook_dlopen(const char *file, int flags)
{
	size_t unknown;
	void *handle;

	if (!file || !strchr(file, '/') || strchr(file, '$'))
		return dlopen(file, flags);
	unknown = count_unknown();
	handle = dlopen(file, flags);
	if (handle) {
		int saved_errno = errno;

		linkage_install();
		await_rows(unknown);
		errno = saved_errno;
	}
	return handle;
}

static struct linkage_hook hooks[] = {{"dlopen", (uintptr_t)hook_dlopen, false, 0, NULL}};
static struct linkage_set loading = {.hooks = hooks, .count = 1};
static unsigned int users;

bool linkage_open(struct linkage_set *set)
{
	if (!users && !open_set(&loading))
		return false;
	if (open_set(set)) {
		users++;
		return true;
	}
	if (!users)
		close_set(&loading);
	return false;
}

void linkage_close(struct linkage_set *set)
{
	close_set(set);
	if (!--users)
		close_set(&loading);
}
