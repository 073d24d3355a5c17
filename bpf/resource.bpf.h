/* SPDX-License-Identifier: GPL-2.0-only */
/* What an I/O call or request is about: the attribute of its sample, with the path of the file or the peer. */
#pragma once

#include "descriptor.bpf.h"
#include "unwind.bpf.h"

#define RESOURCE_COMPONENTS 24 /* most components of a path that are reported, from its end; the rest is cut */
#define RESOURCE_AF_UNIX 1 /* include/linux/socket.h */
#define RESOURCE_AF_INET 2
#define RESOURCE_AF_INET6 10
#define RESOURCE_FAMILY_BYTES 2 /* of a sockaddr, before the rest */

/* The attribute, as the sample has it, and room for what the verifier thinks the last component may take. */
struct resource_attribute {
	struct duet_attribute head;
	struct duet_resource resource;
	u8 text[DUET_MAX_RESOURCE_TEXT * 2 + 8];
};

_Static_assert(sizeof(struct resource_attribute) <= sizeof(((struct duet_scratch *)0)->part), "it is built there");

/* An address of a peer in the program's memory. */
struct resource_given {
	u64 address; /* 0: there is none */
	u32 bytes;
	bool is_first; /* it counts, also if the socket has a peer */
};

/* Returns true for files that are in no folder: those of pipe(2), eventfd(2), memfd_create(2) and their like. */
static __always_inline bool resource_is_anonymous(struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry);

	return dentry == BPF_CORE_READ(dentry, d_parent) && dentry != BPF_CORE_READ(file, f_path.mnt, mnt_root);
}

/* Adds the name that such a file has in /proc. */
static __always_inline void resource_add_name(struct resource_attribute *to, struct file *file)
{
	long got = bpf_probe_read_kernel_str(to->text, DUET_MAX_RESOURCE_TEXT,
					     BPF_CORE_READ(file, f_path.dentry, d_name.name));

	to->resource.kind = DUET_RESOURCE_NAME;
	to->resource.text_bytes = got > 0 ? got : 0;
}

/* Adds the components of the path, the last one first, each with its NUL. */
static __always_inline void resource_add_path(struct resource_attribute *to, struct file *file)
{
	struct dentry *dentry = BPF_CORE_READ(file, f_path.dentry), *parent;
	struct vfsmount *mount = BPF_CORE_READ(file, f_path.mnt);
	u32 bytes = 0;
	long got;

	if (!BPF_CORE_READ(dentry, d_hash.pprev) && dentry != BPF_CORE_READ(dentry, d_parent))
		to->resource.flags |= DUET_RESOURCE_DELETED;
	for (u32 i = 0; i < RESOURCE_COMPONENTS; i++) {
		parent = BPF_CORE_READ(dentry, d_parent);
		if (dentry == parent || dentry == BPF_CORE_READ(mount, mnt_root)) {
			struct mount *on = (void *)mount - bpf_core_field_offset(struct mount, mnt);
			struct mount *above = BPF_CORE_READ(on, mnt_parent);

			if (above == on) {
				to->resource.flags |= DUET_RESOURCE_WHOLE;
				break;
			}
			dentry = BPF_CORE_READ(on, mnt_mountpoint);
			mount = (void *)above + bpf_core_field_offset(struct mount, mnt);
			continue;
		}
		if (bytes >= DUET_MAX_RESOURCE_TEXT)
			break;
		got = bpf_probe_read_kernel_str(to->text + bytes, DUET_MAX_RESOURCE_TEXT,
						BPF_CORE_READ(dentry, d_name.name));
		if (got <= 0 || bytes + got > DUET_MAX_RESOURCE_TEXT)
			break;
		bytes += got;
		dentry = parent;
	}
	to->resource.text_bytes = bytes;
}

/* Returns the bytes of sun_path in an address of this size; 0 if there are none. */
static __always_inline u32 resource_unix_bytes(u32 address_bytes)
{
	u32 bytes = address_bytes - RESOURCE_FAMILY_BYTES;

	if (bytes > DUET_MAX_UNIX_PATH)
		bytes = 0;
	/* The mask is for the verifier. The asm hides the value, else the compiler would remove the mask. */
	__asm__("" : "+r"(bytes));
	return bytes & 127;
}

/* Adds the path of the peer or, if that has none, the socket's own. What follows it in the kernel's memory is not. */
static __always_inline void resource_add_unix(struct resource_attribute *to, struct unix_sock *sock)
{
	struct unix_sock *peer = (struct unix_sock *)BPF_CORE_READ(sock, peer);
	struct unix_address *address = BPF_CORE_READ(peer, addr);
	u32 bytes;

	to->resource.kind = DUET_RESOURCE_UNIX;
	if (!address)
		address = BPF_CORE_READ(sock, addr);
	if (!address)
		return;
	bytes = resource_unix_bytes(BPF_CORE_READ(address, len));
	bpf_probe_read_kernel(to->text, bytes, &address->name[0].sun_path);
	to->resource.text_bytes = bytes;
}

/* Adds the peer's address, or the socket's own if it has no peer: it listens, or its datagrams have several. */
static __always_inline void resource_add_inet(struct resource_attribute *to, struct sock *sock, u16 family)
{
	u16 port = BPF_CORE_READ(sock, __sk_common.skc_dport);
	bool is_own = !port;

	if (is_own) {
		to->resource.flags |= DUET_RESOURCE_OWN;
		to->resource.port = BPF_CORE_READ(sock, __sk_common.skc_num);
	} else {
		to->resource.port = __builtin_bswap16(port);
	}
	if (family == RESOURCE_AF_INET) {
		__be32 address = is_own ? BPF_CORE_READ(sock, __sk_common.skc_rcv_saddr) :
					  BPF_CORE_READ(sock, __sk_common.skc_daddr);

		to->resource.kind = DUET_RESOURCE_INET;
		to->resource.text_bytes = sizeof(address);
		__builtin_memcpy(to->text, &address, sizeof(address));
		return;
	}
	to->resource.kind = DUET_RESOURCE_INET6;
	to->resource.text_bytes = sizeof(struct in6_addr);
	if (is_own)
		bpf_core_read(to->text, sizeof(struct in6_addr), &sock->__sk_common.skc_v6_rcv_saddr);
	else
		bpf_core_read(to->text, sizeof(struct in6_addr), &sock->__sk_common.skc_v6_daddr);
}

/* The beginning of struct sockaddr_in6, and with less of it of sockaddr_in: their ABI. */
struct resource_address {
	u16 family;
	u16 port; /* in the order of bytes of the network */
	u32 address; /* of sockaddr_in */
	u8 address6[16];
};

/* Adds an address of the program's memory. Returns false if it cannot be read or its family is another. */
static __always_inline bool resource_add_given(struct resource_attribute *to, const struct resource_given *given,
					       u16 family)
{
	const void *from = (const void *)given->address;
	struct resource_address address = {};
	u32 bytes;

	if (!from || bpf_probe_read_user(&address, 8, from) || address.family != family)
		return false;
	if (family == RESOURCE_AF_UNIX) {
		bytes = resource_unix_bytes(given->bytes);
		if (bpf_probe_read_user(to->text, bytes, from + RESOURCE_FAMILY_BYTES))
			return false;
		to->resource.kind = DUET_RESOURCE_UNIX;
		to->resource.text_bytes = bytes;
		return true;
	}
	to->resource.port = __builtin_bswap16(address.port);
	if (family == RESOURCE_AF_INET) {
		to->resource.kind = DUET_RESOURCE_INET;
		to->resource.text_bytes = sizeof(address.address);
		__builtin_memcpy(to->text, &address.address, sizeof(address.address));
		return true;
	}
	to->resource.kind = DUET_RESOURCE_INET6;
	to->resource.text_bytes = sizeof(address.address6);
	return !bpf_probe_read_user(to->text, sizeof(address.address6), from + 8);
}

/* Adds the peer. It is what the program has given where the socket has none of its own. */
static __always_inline void resource_add_peer(struct resource_attribute *to, struct file *file,
					      const struct resource_given *given)
{
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sock = BPF_CORE_READ(socket, sk);
	u16 family = BPF_CORE_READ(sock, __sk_common.skc_family);
	bool has_peer = family == RESOURCE_AF_UNIX ? BPF_CORE_READ((struct unix_sock *)sock, peer) != NULL :
						     BPF_CORE_READ(sock, __sk_common.skc_dport) != 0;

	to->resource.kind = DUET_RESOURCE_SOCKET;
	if (family != RESOURCE_AF_UNIX && family != RESOURCE_AF_INET && family != RESOURCE_AF_INET6) {
		to->resource.port = family;
		return;
	}
	if ((given->is_first || !has_peer) && resource_add_given(to, given, family))
		return;
	if (family == RESOURCE_AF_UNIX)
		resource_add_unix(to, (struct unix_sock *)sock);
	else
		resource_add_inet(to, sock, family);
}

/* Fills the attribute. `file` may be NULL. Returns its size. Not inline, so that the programs stay small. */
static __noinline u32 resource_describe(struct resource_attribute *to, struct file *file,
					const struct resource_given *given)
{
	u32 type = file ? descriptor_type(file) : 0, bytes;

	__builtin_memset(to, 0, sizeof(to->head) + sizeof(to->resource));
	to->head.type = DUET_ATTRIBUTE_RESOURCE;
	to->resource.kind = DUET_RESOURCE_FILE;
	if (!file)
		to->resource.kind = DUET_RESOURCE_NOTHING;
	else if (type == S_IFSOCK)
		resource_add_peer(to, file, given);
	else if (!resource_is_anonymous(file))
		resource_add_path(to, file);
	else if (type == S_IFIFO)
		to->resource.kind = DUET_RESOURCE_PIPE;
	else
		resource_add_name(to, file);
	bytes = to->resource.text_bytes;
	to->head.bytes = sizeof(to->resource) + bytes;
	/* The mask is for the verifier. The asm hides the value, else the compiler would remove the mask. */
	__asm__("" : "+r"(bytes));
	__builtin_memset(to->text + (bytes & (2 * DUET_MAX_RESOURCE_TEXT - 1)), 0, 8); /* the padding */
	return sizeof(to->head) + ((to->head.bytes + 7) & ~7u);
}
