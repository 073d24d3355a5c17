/* SPDX-License-Identifier: MIT */
/* The agent library as the build made it, in read-only data. */
	.section .rodata
	.balign 16
	.global attach_library
	.global attach_library_bytes
	.type attach_library, %object
attach_library:
	.incbin AGENT_FILE
attach_library_end:
	.balign 8
	.type attach_library_bytes, %object
	.size attach_library_bytes, 8
attach_library_bytes:
	.quad attach_library_end - attach_library
	.section .note.GNU-stack, "", %progbits
