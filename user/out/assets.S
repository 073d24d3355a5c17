/* SPDX-License-Identifier: MIT */
/* The page, its style and its script, in read-only data. Paths are relative to the top of the source tree. */
	.macro asset name
	.balign 8
	.global \name
	.type \name, %object
\name:
	.endm

	.macro asset_end name
\name\()_end:
	.size \name, . - \name
	.balign 8
	.global \name\()_bytes
	.type \name\()_bytes, %object
	.size \name\()_bytes, 8
\name\()_bytes:
	.quad \name\()_end - \name
	.endm

	.section .rodata
	asset asset_page
	.incbin "user/out/flamegraph/page.html"
	asset_end asset_page

	asset asset_style
	.incbin "user/out/flamegraph/style.css"
	asset_end asset_style

	asset asset_script
	.incbin "user/out/flamegraph/samples.js"
	.incbin "user/out/flamegraph/profile.js"
	.incbin "user/out/flamegraph/views.js"
	.incbin "user/out/flamegraph/colors.js"
	.incbin "user/out/flamegraph/graph.js"
	.incbin "user/out/flamegraph/tree.js"
	.incbin "user/out/flamegraph/heat.js"
	.incbin "user/out/flamegraph/tooltip.js"
	.incbin "user/out/flamegraph/methods.js"
	.incbin "user/out/flamegraph/panel.js"
	.incbin "user/out/flamegraph/frame_menu.js"
	.incbin "user/out/flamegraph/page.js"
	.incbin "user/out/flamegraph/address.js"
	.incbin "user/out/flamegraph/start.js"
	asset_end asset_script

	.section .note.GNU-stack, "", %progbits
