/* SPDX-License-Identifier: MIT */
#include "readers/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/layout.h"

#define TEXTS_FREE ((uint64_t)32 << 20) /* bytes of all texts, each once */
#define TEXTS_TIMES 16
#define SHOWN_FREE ((uint64_t)24 << 20) /* bytes of the texts of all rows; of equal rows one counts */
#define SHOWN_TIMES 16
#define ROWS_TIMES 8 /* times these limits: the same, and each row counts */
#define NODES_FREE ((uint64_t)256 << 10) /* frames of all stacks; those that stacks share count once */
#define NODES_TIMES 1
#define FRAMES_FREE ((uint64_t)8 << 20) /* frames of the stacks of all samples */
#define FRAMES_TIMES 64
#define TEXT_FREE ((uint64_t)64 << 20) /* bytes of the stacks of all samples in a format of text */
#define TEXT_TIMES 256
#define ROW_TEXTS_MAX 16

void limits_set(const struct reader_source *source)
{
	uint64_t bytes = reader_stored_bytes(source);

	source->profile->strings.most = TEXTS_FREE + TEXTS_TIMES * bytes;
	source->profile->most_nodes = NODES_FREE + NODES_TIMES * bytes;
	source->profile->most_frames = FRAMES_FREE + FRAMES_TIMES * bytes;
	source->profile->most_text = TEXT_FREE + TEXT_TIMES * bytes;
}

/* Writers write the texts of each row. */
struct shown {
	const struct profile *profile;
	uint16_t *lens; /* of strings */
	uint64_t bytes;
	struct map known; /* hashes of rows' texts */
	bool once; /* equal rows count once */
};

/* Returns 0 or -ENOMEM. */
static int add_texts(struct shown *shown, enum layout_type type, const uint32_t *texts, size_t count)
{
	size_t known = shown->known.len;

	if (shown->once && map_put(&shown->known, hash_bytes(texts, count * sizeof(*texts), type), 1) < 0)
		return -ENOMEM;
	for (size_t i = 0; (!shown->once || shown->known.len > known) && i < count; i++)
		shown->bytes += texts[i] < shown->profile->strings.strings.len ? shown->lens[texts[i]] : 0;
	return 0;
}

static int add_rows(struct shown *shown, enum layout_type type, const void *rows, size_t count, size_t row_bytes)
{
	uint32_t texts[ROW_TEXTS_MAX];
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		const char *row = (const char *)rows + i * row_bytes;
		size_t len = 0;

		for (const struct layout_field *field = layout_rows[type].fields; field->bytes; field++)
			if (field->is_text && len < ROW_TEXTS_MAX)
				memcpy(&texts[len++], row + field->offset, sizeof(*texts));
		err = add_texts(shown, type, texts, len);
	}
	return err;
}

/* With the texts of its owner that belong to its name. */
static int add_threads(struct shown *shown)
{
	const struct profile *profile = shown->profile;
	int err = 0;

	for (size_t i = 0; !err && i < profile->threads.len; i++) {
		const struct profile_thread *thread = &profile->threads.items[i];
		const struct profile_owner *owner = &profile->owners.items[thread->owner];
		const uint32_t texts[] = {thread->name,	    thread->process,	  owner->application,
					  owner->container, owner->container_id,  owner->container_name,
					  owner->pod,	    owner->pod_namespace, owner->pod_uid,
					  owner->service,   owner->attributes};

		err = add_texts(shown, LAYOUT_THREADS, texts, sizeof(texts) / sizeof(*texts));
	}
	return err;
}

#define ADD_ROWS(shown, type, rows) add_rows(shown, type, (rows).items, (rows).len, sizeof(*(rows).items))

static int count_shown(struct shown *shown, bool once)
{
	const struct profile *profile = shown->profile;
	int err;

	shown->once = once;
	shown->bytes = 0;
	err = ADD_ROWS(shown, LAYOUT_FRAMES, profile->frames);
	if (!err)
		err = ADD_ROWS(shown, LAYOUT_OWNERS, profile->owners);
	if (!err)
		err = ADD_ROWS(shown, LAYOUT_NOTES, profile->notes);
	if (!err)
		err = ADD_ROWS(shown, LAYOUT_USAGES, profile->usages);
	return err ? err : add_threads(shown);
}

int limits_check(const struct reader_source *source, const struct profile *profile, struct buf *why)
{
	uint64_t limit = SHOWN_FREE + SHOWN_TIMES * reader_stored_bytes(source);
	struct shown shown = {.profile = profile};
	int err;

	if (profile->strings.is_full)
		return buf_explain(why, -EFBIG, "its texts are longer than %llu MB, too long for so short a file",
				   (unsigned long long)profile->strings.most >> 20);
	shown.lens = calloc(profile->strings.strings.len, sizeof(*shown.lens));
	if (!shown.lens)
		return -ENOMEM;
	for (uint32_t i = 0; i < profile->strings.strings.len; i++)
		shown.lens[i] = (uint16_t)strlen(profile_text(profile, i));
	err = count_shown(&shown, false);
	if (!err && shown.bytes > limit && shown.bytes <= ROWS_TIMES * limit)
		err = count_shown(&shown, true);
	if (!err && shown.bytes > limit)
		err = buf_explain(why, -EFBIG, "its names would be %llu MB, written out, too long for so short a file",
				  (unsigned long long)shown.bytes >> 20);
	map_release(&shown.known);
	free(shown.lens);
	return err;
}
