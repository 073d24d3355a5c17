/* SPDX-License-Identifier: MIT */
/*
 * What is offered to BPF: the files whose rows the tables hold, by which it walks processes that the loader has not
 * published yet. A user who has his share of the map gives up one of his own files for the next one.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "duet_unwind.h"
#include "proc/room.h"

struct offer {
	struct duet_mapped_file file;
	struct duet_mapped_rows rows;
	struct payer payer;
	bool is_shared; /* others map the file too: the payer does not give it up for another one */
};

struct offers {
	int fd; /* BPF's map of mapped files; -1: none */
	uint32_t most; /* its entries */
	struct vec(struct offer) list;
	struct map by_file; /* hash of the file -> index */
	size_t next; /* where the search for one of the same payer begins */
};

void offers_open(struct offers *offers, int fd, uint32_t most);
void offers_release(struct offers *offers);
void offers_put(struct offers *offers, const struct offer *offer);
