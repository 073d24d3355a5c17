/* SPDX-License-Identifier: MIT */
/*
 * The kernel's types that the BPF programs name. For each type in the programs, libbpf looks at all types of the kernel
 * (100,000 and more), and it reads them a second time for the ids of functions and tracepoints. So it gets what it
 * looks for only.
 */
#pragma once

struct btf;

/*
 * Writes a BTF to the file `fd`: of the types in the file `path`, those with a name that `programs` has, those of
 * tracepoints and iterators, and the types of their members. A type that only a pointer names is left out. Returns 0,
 * or -errno: -ENOENT if one of the types may be in a module of the kernel.
 */
int kernel_types_select(const char *path, const struct btf *programs, int fd);
/*
 * Until it is called with 0, libbpf takes the file that was written last for the kernel's types, and the programs that
 * it loads get the ids that the kernel has. Not thread-safe.
 */
void kernel_types_lend(int fd);
