/* SPDX-License-Identifier: MIT */
/*
 * `duet record -- CMD`: forks a child that waits at a gate (a pipe) until the collector has its pid, then executes CMD.
 * The loader opens the gate by writing a string to it: the option that loads the agent, or "". If the loader closes the
 * gate without writing, or dies, the child exits, so that no command runs unprofiled. A java command that needs the
 * agent gets it as its first option, and is profiled from its first instruction. Any other command runs unchanged.
 */
#pragma once

#include <limits.h>
#include <sys/resource.h>

#include "attach/attach.h"

/* Initialize with LAUNCH_NONE. */
struct launch {
	char **argv;
	struct attach_control control; /* for the agent; made by launch_start() */
	char option[PATH_MAX + 256]; /* of the agent, the command's first one; "": none */
	pid_t pid;
	int gate; /* closing it ends a child that still waits */
	int exec_error; /* pipe: holds errno when exec failed, ends empty when it worked */
	bool is_java;
	bool has_ended, has_reported_left;
	int status; /* of waitpid(), when it has ended */
	uint64_t ended_ns; /* when the end was noticed */
	char library[256]; /* path of the agent library that was placed for it; else "" */
	char program[PATH_MAX]; /* path of the command, if found; else "" */
	char libjvm[PATH_MAX]; /* of the JDK of a java command, if found; else "" */
};

#define LAUNCH_NONE {.gate = -1}

bool launch_is_program(const char *name); /* true if execvp() would find it */
/* Forks the waiting child, which will execute `argv`. Returns 0 or -errno. */
int launch_start(struct launch *launch, char **argv);
int launch_add_agent(struct launch *launch); /* a java command will load the agent; 0 or -errno */
/* Lets the child execute CMD. Returns 0 when CMD runs, -errno when exec failed. */
int launch_run(struct launch *launch);
/* Returns true if CMD has ended. Fills *ret_usage the first time. */
bool launch_has_ended(struct launch *launch, struct rusage *ret_usage);
int launch_exit_code(const struct launch *launch); /* as a shell has it: 128 + N for signal N; 0 while it runs */
void launch_release(struct launch *launch); /* ends a child that still waits, and removes the library */
