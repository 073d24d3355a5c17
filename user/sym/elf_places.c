/* SPDX-License-Identifier: MIT */
#include "sym/elf_places.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "sym/demangle.h"

#define NEAREST_CHANGES 3 /* a name that differs in more letters than this is not suggested */
#define NEAREST_LOOKS 200000 /* names compared at most */
#define OTHERS_SHOWN 8
#define NT_STAPSDT 3

struct search {
	const char *name;
	const char *of_class; /* C++: the part of the name behind the last "::"; NULL: the name has none */
	bool is_function;
	bool found, is_global;
	uint64_t vaddr;
	unsigned looks;
	size_t changes; /* changes of the nearest name */
	struct buf nearest;
};

/* A name of C++ is wanted as people write it, without parameters: Class::function. */
static bool is_name(const struct search *search, const char *name, size_t len)
{
	size_t wanted = strlen(search->name);
	BUF(readable);

	if (wanted && search->name[wanted - 1] == '*')
		return len >= wanted - 1 && !memcmp(name, search->name, wanted - 1);
	if (len == wanted && !memcmp(name, search->name, len))
		return true;
	if (!search->of_class || strncmp(name, "_Z", 2) != 0 || !strstr(name, search->of_class))
		return false;
	return demangle(name, &readable) && !strcmp(readable.data, search->name);
}

static void look(struct search *search, const char *name, size_t len, const GElf_Sym *symbol)
{
	bool is_global = GELF_ST_BIND(symbol->st_info) != STB_LOCAL;
	size_t changes, wanted = strlen(search->name);

	if (is_name(search, name, len)) {
		if (!search->found || (is_global && !search->is_global)) {
			search->vaddr = symbol->st_value;
			search->is_global = is_global;
		}
		search->found = true;
	}
	if (search->found || search->looks++ > NEAREST_LOOKS || len > 32 || len + NEAREST_CHANGES < wanted ||
	    len > wanted + NEAREST_CHANGES)
		return;
	changes = text_distance(name, search->name);
	if (changes >= search->changes)
		return;
	search->changes = changes;
	buf_clear(&search->nearest);
	buf_add(&search->nearest, name, len);
}

static bool is_wanted(const GElf_Sym *symbol, bool is_function)
{
	int type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx >= SHN_LORESERVE || !symbol->st_value)
		return false;
	return is_function ? type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE
			   : type == STT_OBJECT || type == STT_FUNC || type == STT_NOTYPE;
}

static void look_in(struct search *search, struct elf_reader *reader, Elf_Scn *section, const GElf_Shdr *shdr)
{
	Elf_Data *names, *symbols = elf_reader_symbols(reader, section, shdr, &names);
	GElf_Sym symbol;

	for (int i = 1; symbols && gelf_getsym(symbols, i, &symbol); i++) {
		const char *name = elf_reader_symbol_name(names, &symbol);

		if (*name && is_wanted(&symbol, search->is_function))
			look(search, name, strcspn(name, "@"), &symbol); /* the part after '@' is a version */
	}
}

int elf_places_symbol(struct elf_reader *reader, const char *name, bool is_function, uint64_t *ret_vaddr,
		      struct buf *nearest)
{
	struct search search = {.name = name, .is_function = is_function, .changes = NEAREST_CHANGES + 1};
	const char *colons = strrchr(name, ':');
	Elf_Scn *section = NULL;
	GElf_Shdr shdr;

	if (colons > name && colons[-1] == ':')
		search.of_class = colons + 1;
	if (!nearest)
		search.looks = NEAREST_LOOKS + 1;
	buf_init(&search.nearest);
	while ((section = elf_nextscn(reader->elf, section)))
		if (gelf_getshdr(section, &shdr) && (shdr.sh_type == SHT_SYMTAB || shdr.sh_type == SHT_DYNSYM))
			look_in(&search, reader, section, &shdr);
	if (search.found)
		*ret_vaddr = search.vaddr;
	else if (nearest)
		text_add_line(nearest, search.nearest.data);
	buf_release(&search.nearest);
	return search.found ? 0 : -ENOENT;
}

struct note {
	uint64_t pc, base, counter; /* addresses */
	const char *provider, *name;
};

/* The note's description: three addresses, then two texts and the arguments, each with a NUL. */
static bool read_note(struct note *note, const char *desc, size_t len)
{
	const char *end = desc + len, *provider = desc + 3 * sizeof(uint64_t), *name;

	if (len <= 3 * sizeof(uint64_t))
		return false;
	name = memchr(provider, '\0', (size_t)(end - provider));
	if (!name || !memchr(name + 1, '\0', (size_t)(end - name - 1)))
		return false;
	memcpy(&note->pc, desc, sizeof(note->pc));
	memcpy(&note->base, desc + sizeof(uint64_t), sizeof(note->base));
	memcpy(&note->counter, desc + 2 * sizeof(uint64_t), sizeof(note->counter));
	note->provider = provider;
	note->name = name + 1;
	return true;
}

static int add_probe(struct elf_reader *reader, const struct elf_segments *segments, const struct note *note,
		     struct elf_probes *ret)
{
	GElf_Shdr base;
	/* Tools that move the file's code move this section, but do not change the notes. */
	uint64_t moved = elf_reader_find(reader, ".stapsdt.base", &base) ? base.sh_addr - note->base : 0;
	struct elf_probe probe = {0};

	if (ret->list.len >= ELF_PLACES_MAX_PROBES || !elf_segments_offset(segments, note->pc + moved, &probe.offset))
		return 0;
	if (note->counter && !elf_segments_offset(segments, note->counter + moved, &probe.counter))
		return 0;
	return vec_push(&ret->list, probe);
}

/* Adds each name once: the notes of one probe are usually adjacent. */
static void add_other(struct buf *others, size_t *shown, const struct note *note)
{
	BUF(name);

	buf_printf(&name, "%s:%s", note->provider, note->name);
	if (*shown < OTHERS_SHOWN && !strstr(others->data, name.data)) {
		buf_add_str(others, (*shown)++ ? ", " : "");
		text_add_line(others, name.data);
	}
}

static int read_notes(struct elf_reader *reader, Elf_Data *data, const char *provider, const char *name,
		      struct elf_probes *ret, struct buf *others)
{
	size_t name_at, desc_at, next, shown = 0;
	struct elf_segments segments = {0};
	GElf_Phdr ignored;
	GElf_Nhdr head;
	struct note note;
	int err = elf_reader_segments(reader, &segments, &ignored);

	for (size_t at = 0; !err && (next = gelf_getnote(data, at, &head, &name_at, &desc_at)); at = next) {
		const char *bytes = data->d_buf;

		if (head.n_type != NT_STAPSDT || head.n_namesz != sizeof("stapsdt") ||
		    memcmp(bytes + name_at, "stapsdt", sizeof("stapsdt")) ||
		    !read_note(&note, bytes + desc_at, head.n_descsz))
			continue;
		if (!strcmp(note.provider, provider) && !strcmp(note.name, name))
			err = add_probe(reader, &segments, &note, ret);
		else
			add_other(others, &shown, &note);
	}
	vec_release(&segments);
	return err;
}

int elf_places_probes(struct elf_reader *reader, const char *provider, const char *name, struct elf_probes *ret,
		      struct buf *others)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find(reader, ".note.stapsdt", &shdr);
	Elf_Data *data = section && shdr.sh_type == SHT_NOTE ? elf_reader_section(reader, section, &shdr) : NULL;
	int err = data && gelf_getclass(reader->elf) == ELFCLASS64
			  ? read_notes(reader, data, provider, name, ret, others)
			  : 0;

	return err ? err : (int)ret->list.len;
}

/* ---- the variable of a thread's trace and span ---- */

/* The relocation that shows each place. */
static const uint64_t relocations[] = {
#if defined(__x86_64__)
	[DUET_CONTEXT_DESCRIPTOR] = R_X86_64_TLSDESC,
	[DUET_CONTEXT_INDEX] = R_X86_64_DTPMOD64,
	[DUET_CONTEXT_DISTANCE] = R_X86_64_TPOFF64,
#else
	[DUET_CONTEXT_DESCRIPTOR] = R_AARCH64_TLSDESC,
	[DUET_CONTEXT_INDEX] = R_AARCH64_TLS_DTPMOD,
	[DUET_CONTEXT_DISTANCE] = R_AARCH64_TLS_TPREL,
#endif
};

/* Finds the first program header of this type. */
static bool find_header(const struct elf_reader *reader, uint32_t type, GElf_Phdr *ret)
{
	for (size_t at = 0; elf_reader_segment(reader, &at, ret);)
		if (ret->p_type == type)
			return true;
	return false;
}

/* Returns the symbol's index in .dynsym; 0: it is not there, or only used there. */
static size_t find_context(struct elf_reader *reader, GElf_Sym *ret)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find_type(reader, SHT_DYNSYM, &shdr);
	Elf_Data *names, *symbols = section ? elf_reader_symbols(reader, section, &shdr, &names) : NULL;

	for (int i = 1; symbols && gelf_getsym(symbols, i, ret); i++)
		if (GELF_ST_TYPE(ret->st_info) == STT_TLS &&
		    !strcmp(elf_reader_symbol_name(names, ret), DUET_CONTEXT_SYMBOL))
			return ret->st_shndx == SHN_UNDEF ? 0 : (size_t)i;
	return 0;
}

static enum duet_context_place place_of(uint64_t relocation)
{
	for (size_t i = 0; i < sizeof(relocations) / sizeof(*relocations); i++)
		if (relocations[i] && relocations[i] == relocation)
			return (enum duet_context_place)i;
	return DUET_CONTEXT_NOWHERE;
}

/*
 * A linker names the symbol, or has its offset in the file's block if no other file can take its place. That number is
 * not in the relocation of INDEX.
 */
static bool is_of(const GElf_Rela *relocation, enum duet_context_place place, size_t index, const GElf_Sym *symbol)
{
	if (GELF_R_SYM(relocation->r_info))
		return GELF_R_SYM(relocation->r_info) == index;
	return place != DUET_CONTEXT_INDEX && (uint64_t)relocation->r_addend == symbol->st_value;
}

static bool find_relocation(struct elf_reader *reader, size_t index, const GElf_Sym *symbol,
			    struct duet_context_source *ret)
{
	Elf_Scn *section = NULL;
	GElf_Rela relocation;
	GElf_Shdr shdr;

	while ((section = elf_nextscn(reader->elf, section))) {
		bool is_one = gelf_getshdr(section, &shdr) && shdr.sh_type == SHT_RELA;
		Elf_Data *data = is_one ? elf_reader_section(reader, section, &shdr) : NULL;

		for (int i = 0; data && gelf_getrela(data, i, &relocation); i++) {
			enum duet_context_place place = place_of(GELF_R_TYPE(relocation.r_info));

			if (place == DUET_CONTEXT_NOWHERE || !is_of(&relocation, place, index, symbol))
				continue;
			*ret = (struct duet_context_source){.at = relocation.r_offset, .place = place};
			return true;
		}
	}
	return false;
}

/* Linkers say so of those that may be anywhere in memory, also of static ones. */
static bool is_executable(struct elf_reader *reader, const GElf_Ehdr *head)
{
	GElf_Shdr shdr;
	Elf_Scn *section = elf_reader_find_type(reader, SHT_DYNAMIC, &shdr);
	Elf_Data *data = section ? elf_reader_section(reader, section, &shdr) : NULL;
	GElf_Phdr interpreter;
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++)
		if (entry.d_tag == DT_FLAGS_1 && entry.d_un.d_val & DF_1_PIE)
			return true;
	return head->e_type == ET_EXEC || find_header(reader, PT_INTERP, &interpreter);
}

/* In an executable, the linker has put the variable at a distance that it knows: code needs no relocation. */
static bool find_fixed(struct elf_reader *reader, const GElf_Phdr *tls, const GElf_Sym *symbol,
		       struct duet_context_source *ret)
{
	uint64_t align = tls->p_align ? tls->p_align : 1;
	GElf_Ehdr head;

	if (!gelf_getehdr(reader->elf, &head) || align & (align - 1) || tls->p_memsz >= DUET_CONTEXT_DISTANCES ||
	    symbol->st_value >= tls->p_memsz)
		return false;
	if (!is_executable(reader, &head))
		return false;
	*ret = (struct duet_context_source){.place = DUET_CONTEXT_FIXED};
#if defined(__x86_64__)
	/* the block ends at the thread pointer, which is aligned as it needs */
	ret->at = symbol->st_value - ((tls->p_memsz + align - 1) & ~(align - 1));
#else
	/* it begins after two words, aligned */
	ret->at = symbol->st_value + ((16 + align - 1) & ~(align - 1));
#endif
	return true;
}

int elf_places_context(struct elf_reader *reader, struct duet_context_source *ret)
{
	GElf_Sym symbol;
	GElf_Phdr tls;
	size_t index = find_header(reader, PT_TLS, &tls) ? find_context(reader, &symbol) : 0;

	if (index && (find_relocation(reader, index, &symbol, ret) || find_fixed(reader, &tls, &symbol, ret)))
		return 0;
	return -ENOENT;
}
