// SPDX-License-Identifier: MIT
//
//   node pages.mjs FOLDER
//
// Opens the call tree and the heat map of the five samples that flamegraph_browser.sh writes.
import { chromium } from "playwright-core";

const folder = process.argv[2];
const executablePath = process.env.CHROMIUM || "/usr/bin/chromium";
const args = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"];
const cases = [], complaints = [];
let page;

function equal(got, want, what) {
	if (JSON.stringify(got) !== JSON.stringify(want))
		throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

const test = (name, run) => cases.push({ name, run });
const open = async (file, hash = "") => {
	await page.goto("about:blank");
	await page.goto(`file://${folder}/${file}${hash}`);
};
const openMap = async (file, hash) => {
	await open(file, hash);
	await page.waitForSelector("body[data-ready]");
};
/* Values of the cells that have any, and of frames in the range. */
const filled = () => page.evaluate(() => [...cells].sort((a, b) => a[0] - b[0]));
const frames = () => page.evaluate(() => boxes.map(box => [labelOf(box.node), box.value]).sort());

test("the_tree_opens_and_searches", async () => {
	const rows = () => page.$$eval(".row", all => all.map(row => row.textContent.trim()));
	await open("a.tree.html");
	equal((await rows()).map(row => row.split(" ").pop()), ["run", "leaf", "</script>", "other"], "rows");
	equal((await rows())[1].includes("60.00% 3 self: 60.00% 3"), true, "the hottest callee");
	await page.click("#collapse");
	equal((await rows()).length, 1, "rows of the closed tree");
	await page.fill("#search", "^other$");
	equal(await page.locator("#matched").innerText(), "20.00%", "share of what is found");
	equal((await rows()).length, 4, "rows that the search opened");
	await page.click(".row");
	equal((await rows()).length, 1, "rows after a click");
});

test("the_map_has_the_samples_where_they_were", async () => {
	await openMap("a.heatmap.html");
	equal(await filled(), [[0, 2], [1, 1], [150, 1], [300, 1]], "cells of 10 ms");
	await page.click("#out");
	equal(await filled(), [[0, 3], [75, 1], [150, 1]], "cells of 20 ms");
	await page.click("#in");
	await page.selectOption("#thread", { label: "t 1/3 t" });
	equal(await filled(), [[150, 1]], "cells of a thread");
});

test("a_range_is_a_flame_graph_and_back", async () => {
	await openMap("a.heatmap.html");
	const map = await page.locator("#map").boundingBox();
	await page.mouse.move(map.x + 4, map.y + 4);
	await page.mouse.down();
	await page.mouse.move(map.x + 4, map.y + 12);
	await page.mouse.up();
	equal(await frames(), [["all", 3], ["leaf", 2], ["other", 1], ["run", 3]], "frames of two cells");
	equal(await page.locator("#graph").isVisible(), true, "the graph");
	const saved = new URL(page.url()).hash;
	await page.click("#back");
	equal(await page.locator("#graph").isVisible(), false, "the graph after going back");
	await openMap("a.heatmap.html", saved);
	equal(await frames(), [["all", 3], ["leaf", 2], ["other", 1], ["run", 3]], "frames of the address");
});

test("the_map_says_what_it_shows", async () => {
	await openMap("a.heatmap.html");
	equal(await page.locator("#axis span").allInnerTexts(), ["00:01:40"], "times");
	equal(await page.locator("#hint").innerText(), "A column is 1 s from top to bottom, a cell is 10 ms. " +
		"Drag over cells to open them as a flame graph.", "the hint");
	equal((await page.locator("#legend").innerText()).replace(/\s+/g, " "), "0 2 samples in a cell", "the legend");
	await page.click("#out");
	equal((await page.locator("#legend").innerText()).replace(/\s+/g, " "), "0 3 samples in a cell", "after zooming");
});

test("the_map_is_searched", async () => {
	await openMap("a.heatmap.html");
	await page.fill("#search", "leaf");
	equal(await filled(), [[0, 2], [150, 1]], "cells with the frame");
	equal(await page.locator("#matched").innerText(), "60.00%", "share of the frame");
});

test("an_empty_map_says_so", async () => {
	await openMap("nothing.heatmap.html");
	equal(await filled(), [], "cells");
});

const browser = await chromium.launch({ executablePath, args });
page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
page.on("pageerror", error => complaints.push(String(error)));
page.on("console", message => message.type() === "error" && complaints.push(message.text()));
let failed = 0;
for (const { name, run } of cases) {
	complaints.length = 0;
	try {
		await run();
		equal(complaints, [], "complaints of the page");
		console.log(`ok ${name}`);
	} catch (error) {
		failed++;
		console.log(`not ok ${name}: ${error.message}`);
	}
}
await browser.close();
process.exit(failed ? 1 : 0);
