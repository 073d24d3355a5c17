/* SPDX-License-Identifier: MIT */
#include "cmd/style.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/redact.h"
#include "duet_agent.h"
#include "writers/shared/filter.h"

int style_rates(void *field, const char *value, struct buf *why)
{
	return jfr_rates_parse(field, value, why);
}

void style_group_names(struct buf *out)
{
	buf_add_str(out, "container\nprocess\nthread\nservice\ntrace\nspan\nattr:\n");
}

void style_format_names(struct buf *out)
{
	for (size_t i = 0; writers[i]; i++)
		buf_printf(out, "%s\n", writers[i]->name);
}

/* Returns 0, or -EINVAL after reporting the error. */
static int test_patterns(const struct writer_options *style)
{
	struct filter filter;
	BUF(why);
	int err = filter_init(&filter, &style->include, style->regex, &why);

	if (!err) {
		filter_release(&filter);
		err = filter_init(&filter, &style->exclude, style->regex, &why);
	}
	if (!err)
		filter_release(&filter);
	else
		log_error("--regex: %s", why.len ? why.data : strerror(-err));
	return err ? -EINVAL : 0;
}

int style_set(struct writer_options *style, const char *by)
{
	if (by && writer_groups_parse(style, by) < 0)
		return log_refuse(
			"--by '%s': container, service, process, thread, trace, span and attr:KEY are accepted, each "
			"once, with commas",
			by);
	for (size_t i = 0; i < style->attributes.len; i++) {
		const char *word = style->attributes.items[i];

		if (*word == '=' || !strchr(word, '='))
			return log_refuse("--attr '%s': KEY=PATTERN is accepted", word);
	}
	if (style->total && style->samples)
		return log_refuse("--total and --samples exclude each other");
	redact_set(!style->keeps_secrets);
	style->style.steady &= !style->threads; /* -t names threads by their ids */
	if (test_patterns(style) < 0)
		return -EINVAL;
	if (style->col_version <= 2)
		return 0;
	return log_refuse("--col-version %u: 1 or 2 is accepted", style->col_version);
}

void style_set_depth(struct writer_options *style, uint32_t depth)
{
	style->max_depth = depth;
	if (depth > DUET_MAX_JAVA_DEPTH) {
		log_info("-j %u: at most %d frames of a stack are recorded", depth, DUET_MAX_JAVA_DEPTH);
		style->max_depth = DUET_MAX_JAVA_DEPTH;
	}
}

void style_release(struct writer_options *style)
{
	free(style->include.items);
	free(style->exclude.items);
	free(style->spans.items);
	free(style->traces_of.items);
	free(style->attributes.items);
}
