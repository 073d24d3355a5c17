// SPDX-License-Identifier: MIT
//
//   node all.mjs FOLDER PART...
//
// Tests the pages in a folder: each part is a file PART.mjs here, and all of them use one browser.
import { chromium } from "playwright-core";
import { executable, flags } from "./common.mjs";

const [folder, ...parts] = process.argv.slice(2);
const browser = await chromium.launch({ executablePath: executable, args: flags });
let failed = 0;
for (const part of parts)
	failed += await (await import(`./${part}.mjs`)).run(folder, browser);
await browser.close();
process.exit(failed ? 1 : 0);
