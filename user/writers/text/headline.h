/* SPDX-License-Identifier: MIT */
/*
 * A recording in one line: "190 samples of shop.jar in 6 s, none lost, 1.9 % overhead". The end of a recording, the
 * report, the status and the journal show the same line.
 */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct profile;
struct profile_thread;

/* What a loss means for the samples, see duet_counters.h. */
enum headline_loss { HEADLINE_LOST, HEADLINE_CUT, HEADLINE_ASIDE, HEADLINE_LOSSES };

/* All 0, and overhead -1: nothing is known. */
struct headline {
	uint64_t samples, duration_ns;
	struct headline_losses {
		uint64_t count, most; /* all; those of the main cause */
		char cause[160]; /* the main cause */
	} losses[HEADLINE_LOSSES];
	unsigned int causes; /* of what was lost and cut */
	char subject[96]; /* "shop.jar", "3 processes"; "" = not known */
	double overhead; /* percent of the host's CPU; below 0: not known */
};

/* Fills the headline from what the profile holds; the overhead is a fact. */
void headline_of_profile(struct headline *headline, const struct profile *profile);
/* The program that a JVM runs, without "java: "; else the name of the process. */
const char *headline_program(const struct profile *profile, const struct profile_thread *thread);
/* Adds one loss, with its text from duet_counters.h or from the loader. A count of 0 is none. */
void headline_add_loss(struct headline *headline, uint64_t count, const char *text);
/* Appends the line, without a newline. `rest` is where all losses are listed, such as "-v lists all". */
void headline_text(const struct headline *headline, const char *rest, struct buf *out);
/* Appends "6 s", "0.3 s", "2 min 5 s". */
void headline_add_time(uint64_t ns, struct buf *out);
