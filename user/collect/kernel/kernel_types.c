/* SPDX-License-Identifier: MIT */
#include "collect/kernel/kernel_types.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <bpf/bpf.h>
#include <bpf/btf.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/map.h"
#include "base/vec.h"

#define MOST_BYTES (64u << 20)
#define OF_A_MODULE "unix_sock" /* CONFIG_UNIX may be a module before Linux 6.4 */

/* The types of the kernel, as read. They are trusted no more than any file: offsets and sizes are checked. */
struct kernel_types {
	struct buf file;
	void *mapped; /* instead; MAP_FAILED: the kernel does not map it */
	size_t bytes;
	const char *types, *strings;
	uint32_t type_bytes, string_bytes;
	struct vec(uint32_t) at; /* by id: offset of the type in `types`; id 0 is void and has none */
	struct vec(uint32_t) chosen; /* ids; the types that they hold are added behind them */
	struct map ids; /* id -> id in the result, which is 1 + the place in `chosen` */
	struct map names; /* hashes of the names in the programs */
	uint8_t heads[1u << 13]; /* a bit for each head_of() of these names */
	struct buf result_types, result_strings;
};

static struct {
	struct vec(uint32_t) ids; /* in the kernel, of the types that were selected last */
	int fd; /* the file with these types, while libbpf has it in place of the kernel's; 0: it has not */
} lent;

static void release(struct kernel_types *kernel)
{
	if (kernel->mapped != MAP_FAILED)
		munmap(kernel->mapped, kernel->bytes);
	buf_release(&kernel->file);
	vec_release(&kernel->at);
	vec_release(&kernel->chosen);
	map_release(&kernel->ids);
	map_release(&kernel->names);
	buf_release(&kernel->result_types);
	buf_release(&kernel->result_strings);
}

/* The bytes after struct btf_type: so many, and so many for each of its parts. The other kinds have none. */
static const struct {
	uint8_t bytes, part_bytes;
} kinds[BTF_KIND_ENUM64 + 1] = {
	[BTF_KIND_INT] = {sizeof(uint32_t), 0},
	[BTF_KIND_ARRAY] = {sizeof(struct btf_array), 0},
	[BTF_KIND_STRUCT] = {0, sizeof(struct btf_member)},
	[BTF_KIND_UNION] = {0, sizeof(struct btf_member)},
	[BTF_KIND_ENUM] = {0, sizeof(struct btf_enum)},
	[BTF_KIND_ENUM64] = {0, sizeof(struct btf_enum64)},
	[BTF_KIND_FUNC_PROTO] = {0, sizeof(struct btf_param)},
	[BTF_KIND_VAR] = {sizeof(struct btf_var), 0},
	[BTF_KIND_DATASEC] = {0, sizeof(struct btf_var_secinfo)},
	[BTF_KIND_DECL_TAG] = {sizeof(struct btf_decl_tag), 0},
};

/* Returns -1 for a kind that is not known. */
static int64_t bytes_behind(const struct btf_type *type)
{
	uint16_t kind = btf_kind(type);

	return kind == BTF_KIND_UNKN || kind > BTF_KIND_ENUM64
		       ? -1
		       : kinds[kind].bytes + btf_vlen(type) * (int64_t)kinds[kind].part_bytes;
}

/* Returns "" for an offset that is not valid. */
static const char *string_at(const struct kernel_types *kernel, uint32_t offset)
{
	return offset < kernel->string_bytes ? kernel->strings + offset : "";
}

static const struct btf_type *type_of(const struct kernel_types *kernel, uint32_t id)
{
	return (const void *)(kernel->types + kernel->at.items[id]);
}

/* Linux 6.16 and later map the file. */
static int read_file(struct kernel_types *kernel, const char *path)
{
	IO_FD(fd) = open(path, O_RDONLY | O_CLOEXEC);
	int err;

	if (fd < 0)
		return -errno;
	kernel->bytes = io_bytes(fd);
	kernel->mapped = mmap(NULL, kernel->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (kernel->mapped != MAP_FAILED)
		return 0;
	(void)buf_reserve_only(&kernel->file, kernel->bytes);
	err = io_read_again(fd, MOST_BYTES, &kernel->file);
	kernel->bytes = kernel->file.len;
	return err;
}

static int read_head(struct kernel_types *kernel)
{
	const struct btf_header *head = kernel->mapped != MAP_FAILED ? kernel->mapped : (void *)kernel->file.data;
	size_t room = kernel->bytes;

	if (room < sizeof(*head) || head->magic != BTF_MAGIC || head->hdr_len > room)
		return -EINVAL;
	room -= head->hdr_len;
	if (head->type_off > room || head->type_len > room - head->type_off || head->str_off > room ||
	    head->str_len > room - head->str_off || !head->str_len || (head->hdr_len + head->type_off) % 4)
		return -EINVAL;
	kernel->types = (const char *)head + head->hdr_len + head->type_off;
	kernel->type_bytes = head->type_len;
	kernel->strings = (const char *)head + head->hdr_len + head->str_off;
	kernel->string_bytes = head->str_len;
	return kernel->strings[head->str_len - 1] ? -EINVAL : 0;
}

static int find_types(struct kernel_types *kernel)
{
	int err = vec_push(&kernel->at, 0);

	for (uint32_t at = 0; !err && at < kernel->type_bytes;) {
		int64_t behind = -1, room = (int64_t)kernel->type_bytes - at - (int64_t)sizeof(struct btf_type);

		if (room >= 0)
			behind = bytes_behind((const void *)(kernel->types + at));
		if (behind < 0 || behind > room)
			return -EINVAL;
		err = vec_push(&kernel->at, at);
		at += (uint32_t)(sizeof(struct btf_type) + (size_t)behind);
	}
	return err;
}

/* Hashes a name without what follows "___": that is only for the programs. */
static uint64_t hash_name(const char *name)
{
	const char *flavor = strstr(name, "___");
	size_t len = flavor && flavor > name ? (size_t)(flavor - name) : strlen(name);

	return hash_bytes(name, len, 0);
}

/* Most of the kernel's names differ from all in the programs here. Their hash is not made then. */
static uint16_t head_of(const char *name)
{
	uint32_t head = 0;

	for (int i = 0; i < 4 && name[i]; i++)
		head = head << 8 | (uint8_t)name[i];
	return (uint16_t)(head * 0x9e3779b1u >> 16);
}

static int note_names(struct kernel_types *kernel, const struct btf *programs)
{
	int err = 0;

	for (uint32_t id = 1; !err && id < btf__type_cnt(programs); id++) {
		const char *name = btf__name_by_offset(programs, btf__type_by_id(programs, id)->name_off);

		if (!name || !name[0])
			continue;
		err = map_put(&kernel->names, hash_name(name), 1);
		kernel->heads[head_of(name) / 8] |= (uint8_t)(1u << head_of(name) % 8);
	}
	return err;
}

/* Calls `on` for the id of each type that the type holds. Returns 0, or what `on` has returned. */
static int each_held(struct kernel_types *kernel, struct btf_type *type, int (*on)(struct kernel_types *, uint32_t *id))
{
	int err = 0;

	switch (btf_kind(type)) {
	case BTF_KIND_CONST:
	case BTF_KIND_VOLATILE:
	case BTF_KIND_RESTRICT:
	case BTF_KIND_TYPEDEF:
	case BTF_KIND_TYPE_TAG:
	case BTF_KIND_FUNC:
	case BTF_KIND_VAR:
		return on(kernel, &type->type);
	case BTF_KIND_FUNC_PROTO:
		for (uint32_t i = 0; !err && i < btf_vlen(type); i++)
			err = on(kernel, &btf_params(type)[i].type);
		return err ? err : on(kernel, &type->type);
	case BTF_KIND_ARRAY:
		err = on(kernel, &btf_array(type)->type);
		return err ? err : on(kernel, &btf_array(type)->index_type);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		for (uint32_t i = 0; !err && i < btf_vlen(type); i++)
			err = on(kernel, &btf_members(type)[i].type);
		return err;
	default:
		return 0;
	}
}

static int choose(struct kernel_types *kernel, uint32_t *id)
{
	uint64_t known;
	int err;

	if (*id >= kernel->at.len)
		return -EINVAL;
	if (!*id || map_get(&kernel->ids, *id, &known))
		return 0;
	err = vec_push(&kernel->chosen, *id);
	return err ? err : map_put(&kernel->ids, *id, kernel->chosen.len);
}

/* The programs do not name the types of tracepoints and the functions of iterators that they attach to. */
static bool is_hook(const struct btf_type *type, const char *name)
{
	return (btf_is_typedef(type) && !strncmp(name, "btf_trace_", strlen("btf_trace_"))) ||
	       (btf_is_func(type) && !strncmp(name, "bpf_iter_", strlen("bpf_iter_")));
}

static bool is_named(const struct kernel_types *kernel, const struct btf_type *type)
{
	const char *name = string_at(kernel, type->name_off);
	uint16_t head = head_of(name);
	uint64_t known;

	if (!name[0] || btf_is_datasec(type) || btf_is_decl_tag(type) || btf_is_type_tag(type))
		return false;
	return is_hook(type, name) ||
	       (kernel->heads[head / 8] >> head % 8 & 1 && map_get(&kernel->names, hash_name(name), &known));
}

static int choose_all(struct kernel_types *kernel)
{
	bool has_module = false;
	int err = 0;

	for (uint32_t id = 1; !err && id < kernel->at.len; id++) {
		if (!is_named(kernel, type_of(kernel, id)))
			continue;
		has_module = has_module || !strcmp(string_at(kernel, type_of(kernel, id)->name_off), OF_A_MODULE);
		err = choose(kernel, &id);
	}
	for (size_t i = 0; !err && i < kernel->chosen.len; i++)
		err = each_held(kernel, (struct btf_type *)type_of(kernel, kernel->chosen.items[i]), choose);
	return err || has_module ? err : -ENOENT;
}

static int rename_held(struct kernel_types *kernel, uint32_t *id)
{
	uint64_t renamed = 0;

	if (*id && !map_get(&kernel->ids, *id, &renamed))
		return -EINVAL;
	*id = (uint32_t)renamed;
	return 0;
}

static void move_name(struct kernel_types *kernel, uint32_t *offset)
{
	const char *name = string_at(kernel, *offset);

	*offset = name[0] ? (uint32_t)kernel->result_strings.len : 0;
	if (name[0])
		buf_add(&kernel->result_strings, name, strlen(name) + 1);
}

static void move_names(struct kernel_types *kernel, struct btf_type *type)
{
	uint32_t count = btf_vlen(type);

	move_name(kernel, &type->name_off);
	for (uint32_t i = 0; btf_is_composite(type) && i < count; i++)
		move_name(kernel, &btf_members(type)[i].name_off);
	for (uint32_t i = 0; btf_is_enum(type) && i < count; i++)
		move_name(kernel, &btf_enum(type)[i].name_off);
	for (uint32_t i = 0; btf_is_func_proto(type) && i < count; i++)
		move_name(kernel, &btf_params(type)[i].name_off);
	for (uint32_t i = 0; btf_is_enum64(type) && i < count; i++)
		move_name(kernel, &btf_enum64(type)[i].name_off);
}

static int add_type(struct kernel_types *kernel, const struct btf_type *from)
{
	size_t at = kernel->result_types.len, bytes = sizeof(*from) + (size_t)bytes_behind(from);
	struct btf_type *type;

	buf_add(&kernel->result_types, from, bytes);
	if (kernel->result_types.failed)
		return -ENOMEM;
	type = (void *)(kernel->result_types.data + at);
	move_names(kernel, type);
	if (btf_is_ptr(type) && rename_held(kernel, &type->type))
		type->type = 0;
	return each_held(kernel, type, rename_held);
}

static int write_result(struct kernel_types *kernel, int fd)
{
	struct btf_header head = {
		.magic = BTF_MAGIC,
		.version = BTF_VERSION,
		.hdr_len = sizeof(head),
		.type_len = (uint32_t)kernel->result_types.len,
		.str_off = (uint32_t)kernel->result_types.len,
		.str_len = (uint32_t)kernel->result_strings.len,
	};
	int err = kernel->result_strings.failed ? -ENOMEM : io_write_all(fd, &head, sizeof(head));

	if (!err)
		err = io_write_all(fd, kernel->result_types.data, kernel->result_types.len);
	return err ? err : io_write_all(fd, kernel->result_strings.data, kernel->result_strings.len);
}

static int make_result(struct kernel_types *kernel)
{
	int err = 0;

	buf_add_char(&kernel->result_strings, '\0'); /* the name at offset 0 is empty */
	for (size_t i = 0; !err && i < kernel->chosen.len; i++)
		err = add_type(kernel, type_of(kernel, kernel->chosen.items[i]));
	return err;
}

int kernel_types_select(const char *path, const struct btf *programs, int fd)
{
	struct kernel_types kernel = {
		.file = BUF_NONE, .mapped = MAP_FAILED, .result_types = BUF_NONE, .result_strings = BUF_NONE};
	int err = read_file(&kernel, path);

	if (!err)
		err = read_head(&kernel);
	if (!err)
		err = find_types(&kernel);
	if (!err)
		err = note_names(&kernel, programs);
	if (!err)
		err = choose_all(&kernel);
	if (!err)
		err = make_result(&kernel);
	if (!err)
		err = write_result(&kernel, fd);
	vec_release(&lent.ids);
	lent.ids.items = kernel.chosen.items;
	lent.ids.len = kernel.chosen.len;
	kernel.chosen.items = NULL;
	release(&kernel);
	return err;
}

/* ---- in place of libbpf's: the linker calls these functions instead (--wrap) ---- */

void kernel_types_lend(int fd)
{
	lent.fd = fd;
}

struct btf *__real_btf__load_vmlinux_btf(void);
struct btf *__wrap_btf__load_vmlinux_btf(void);

struct btf *__wrap_btf__load_vmlinux_btf(void)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", lent.fd);
	return lent.fd ? btf__parse_raw(path) : __real_btf__load_vmlinux_btf();
}

static uint32_t id_in_kernel(uint32_t id)
{
	return id && id <= lent.ids.len ? lent.ids.items[id - 1] : id;
}

int __real_bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *insns,
			 size_t count, const struct bpf_prog_load_opts *opts);
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *insns,
			 size_t count, const struct bpf_prog_load_opts *opts);

/* The instructions that have an id: a call of the kernel's function, and the address of a variable. */
int __wrap_bpf_prog_load(enum bpf_prog_type type, const char *name, const char *license, const struct bpf_insn *insns,
			 size_t count, const struct bpf_prog_load_opts *opts)
{
	struct bpf_insn *moved = lent.fd && count && opts ? buf_duplicate(insns, count * sizeof(*insns)) : NULL;
	struct bpf_prog_load_opts with_ids;
	int fd;

	if (!moved)
		return __real_bpf_prog_load(type, name, license, insns, count, opts);
	with_ids = *opts;
	with_ids.attach_btf_id = id_in_kernel(opts->attach_btf_id);
	for (size_t i = 0; i < count; i++)
		if ((moved[i].code == (BPF_JMP | BPF_CALL) && moved[i].src_reg == BPF_PSEUDO_KFUNC_CALL) ||
		    (moved[i].code == (BPF_LD | BPF_IMM | BPF_DW) && moved[i].src_reg == BPF_PSEUDO_BTF_ID))
			moved[i].imm = (int)id_in_kernel((uint32_t)moved[i].imm);
	fd = __real_bpf_prog_load(type, name, license, moved, count, &with_ids);
	free(moved);
	return fd;
}

/*
 * libbpf looks for a variable of the kernel that not every kernel has (bpf/event_wakeup.bpf.c) in the types of all
 * modules too. To list these takes CAP_SYS_ADMIN, and libbpf 1.1 refuses the programs without it, though CAP_BPF and
 * CAP_PERFMON are all that they need.
 */
int __real_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id);

/* Without the right to list them, there are none. Nor are they needed where all types were found in the kernel. */
int __wrap_bpf_btf_get_next_id(__u32 start_id, __u32 *next_id)
{
	int err = lent.fd ? -ENOENT : __real_bpf_btf_get_next_id(start_id, next_id);

	if (lent.fd || (err && errno == EPERM))
		errno = ENOENT;
	return err && errno == ENOENT ? -ENOENT : err;
}
