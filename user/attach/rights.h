/* SPDX-License-Identifier: MIT */
/* Giving up rights for good, in processes that deal with a target's files and sockets. Never called in the loader. */
#ifndef ATTACH_RIGHTS_H
#define ATTACH_RIGHTS_H

#include <stdint.h>
#include <sys/types.h>

#define RIGHTS_NONE 0
#define RIGHT(capability) (1ull << (capability))

/* Keeps only these capabilities. Root gives up his too: a container's root is no root of ours. 0 or -errno. */
int rights_keep(uint64_t capabilities);
/* Files are looked up and made as this user, of this group and no other. 0 or -errno. */
int rights_use_files_of(uid_t uid, gid_t gid);

#endif
