/* SPDX-License-Identifier: MIT */
/* Types without events, which the JDK's views ask for: a view fails if a type or a field that it names is not there. */
#ifndef WRITERS_JFR_DECLARED_H
#define WRITERS_JFR_DECLARED_H

/* Fields after startTime, with spaces: "duration name:string". Without a type they are numbers. */
struct jfr_declared {
	const char *name, *fields;
};

extern const struct jfr_declared jfr_declared[]; /* the last row has no name */

#endif
