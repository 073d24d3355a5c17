/* SPDX-License-Identifier: MIT */
#include <stdio.h>

#include "cmd/cmd.h"

int cmd_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("duet %s\n", DUET_VERSION);
	return 0;
}
