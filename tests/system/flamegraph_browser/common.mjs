// SPDX-License-Identifier: MIT
// What the parts of the tests share. CHROMIUM names the browser, /usr/bin/chromium when unset.

export const executable = process.env.CHROMIUM || "/usr/bin/chromium";
export const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
	"--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function equal(got, want, what) {
	if (JSON.stringify(got) !== JSON.stringify(want))
		throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
}

export function check(condition, what) {
	if (!condition)
		throw new Error(what);
}

/* Runs tests, each {name, run}, one after the other. */
export async function runEach(tests, run) {
	let failed = 0;
	for (const test of tests) {
		const error = await run(test).then(() => null, reason => reason);
		console.log(error ? `not ok ${test.name}: ${error.message}` : `ok ${test.name}`);
		failed += error ? 1 : 0;
	}
	return failed;
}
