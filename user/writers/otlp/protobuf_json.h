/* SPDX-License-Identifier: MIT */
/* Protobuf messages as JSON, as OTLP has it: 64-bit numbers are strings, bytes are hexadecimal. */
#ifndef WRITERS_OTLP_PROTOBUF_JSON_H
#define WRITERS_OTLP_PROTOBUF_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

void protobuf_json(FILE *out, const ProtobufCMessage *message);

/*
 * Writes a repeated field of messages or texts, "key":[...], of its packed bytes. Only one element is unpacked at a
 * time. Returns 0, or -ENOMEM, also for bytes that are not packed so.
 */
int protobuf_json_elements(FILE *out, const ProtobufCMessageDescriptor *type, unsigned int number, const char *bytes,
			   size_t len);

#endif
