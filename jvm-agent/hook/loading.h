/* SPDX-License-Identifier: MIT */
/* Libraries that are loaded while hooks are installed: they get the hooks before dlopen() returns. */
#ifndef HOOK_LOADING_H
#define HOOK_LOADING_H

#include <stdbool.h>

/* Counted: the hook of dlopen() is there while anybody has it open. Both are called on the agent's thread. */
bool loading_open(void); /* returns false if dlopen() is not found */
void loading_close(void);

#endif
