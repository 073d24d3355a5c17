/* SPDX-License-Identifier: MIT */
#include "limits/pace.h"

#include "base/clock.h"

#define LOOK_NS NS_PER_SEC
#define FIRST_LOOK_NS (NS_PER_SEC / 4)
#define FIRST_LOOKS 10 /* these looks come sooner than others, to find the rate */
#define SPREAD_NS (600 * NS_PER_SEC)
#define SMOOTH 0.4 /* weight of the last look in the mean */
#define AIM 0.8 /* part of the limit that a new rate aims at */
#define CALM 0.55 /* part of the limit; below it for CALM_LOOKS in a row, the rate may grow again */
#define CALM_LOOKS 5
#define OVER_LOOKS 2 /* looks above the limit in a row before the rate falls: one busy look alone does not count */
#define FAR_OVER 2 /* times the limit: the rate falls at once */
#define STEP_MAX 4 /* largest factor by which the rate changes in one look */

void pace_init(struct pace *pace, double max_percent, uint64_t every_max)
{
	*pace = (struct pace){.max_percent = max_percent, .every = 1, .is_fresh = true};
	pace->every_max = every_max > UINT32_MAX ? UINT32_MAX : every_max ? (uint32_t)every_max : 1;
}

uint64_t pace_wait_ns(const struct pace *pace)
{
	return pace->looks < FIRST_LOOKS ? FIRST_LOOK_NS : LOOK_NS;
}

/* Returns the part of the due work that counts for this look, and adds the new one-time work to what is due. */
static uint64_t take_due(struct pace *pace, const struct pace_spent *spent)
{
	uint64_t part = (uint64_t)((double)pace->due_ns * (double)spent->time_ns / SPREAD_NS);

	part = part < pace->due_ns ? part : pace->due_ns;
	pace->due_ns += spent->once_ns - part;
	return part;
}

static bool change(struct pace *pace, double every)
{
	uint32_t before = pace->every;

	pace->calm = pace->over = 0;
	pace->every = every >= pace->every_max ? pace->every_max : every > 1 ? (uint32_t)every : 1;
	pace->is_fresh = pace->every != before;
	return pace->is_fresh;
}

/* Returns true if the rate must fall. `percent` is that of this look alone. */
static bool is_too_much(struct pace *pace, double percent)
{
	pace->over = percent > pace->max_percent ? pace->over + 1 : 0;
	return pace->percent > pace->max_percent &&
	       (pace->over >= OVER_LOOKS || pace->percent > FAR_OVER * pace->max_percent);
}

/* Part of the cost does not come from samples, so one step may not be enough: the next looks take more. */
bool pace_look(struct pace *pace, const struct pace_spent *spent)
{
	uint64_t all_ns = spent->time_ns * spent->cpus;
	double percent, factor;

	percent = all_ns ? 100.0 * (double)(spent->sampling_ns + take_due(pace, spent)) / (double)all_ns : 0;
	pace->percent += (pace->is_fresh ? 1 : SMOOTH) * (percent - pace->percent);
	pace->is_fresh = false;
	pace->looks++;
	if (pace->max_percent <= 0)
		return false;
	factor = pace->percent / (AIM * pace->max_percent);
	if (is_too_much(pace, percent))
		return change(pace, pace->every * (factor < STEP_MAX ? factor : STEP_MAX) + 1);
	if (pace->percent > CALM * pace->max_percent)
		pace->calm = 0;
	else if (pace->every > 1 && ++pace->calm >= CALM_LOOKS)
		return change(pace, pace->every * (factor > 1.0 / STEP_MAX ? factor : 1.0 / STEP_MAX));
	return false;
}
