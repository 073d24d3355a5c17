// SPDX-License-Identifier: MIT
//
//   node speedscope.mjs FOLDER FILE TEXT...
//
// Opens FILE of FOLDER in speedscope, in Chromium, and fails if the table of its functions has not all the texts.
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { join, extname } from "node:path";
import { chromium } from "playwright-core";

const [folder, file, ...texts] = process.argv.slice(2);
const release = "node_modules/speedscope/dist/release";
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm" };
const patience = 60000;

function answer(request, response) {
	const path = decodeURIComponent(new URL(request.url, "http://localhost").pathname);
	const isOurs = path.startsWith("/data/"), page = path === "/" ? "index.html" : path;
	const place = isOurs ? join(folder, path.slice(6)) : join(release, page);
	try {
		const bytes = readFileSync(place);
		response.writeHead(200, { "content-type": types[extname(place)] || "application/octet-stream" });
		response.end(bytes);
	} catch {
		response.writeHead(404);
		response.end();
	}
}

const server = createServer(answer).listen(0, "127.0.0.1");
await new Promise(resolve => server.once("listening", resolve));
const address = `http://127.0.0.1:${server.address().port}`;
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM || "/usr/bin/chromium",
	args: ["--headless", "--no-sandbox", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
		"--ignore-gpu-blocklist"],
});
const page = await browser.newPage(), complaints = [];
let code = 0;
page.setDefaultTimeout(patience);
page.on("pageerror", error => complaints.push(String(error)));
try {
	await page.goto(`${address}/#profileURL=${encodeURIComponent(`${address}/data/${file}`)}&title=${file}`);
	await page.getByText("Sandwich").click();
	for (const text of texts)
		await page.waitForFunction(part => document.body.innerText.includes(part), text);
	if (complaints.length)
		throw new Error(complaints[0]);
} catch (error) {
	const shown = await page.evaluate(() => document.body.innerText).catch(() => "");
	console.error(error.message.split("\n")[0], "- the page shows:", shown.slice(0, 400).replaceAll("\n", " | "));
	code = 1;
}
await browser.close();
server.close();
process.exit(code);
