/* SPDX-License-Identifier: MIT */
/* Files of user/out/flamegraph/, embedded by assets.S. */
#ifndef WRITERS_HTML_ASSETS_H
#define WRITERS_HTML_ASSETS_H

#include <stdint.h>

extern const char asset_page[], asset_style[], asset_script[];
extern const uint64_t asset_page_bytes, asset_style_bytes, asset_script_bytes;

#endif
