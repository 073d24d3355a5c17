/* SPDX-License-Identifier: MIT */
#include "writers/text/headline.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/text.h"
#include "duet_counters.h"
#include "profile/profile.h"

#define OVERHEAD_FACT "overhead" /* "1.9 % of the host's CPU: …" */
#define ENOUGH_SECONDS 10 /* from here on, tenths do not matter */

#define ROW(name, loss, text) {text, HEADLINE_##loss},
static const struct {
	const char *text;
	enum headline_loss kind;
} counters[] = {DUET_BPF_COUNTERS(ROW) DUET_AGENT_COUNTERS(ROW) DUET_LOADER_COUNTERS(ROW)};

static enum headline_loss kind_of(const char *text)
{
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		if (!strcmp(counters[i].text, text))
			return counters[i].kind;
	/* of no counter: "Java stacks not walked: AsyncGetCallTrace said …" */
	return strncmp(text, "Java stacks ", strlen("Java stacks ")) ? HEADLINE_LOST : HEADLINE_CUT;
}

/* The cause is what follows the colon: "samples dropped: the kernel ring was full". */
void headline_add_loss(struct headline *headline, uint64_t count, const char *text)
{
	enum headline_loss kind = kind_of(text);
	struct headline_losses *losses = &headline->losses[kind];
	const char *colon = strstr(text, ": ");

	if (count > losses->most) {
		BUF(line); /* the text may come from a file */

		text_add_line(&line, colon ? colon + 2 : text);
		losses->most = count;
		snprintf(losses->cause, sizeof(losses->cause), "%s", line.data);
	}
	losses->count += count;
	headline->causes += count && kind != HEADLINE_ASIDE;
}

const char *headline_program(const struct profile *profile, const struct profile_thread *thread)
{
	const struct intern *strings = &profile->strings;
	const char *application = intern_text(strings, profile->owners.items[thread->owner].application);
	const char *colon = strstr(application, ": ");

	if (colon)
		application = colon + 2;
	return *application ? application : intern_text(strings, thread->process);
}

static size_t count_processes(const struct profile *profile)
{
	struct map seen = {0};
	size_t count;

	for (size_t i = 0; i < profile->threads.len; i++)
		(void)map_put(&seen, profile->threads.items[i].pid, 1); /* may fail: then it is one less */
	count = seen.len;
	map_release(&seen);
	return count;
}

static void note_subject(struct headline *headline, const struct profile *profile)
{
	size_t count = count_processes(profile);
	BUF(name);

	if (count > 1)
		snprintf(headline->subject, sizeof(headline->subject), "%zu processes", count);
	if (count != 1)
		return;
	text_add_line(&name, headline_program(profile, &profile->threads.items[0]));
	snprintf(headline->subject, sizeof(headline->subject), "%s", name.data);
}

void headline_of_profile(struct headline *headline, const struct profile *profile)
{
	*headline = (struct headline){.samples = profile->samples.count, .overhead = -1};
	if (profile->end_ns > profile->start_ns)
		headline->duration_ns = profile->end_ns - profile->start_ns;
	note_subject(headline, profile);
	for (size_t i = 0; i < profile->facts.len; i++)
		if (!strcmp(profile_text(profile, profile->facts.items[i].key), OVERHEAD_FACT))
			headline->overhead = strtod(profile_text(profile, profile->facts.items[i].value), NULL);
	for (size_t i = 0; i < profile->losses.len; i++)
		headline_add_loss(headline, profile->losses.items[i].count,
				  profile_text(profile, profile->losses.items[i].text));
}

void headline_add_time(uint64_t ns, struct buf *out)
{
	double seconds = (double)ns / NS_PER_SEC;
	uint64_t whole = (ns + NS_PER_SEC / 2) / NS_PER_SEC;

	if (whole >= 3600)
		buf_printf(out, "%llu h %llu min", (unsigned long long)(whole / 3600),
			   (unsigned long long)(whole % 3600 / 60));
	else if (whole >= 120)
		buf_printf(out, "%llu min %llu s", (unsigned long long)(whole / 60), (unsigned long long)(whole % 60));
	else if (whole >= ENOUGH_SECONDS ||
		 (seconds > 0.95 && seconds - (double)whole < 0.05 && (double)whole - seconds < 0.05))
		buf_printf(out, "%llu s", (unsigned long long)whole);
	else
		buf_printf(out, "%.1f s", seconds);
}

static void add_losses(const struct headline *headline, const char *rest, struct buf *out)
{
	const struct headline_losses *lost = &headline->losses[HEADLINE_LOST], *cut = &headline->losses[HEADLINE_CUT];
	const char *cause = lost->count ? lost->cause : cut->cause;

	if (lost->count)
		buf_printf(out, ", %llu lost", (unsigned long long)lost->count);
	else
		buf_add_str(out, ", none lost");
	if (cut->count)
		buf_printf(out, ", %llu with incomplete stacks", (unsigned long long)cut->count);
	if (headline->causes > 1)
		buf_printf(out, " (mostly: %s; %s)", cause, rest);
	else if (headline->causes)
		buf_printf(out, " (%s)", cause);
}

void headline_text(const struct headline *headline, const char *rest, struct buf *out)
{
	buf_printf(out, "%llu sample%s", (unsigned long long)headline->samples, headline->samples == 1 ? "" : "s");
	if (headline->subject[0])
		buf_printf(out, " of %s", headline->subject);
	if (headline->duration_ns) {
		buf_add_str(out, " in ");
		headline_add_time(headline->duration_ns, out);
	}
	add_losses(headline, rest, out);
	if (headline->overhead >= 0)
		buf_printf(out, ", %.1f %% overhead", headline->overhead);
}
