// SPDX-License-Identifier: GPL-2.0-only
/*
 * The mapping at a pc, from the kernel's own list. A process that has just begun, or has just loaded a library, has
 * mappings that the loader does not know yet. If the tables have the file's rows because of another process, these rows
 * are used. The kernel unlocks its list only after the interrupt, and until then it cannot be asked again. So its
 * answers are kept, and a stack that leads through two such files is whole in the next sample. Linux before 5.17 has no
 * bpf_find_vma(); before 5.13 it refuses a program that contains a callback.
 */
#include "core.bpf.h"
#include "unwind_native.bpf.h"

#define FMODE_BACKING (1u << 25) /* include/linux/fs.h: the file is in a struct backing_file */
#define UNWIND_MOST_ASKED 8 /* questions to the kernel in one sample */

/* Returns the inode that /proc/PID/maps shows for the mapping, as file_user_inode() in include/linux/fs.h. */
static __always_inline struct inode *vma_inode(struct vm_area_struct *vma)
{
	struct file *file = BPF_CORE_READ(vma, vm_file);
	struct backing_file *backing = (struct backing_file *)file;

	if (file && bpf_core_field_exists(backing->user_path) && BPF_CORE_READ(file, f_mode) & FMODE_BACKING)
		return BPF_CORE_READ(backing, user_path.dentry, d_inode);
	return BPF_CORE_READ(file, f_inode);
}

/* Names of its times: __i_mtime since Linux 6.7, i_mtime_sec and i_mtime_nsec since Linux 6.11. */
static __always_inline void vma_read_file(struct vm_area_struct *vma, struct duet_mapped_file *ret)
{
	struct inode *inode = vma_inode(vma);
	struct inode___before_6_11 *middle = (void *)inode;
	struct inode___before_6_7 *old = (void *)inode;

	ret->inode = BPF_CORE_READ(inode, i_ino);
	ret->page = BPF_CORE_READ(vma, vm_pgoff);
	ret->bytes = BPF_CORE_READ(inode, i_size);
	ret->device = BPF_CORE_READ(inode, i_sb, s_dev);
	if (bpf_core_field_exists(inode->i_mtime_sec)) {
		ret->changed_sec = BPF_CORE_READ(inode, i_mtime_sec);
		ret->changed_nsec = BPF_CORE_READ(inode, i_mtime_nsec);
	} else if (bpf_core_field_exists(middle->__i_mtime)) {
		ret->changed_sec = BPF_CORE_READ(middle, __i_mtime.tv_sec);
		ret->changed_nsec = BPF_CORE_READ(middle, __i_mtime.tv_nsec);
	} else {
		ret->changed_sec = BPF_CORE_READ(old, i_mtime.tv_sec);
		ret->changed_nsec = BPF_CORE_READ(old, i_mtime.tv_nsec);
	}
}

struct vma_found {
	u64 start;
	u64 end;
	struct duet_mapped_file file;
};

static long vma_take(struct task_struct *task, struct vm_area_struct *vma, void *context)
{
	struct vma_found *found = context;

	found->start = BPF_CORE_READ(vma, vm_start);
	found->end = BPF_CORE_READ(vma, vm_end);
	vma_read_file(vma, &found->file);
	return 0;
}

static __always_inline bool learnt_is_valid(const struct unwind_learnt_mapping *learnt)
{
	u32 index = learnt->mapping.module;
	struct duet_unwind_module *module = bpf_map_lookup_elem(&unwind_modules, &index);

	return module && module->serial == learnt->serial;
}

/* Returns the mappings that the kernel has returned for this process before, or NULL. */
static __always_inline struct unwind_learnt *learnt_get(struct duet_scratch *room)
{
	struct unwind_learnt *learnt = bpf_map_lookup_elem(&unwind_learnt, &room->sample.head.tgid);

	return learnt && learnt->start_ticks == duet_ticks(room->sample.start_ns) ? learnt : NULL;
}

static __always_inline bool learnt_find(struct duet_scratch *room, u64 pc)
{
	struct unwind_learnt *learnt = learnt_get(room);

	for (u32 i = 0; learnt && i < UNWIND_LEARNT; i++) {
		if (!walk_is_inside(&learnt->mappings[i].mapping, pc))
			continue;
		room->unpublished = learnt->mappings[i].mapping;
		return learnt_is_valid(&learnt->mappings[i]);
	}
	return false;
}

/* If two CPUs add at the same time, one mapping is lost, and the kernel is asked for it again. */
static __always_inline void learnt_add(struct duet_scratch *room, const struct unwind_learnt_mapping *mapping)
{
	struct unwind_learnt *old = learnt_get(room), *learnt = &room->learnt;
	u32 at;

	if (old)
		bpf_probe_read_kernel(learnt, sizeof(*learnt), old);
	else
		__builtin_memset(learnt, 0, sizeof(*learnt));
	learnt->start_ticks = duet_ticks(room->sample.start_ns);
	at = learnt->count++ & (UNWIND_LEARNT - 1);
	learnt->mappings[at] = *mapping;
	bpf_map_update_elem(&unwind_learnt, &room->sample.head.tgid, learnt, BPF_ANY);
}

/* Sets room->unpublished. Returns false if the tables do not have the file's rows. */
static __always_inline bool vma_find_rows(struct duet_scratch *room, const struct vma_found *found)
{
	struct duet_mapped_rows *rows = bpf_map_lookup_elem(&unwind_files, &found->file);
	struct unwind_learnt_mapping learnt = {};

	if (!rows)
		return false;
	learnt.mapping.start = found->start;
	learnt.mapping.end = found->end;
	learnt.mapping.base = found->start + rows->base;
	learnt.mapping.module = rows->module;
	learnt.mapping.code = DUET_CODE_FILE;
	learnt.serial = rows->serial;
	if (!learnt_is_valid(&learnt))
		return false;
	learnt_add(room, &learnt);
	room->unpublished = learnt.mapping;
	return true;
}

__noinline int unwind_find_unpublished(u32 level)
{
	struct duet_scratch *room = scratch_get(level);
	struct vma_found found = {};
	u64 pc;

	if (!room)
		return 0;
	pc = room->cursor.pc - room->cursor.is_return;
	if (learnt_find(room, pc))
		return 1;
	if (room->asked++ >= UNWIND_MOST_ASKED)
		return 0;
	if (bpf_find_vma(bpf_get_current_task_btf(), pc, vma_take, &found, 0))
		return 0; /* no mapping there, or the list is locked */
	return vma_find_rows(room, &found);
}

char LICENSE[] SEC("license") = "GPL";
