/* SPDX-License-Identifier: MIT */
#include "cmd/inputs.h"

#include <errno.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "cmd/folder.h"
#include "profile/merge.h"
#include "readers/reader.h"

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
	BUF(why);
	int err = reader_open(&source, path, &why);

	if (!err) {
		err = read_source(&source, profile, &why);
		reader_close(&source);
	}
	if (err < 0)
		log_error("%s: %s", strcmp(path, "-") ? path : "stdin", why.data);
	return err;
}

static int add_input(struct profile *profile, const char *path)
{
	struct profile one;
	BUF(why);
	int err = inputs_read(&one, path);

	if (err < 0)
		return err;
	err = profile_merge(profile, &one, path, &why);
	if (err < 0)
		log_error("%s: %s", path, why.data);
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

/* ---- patterns ---- */

static int add_copy(struct inputs *inputs, const char *path)
{
	char *copy = strdup(path);

	if (copy && !vec_push(inputs, copy))
		return 0;
	free(copy);
	log_error("out of memory");
	return -ENOMEM;
}

static int add_matches(struct inputs *inputs, const char *pattern)
{
	glob_t found;
	int code = glob(pattern, 0, NULL, &found), err = 0;

	for (size_t i = 0; !code && !err && i < found.gl_pathc; i++)
		err = add_copy(inputs, found.gl_pathv[i]);
	if (!code)
		globfree(&found);
	if (code == GLOB_NOMATCH)
		log_error("%s: no file matches this pattern", pattern);
	else if (code)
		log_error("%s: cannot be searched for: %s", pattern,
			  code == GLOB_NOSPACE ? "out of memory" : "read error");
	return code ? -ENOENT : err;
}

/* An existing file's name is no pattern, whatever characters it has. */
int inputs_expand(struct inputs *inputs, char **words, size_t count)
{
	size_t stdins = 0;
	int err = 0;

	for (size_t i = 0; !err && i < count; i++) {
		bool is_pattern = strpbrk(words[i], "*?[") && access(words[i], F_OK);

		stdins += !strcmp(words[i], "-");
		err = is_pattern ? add_matches(inputs, words[i]) : add_copy(inputs, words[i]);
	}
	if (err || stdins <= 1)
		return err;
	log_error("stdin can be read once: - is given %zu times", stdins);
	return -EINVAL;
}

int inputs_expand_folders(struct inputs *inputs, struct moment *from, struct moment *to)
{
	struct inputs words = *inputs;
	int err = 0;

	*inputs = (struct inputs){0};
	for (size_t i = 0; !err && i < words.len; i++)
		err = folder_is(words.items[i]) ? folder_expand(inputs, words.items[i], from, to)
						: add_copy(inputs, words.items[i]);
	inputs_release(&words);
	return err;
}

void inputs_release(struct inputs *inputs)
{
	for (size_t i = 0; i < inputs->len; i++)
		free(inputs->items[i]);
	vec_release(inputs);
}
