/* SPDX-License-Identifier: MIT */
#include "join/resource.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

/* Appends the components in reverse order. */
static void add_path(const char *text, size_t bytes, bool is_whole, struct buf *out)
{
	size_t end = bytes && !text[bytes - 1] ? bytes - 1 : bytes;

	if (!is_whole)
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
}

static void add_address(int family, const struct duet_resource *resource, const char *text, struct buf *out)
{
	char address[INET6_ADDRSTRLEN] = "";
	unsigned char bytes[sizeof(struct in6_addr)] = {0};

	memcpy(bytes, text, resource->text_bytes < sizeof(bytes) ? resource->text_bytes : sizeof(bytes));
	if (!inet_ntop(family, bytes, address, sizeof(address)))
		address[0] = '\0';
	buf_printf(out, family == AF_INET ? "%s:%u" : "[%s]:%u", address, resource->port);
}

/* A name that begins with NUL is abstract: it is in no file system. */
static void add_unix(const char *text, size_t bytes, struct buf *out)
{
	bool is_abstract = bytes > 1 && !text[0] && text[1];

	if (bytes && (text[0] || is_abstract))
		buf_printf(out, "unix:%s%.*s", is_abstract ? "@" : "", (int)(bytes - is_abstract), text + is_abstract);
	else
		buf_add_str(out, "[unix socket]");
}

void resource_name(const struct duet_attribute *attribute, struct buf *out)
{
	const struct duet_resource *resource = (const void *)(attribute + 1);
	const char *text = (const char *)(resource + 1);

	if (resource->kind == DUET_RESOURCE_FILE)
		add_path(text, resource->text_bytes, resource->is_whole, out);
	else if (resource->kind == DUET_RESOURCE_INET)
		add_address(AF_INET, resource, text, out);
	else if (resource->kind == DUET_RESOURCE_INET6)
		add_address(AF_INET6, resource, text, out);
	else if (resource->kind == DUET_RESOURCE_UNIX)
		add_unix(text, resource->text_bytes, out);
	else
		buf_add_str(out, resource->kind == DUET_RESOURCE_PIPE ? "[pipe]" : "[socket]");
}
