/* SPDX-License-Identifier: MIT */
/*
 * The commands of the table in main.c. argv[0] is the command's name; the result
 * is the exit code: 0 done, 1 failed, 2 wrong usage.
 */
#ifndef CMD_CMD_H
#define CMD_CMD_H

int cmd_record(int argc, char **argv);
int cmd_daemon(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
