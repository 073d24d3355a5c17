/* SPDX-License-Identifier: MIT */
/* The losses of a recording so far, by cause: counted by BPF, agents and loader, or reported by AsyncGetCallTrace. */
#ifndef STATUS_LOSSES_H
#define STATUS_LOSSES_H

#include <stdint.h>

struct report;

/* Called once for each cause, also if the count is 0. `name` is as in duet_counters.h. */
typedef void (*loss_handler)(void *context, const char *name, const char *text, uint64_t count);
void losses_each(const struct report *report, loss_handler handler, void *context);

#endif
