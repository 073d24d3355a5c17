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

#define TEXT_ROW(name, text) [DUET_##name] = text,
static const char *const bpf_texts[] = {DUET_BPF_COUNTERS(TEXT_ROW)};
static const char *const agent_texts[] = {DUET_AGENT_COUNTERS(TEXT_ROW)};
static const char *const loader_texts[] = {DUET_LOADER_COUNTERS(TEXT_ROW)};

/* A counter without a row here counts what is lost. */
static const uint8_t bpf_kinds[DUET_BPF_COUNTER_MAX] = {
	[DUET_BPF_NO_KERNEL_STACK] = HEADLINE_CUT,  [DUET_BPF_MOVED] = HEADLINE_CUT,
	[DUET_BPF_NO_WAKER] = HEADLINE_CUT,	    [DUET_BPF_NO_HOLDER] = HEADLINE_CUT,
	[DUET_BPF_NO_LEVEL] = HEADLINE_ASIDE,	    [DUET_BPF_SIGNAL_BUSY] = HEADLINE_ASIDE,
	[DUET_BPF_SIGNAL_FAILED] = HEADLINE_ASIDE,  [DUET_BPF_SIGNAL_BLOCKED] = HEADLINE_ASIDE,
	[DUET_BPF_SIGNAL_STOLEN] = HEADLINE_ASIDE,  [DUET_BPF_SIGNAL_SYSCALL] = HEADLINE_ASIDE,
	[DUET_BPF_SIGNAL_EXITING] = HEADLINE_ASIDE,
};
static const uint8_t agent_kinds[DUET_AGENT_COUNTER_MAX] = {
	[DUET_AGENT_METHOD_GONE] = HEADLINE_CUT,
	[DUET_AGENT_CODE_GONE] = HEADLINE_CUT,
	[DUET_AGENT_NO_KERNEL_RING] = HEADLINE_CUT,
	[DUET_AGENT_REENTERED] = HEADLINE_ASIDE,
};
static const uint8_t loader_kinds[DUET_LOADER_COUNTER_MAX] = {
	[DUET_LOADER_NO_AGENT_RECORD] = HEADLINE_CUT,	 [DUET_LOADER_PC_MISMATCH] = HEADLINE_CUT,
	[DUET_LOADER_NOT_SIGNALLED] = HEADLINE_CUT,	 [DUET_LOADER_LATE] = HEADLINE_CUT,
	[DUET_LOADER_STACKS_FULL] = HEADLINE_CUT,	 [DUET_LOADER_MEMORY_FULL] = HEADLINE_CUT,
	[DUET_LOADER_JVM_UNREAD] = HEADLINE_CUT,	 [DUET_LOADER_THREADS_FULL] = HEADLINE_CUT,
	[DUET_LOADER_STACK_NO_ROW] = HEADLINE_CUT,	 [DUET_LOADER_STACK_UNREADABLE] = HEADLINE_CUT,
	[DUET_LOADER_STACK_BAD_CFA] = HEADLINE_CUT,	 [DUET_LOADER_STACK_DEPTH] = HEADLINE_CUT,
	[DUET_LOADER_STACK_LONG] = HEADLINE_CUT,	 [DUET_LOADER_STACK_LEFT_OUT] = HEADLINE_CUT,
	[DUET_LOADER_CODE_MISSING] = HEADLINE_CUT,	 [DUET_LOADER_NAME_MISSING] = HEADLINE_CUT,
	[DUET_LOADER_NO_EARLY] = HEADLINE_CUT,		 [DUET_LOADER_NO_WAKER] = HEADLINE_CUT,
	[DUET_LOADER_ORPHAN_RECORD] = HEADLINE_ASIDE,	 [DUET_LOADER_JVMS_REFUSED] = HEADLINE_ASIDE,
	[DUET_LOADER_JVMS_ENDED] = HEADLINE_ASIDE,	 [DUET_LOADER_READERS_LOST] = HEADLINE_ASIDE,
	[DUET_LOADER_SILENT_TARGETS] = HEADLINE_ASIDE,	 [DUET_LOADER_USER_SPENT] = HEADLINE_ASIDE,
	[DUET_LOADER_STACK_GUESSED] = HEADLINE_ASIDE,	 [DUET_LOADER_UNWIND_FILES] = HEADLINE_ASIDE,
	[DUET_LOADER_UNWIND_PROCESSES] = HEADLINE_ASIDE, [DUET_LOADER_LEFT_OUT] = HEADLINE_ASIDE,
	[DUET_LOADER_WINDOW_LATE] = HEADLINE_ASIDE,	 [DUET_LOADER_PARSERS_LOST] = HEADLINE_ASIDE,
};

static const struct {
	const char *const *texts;
	const uint8_t *kinds;
	size_t count;
} counters[] = {
	{bpf_texts, bpf_kinds, DUET_BPF_COUNTER_MAX},
	{agent_texts, agent_kinds, DUET_AGENT_COUNTER_MAX},
	{loader_texts, loader_kinds, DUET_LOADER_COUNTER_MAX},
};

static enum headline_loss kind_of(const char *text)
{
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		for (size_t row = 0; row < counters[i].count; row++)
			if (!strcmp(counters[i].texts[row], text))
				return (enum headline_loss)counters[i].kinds[row];
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
