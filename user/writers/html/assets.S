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
	.incbin "user/writers/html/flamegraph/page.html"
	asset_end asset_page

	asset asset_style
	.incbin "user/writers/html/flamegraph/style.css"
	asset_end asset_style

	asset asset_script
	.incbin "user/writers/html/flamegraph/samples.js"
	.incbin "user/writers/html/flamegraph/profile.js"
	.incbin "user/writers/html/flamegraph/views.js"
	.incbin "user/writers/html/flamegraph/colors.js"
	.incbin "user/writers/html/flamegraph/graph.js"
	.incbin "user/writers/html/flamegraph/tree.js"
	.incbin "user/writers/html/flamegraph/heat.js"
	.incbin "user/writers/html/flamegraph/tooltip.js"
	.incbin "user/writers/html/flamegraph/methods.js"
	.incbin "user/writers/html/flamegraph/panel.js"
	.incbin "user/writers/html/flamegraph/frame_menu.js"
	.incbin "user/writers/html/flamegraph/page.js"
	.incbin "user/writers/html/flamegraph/address.js"
	.incbin "user/writers/html/flamegraph/start.js"
	asset_end asset_script

	.section .note.GNU-stack, "", %progbits
