/* SPDX-License-Identifier: MIT */
/* Attributes of OTLP files that are duet's own: the semantic conventions have none for them. */
#ifndef PROFILE_OTLP_H
#define PROFILE_OTLP_H

#define OTLP_VIRTUAL "duet.thread.virtual" /* of a sample: thread.id is Java's number of a virtual thread */
#define OTLP_SAMPLES "duet.samples" /* of a sample: for how many each value stands, if that is not one */
#define OTLP_SPAN "duet.span" /* of a sample: the tag of the span that it was taken in */
#define OTLP_CONTAINER "duet.container" /* of a resource: the container as duet shows it */

#endif
