/* SPDX-License-Identifier: MIT */
/* Protobuf messages as JSON, as OTLP has it: 64-bit numbers are strings, bytes are hexadecimal. */
#ifndef OUT_PROTOBUF_JSON_H
#define OUT_PROTOBUF_JSON_H

#include <protobuf-c/protobuf-c.h>
#include <stdio.h>

void protobuf_json(FILE *out, const ProtobufCMessage *message);

#endif
