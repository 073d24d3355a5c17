// SPDX-License-Identifier: MIT
"use strict";

/* What is chosen beside the graph: event, range of time, threads, the form of the stacks, pictures. */
const THREAD_ROWS = 500;
const BAR = 3; // CSS pixels of a bar of the timeline
const PRESET_TEXTS = { java: "Java only", mine: "my packages only", entry: "JVM entry hidden", jdk: "JDK hidden",
	kernel: "kernel hidden" };

function samplesInTime() {
	return eventProfile(view.event).samplesInTime;
}

function showView() {
	byId("event").hidden = sources.length < 2;
	byId("event").value = view.event;
	byId("reverse").checked = view.reverse;
	byId("recursion").checked = view.recursion;
	byId("total").checked = profile.total;
	byId("total").parentNode.hidden = !isWeighed(profile.unit);
	showRules();
	showThreads();
	showTimes();
	showHeat();
	showChanged();
}

/* Says what makes the graph differ from the whole profile. */
function showChanged() {
	const parts = [
		view.method && `callers and callees of ${view.method}`,
		view.reverse && "leaf first",
		view.recursion && "recursion taken together",
		view.threads && `${view.threads.size} of ${samplesInTime().threads.length} threads`,
		view.range && rangeText(view.range),
		...view.presets.map(name => PRESET_TEXTS[name]),
		...view.rules.map(ruleText),
	].filter(Boolean);
	const reset = element("button", "Show all");
	reset.addEventListener("click", () => changeView({ ...NO_VIEW, threads: null, range: null, method: "" }));
	byId("changed").hidden = !parts.length;
	byId("changed").replaceChildren(parts.join(" · ") + " ", reset);
}

function ruleText({ prefix, does }) {
	return does === "only" ? `only ${prefix}*` : `${prefix}* ${does === "hide" ? "hidden" : "collapsed"}`;
}

function showRules() {
	for (const button of document.querySelectorAll("[data-preset]"))
		button.setAttribute("aria-pressed", String(view.presets.includes(button.dataset.preset)));
	byId("rules").replaceChildren(...view.rules.map(rule => {
		const item = element("li"), remove = element("button", "×");
		remove.title = `Show ${rule.prefix}* as it was`;
		remove.addEventListener("click", () => changeView({ rules: view.rules.filter(other => other !== rule) }));
		item.append(remove, ` ${ruleText(rule)}`);
		return item;
	}));
}

/* ---- threads ---- */

function threadRow(thread, index, whole) {
	const item = element("li"), label = element("label"), box = element("input");
	box.type = "checkbox";
	box.checked = !view.threads || view.threads.has(index);
	box.addEventListener("change", () => toggleThread(index, box.checked));
	label.append(box, thread.name, element("small", percent(share(profile.total ? thread.amounts : thread.samples, whole))));
	label.title = `${thread.name}: double click shows this thread alone`;
	label.addEventListener("dblclick", () => changeView({ threads: new Set([index]) }));
	item.append(label);
	return item;
}

function showThreads() {
	const samples = samplesInTime();
	byId("threads-part").hidden = !samples || samples.threads.length < 2;
	if (byId("panel").hidden || byId("threads-part").hidden)
		return;
	const value = thread => profile.total ? thread.amounts : thread.samples;
	const whole = samples.threads.reduce((sum, thread) => sum + value(thread), 0);
	const order = samples.threads.map((thread, index) => [thread, index]);
	order.sort((a, b) => value(b[0]) - value(a[0]));
	byId("threads").replaceChildren(...order.slice(0, THREAD_ROWS).map(row => threadRow(...row, whole)));
}

/* A box that is cleared while all are shown leaves the others. */
function toggleThread(index, on) {
	const count = samplesInTime().threads.length, threads = new Set(view.threads || Array(count).keys());
	if (on)
		threads.add(index);
	else
		threads.delete(index);
	changeView({ threads: threads.size === count ? null : threads });
}

/* ---- time ---- */

const drag = { from: -1, to: -1 }; // CSS pixels

function rangeText([from, to]) {
	return `${from ? duration(from * 1e3) : 0} to ${duration(to * 1e3)}`;
}

function showTimes() {
	const samples = samplesInTime(), canvas = byId("times");
	byId("timeline").hidden = !samples || !samples.lastTime || isHeat();
	if (byId("timeline").hidden)
		return;
	const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round(height * ratio);
	const count = Math.max(1, width / BAR | 0), context = canvas.getContext("2d");
	const bars = samples.histogram((samples.lastTime + 1) / count, count, { threads: view.threads, total: profile.total });
	const highest = bars.reduce((most, bar) => Math.max(most, bar), 1);
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	context.fillStyle = graph.palette.match;
	bars.forEach((bar, i) => {
		context.globalAlpha = isInRange(i * BAR, width, samples) ? 0.75 : 0.2;
		context.fillRect(i * BAR, height * (1 - bar / highest), BAR - 0.5, height * bar / highest);
	});
	byId("all-times").hidden = !view.range;
	byId("range").textContent = rangeText(drag.from >= 0 ? rangeOfDrag() : view.range || [0, samples.lastTime]);
}

function isInRange(x, width, { lastTime }) {
	const [from, to] = drag.from >= 0 ? rangeOfDrag() : view.range || [0, lastTime], time = x / width * lastTime;
	return time >= from - BAR / width * lastTime && time <= to;
}

/* The outermost bar reaches the end of the recording. */
function rangeOfDrag() {
	const width = byId("times").clientWidth, { lastTime } = samplesInTime();
	const ends = [drag.from, drag.to].sort((a, b) => a - b);
	return ends.map(x => x < BAR ? 0 : x > width - BAR ? lastTime : Math.round(x / width * lastTime));
}

function onTimesDown(event) {
	drag.from = drag.to = event.offsetX;
	byId("times").setPointerCapture(event.pointerId);
}

function onTimesMove(event) {
	if (drag.from < 0)
		return;
	drag.to = event.offsetX;
	showTimes();
}

/* A click without a drag shows the whole recording. */
function onTimesUp() {
	if (drag.from < 0)
		return;
	const range = Math.abs(drag.to - drag.from) < BAR ? null : rangeOfDrag();
	drag.from = drag.to = -1;
	changeView({ range });
}

/* ---- pictures ---- */

function save(blob, extension) {
	const link = element("a");
	link.href = URL.createObjectURL(blob);
	link.download = profile.title.replace(/[^\w.-]+/g, "-") + extension;
	link.click();
	setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function describe(node) {
	return `${nodeName(node)} (${numbers.format(profile.samples[node])} samples, ` +
		`${percent(share(profile.width[node], profile.whole))})`;
}

function saveSvg() {
	save(new Blob([graph.svg(describe)], { type: "image/svg+xml" }), ".svg");
}

/* The whole graph on the page's ground, as far as a canvas goes. */
function savePng() {
	const copy = element("canvas"), context = copy.getContext("2d");
	graph.print(true);
	copy.width = graph.canvas.width;
	copy.height = graph.canvas.height;
	context.fillStyle = getComputedStyle(document.body).backgroundColor;
	context.fillRect(0, 0, copy.width, copy.height);
	context.drawImage(graph.canvas, 0, 0);
	graph.print(false);
	copy.toBlob(blob => save(blob, ".png"));
}

/* ---- events ---- */

function toggleView() {
	byId("panel").hidden = !byId("panel").hidden;
	byId("view").setAttribute("aria-pressed", String(!byId("panel").hidden));
	showThreads();
	resizeAll();
}

function changeWidths(total) {
	eventProfile(view.event).measure(total);
	applyView();
}

function addRuleOfForm(does) {
	const prefix = byId("prefix").value.replace(/\*$/, "").replace(/\//g, ".");
	byId("prefix").value = "";
	if (prefix)
		addRule(prefix, does);
}

function presetButton([name, text]) {
	const button = element("button", text);
	button.dataset.preset = name;
	button.addEventListener("click", () => togglePreset(name));
	return button;
}

function listenToView() {
	const times = byId("times");
	byId("event").replaceChildren(...sources.map((source, i) => new Option(source.event, i)));
	byId("event").addEventListener("change", () => changeView({ event: Number(byId("event").value) }));
	byId("view").addEventListener("click", toggleView);
	byId("reverse").addEventListener("change", () => changeView({ reverse: byId("reverse").checked }));
	byId("recursion").addEventListener("change", () => changeView({ recursion: byId("recursion").checked }));
	byId("total").addEventListener("change", () => changeWidths(byId("total").checked));
	byId("new-rule").addEventListener("submit", event => {
		event.preventDefault();
		addRuleOfForm("collapse");
	});
	byId("hide").addEventListener("click", () => addRuleOfForm("hide"));
	byId("only").addEventListener("click", () => addRuleOfForm("only"));
	byId("presets").replaceChildren(...Object.entries(PRESETS).map(presetButton));
	byId("all-threads").addEventListener("click", () => changeView({ threads: null }));
	byId("all-times").addEventListener("click", () => changeView({ range: null }));
	byId("save-png").addEventListener("click", savePng);
	byId("save-svg").addEventListener("click", saveSvg);
	byId("copy-link").addEventListener("click", () => copy(location.href, "the link"));
	times.addEventListener("pointerdown", onTimesDown);
	times.addEventListener("pointermove", onTimesMove);
	times.addEventListener("pointerup", onTimesUp);
	new ResizeObserver(showTimes).observe(times);
	document.addEventListener("pointerdown", event => byId("menu").contains(event.target) || hideMenu());
}
