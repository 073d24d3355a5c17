/* SPDX-License-Identifier: MIT */
#include "proc/selection.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "proc/cgroup.h"

void selection_open(struct selection *selection, const char *comm)
{
	*selection = (struct selection){.comm = comm};
	buf_init(&selection->cgroup);
}

void selection_release(struct selection *selection)
{
	buf_release(&selection->cgroup);
}

int selection_find(struct selection *selection, struct containers *containers, const char *cgroup,
		   const char *container, struct buf *why)
{
	const struct cgroup_tree *tree = &containers->tree;
	int err = 0;

	if (container)
		err = containers_find(containers, container, &selection->cgroup_id, &selection->cgroup, why);
	else if (cgroup)
		err = cgroup_find(tree, cgroup, &selection->cgroup_id, &selection->cgroup);
	if (!err || why->len)
		return err;
	if (tree->fd < 0)
		buf_printf(why, "--cgroup needs cgroup v2, which is not mounted on /sys/fs/cgroup or .../unified");
	else
		buf_printf(why, "no cgroup '%s' below %s: %s; systemd-cgls lists all", cgroup, tree->mount,
			   err == -EXDEV ? "it is not in cgroup v2" : strerror(-err));
	return err;
}

bool selection_has(const struct selection *selection, const struct process *process)
{
	BUF(path);

	if (selection->comm && strncmp(process->comm, selection->comm, sizeof(process->comm) - 1) != 0)
		return false;
	if (!selection->cgroup_id)
		return true;
	return !cgroup_of_process(process->pid, false, &path) && cgroup_is_below(path.data, selection->cgroup.data);
}

void selection_count(struct selection *selection, const struct process_table *processes, struct buf *none)
{
	struct text_guess guess = {.typed = selection->comm};

	selection->found = 0;
	for (size_t i = 0; i < processes->all.len; i++) {
		const struct process *process = processes->all.items[i];

		selection->found += selection_has(selection, process);
		if (selection->comm)
			text_guess(&guess, process->comm);
	}
	if (selection->found)
		return;
	buf_printf(none, "no process%s%s%s%s%s", selection->comm ? " of the name '" : "",
		   selection->comm ? selection->comm : "", selection->comm ? "'" : "",
		   selection->cgroup_id ? " in the cgroup " : "", selection->cgroup_id ? selection->cgroup.data : "");
	if (guess.word[0])
		buf_printf(none, " (did you mean %s?)", guess.word);
}
