// SPDX-License-Identifier: MIT
// What can be seen of the pages that flamegraph_browser.sh writes: where things stand, whether texts can be read, and
// the views of call tree and heat map.
import { check, equal, runEach } from "./common.mjs";
import { Picture } from "./png.mjs";

const PHONE = { width: 390, height: 844 }, DESK = { width: 1400, height: 860 };
const LEAST_CONTRAST = 4.5; // WCAG AA
const cases = [], complaints = [];
let folder, page;

const test = (name, run) => cases.push({ name, run });
const text = selector => page.locator(selector).innerText();
const inPage = (expression, argument) => page.evaluate(expression, argument);

async function open(file, { hash = "", viewport = DESK } = {}) {
	await page.setViewportSize(viewport);
	await page.goto("about:blank");
	await page.goto(`file://${folder}/${file}.html${hash}`);
	await inPage(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))));
}

async function press(...keys) {
	for (const key of keys)
		await page.keyboard.press(key);
}

/* The address is written after a pause. */
async function address() {
	await page.waitForFunction(() => location.hash.slice(1) === addressText());
	return new URL(page.url()).hash;
}

/* What is drawn of the graph as "name samples". */
const frames = () => inPage(() => Array.from({ length: profile.count }, (_, node) => node).filter(node => !profile.hidden[node])
	.map(node => `${nodeName(node)} ${profile.samples[node]}`).sort());

// ---- what can be read ------------------------------------------------------------------------

/* Texts in sight whose contrast to what is behind them is too low, each as "text: contrast". */
const faint = () => inPage(least => {
	const parse = color => (/[\d.]+/g[Symbol.match](color) || [0, 0, 0, 0]).map(Number);
	const over = (above, below) => above.slice(0, 3).map((part, i) => part * (above[3] ?? 1) + below[i] * (1 - (above[3] ?? 1)));
	const ground = element => element ? over(parse(getComputedStyle(element).backgroundColor), ground(element.parentElement)) :
		[255, 255, 255];
	const light = color => color.reduce((sum, part, i) => {
		const share = part / 255, linear = share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
		return sum + linear * [0.2126, 0.7152, 0.0722][i];
	}, 0);
	const found = [];
	for (const element of document.querySelectorAll("body *")) {
		const own = [...element.childNodes].filter(node => node.nodeType === 3 && node.data.trim());
		if (!own.length || !element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) ||
			["SCRIPT", "STYLE"].includes(element.tagName))
			continue;
		const behind = ground(element), color = over(parse(getComputedStyle(element).color), behind);
		const [high, low] = [light(color), light(behind)].sort((a, b) => b - a);
		const opacity = Number(getComputedStyle(element).opacity), contrast = (high + 0.05) / (low + 0.05);
		if (contrast < least || opacity < 0.9)
			found.push(`${own[0].data.trim().slice(0, 30)}: ${contrast.toFixed(1)} at ${opacity}`);
	}
	return found;
}, LEAST_CONTRAST);

test("every text has the contrast of WCAG AA, in both themes and in each view", async () => {
	for (const [file, hash] of [["graph", "#methods=1&search=Known"], ["views", "#view=tree&search=leaf"], ["views", "#view=heat"],
		["diff", "#view=tree&methods=1"]]) {
		await open(file, { hash });
		await inPage(() => { byId("details").open = true; toggleView(); });
		for (const theme of ["light", "dark"]) {
			await inPage(name => setTheme(name), theme);
			equal(await faint(), [], `${file}${hash}, ${theme}`);
		}
	}
});

/* The canvas: the colours of frames with their text on them. */
test("names on frames have that contrast too", async () => {
	await open("graph");
	const least = await inPage(() => {
		const context = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
		const light = color => {
			context.fillStyle = color;
			context.fillRect(0, 0, 1, 1);
			return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).reduce((sum, part, i) => {
				const share = part / 255, linear = share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
				return sum + linear * [0.2126, 0.7152, 0.0722][i];
			}, 0);
		};
		const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
		return Math.min(...["light", "dark"].flatMap(theme => {
			const palette = new Palette(profile.kinds, theme);
			return [...palette.fills.flat(), ...palette.changes].map(fill => contrast(palette.text, fill));
		}));
	});
	check(least >= LEAST_CONTRAST, `contrast ${least}`);
});

test("names in the Methods list are shown, whole or with both of their ends", async () => {
	for (const viewport of [DESK, PHONE]) {
		await open("names", { viewport, hash: "#methods=1" });
		const rows = await inPage(() => [...document.querySelectorAll("#rows tr")].map(row => {
			const button = row.querySelector("td:last-child button:last-child"), box = button.getBoundingClientRect();
			const cell = row.lastElementChild.getBoundingClientRect();
			return { name: button.title, shown: button.innerText, fits: box.right <= cell.right + 1 && box.height < 30 };
		}));
		check(rows.length > 4, `${rows.length} rows`);
		for (const { name, shown, fits } of rows) {
			const [start, end] = shown.split("…");
			check(fits && shown.length > 3, `${name} is shown as ${shown}`);
			check(end === undefined ? name.endsWith(shown) : name.includes(start) && name.endsWith(end) && end.length > 3,
				`${name} is shown as ${shown}`);
		}
	}
});

test("a name that does not fit is cut in its middle", async () => {
	await open("names");
	const cut = await inPage(() => {
		const label = profile.names.findIndex(name => name.startsWith("std::map"));
		return [200, 120, 60, 20].map(width => graph.fit(label, width));
	});
	check(/^std::map<.*….*emplace_hint$/.test(cut[0]), `in 200 pixels: ${cut[0]}`);
	check(/^std::.*….*_hint$/.test(cut[1]), `in 120 pixels: ${cut[1]}`);
	check(cut[2].length > 3 && cut[3].length < 4, `in 60 and 20 pixels: ${cut.slice(2)}`);
});

test("the page fits a phone, with several events, in each view", async () => {
	for (const hash of ["", "#view=tree", "#view=heat", "#methods=1"]) {
		await open("views", { viewport: PHONE, hash });
		const { outside, main, wide } = await inPage(() => ({
			outside: [...document.querySelectorAll("header button, header select, header input, h1, #taken, .more")]
				.filter(element => element.checkVisibility() && (element.id !== "taken" || element.innerText))
				.filter(element => {
					const box = element.getBoundingClientRect();
					return box.left < 0 || box.right > innerWidth || box.bottom > innerHeight || box.width < 8;
				}).map(element => element.id || element.innerText),
			main: byId("panes").getBoundingClientRect().toJSON(), wide: document.body.scrollWidth,
		}));
		equal(outside, [], `outside of the window, ${hash}`);
		equal(wide, PHONE.width, `width of the page, ${hash}`);
		check(main.height >= 120 && main.bottom < PHONE.height, `the graph has ${main.height} pixels, ${hash}`);
	}
});

test("the title says program, pid, event and time; the first line how it was taken", async () => {
	await open("views");
	equal(await page.title(), "t 1, cycles, 1970-01-01 00:01:40 UTC", "title");
	equal(await text("#title"), await page.title(), "heading");
	await open("graph");
	check((await text("#taken")).startsWith("cpu every 10 ms"), await text("#taken"));
	const [line, graph] = await inPage(() => [byId("taken"), byId("scroller")].map(part => part.getBoundingClientRect().toJSON()));
	check(line.height < 40 && graph.height > 500, `the line has ${line.height} pixels, the graph ${graph.height}`);
});

// ---- what answers ----------------------------------------------------------------------------

test("Escape closes what is open, and then clears the search", async () => {
	await open("views");
	await press("m", "v");
	await inPage(() => searchFor("leaf"));
	await press("Escape");
	equal([await page.locator("#methods").isVisible(), await page.locator("#panel").isVisible(),
		await page.locator("#search").inputValue()], [false, false, "leaf"], "after one");
	await press("Escape");
	equal(await page.locator("#search").inputValue(), "", "after two");
});

test("what was copied is said, for a while", async () => {
	await open("views");
	await press("c");
	/* At once: a busy machine may be slower than the text stays. */
	const shown = await page.waitForFunction(() => {
		const box = byId("toast").getBoundingClientRect();
		return box.height && { text: byId("toast").innerText, box };
	});
	const { text, box } = await shown.jsonValue();
	equal(text, "Copied the stack", "text");
	check(box.y > 0 && box.y + box.height < DESK.height && box.x > 0, "it is outside of the window");
	await page.locator("#toast").waitFor({ state: "hidden" });
});

test("letters that are typed are no keys of the page", async () => {
	await open("views");
	await press("v");
	await page.locator("#prefix").pressSequentially("dim");
	equal(await page.locator("#prefix").inputValue(), "dim", "typed");
	equal(await inPage(() => [graph.inverted, document.documentElement.dataset.theme]), [false, "light"], "state");
});

test("a search takes '/' for '.'", async () => {
	await open("views");
	for (const wanted of ["java/util/C.leaf", "java.util.C.leaf", "java\\/util"]) {
		await inPage(expression => searchFor(expression), wanted);
		check((await text("#matched")).startsWith("66.67 %"), `${wanted}: ${await text("#matched")}`);
	}
});

/* A frame that ran in several ways counts as the usual one, so Java's kinds are taken together. */
const legend = () => inPage(() => {
	const shares = profile.groupShares(), sums = {};
	profile.kinds.forEach((kind, i) => {
		const name = JAVA.includes(kind) ? "Java" : kind;
		sums[name] = Math.round(1e3 * ((sums[name] || 0) + shares[i])) / 1e3;
	});
	return { sums, shown: [...document.querySelectorAll("#legend button")].filter(button => button.checkVisibility())
		.map(button => parseFloat(button.querySelector("small").innerText)).reduce((sum, part) => sum + part, 0) };
});

test("the legend has the same shares when the stacks are turned round", async () => {
	for (const file of ["graph", "names"]) {
		await open(file);
		const { sums } = await legend();
		for (const keys of [["r"], ["i"], ["r", "r"]]) {
			await press(...keys);
			const now = await legend();
			equal(now.sums, sums, `${file} after ${keys}`);
			check(Math.abs(now.shown - 100) < 0.1, `${file} after ${keys}: the legend adds up to ${now.shown}`);
		}
	}
});

/* names.html: 14 samples below the JVM's entry, 5 of them without Java, 4 in the kernel, 2 of b.B.b alone. */
test("presets leave frames out, and keep all samples", async () => {
	await open("names");
	await press("v");
	const preset = async name => {
		await page.locator(`[data-preset=${name}]`).click();
		const shown = await frames();
		equal(shown.find(frame => frame.startsWith("all")), "all 20", `samples, ${name}`);
		const saved = await address();
		check(await page.locator("#changed").isVisible(), `nothing says that frames are hidden, ${name}`);
		await page.locator(`[data-preset=${name}]`).click();
		return [shown.map(frame => frame.slice(0, frame.lastIndexOf(" "))).filter(frame => frame !== "all"), saved];
	};
	const kinds = /^(clone3|JavaThread|GangWorker|std::|read|vfs_read)/;
	const [java, saved] = await preset("java");
	equal(java.filter(frame => kinds.test(frame)), [], "Java only");
	equal((await preset("mine"))[0].filter(frame => !/^(a|b)\./.test(frame)), [], "my packages");
	equal((await preset("entry"))[0].filter(frame => /^(clone3|JavaThread)/.test(frame)), [], "JVM entry");
	check((await preset("entry"))[0].some(frame => frame.startsWith("GangWorker")), "what is no entry is left out");
	equal((await preset("jdk"))[0].filter(frame => frame.startsWith("java.")), [], "JDK");
	equal((await preset("kernel"))[0].filter(frame => frame.startsWith("vfs_read")), [], "kernel");
	await open("names", { hash: saved });
	equal((await frames()).filter(frame => kinds.test(frame)), [], "Java only by the address");
	await inPage(() => changeView({ presets: [] }));
	await press("v");
	await page.fill("#prefix", "a/");
	await page.click("#only");
	equal((await frames()).filter(frame => !/^(all |a\.)/.test(frame)), [], "one package");
});

/* A tick at 0 s, and a sleep of 3 s that ends at 4 s. */
test("a sleep has its time in the line of time, and in a range of it", async () => {
	await open("sleep");
	const bars = await inPage(() => [...samplesInTime().histogram(1e6 + 1, 4, { total: true })].map(bar => Math.round(bar / 1e7)));
	equal(bars, [0, 100, 100, 100], "hundredths of a second in each second");
	await inPage(() => changeView({ range: [2e6, 3e6] }));
	equal(await inPage(() => [profile.samples[0], Math.round(profile.amounts[0] / 1e6)]), [1, 1000], "of one second");
});

// ---- call tree -------------------------------------------------------------------------------

const rows = () => page.$$eval("#tree .row", all => all.map(row => [...row.querySelectorAll("span:not(.swatch)")].map(cell => cell.innerText.trim())
	.join(" ").replace(/^(.*) [▾▸]?\s*/, "$1 ")));

test("the tree opens as a view of the page, the widest callees first", async () => {
	await open("a.tree");
	equal(await page.locator("#graph").isVisible(), false, "the graph");
	equal(await page.locator("[data-shape=tree]").getAttribute("aria-pressed"), "true", "button");
	equal((await rows()).map(row => row.split(" ").pop()), ["all", "run", "leaf", "</script>", "other"], "rows");
	equal((await rows())[2], "60.00 % 60.00 % 3 leaf", "the hottest callee");
	const boxes = await page.$$eval("#tree .row", all => all.map(row => row.getBoundingClientRect().toJSON()));
	check(boxes.every((box, i) => box.height > 15 && (!i || box.top >= boxes[i - 1].bottom - 1)), "rows stand in each other");
	const [callee, caller] = await page.$$eval("#tree .row .swatch", all => [all[2], all[1]].map(one => one.getBoundingClientRect().x));
	check(callee > caller, "a callee is not indented");
});

test("the tree closes, opens, is searched and walked by keys", async () => {
	await open("a.tree");
	await page.locator("#tree .row", { hasText: "run" }).click();
	equal((await rows()).length, 2, "rows of the closed tree");
	await press("/");
	await page.fill("#search", "^other$");
	equal(await text("#matched"), "20.00 % · 1", "share of what is found");
	equal((await rows()).length, 5, "rows that the search opened");
	equal(await page.locator("#tree .row.match").innerText().then(row => row.includes("other")), true, "marked");
	await page.locator("#tree").focus();
	await press("Escape", "ArrowDown", "ArrowDown", "ArrowLeft");
	equal((await rows()).length, 2, "rows after ArrowLeft");
	await press("ArrowRight");
	equal((await rows()).length, 5, "rows after ArrowRight");
	await press("f");
	equal(await page.locator("#graph").isVisible(), true, "the graph");
	equal(await address(), "#view=flames", "address");
});

test("the tree follows threads, time, leaf first and two profiles", async () => {
	await open("views", { hash: "#view=tree" });
	await press("-");
	equal((await rows()).length, 4, "all closed but what has no choice");
	await press("+");
	equal((await rows()).length, 7, "all open");
	await inPage(() => changeView({ threads: new Set([1]) }));
	equal((await rows())[0], "100.00 % 0.00 % 2 all", "of a thread");
	await inPage(() => changeView({ threads: null, reverse: true }));
	equal((await rows()).slice(1, 2), ["66.67 % 66.67 % 4 java.util.C.leaf"], "leaf first");
	await open("diff", { hash: "#view=tree" });
	equal((await rows()).filter(row => row.includes("Main.hot")), ["50.00 % 60.00 % 60.00 % 12,000 app.Main.hot"], "of two");
});

// ---- heat map --------------------------------------------------------------------------------

/* Cells that have any, and their values. */
const filled = () => inPage(() => [...heat.bars].map((bar, cell) => [cell, bar]).filter(([, bar]) => bar));

test("the map has the samples where they were", async () => {
	await open("a.heatmap");
	equal(await filled(), [[0, 3], [75, 1], [150, 1]], "cells of 20 ms");
	await page.click("#finer");
	equal(await filled(), [[0, 2], [1, 1], [150, 1], [300, 1]], "cells of 10 ms");
	await inPage(() => changeView({ threads: new Set([1]) }));
	equal(await filled(), [[150, 1]], "cells of a thread");
	await inPage(() => changeView({ threads: null }));
	await inPage(() => searchFor("leaf"));
	equal(await filled(), [[0, 2], [150, 1]], "cells with a frame");
	await inPage(() => searchFor(""));
	await page.click("#coarser");
	equal(await filled(), [[0, 3], [75, 1], [150, 1]], "cells of 20 ms again");
	equal((await text("#map-about")).replace(/\s+/g, " "), "A column is 1 s from top to bottom, a cell 20 ms, the fullest has " +
		"3 samples. Drag over cells to select their time.", "the hint");
});

/* Where a cell is on the screen. */
const place = cell => inPage(wanted => {
	const box = byId("map").getBoundingClientRect(), { rows, wide, high } = heat.shape;
	return { x: box.left + Math.floor(wanted / rows) * wide + wide / 2, y: box.top + AXIS + wanted % rows * high + high / 2 };
}, cell);

test("fuller cells are darker, empty ones like the ground, and the graph is in sight", async () => {
	await open("a.heatmap");
	const picture = new Picture(await page.screenshot());
	const light = async cell => {
		const at = await place(cell), color = picture.at(Math.round(at.x), Math.floor(at.y));
		return (color >> 16) + (color >> 8 & 255) + (color & 255);
	};
	const [full, one, none] = [await light(0), await light(75), await light(40)];
	check(full < one - 60 && one < none - 60, `a full cell has ${full}, one sample ${one}, none ${none}`);
	for (const viewport of [DESK, PHONE]) {
		await open("a.heatmap", { viewport });
		const [map, graph] = await inPage(() => [byId("map"), byId("graph")].map(part => part.getBoundingClientRect().toJSON()));
		check(map.height > 60 && graph.top >= map.bottom, "the map is not above the graph");
		check(graph.height >= 120 && graph.bottom <= viewport.height, `the graph ends at ${graph.bottom}`);
	}
});

test("a range of the map is a flame graph, and back", async () => {
	await open("a.heatmap", { hash: "#cell=10000" });
	const [from, to] = [await place(0), await place(1)];
	await page.mouse.move(from.x, from.y);
	await page.mouse.down();
	await page.mouse.move(to.x, to.y);
	await page.mouse.up();
	equal(await frames(), ["all 3", "leaf 2", "other 1", "run 3"], "frames of two cells");
	const saved = await address();
	await page.click("#all-cells");
	equal((await frames())[1], "all 5", "frames of all");
	await open("a.heatmap", { hash: saved });
	equal(await frames(), ["all 3", "leaf 2", "other 1", "run 3"], "frames of the address");
});

/* day.heatmap.html has a sample each 40 ms of a day, of more stacks than there are rows for. */
test("a day has fine cells and coarse stacks", async () => {
	await open("day.heatmap");
	await page.waitForFunction(() => samplesInTime()); // its tables are compressed
	equal(await inPage(() => samplesInTime().tables.map(table => [table.step / 1e3, table.hasThreads, table.hasStacks])),
		[[100, false, false], [10000, true, false], [120000, false, true], [600000, true, true]], "steps");
	equal(await inPage(() => [cellTime() / 1e3, heat.most, heat.bars.reduce((sum, bar) => sum + bar, 0)]), [1000, 25, 2160000],
		"a cell of the picture, its samples, and all");
	await inPage(() => changeView({ range: [3600e6, 3720e6 - 1] }));
	equal(await inPage(() => profile.samples[0]), 3000, "samples of two minutes");
	await inPage(() => changeView({ range: null, threads: new Set([3]) }));
	equal(await inPage(() => cellTime() / 1e3), 10000, "cells of a thread");
	check((await text("#map-about")).includes("do not say which threads they are of"), "the hint of a thread");
	await inPage(() => changeView({ threads: null }));
	await inPage(() => searchFor("step23_7$"));
	equal(await inPage(() => cellTime() / 1e3), 120000, "cells of a search");
	check((await text("#map-about")).includes("do not say which stacks they are of"), "the hint of a search");
});

test("an empty map says so", async () => {
	await open("nothing.heatmap");
	check(await page.locator("#empty").isVisible(), "nothing says that there are no samples");
});

export async function run(inFolder, browser) {
	const context = await browser.newContext({ viewport: DESK, reducedMotion: "reduce", colorScheme: "light" });
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
