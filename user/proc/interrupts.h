/* SPDX-License-Identifier: MIT */
/* The names of the devices of interrupts, as in /proc/interrupts. */
#ifndef PROC_INTERRUPTS_H
#define PROC_INTERRUPTS_H

#include <stddef.h>
#include <stdint.h>

/* Writes the names that the drivers gave, "eth0" or "ata1,ata2", cut to `room` bytes; the number if there are none. */
void interrupt_name(uint32_t number, char *ret, size_t room);

#endif
