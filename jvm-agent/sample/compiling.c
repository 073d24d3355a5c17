/* SPDX-License-Identifier: MIT */
#include "jvm/jvm.h"
#include "sample/sample.h"
#include "sample/walk.h"
#include "walk/compiling.h"

#include "sigsafe.h"

uint32_t compiling_attribute_set(struct compiling_attribute *to, struct agent_walk *walk)
{
	if (compiling_find(&walk->java, jvm_own_thread(), walk->sample.ns_tid, walk->sample.user_sp))
		return 0;
	*to = (struct compiling_attribute){.head = {.type = DUET_ATTRIBUTE_COMPILING,
						    .bytes = sizeof(to->method),
						    .about = walk->java.found_check},
					   .method = walk->java.found_method};
	return sizeof(*to);
}
