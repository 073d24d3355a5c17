// SPDX-License-Identifier: MIT
// A page of a million frames, large.html. The bounds are for a busy machine; the times are printed.
import { check, runEach } from "./common.mjs";

const FRAMES = 990000, SLOWEST_MS = 30000;
const complaints = [], times = [];
let folder, page;

/* Runs the step, until its frames are drawn. */
async function time(what, step) {
	const begin = performance.now();
	await step();
	await page.evaluate(() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn))));
	const ms = performance.now() - begin;
	times.push(`${what} ${Math.round(ms)} ms`);
	check(ms < SLOWEST_MS, `${what}: ${Math.round(ms)} ms`);
}

const shown = () => page.evaluate(() => ({ frames: profile.count, samples: profile.samples[0],
	self: profile.selfSamples.reduce((sum, samples) => sum + samples, 0) }));

async function useLarge() {
	await time("open", () => page.goto(`file://${folder}/large.html`));
	const whole = await shown();
	check(whole.frames > FRAMES && whole.self === whole.samples, `frames: ${JSON.stringify(whole)}`);
	await time("search", () => page.evaluate(() => searchFor("Known.quarter")));
	await time("leaf first", () => page.keyboard.press("r"));
	const reversed = await shown();
	check(reversed.frames > FRAMES && reversed.samples === whole.samples && reversed.self === whole.samples,
		`leaf first: ${JSON.stringify(reversed)}`);
	await time("back", () => page.keyboard.press("r"));
	await time("callers and callees", () => page.evaluate(() => showAround("com.acme.shop.Known.quarter")));
	const callees = await shown();
	check(Math.abs(callees.samples / whole.samples - 1 / 4) < 0.01, `callees: ${JSON.stringify(callees)}`);
	check(!complaints.length, `complaints of the page: ${complaints}`);
	console.log(`# a page of ${whole.frames} frames: ${times.join(", ")}`);
}

export async function run(inFolder, browser) {
	folder = inFolder;
	page = await browser.newPage({ viewport: { width: 1200, height: 900 } });
	page.setDefaultTimeout(2 * SLOWEST_MS);
	page.on("pageerror", error => complaints.push(String(error)));
	return runEach([{ name: "a page of a million frames" }], useLarge);
}
