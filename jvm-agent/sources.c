/* SPDX-License-Identifier: MIT */
/* Where samples come from: the engines, which tick by signals, and the taps, which listen to the JVM itself. */
#include "engine.h"
#include "tap.h"

#include <stddef.h>
#include <string.h>

/* No ticks. */
static const struct agent_engine engine_none = {
	.id = DUET_ENGINE_NONE,
};

/* The loader's BPF program ticks and sends the signal, so the agent has nothing to start. */
static const struct agent_engine engine_bpf = {
	.id = DUET_ENGINE_BPF,
	.take_signal = signals_take_realtime,
};

static const struct agent_engine *const engines[] = {
	&engine_none,
	&engine_bpf,
	&engine_perf,
	&engine_ctimer,
	&engine_itimer,
};

const struct agent_engine *engine_find(uint32_t id)
{
	for (size_t i = 0; i < sizeof(engines) / sizeof(engines[0]); i++)
		if (engines[i]->id == id)
			return engines[i];
	return NULL;
}

#define TAP_ROW(name) &tap_##name,
static const struct agent_tap *const taps[] = {AGENT_TAPS(TAP_ROW) NULL};

const struct agent_tap *tap_find(uint32_t kind)
{
	for (size_t i = 0; taps[i]; i++)
		if (taps[i]->kind == kind)
			return taps[i];
	return NULL;
}

void taps_add_callbacks(jvmtiEventCallbacks *callbacks)
{
	uintptr_t all[sizeof(*callbacks) / sizeof(uintptr_t)], own[sizeof(*callbacks) / sizeof(uintptr_t)];

	memcpy(all, callbacks, sizeof(all));
	for (size_t i = 0; taps[i]; i++) {
		memcpy(own, &taps[i]->callbacks, sizeof(own));
		for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++)
			all[k] |= own[k]; /* one of them is NULL */
	}
	memcpy(callbacks, all, sizeof(all));
}

void taps_note_thread(int tid, uintptr_t java_thread)
{
	for (size_t i = 0; taps[i]; i++)
		if (taps[i]->note_thread)
			taps[i]->note_thread(tid, java_thread);
}
