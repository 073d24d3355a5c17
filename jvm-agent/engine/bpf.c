/* SPDX-License-Identifier: MIT */
/* The loader's BPF program ticks and sends the signal, so the agent has nothing to start. */
#include "engine.h"

const struct agent_engine engine_bpf = {
	.id = DUET_ENGINE_BPF,
	.take_signal = engine_take_realtime,
};
