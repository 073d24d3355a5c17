/* SPDX-License-Identifier: (GPL-2.0-only OR MIT) */
/* What the loader and bpf/names.bpf.c share. */
#ifndef DUET_NAMES_H
#define DUET_NAMES_H

/* KSYM_SYMBOL_LEN of include/linux/kallsyms.h is below 700. */
#define DUET_NAME_BYTES 1024

#endif
