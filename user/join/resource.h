/* SPDX-License-Identifier: MIT */
/* The name of what an I/O call is about, from the attribute that BPF gives. */
#pragma once

#include "base/buf.h"
#include "duet_record.h"

/*
 * Appends "/var/log/messages", "…/messages" if the beginning of the path is missing, "/tmp/a (deleted)", "[pipe]",
 * "[eventfd]", "10.0.0.1:5432", "[::1]:80", "[own 0.0.0.0:80]" of a socket without a peer, "unix:/run/socket",
 * "unix:@name", "[netlink socket]" or "[socket]". The attribute is a DUET_ATTRIBUTE_RESOURCE that has passed
 * record_check(). Appends nothing if a request has no file.
 */
void resource_name(const struct duet_attribute *attribute, struct buf *out);
/*
 * Appends "[io_uring read]" if the attribute, as above, is that of a request to io_uring; "[io_uring read, by the
 * kernel's thread]" if a thread of the kernel submitted it. Otherwise nothing.
 */
void resource_request(const struct duet_attribute *attribute, struct buf *out);
