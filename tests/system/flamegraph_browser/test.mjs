// SPDX-License-Identifier: MIT
// Flame graphs opened from disk: graph.html, which is compared with the collapsed stacks of the same profile, and small,
// tall and empty ones.
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";
import { check, equal, executable, flags, runEach } from "./common.mjs";
import { Picture } from "./png.mjs";

const PHONE = { width: 390, height: 844 }, DESK = { width: 1440, height: 860 };
const cases = [], complaints = [];
let folder, browser, page, still, shots;

function test(name, run) {
	cases.push({ name, run });
}

/* What the collapsed stacks say: distinct frames, all samples, samples below a frame. */
function readTruth(path) {
	const frames = new Set();
	let samples = 0, quarter = 0;
	for (const line of readFileSync(path, "utf8").split("\n").filter(text => text)) {
		const space = line.lastIndexOf(" "), stack = line.slice(0, space);
		const count = Number(line.slice(space + 1));
		samples += count;
		quarter += stack.includes("com/acme/shop/Known.quarter") ? count : 0;
		for (let end = stack.indexOf(";"); end >= 0; end = stack.indexOf(";", end + 1))
			frames.add(stack.slice(0, end));
		frames.add(stack);
	}
	return { frames: frames.size, samples, quarter };
}

/* The bindings of the page's script, which a test may look at. */
const inPage = (expression, argument) => page.evaluate(expression, argument);
const view = () => inPage(() => ({ from: graph.from, to: graph.to, focus: graph.focus }));
/* Two frames: sizes are observed at the end of one. */
const settle = () => inPage(async () => {
	const frame = () => new Promise(requestAnimationFrame);
	do {
		await frame();
		await frame();
	} while (graph.animation || graph.pending);
});
const text = selector => page.locator(selector).innerText();

async function press(...keys) {
	for (const key of keys)
		await page.keyboard.press(key);
}

/* Where the middle of the first frame of that name is on the screen. */
async function frame(name) {
	const at = await inPage(wanted => {
		const node = profile.label.findIndex(label => profile.names[label] === wanted);
		return { node, ...graph.place(node) };
	}, name);
	check(at.node > 0, `no frame ${name}`);
	return { node: at.node, x: at.x + at.width / 2, y: at.y + 10 };
}

async function clickFrame(name, modifiers = []) {
	const at = await frame(name);
	for (const key of modifiers)
		await page.keyboard.down(key);
	await page.mouse.click(at.x, at.y);
	for (const key of modifiers)
		await page.keyboard.up(key);
	await settle();
	return at.node;
}

async function search(expression) {
	await press("/");
	await page.locator("#search").fill(expression);
}

async function reset() {
	await page.locator("#graph").focus();
	await press("Escape", "0");
	await page.mouse.move(2, 2);
	await settle();
}

/* Colours of the canvas that cover more than a speck of it. */
const colors = () => inPage(() => {
	const { width, height } = graph.canvas, seen = new Map();
	const copy = new OffscreenCanvas(width, height).getContext("2d", { willReadFrequently: true });
	copy.drawImage(graph.canvas, 0, 0);
	const { data } = copy.getImageData(0, 0, width, height);
	for (let i = 0; i < data.length; i += 4) {
		const color = data[i] << 16 | data[i + 1] << 8 | data[i + 2];
		seen.set(color, (seen.get(color) || 0) + 1);
	}
	return [...seen.values()].filter(pixels => pixels > 50).length;
});

const screenshot = name => page.screenshot({ path: `${folder}/${name}.png` });
const median = values => values.sort((a, b) => a - b)[values.length >> 1];

// ---- cases ---------------------------------------------------------------------------------

test("every frame and sample is there", async truth => {
	equal(await inPage(() => profile.count - 1), truth.frames, "frames");
	equal(await inPage(() => profile.samples[0]), truth.samples, "samples");
	check(truth.frames > 45000, `only ${truth.frames} frames`);
	check((await text("#summary")).includes(truth.samples.toLocaleString("en-US")), "no samples in the summary");
});

test("children lie inside their parents, side by side", async () => {
	equal(await inPage(() => {
		const ends = new Map();
		for (let node = 1; node < profile.count; node++) {
			const { parent: parents, left, width } = profile, parent = parents[node];
			const right = left[node] + width[node];
			if (left[node] < (ends.get(parent) ?? left[parent]) || right > left[parent] + width[parent])
				return node;
			ends.set(parent, right);
		}
		return 0;
	}), 0, "a frame out of its place");
});

test("the graph is drawn in many colours", async () => {
	check(await colors() > 12, "the canvas is blank");
	await screenshot("light");
});

test("the footer says how it was taken and what was lost", async () => {
	check((await text("#taken")).includes("cpu every 10 ms"), "no facts in the first line");
	check((await text("#lost")).includes("17 samples not joined"), "no losses in the first line");
	equal(await page.locator("#facts").isVisible(), false, "facts before they are asked for");
	await page.locator("#details .more").click();
	check((await text("#facts")).includes("cpu every 10 ms"), "no facts");
	check((await text("#losses")).includes("17 samples not joined"), "no losses");
});

test("names from outside are text", async () => {
	check((await text("#facts")).includes("</script><script>throw"), "the fact is not shown as it is");
	await page.locator("#details summary").click();
	check(await inPage(() => profile.names.some(name => name.startsWith("</script>"))), "the frame is missing");
	equal(await inPage(() => document.scripts.length), 2, "scripts");
});

test("the legend lists kinds with their share and highlights one", async () => {
	const kernel = page.locator("#legend button", { hasText: "kernel" });
	const share = Number(/([\d.]+) %/.exec(await kernel.innerText())[1]);
	check(share > 10 && share < 25, `kernel ${share} %`);
	equal(await page.locator("#legend button:visible").count(), 8, "kinds");
	await kernel.click();
	equal(await kernel.getAttribute("aria-pressed"), "true", "pressed");
	await reset();
	equal(await inPage(() => graph.highlight), -1, "highlight after Escape");
});

test("a click zooms, the path leads back", async truth => {
	await page.emulateMedia({ reducedMotion: "no-preference" });
	const node = await clickFrame("com.acme.shop.Known.quarter");
	const zoomed = await view();
	equal(zoomed.focus, node, "focus");
	equal(zoomed.to - zoomed.from, truth.quarter, "samples in view");
	check((await text("#path")).includes("Known.quarter"), "path");
	await screenshot("zoomed");
	await page.locator("#path button").first().click();
	await settle();
	equal((await view()).to, truth.samples, "whole view");
	await page.emulateMedia({ reducedMotion: "reduce" });
});

test("the tooltip shows samples, share, self and source", async truth => {
	const at = await frame("com.acme.shop.Known.quarter");
	await page.mouse.move(at.x, at.y);
	const shown = await text("#tooltip");
	const samples = truth.quarter.toLocaleString("en-US");
	for (const part of ["com.acme.shop.Known.quarter", samples, "25.00 %", "Self", "Known.java:7"])
		check(shown.includes(part), `${part} is not in the tooltip: ${shown}`);
	await screenshot("tooltip");
	await reset();
	equal(await page.locator("#tooltip").isVisible(), false, "tooltip after leaving");
});

test("search shows the matched share and walks the matches", async () => {
	await search("known\\.(quarter|eighth)$");
	equal(await text("#matched"), "25.00 % · 1", "a nested match counts once");
	await search("Known\\.eighth");
	equal(await text("#matched"), "12.50 % · 1", "an eighth");
	await screenshot("searched");
	await search("vfs_read");
	await press("Enter");
	const [at, all] = /(\d+)\/([\d,]+)/.exec(await text("#matched")).slice(1);
	equal(at, "1", "first match");
	check(Number(all.replace(",", "")) > 100, "many matches");
	await page.locator("#graph").focus();
	await press("n", "n", "Shift+N");
	check((await text("#matched")).includes("2/"), "second match");
	equal(await inPage(() => profile.names[profile.label[graph.selected]]), "vfs_read", "selected");
	await search("(");
	equal(await text("#matched"), "not a valid regex", "broken expression");
	await press("Escape");
	equal(await page.locator("#search").inputValue(), "", "cleared");
});

test("Ctrl+F is the page's search", async () => {
	await press("Control+f");
	equal(await inPage(() => document.activeElement.id), "search", "focus");
	await press("Escape");
});

test("invert turns the graph over", async () => {
	const before = await frame("clone3");
	await press("i");
	await settle();
	const after = await frame("clone3");
	check(after.y < before.y - 100, `clone3 went from ${before.y} to ${after.y}`);
	equal(await page.locator("#invert").getAttribute("aria-pressed"), "true", "pressed");
	equal(await inPage(([x, y]) => graph.nodeAt(x, y), [after.x, after.y]), after.node, "hit test");
	await press("i");
	await settle();
});

test("dark mode toggles and is remembered", async () => {
	const ground = () => inPage(() => getComputedStyle(document.body).backgroundColor);
	const light = await ground();
	await press("d");
	check(await ground() !== light, "the background stays");
	equal(await inPage(() => document.documentElement.dataset.theme), "dark", "theme");
	await settle();
	check(await colors() > 12, "the canvas is blank");
	await screenshot("dark");
	await page.reload();
	equal(await inPage(() => document.documentElement.dataset.theme), "dark", "theme after reload");
	await press("d");
});

test("the keyboard walks the frames", async () => {
	await reset();
	const selected = () => inPage(() => [graph.selected, profile.depth[graph.selected]]);
	await press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowUp");
	equal((await selected())[1], 3, "depth after the root and three up");
	const [middle] = await selected();
	await press("ArrowUp", "ArrowLeft");
	check((await selected())[0] !== middle, "sideways");
	await press("ArrowDown");
	equal((await selected())[0], middle, "back at the caller");
	await press("Enter");
	await settle();
	equal((await view()).focus, middle, "zoomed by Enter");
	check((await text("#announce")).length > 0, "nothing is announced");
	await press("Backspace");
	equal(await inPage(() => profile.depth[graph.focus]), 2, "zoomed out by Backspace");
	await press("?");
	check(await page.locator("#help").isVisible(), "help");
	await press("Escape");
	await reset();
});

test("a removed stack leaves the sums and comes back", async truth => {
	await clickFrame("com.acme.shop.Known.quarter", ["Alt"]);
	equal(await inPage(() => profile.samples[0]), truth.samples - truth.quarter, "samples without it");
	await search("Known\\.");
	equal(await text("#matched"), "0.00 % · 0", "matches without it");
	await reset();
	await page.locator("#undo").click();
	equal(await inPage(() => profile.samples[0]), truth.samples, "samples again");
	equal(await page.locator("#undo").isVisible(), false, "undo");
});

test("hot methods sort and lead to their frames", async () => {
	await press("m");
	const shares = async number => (await page.locator(`#rows td:nth-child(${number})`).allTextContents()).map(parseFloat);
	const falls = values => values.every((value, i) => i === 0 || value <= values[i - 1]);
	check(falls(await shares(1)), "not sorted by self");
	await page.locator("[data-sort=total]").click();
	check(falls(await shares(2)), "not sorted by total");
	equal((await shares(2))[0], 100, "the entry is in every stack");
	await page.locator("#rows button", { hasText: "Known.quarter" }).click();
	equal(await text("#matched"), "25.00 % · 1", "search by the table");
	await screenshot("methods");
	await press("m");
});

test("the canvas follows the window and the density of the screen", async () => {
	await page.setViewportSize({ width: 700, height: 500 });
	await settle();
	const size = await inPage(() => [graph.canvas.width / devicePixelRatio, graph.scroller.clientWidth]);
	equal(size[0], size[1], "width");
	const root = await frame("clone3");
	check(root.y > 100 && root.y < 500, `the root went out of sight, to ${root.y}`);
	await page.setViewportSize(DESK);
	await settle();
});

/* Relative, because machines differ: all frames at once may cost what as many plain rectangles cost. */
test("a redraw costs no more than filling as many rectangles", async () => {
	const [redraw, fill, drawn] = await inPage(() => {
		const copy = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
		const time = run => {
			const start = performance.now();
			run();
			copy.drawImage(graph.canvas, 0, 0);
			copy.getImageData(0, 0, 1, 1); // waits until it is drawn
			return performance.now() - start;
		};
		const fillAll = () => {
			for (let i = 0; i < profile.count; i++) {
				graph.context.fillStyle = graph.palette.fill(profile.kind[i], profile.label[i]);
				graph.context.fillRect(i % 1400, i / 1400 * 20, 1, 19);
			}
		};
		const redraws = Array.from({ length: 3 }, () => time(() => graph.draw()));
		const fills = Array.from({ length: 3 }, () => time(fillAll));
		graph.draw();
		return [redraws, fills, graph.drawn];
	});
	console.log(`# redraw ${median(redraw).toFixed(1)} ms with ${drawn} frames in sight; ` +
		`a rectangle for every frame ${median(fill).toFixed(1)} ms`);
	check(median(redraw) < median(fill), "a redraw takes longer than bare rectangles");
});

test("the page prints", async () => {
	const pdf = await page.pdf({ format: "A4", landscape: true, path: `${folder}/print.pdf` });
	check(pdf.length > 20000, `${pdf.length} bytes`);
	equal(await inPage(() => graph.printing), 0, "printing");
});

test("an empty profile is a page too", async () => {
	await page.goto(address("empty"));
	check(await page.locator("#empty").isVisible(), "nothing says that there are no samples");
	await press("ArrowUp", "Enter", "i", "m", "/");
	equal(await text("#lost"), "17 samples not joined: no agent record arrived for them", "losses");
});

/*
 * The graph's part of the page and where its root is: its row is of one colour from side to side. A window of a tall
 * graph has it at the edge, one of a small graph too.
 */
function checkRoot(picture, { inverted, box, ratio = 1 }) {
	const [left, right] = [box.left + 4, box.left + box.width - 24].map(x => Math.round(x * ratio));
	const row = inverted ? box.top + 18 : box.top + box.height - 4;
	const root = picture.usual(Math.round(row * ratio), left, right);
	const ground = picture.usual(picture.height - 2).color;
	check(root.share > 0.97 && root.color !== ground, `the root's row is not where the stacks start: ${root.share}`);
	check(picture.colored() > 0.04, `only ${picture.colored()} of the picture is coloured`);
}

const scrollerBox = () => inPage(() => {
	const { left, top, width, height } = graph.scroller.getBoundingClientRect();
	return { left, top, width, height, inverted: graph.inverted };
});

async function checkPicture() {
	const { inverted, ...box } = await scrollerBox();
	checkRoot(new Picture(await page.screenshot()), { inverted, box });
}

async function openIn(viewport, name) {
	await page.setViewportSize(viewport);
	await page.goto(address(name));
}

/* In a page that gets no animation frames, and is told of no size. */
async function openStill(viewport, name) {
	if (!still) {
		still = await newPage();
		await still.addInitScript(() => {
			window.requestAnimationFrame = () => 0;
			window.ResizeObserver = class { observe() {} };
		});
	}
	page = still;
	await openIn(viewport, name);
}

for (const name of ["small", "small-inverted", "tall", "tall-inverted"])
	test(`${name} opens at its root, drawn before the first frame`, async () => {
		const main = page;
		try {
			for (const viewport of [PHONE, DESK]) {
				await openStill(viewport, name);
				await checkPicture();
			}
		} finally {
			page = main;
		}
	});

for (const name of ["tall", "tall-inverted"])
	test(`${name} keeps its place while the window changes`, async () => {
		await openIn({ width: 780, height: 500 }, name);
		for (const height of [1000, 400]) {
			await page.setViewportSize({ width: 780, height });
			await settle();
			await checkPicture();
		}
		await inPage(() => { graph.scroller.scrollTop += graph.inverted ? 300 : -300; });
		equal(await inPage(() => graph.distanceFromRoot()), 300, "scrolled");
		await page.setViewportSize({ width: 780, height: 640 });
		await settle();
		equal(await inPage(() => graph.distanceFromRoot()), 300, "where the user scrolled to");
	});

test("chromium --screenshot has the whole picture", async () => {
	for (const shot of await shots) {
		const picture = new Picture(readFileSync(shot.path));
		check(picture.colored() > 0.04, `${shot.path}: only ${picture.colored()} is coloured`);
	}
});

test("a long title is cut, and can be read", async () => {
	await openIn(PHONE, "small");
	const shown = await inPage(() => [byId("title").scrollHeight > byId("title").clientHeight, document.body.scrollWidth]);
	equal(shown.join(), `true,${PHONE.width}`, "cut after two lines, and no wider than the window");
	equal(await page.locator("#title").getAttribute("title"), await page.locator("#title").textContent(), "tooltip");
});

// ---- two profiles ----------------------------------------------------------------------------

async function openDiff(name = "diff") {
	await openIn(DESK, name);
	await settle();
}

/* Parts of the graph's width that frames take; 0 for those that are hidden. */
const widths = names => inPage(wanted => wanted.map(name => {
	const node = profile.label.findIndex(label => profile.names[label] === name);
	return profile.hidden[node] ? 0 : Math.round(1000 * graph.place(node).width / graph.width) / 1000;
}), names.map(name => `app.Main.${name}`));

/* What is drawn at the left end of each frame, before its text: [red, green, blue]. */
async function colorsOf(...names) {
	const places = await inPage(all => all.map(name =>
		graph.place(profile.label.findIndex(label => profile.names[label] === name))), names);
	const picture = new Picture(await page.screenshot());
	return places.map(at => picture.at(Math.round(at.x + 3), Math.round(at.y + 10)))
		.map(color => [color >> 16, color >> 8 & 255, color & 255]);
}

async function tipOf(name) {
	const at = await frame(name);
	await page.mouse.move(at.x, at.y);
	return (await text("#tooltip")).replace(/\s+/g, " ");
}

function contains(got, parts, what) {
	for (const part of parts)
		check(got.includes(part), `${part} is not in ${what}: ${got}`);
}

test("diff: widths are those of B, and of A after the switch", async () => {
	await openDiff();
	equal((await widths(["hot", "same", "new", "gone"])).join(), "0.6,0.3,0.1,0", "of B");
	equal(await text("#side"), "Widths of after", "button");
	contains(await text("#summary"), ["before: 10,000 samples", "after: 20,000 samples"], "the summary");
	await press("b");
	await settle();
	equal((await widths(["hot", "same", "new", "gone"])).join(), "0.5,0.3,0,0.2", "of A");
	equal(await text("#side"), "Widths of before", "button");
	await page.locator("#side").click();
	await settle();
	equal((await widths(["hot", "same", "new", "gone"])).join(), "0.6,0.3,0.1,0", "of B again");
});

/* The greatest change is -20 %, so +10 % is half of the way to red. */
test("diff: red where B has more, blue where it has less, neither where they are equal", async () => {
	await openDiff();
	const grey = ([red, green, blue]) => Math.max(red, green, blue) - Math.min(red, green, blue) < 20;
	for (const [theme, full] of [["light", "79,140,245"], ["dark", "82,134,232"]]) {
		const same = ["app.Main.same", "app.Main.run", "main"];
		const [[red, green, blue], added, ...greys] = await colorsOf("app.Main.hot", "app.Main.new", ...same);
		check(red > green + 40 && red > blue + 40 && green > 90, `${theme}: hot is ${[red, green, blue]}`);
		greys.forEach((color, i) => check(grey(color), `${theme}: ${same[i]} is ${color}`));
		equal(added.join(), [red, green, blue].join(), `${theme}: new is as hot`);
		await press("b");
		await settle();
		equal((await colorsOf("app.Main.gone")).join(), full, `${theme}: gone`);
		await screenshot(`diff-${theme}`);
		await press("b", "d");
		await settle();
	}
});

test("diff: the tooltip has both values, their shares and the difference", async () => {
	await openDiff();
	contains(await tipOf("app.Main.hot"), ["compiled · more in after", "before after Change",
		"Share 50.00 % 60.00 % +10.00 %", "Samples 5,000 12,000 +7,000"], "the tooltip");
	contains(await tipOf("app.Main.same"), ["no clear change", "Share 30.00 % 30.00 % 0.00 %"], "the tooltip");
	contains(await tipOf("app.Main.new"), ["only in after", "Samples 0 2,000 +2,000"], "the tooltip");
	await screenshot("diff-tooltip");
	await press("b");
	await settle();
	contains(await tipOf("app.Main.gone"), ["interpreted · only in before", "Share 20.00 % 0.00 % −20.00 %",
		"Samples 2,000 0 −2,000"], "the tooltip");
});

test("diff: search, zoom, removal and methods follow the profile that is shown", async () => {
	await openDiff();
	await search("Main\\.hot");
	equal(await text("#matched"), "60.00 % · 1", "found in B");
	await reset();
	await press("b");
	await search("Main\\.hot");
	equal(await text("#matched"), "50.00 % · 1", "found in A");
	await reset();
	await clickFrame("app.Main.hot");
	equal((await view()).to - (await view()).from, 5000, "zoomed in A");
	await press("b");
	await settle();
	equal((await view()).to - (await view()).from, 12000, "zoomed in B");
	await reset();
	await clickFrame("app.Main.hot", ["Alt"]);
	equal(await inPage(() => profile.sides.map(side => side.width[0]).join()), "5000,8000", "samples without hot");
	await press("u", "m");
	await page.locator("[data-sort=change]").click();
	const rows = await page.locator("#rows tr").allInnerTexts();
	contains(rows[0], ["+10.00 %", "app.Main."], "the first method");
	contains(rows[rows.length - 1], ["−20.00 %"], "the last method");
	await page.locator("[data-sort=self]").click();
	await press("m");
});

test("diff: the legend leads to what only A has", async () => {
	await openDiff();
	equal((await page.locator("#legend button:visible").allInnerTexts()).map(name => name.replace(/\s+/g, " ")).join(),
		"more in after 60.00 %,no clear change 30.00 %,only in after 10.00 %,only in before 20.00 %", "legend");
	await page.locator("#legend button", { hasText: "only in before" }).click();
	await settle();
	equal((await widths(["gone"])).join(), "0.2", "shown");
	equal(await inPage(() => graph.isDimmed(profile.label.findIndex(label => profile.names[label] === "app.Main.hot"))),
		true, "the others are dimmed");
});

test("diff: facts and losses have the names of the files", async () => {
	await openDiff();
	await page.locator("#details .more").click();
	contains((await text("#facts")).replace(/\s+/g, " "), ["before ", "before.collapsed", "after.collapsed"], "the facts");
	equal(await inPage(() => [ofSide("7 lost (A)", /(?<=\()([AB])(?=\)$)/), ofSide("B: host", /^([AB])(?=: |$)/)].join()),
		"7 lost (before),after: host", "sides");
});

/* 30 of 10000 samples and 70 of 20000 differ by less than chance explains. */
test("diff: what chance explains is no change, unless it is asked for", async () => {
	await openDiff();
	const leaf = () => inPage(() => profile.groups[profile.group[profile.label.findIndex(label => profile.names[label] === "leaf")]]);
	contains(await tipOf("leaf"), ["no clear change", "Share 0.30 % 0.35 % +0.05 %"], "the tooltip");
	await press("v");
	await page.locator("#noise").uncheck();
	equal(await leaf(), "more in after", "without the threshold");
	contains(await text("#legend"), ["the same"], "the legend");
	await page.locator("#noise").check();
	equal(await leaf(), "no clear change", "with the threshold");
	await press("Escape");
});

/* An amount has the unit of its event, and never that of another row. */
test("diff: weights have their unit", async () => {
	await openDiff();
	const cells = await inPage(() => {
		for (const side of profile.sides)
			side.unit = profile.unit = "bytes";
		return comparedRows(profile.label.findIndex(label => profile.names[label] === "app.Main.hot"), graph)
			.find(([head]) => head === "Weight");
	});
	equal(cells.length, 4, "cells");
	check(cells.slice(1).every(cell => / (bytes|KiB|MiB)$/.test(cell)), `weights: ${cells}`);
});

test("diff: where B has nothing, A is shown", async () => {
	await openDiff("diff-gone");
	equal(await text("#side"), "Widths of before", "button");
	equal(await page.locator("#empty").isVisible(), false, "nothing says that there are no samples");
	equal((await widths(["hot", "same", "gone"])).join(), "0.5,0.3,0.2", "of A");
	await press("b");
	check(await page.locator("#empty").isVisible(), "nothing says that B is empty");
});

test("one profile has no other side", async () => {
	await openIn(DESK, "small");
	await press("b");
	equal(await page.locator("#side").isVisible(), false, "button");
	equal(await page.locator("[data-sort=change]").count(), 1, "the column is there …");
	equal(await inPage(() => byId("changes").hidden), true, "… and hidden");
});

test("nothing was written to the console", async () => {
	equal(complaints.join("; "), "", "console");
});

// ---- run -------------------------------------------------------------------------------------

function address(name) {
	return new URL(`${folder}/${name}.html`, `file://${process.cwd()}/`).href;
}

/* As people do in scripts, in processes of their own. */
function takeShots() {
	const run = promisify(execFile), kinds = [
		{ name: "tall", flags: ["--window-size=1440,860"] },
		{ name: "tall-inverted", flags: ["--window-size=390,844", "--virtual-time-budget=5000"] },
	];
	return Promise.all(kinds.map(async kind => {
		const path = `${folder}/headless-${kind.name}.png`;
		await run(executable, [...flags, ...kind.flags, `--user-data-dir=${folder}/chromium-${kind.name}`,
			`--screenshot=${path}`, address(kind.name)]);
		return { path };
	}));
}

async function newPage() {
	const made = await browser.newPage({ viewport: DESK, colorScheme: "light", reducedMotion: "reduce" });
	made.setDefaultTimeout(30000);
	made.on("console", message => complaints.push(message.text()));
	made.on("pageerror", error => complaints.push(error.message));
	made.on("request", request => {
		if (!request.url().startsWith("file:"))
			complaints.push(`request of ${request.url()}`);
	});
	return made;
}

export async function run(inFolder, inBrowser) {
	folder = inFolder;
	browser = inBrowser;
	shots = takeShots();
	page = await newPage();
	await page.goto(address("graph"));
	await settle();
	const truth = readTruth(`${folder}/graph.collapsed`);
	const failed = await runEach(cases, async test => {
		await test.run(truth).finally(reset);
	});
	await page.context().close();
	await still.context().close();
	return failed;
}
