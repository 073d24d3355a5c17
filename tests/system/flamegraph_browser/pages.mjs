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

/* day.heatmap.html has a sample each 40 ms of a day, of more stacks than there are rows for. */
test("a_day_has_fine_cells_and_coarse_stacks", async () => {
	await openMap("day.heatmap.html");
	equal(await page.evaluate(() => tables.map(table => [table.stepMs, table.hasThreads, table.hasStacks])),
		[[100, false, false], [10000, true, false], [120000, false, true], [600000, true, true]], "steps");
	equal(await page.evaluate(() => [cellMs(), Math.max(...cells.values()), Math.min(...cells.values())]),
		[1000, 25, 25], "a cell of the picture and its samples");
	await page.evaluate(() => select(3605000, 3607000));
	equal(await page.evaluate(() => boxes[0].value), 3000, "samples of the flame graph");
	equal(await page.locator("#status").innerText(), "23:13:25.000 to 23:13:27.000: 50 samples. Stacks are kept in " +
		"steps of 2 min: the flame graph is of 23:13:20.000 to 23:15:20.000: 3,000 samples", "the range is told");
	await page.evaluate(() => select(3600000, 3720000));
	equal(await page.locator("#status").innerText(), "23:13:20.000 to 23:15:20.000: 3,000 samples", "a whole step");
	await page.click("#in");
	equal(await page.evaluate(() => [cellMs(), total]), [200, 2160000], "shorter cells");
});

test("a_search_and_a_thread_of_a_day", async () => {
	await openMap("day.heatmap.html");
	await page.fill("#search", "step23_7$");
	equal(await page.evaluate(() => [cellMs(), total]), [120000, 2160000], "cells of a search");
	equal((await page.locator("#hint").innerText()).endsWith("Shorter cells do not say which stacks they are of."), true,
		"the hint of a search");
	await page.fill("#search", "");
	await page.selectOption("#thread", "3");
	equal(await page.evaluate(() => cellMs()), 10000, "cells of a thread");
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
