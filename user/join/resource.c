/* SPDX-License-Identifier: MIT */
#include "join/resource.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

/* Appends the components in reverse order. */
static void add_path(const char *text, size_t bytes, uint8_t flags, struct buf *out)
{
	size_t end = bytes && !text[bytes - 1] ? bytes - 1 : bytes;

	if (!(flags & DUET_RESOURCE_WHOLE))
		buf_add_str(out, "…");
	else if (!end)
		buf_add_str(out, "/");
	while (end) {
		size_t start = end;

		while (start && text[start - 1])
			start--;
		buf_add_str(out, "/");
		buf_add(out, text + start, end - start);
		end = start ? start - 1 : 0;
	}
	if (flags & DUET_RESOURCE_DELETED)
		buf_add_str(out, " (deleted)");
}

/* An IPv6 socket may have an IPv4 peer, whose address is then at the end. It has the same name as with IPv4. */
static void add_address(int family, const struct duet_resource *resource, const char *text, struct buf *out)
{
	char address[INET6_ADDRSTRLEN] = "";
	struct in6_addr bytes = {0};
	const void *from = &bytes;
	bool is_own = resource->flags & DUET_RESOURCE_OWN;

	memcpy(&bytes, text, resource->text_bytes < sizeof(bytes) ? resource->text_bytes : sizeof(bytes));
	if (family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&bytes)) {
		family = AF_INET;
		from = bytes.s6_addr + 12;
	}
	if (!inet_ntop(family, from, address, sizeof(address)))
		address[0] = '\0';
	buf_add_str(out, is_own ? "[own " : "");
	buf_printf(out, family == AF_INET ? "%s:%u" : "[%s]:%u", address, resource->port);
	buf_add_str(out, is_own ? "]" : "");
}

/* A name that begins with NUL is abstract: it is in no file system. Each NUL in it is shown as '@', as in /proc. */
static void add_unix(const char *text, size_t bytes, struct buf *out)
{
	if (!bytes || (!text[0] && bytes == 1)) {
		buf_add_str(out, "[unix socket]");
	} else if (text[0]) {
		buf_printf(out, "unix:%.*s", (int)bytes, text);
	} else {
		buf_add_str(out, "unix:");
		for (size_t i = 0; i < bytes; i++)
			buf_add(out, text[i] ? &text[i] : "@", 1);
	}
}

static void add_family(uint16_t family, struct buf *out)
{
	const char *name = family == AF_NETLINK ? "netlink" : family == AF_PACKET ? "packet" :
			   family == AF_VSOCK   ? "vsock"   : NULL;

	buf_printf(out, name ? "[%s socket]" : "[socket]", name);
}

void resource_name(const struct duet_attribute *attribute, struct buf *out)
{
	const struct duet_resource *resource = (const void *)(attribute + 1);
	const char *text = (const char *)(resource + 1);

	if (resource->kind == DUET_RESOURCE_FILE)
		add_path(text, resource->text_bytes, resource->flags, out);
	else if (resource->kind == DUET_RESOURCE_INET)
		add_address(AF_INET, resource, text, out);
	else if (resource->kind == DUET_RESOURCE_INET6)
		add_address(AF_INET6, resource, text, out);
	else if (resource->kind == DUET_RESOURCE_UNIX)
		add_unix(text, resource->text_bytes, out);
	else if (resource->kind == DUET_RESOURCE_NAME)
		buf_printf(out, "%.*s", (int)resource->text_bytes, text);
	else if (resource->kind == DUET_RESOURCE_SOCKET)
		add_family(resource->port, out);
	else if (resource->kind == DUET_RESOURCE_PIPE)
		buf_add_str(out, "[pipe]");
}

void resource_request(const struct duet_attribute *attribute, struct buf *out)
{
	/* by opcode: the kinds that BPF reports, see bpf/event_uring.bpf.c */
	static const char *const names[] = {
		[1] = "readv",	       [2] = "writev",	  [3] = "fsync",	   [4] = "read_fixed",
		[5] = "write_fixed",   [8] = "sync_file_range", [9] = "sendmsg",   [10] = "recvmsg",
		[13] = "accept",       [16] = "connect",  [22] = "read",	   [23] = "write",
		[26] = "send",	       [27] = "recv",	  [30] = "splice",	   [33] = "tee",
		[46] = "uring_cmd",    [47] = "send_zc",  [48] = "sendmsg_zc",	   [49] = "read_multishot",
		[58] = "recv_zc",      [60] = "readv_fixed", [61] = "writev_fixed",
	};
	const struct duet_resource *resource = (const void *)(attribute + 1);
	const char *by = resource->flags & DUET_RESOURCE_BY_KERNEL ? ", by the kernel's thread" : "";
	unsigned opcode = resource->request - 1u;

	if (!resource->request)
		return;
	if (opcode < sizeof(names) / sizeof(*names) && names[opcode])
		buf_printf(out, "[io_uring %s%s]", names[opcode], by);
	else
		buf_printf(out, "[io_uring %u%s]", opcode, by);
}
