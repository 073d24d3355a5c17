#!/bin/bash
# SPDX-License-Identifier: MIT
# A page of a million frames in a real browser.
# timeout: 600
exec "$(dirname "$0")/flamegraph_browser.sh" large
