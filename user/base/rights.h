/* SPDX-License-Identifier: MIT */
/* Gives up rights for good, in processes that touch a target's files and sockets. Never call these in the loader. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define RIGHTS_NONE 0
#define RIGHT(capability) (1ull << (capability))

/* Drops all capabilities but these, also for root: root in a container is not trusted as root. Returns 0 or -errno. */
int rights_keep(uint64_t capabilities);
/* Makes all file access of this process happen as this user and only this group. Returns 0 or -errno. */
int rights_use_files_of(uid_t uid, gid_t gid);
