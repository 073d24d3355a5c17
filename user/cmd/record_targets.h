/* SPDX-License-Identifier: MIT */
/* Whom `duet record` profiles: processes by number or by what they run, a part of the host, or a command. */
#pragma once

#include <stdbool.h>

#include "cmd/cmd.h"

struct options;

/* Returns 0, or -errno after reporting the error. */
int record_targets_set(struct options *options, const struct command_words *words);
/* Returns true after reporting that a command was given without -- in front of it. */
bool record_targets_lack_dashes(const struct command_words *words);
bool record_targets_has(const char *name); /* true if a JVM runs a program of this name */
