/* SPDX-License-Identifier: MIT */
#include "cmd/inputs.h"

#include <string.h>

#include "base/log.h"
#include "in/reader.h"
#include "profile/merge.h"

static int read_source(struct reader_source *source, struct profile *profile, struct buf *why)
{
	int err = profile_init(profile);

	if (err < 0) {
		buf_printf(why, "out of memory");
		return err;
	}
	err = reader_read(source, profile, why);
	if (err < 0)
		profile_release(profile);
	else if (source->warning.len)
		log_warn("%s: %s", source->name, source->warning.data);
	return err;
}

int inputs_read(struct profile *profile, const char *path)
{
	struct reader_source source;
	struct buf why;
	int err;

	buf_init(&why);
	err = reader_open(&source, path, &why);
	if (!err) {
		err = read_source(&source, profile, &why);
		reader_close(&source);
	}
	if (err < 0)
		log_error("%s: %s", strcmp(path, "-") ? path : "stdin", why.data);
	buf_release(&why);
	return err;
}

static int add_input(struct profile *profile, const char *path)
{
	struct profile one;
	struct buf why;
	int err = inputs_read(&one, path);

	if (err < 0)
		return err;
	buf_init(&why);
	err = profile_merge(profile, &one, path, &why);
	if (err < 0)
		log_error("%s: %s", path, why.data);
	buf_release(&why);
	profile_release(&one);
	return err;
}

int inputs_read_all(struct profile *profile, char **paths, size_t count)
{
	int err;

	if (count == 1)
		return inputs_read(profile, paths[0]);
	err = profile_init(profile);
	if (err < 0) {
		log_error("out of memory");
		return err;
	}
	for (size_t i = 0; !err && i < count; i++)
		err = add_input(profile, paths[i]);
	if (err < 0)
		profile_release(profile);
	return err;
}
