/* SPDX-License-Identifier: MIT */
/* What start_recorder.c declares. It is read-only data: its pages take memory while they are copied, and no longer. */
	.section .rodata
	.balign 4096
	.global carried_executable
	.hidden carried_executable
	.type carried_executable, %object
carried_executable:
#ifdef EXECUTABLE_FILE
	.incbin EXECUTABLE_FILE
#endif
carried_executable_end:
	.balign 4096
	.global carried_executable_bytes
	.hidden carried_executable_bytes
	.type carried_executable_bytes, %object
	.size carried_executable_bytes, 8
carried_executable_bytes:
	.quad carried_executable_end - carried_executable
	.section .note.GNU-stack, "", %progbits
