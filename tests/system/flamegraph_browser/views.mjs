// SPDX-License-Identifier: MIT
// The views of a flame graph of two events, views.html, whose samples flamegraph_browser.sh lists.
import { readFileSync } from "node:fs";
import { equal, runEach } from "./common.mjs";

const cases = [], complaints = [];
let folder, page;

const test = (name, run) => cases.push({ name, run });
const open = async (hash = "") => {
	await page.goto("about:blank");
	await page.goto(`file://${folder}/views.html${hash}`);
};

/* The visible frames of a graph as "a;b 3", each with its samples. */
const stacks = (which = "graph") => page.evaluate(name => {
	const { profile } = name === "graph" ? graph : callers, shown = [];
	for (let node = 0; node < profile.count; node++)
		if (!profile.hidden[node])
			shown.push(`${profile.ancestors(node).map(at => profile.names[profile.label[at]]).join(";")} ` +
				profile.samples[node]);
	return shown.sort();
}, which);

const change = what => page.evaluate(argument => changeView(argument), what);
/* The address is written after a pause. */
const address = async () => {
	await page.waitForFunction(() => location.hash.slice(1) === addressText());
	return new URL(page.url()).hash;
};

const WHOLE = ["all 6", "all;main 6", "all;main;java.io.A.read 1", "all;main;java.util.B.call 4",
	"all;main;java.util.B.call;java.util.B.call 2", "all;main;java.util.B.call;java.util.B.call;java.util.C.leaf 2",
	"all;main;java.util.B.call;java.util.C.leaf 2"];

test("all samples are there at first", async () => {
	await open();
	equal(await stacks(), WHOLE, "frames");
	equal(await page.locator("#changed").isVisible(), false, "a note");
	equal(await page.locator("#timeline").isVisible(), true, "the time");
});

test("the event is switched", async () => {
	await open();
	await page.selectOption("#event", { label: "faults" });
	equal(await stacks(), ["all 1", "all;main 1"], "frames of faults");
	equal(await page.title(), "t 1, faults, 1970-01-01 00:01:40 UTC", "title");
	equal(await address(), "#event=faults", "address");
	await page.selectOption("#event", { label: "cycles" });
	equal(await stacks(), WHOLE, "frames of cycles");
});

test("threads are chosen", async () => {
	await open();
	await page.keyboard.press("v");
	const names = await page.locator("#threads label").allInnerTexts();
	equal(names.map(name => name.replace(/\s+/g, " ")), ["t 1/2 t 66.67 %", "t 1/3 u 33.33 %"], "threads");
	await page.locator("#threads input").first().uncheck();
	equal(await stacks(), ["all 2", "all;main 2", "all;main;java.io.A.read 1", "all;main;java.util.B.call 1",
		"all;main;java.util.B.call;java.util.C.leaf 1"], "frames of thread 3");
	await page.locator("#all-threads").click();
	equal(await stacks(), WHOLE, "frames of all");
});

/* Of 2 s, the first half has four samples. */
test("a range of time is dragged", async () => {
	await open();
	const box = await page.locator("#times").boundingBox();
	await page.mouse.move(box.x + 1, box.y + 9);
	await page.mouse.down();
	await page.mouse.move(box.x + box.width / 2, box.y + 9);
	await page.mouse.up();
	equal((await stacks())[0], "all 4", "samples of a half");
	const saved = await address();
	equal(await page.locator("#changed").isVisible(), true, "a note");
	await page.locator("#all-times").click();
	equal(await stacks(), WHOLE, "frames of all");
	await open(saved);
	equal((await stacks())[0], "all 4", "samples of the address");
});

test("leaf first", async () => {
	await open();
	await page.keyboard.press("r");
	equal(await stacks(), ["all 6", "all;java.io.A.read 1", "all;java.io.A.read;main 1", "all;java.util.C.leaf 4",
		"all;java.util.C.leaf;java.util.B.call 4", "all;java.util.C.leaf;java.util.B.call;java.util.B.call 2",
		"all;java.util.C.leaf;java.util.B.call;java.util.B.call;main 2", "all;java.util.C.leaf;java.util.B.call;main 2",
		"all;main 1"], "frames");
	await page.keyboard.press("r");
	equal(await stacks(), WHOLE, "frames of all");
});

test("callers and callees of a method, recursion once", async () => {
	await open();
	await page.evaluate(() => showAround("java.util.B.call"));
	equal(await stacks(), ["java.util.B.call 4", "java.util.B.call;java.util.B.call 2",
		"java.util.B.call;java.util.B.call;java.util.C.leaf 2", "java.util.B.call;java.util.C.leaf 2"], "callees");
	equal(await stacks("callers"), ["java.util.B.call 4", "java.util.B.call;main 4"], "callers");
	equal(await page.locator("#callers").isVisible(), true, "the callers");
	const at = await page.evaluate(() => graph.place(0));
	await page.mouse.move(at.x + 50, at.y + 10);
	equal((await page.locator("#tooltip").innerText()).includes("66.67 %"), true, "share of all samples");
	await page.locator("#changed button").click();
	equal(await stacks(), WHOLE, "frames of all");
	equal(await page.locator("#callers").isVisible(), false, "the callers after that");
});

test("recursion and packages are taken together or left out", async () => {
	await open();
	await change({ recursion: true });
	equal(await stacks(), ["all 6", "all;main 6", "all;main;java.io.A.read 1", "all;main;java.util.B.call 4",
		"all;main;java.util.B.call;java.util.C.leaf 4"], "recursion");
	await change({ recursion: false });
	await page.keyboard.press("v");
	await page.fill("#prefix", "java.util.*");
	await page.click("#collapse");
	equal(await stacks(), ["all 6", "all;main 6", "all;main;java.io.A.read 1", "all;main;java.util.* 4"], "collapsed");
	equal(await page.evaluate(() => profile.self[profile.label.findIndex(at => profile.names[at] === "java.util.*")]), 4,
		"self of the package");
	await page.fill("#prefix", "java.util.");
	await page.click("#hide");
	equal(await stacks(), ["all 6", "all;main 6", "all;main;java.io.A.read 1"], "hidden");
	await open(await address());
	equal(await stacks(), ["all 6", "all;main 6", "all;main;java.io.A.read 1"], "hidden by the address");
	await page.keyboard.press("v");
	await page.locator("#rules button").click();
	equal(await stacks(), WHOLE, "frames of all");
});

test("the address has search, zoom and direction", async () => {
	await open();
	await page.evaluate(() => {
		zoom(profile.label.findIndex(at => profile.names[at] === "java.util.B.call"));
		searchFor("leaf");
		invert();
		toggleMethods();
	});
	const saved = await address();
	await open(saved);
	equal(await page.evaluate(() => [profile.names[profile.label[graph.focus]], graph.inverted, byId("search").value,
		byId("methods").hidden]), ["java.util.B.call", true, "leaf", false], "state");
	equal(await page.locator("#matched").innerText(), "100.00 % · 2", "found in the zoomed part");
});

/* The sleep of 3 s has one sample, that of 1 s has two. */
test("waits are as wide as they lasted, or as often as they were", async () => {
	await page.goto(`file://${folder}/waits.html`);
	const wide = () => page.evaluate(() => [profile.total, ...["long", "short"].map(name =>
		profile.width[profile.label.findIndex(at => profile.names[at] === name)])]);
	equal(await wide(), [true, 3e9, 1e9], "by weight");
	await page.keyboard.press("v");
	await page.locator("#total").uncheck();
	equal(await wide(), [false, 1, 2], "by samples");
	const saved = await address();
	await page.goto("about:blank");
	await page.goto(`file://${folder}/waits.html${saved}`);
	equal(await wide(), [false, 1, 2], "by the address");
});

test("wrong addresses show the whole", async () => {
	for (const hash of ["#event=nothing", "#zoom=9999-1", "#threads=77", "#time=5", "#method=none", "#collapse=", "#%%%"]) {
		await open(hash);
		equal((await stacks()).length > 0, true, `frames with ${hash}`);
	}
});

test("a right click lists what can be done", async () => {
	await open();
	const at = await page.evaluate(() => graph.place(profile.label.findIndex(id => profile.names[id] === "java.util.C.leaf")));
	await page.mouse.click(at.x + 4, at.y + 8, { button: "right" });
	equal(await page.locator("#menu button").allInnerTexts(), ["Zoom", "Callers and callees", "Copy name", "Copy stack",
		"Search for it", "Remove stack", "Collapse java.util.*", "Hide java.util.*",
		"Only java.util.*"], "menu");
	await page.locator("#menu button", { hasText: "Copy stack" }).click();
	equal(await page.evaluate(() => navigator.clipboard.readText()), "java.util.C.leaf\njava.util.B.call\n" +
		"java.util.B.call\nmain", "copied");
	await page.mouse.click(at.x + 4, at.y + 8, { button: "right" });
	await page.keyboard.press("Escape");
	equal(await page.locator("#menu").isVisible(), false, "menu after Escape");
});

test("pictures are saved", async () => {
	await open();
	await page.keyboard.press("v");
	const saved = async button => {
		const [download] = await Promise.all([page.waitForEvent("download"), page.click(button)]);
		return [download.suggestedFilename(), readFileSync(await download.path())];
	};
	const [svgName, svg] = await saved("#save-svg");
	equal(svgName, "t-1-cycles-1970-01-01-00-01-40-UTC.svg", "name");
	equal(svg.toString().split("<rect").length - 1, 7, "frames in the SVG");
	equal(svg.includes("java.util.B.call (4 samples, 66.67 %)"), true, "a title in the SVG");
	const [pngName, png] = await saved("#save-png");
	equal(pngName, "t-1-cycles-1970-01-01-00-01-40-UTC.png", "name");
	equal([...png.subarray(0, 4)], [137, 80, 78, 71], "the PNG's first bytes");
});

export async function run(inFolder, browser) {
	const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, reducedMotion: "reduce" });
	folder = inFolder;
	await context.grantPermissions(["clipboard-read", "clipboard-write"]);
	page = await context.newPage();
	page.on("pageerror", error => complaints.push(String(error)));
	page.on("console", message => message.type() === "error" && complaints.push(message.text()));
	const failed = await runEach(cases, async test => {
		complaints.length = 0;
		await test.run();
		equal(complaints, [], "complaints of the page");
	});
	await context.close();
	return failed;
}
