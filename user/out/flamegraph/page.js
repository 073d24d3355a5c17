// SPDX-License-Identifier: MIT
"use strict";

const PATH_ENDS = 4;	 // frames shown at each end of a long path
const METHOD_ROWS = 500;
const THEME_KEY = "duet-flamegraph-theme";

const byId = id => document.getElementById(id);
const sources = JSON.parse(byId("profiles").textContent), loaded = []; // by event
let profile = eventProfile(0); // what is shown
const graph = new Graph(profile, byId("scroller"), byId("spacer"), byId("graph"));
const callers = new Graph(profile, byId("callers"), byId("callers-spacer"), byId("callers-graph"));
/* What is shown of which event; method is the name of the one whose callers and callees are shown, or "". */
const view = { ...NO_VIEW, event: 0, threads: null, range: null, method: "" };
const search = { expression: null, hits: [], at: -1 };
const sorting = { by: "self", up: false };
const darkQuery = matchMedia("(prefers-color-scheme: dark)");

/* ---- views ------------------------------------------------------------------ */

function eventProfile(event) {
	return loaded[event] || (loaded[event] = new Profile(sources[event]));
}

/* Makes what `view` asks for and shows it, zoomed out. */
function applyView() {
	const base = eventProfile(view.event);
	base.select(view.threads, view.range);
	const whole = Views.of(base, view), label = whole.names.indexOf(view.method);
	profile = whole;
	if (label >= 0) {
		const [above, below] = Views.around(whole, base, label);
		callers.setProfile(above);
		profile = below;
	}
	byId("callers").hidden = label < 0;
	graph.setProfile(profile);
	showNames();
	showFooter();
	turn(graph.inverted);
	afterLayout();
	showView();
	graph.resize();
	callers.resize();
	graph.scrollToRoot();
	callers.scrollToRoot();
}

/* Changes the view, and removes from it what the other event or method does not have. */
function changeView(change) {
	const other = change.event !== undefined && change.event !== view.event;
	Object.assign(view, other ? { threads: null, range: null } : {}, change);
	if (!eventProfile(view.event).names.includes(view.method))
		view.method = "";
	applyView();
}

function addRule(prefix, hide) {
	changeView({ rules: [...view.rules.filter(rule => rule.prefix !== prefix), { prefix, hide }] });
}

function showAround(name) {
	if (name)
		changeView({ method: view.method === name ? "" : name });
}

/* ---- text ------------------------------------------------------------------- */

const numbers = new Intl.NumberFormat("en-US");

function percent(share) {
	return (100 * share).toFixed(2) + " %";
}

function duration(ns) {
	const [size, unit] = ns >= 1e9 ? [1e9, "s"] : ns >= 1e6 ? [1e6, "ms"] : ns >= 1e3 ? [1e3, "µs"] : [1, "ns"];
	return numbers.format(Number((ns / size).toPrecision(ns >= 1e12 ? 7 : 4))) + " " + unit;
}

function bytes(value) {
	const power = value >= 2 ** 30 ? 3 : value >= 2 ** 20 ? 2 : value >= 2 ** 10 ? 1 : 0;
	const rounded = Number((value / 1024 ** power).toPrecision(4));
	return numbers.format(rounded) + " " + ["bytes", "KiB", "MiB", "GiB"][power];
}

/* What samples weigh, in the unit of their event. */
function amount(value, unit = profile.unit) {
	if (unit === "ns")
		return duration(value);
	return unit === "bytes" ? bytes(value) : `${numbers.format(value)} ${unit}`;
}

/* False for files that do not say what their samples weigh. */
function isWeighed(unit) {
	return unit !== "samples";
}

function element(tag, text, className) {
	const made = document.createElement(tag);
	if (text !== undefined)
		made.textContent = text;
	if (className)
		made.className = className;
	return made;
}

function swatch(color) {
	const made = element("span", "", "swatch");
	made.style.background = color;
	return made;
}

/* The colour of a group in the legend. */
function groupColor(group) {
	if (!profile.compares)
		return graph.palette.swatch(group);
	return graph.palette.change(group === SAME ? 0 : group === MORE || group === ONLY_B ? 1 : -1);
}

function nodeName(node, { profile } = graph) {
	return profile.names[profile.label[node]];
}

function share(part, whole) {
	return whole ? part / whole : 0;
}

/* ---- tooltip ------------------------------------------------------------------ */

function kindText(node, { profile } = graph) {
	const kind = profile.kinds[profile.kind[node]] || "everything";
	const all = profile.sides.reduce((sum, side) => sum + (side.full || side).allSamples[node], 0);
	const mix = [["interpreted", profile.interpreted[node]], ["inlined", profile.inlined[node]]];
	if (mix[0][1] + mix[1][1] === 0)
		return kind;
	mix.push(["compiled", all - mix[0][1] - mix[1][1]]);
	const seen = mix.filter(([, count]) => count > 0);
	return seen.map(([name, count]) => `${name} ${percent(share(count, all))}`).join(" · ");
}

function signed(text, change) {
	return (change > 0 ? "+" : change < 0 ? "−" : "") + text;
}

/* Cells of A, of B and of their difference. */
function comparedRow(head, values, format) {
	const change = values[B] - values[A];
	return [head, ...values.map(format), signed(format(Math.abs(change)), change)];
}

function comparedRows(node, { profile, focus }) {
	const { sides } = profile, of = read => sides.map(read), count = value => numbers.format(value);
	const rows = [
		["", "A", "B", "B − A"],
		comparedRow("Share", of(side => share(side.width[node], side.whole)), percent),
		comparedRow("Self", of(side => share(side.self[node], side.whole)), percent),
		comparedRow("Samples", of(side => side.samples[node]), count),
	];
	if (sides[A].unit === sides[B].unit && isWeighed(profile.unit))
		rows.push(comparedRow(profile.unit === "ns" ? "Time" : "Weight", of(side => side.amounts[node]), amount));
	if (focus && profile.isBelow(node, focus))
		rows.push(comparedRow("Of the zoomed frame",
			of(side => share(side.width[node], side.width[focus])), percent));
	return rows;
}

function tooltipRows(node, of) {
	const { profile, focus } = of;
	if (profile.compares)
		return comparedRows(node, of);
	const value = profile.width[node], self = profile.self[node];
	const rows = [
		["Samples", numbers.format(profile.samples[node]), percent(share(value, profile.whole))],
		["Self", numbers.format(profile.selfSamples[node]), percent(share(self, profile.whole))],
	];
	if (isWeighed(profile.unit))
		rows.push([{ns: "Time", bytes: "Size"}[profile.unit] || "Weight", amount(profile.amounts[node]), ""]);
	if (focus && profile.isBelow(node, focus))
		rows.push(["Of the zoomed frame", "", percent(share(value, profile.width[focus]))]);
	if (node)
		rows.push(["Of its caller", "", percent(share(value, profile.width[profile.parent[node]]))]);
	return rows;
}

function fillTooltip(node, of) {
	const { profile } = of;
	const tooltip = byId("tooltip"), kind = tooltip.querySelector(".kind");
	tooltip.querySelector(".name").textContent = nodeName(node, of);
	const change = profile.compares && profile.groups[profile.group[node]];
	kind.replaceChildren(swatch(profile.compares ? of.color(node) : of.palette.swatch(profile.kind[node])),
		kindText(node, of) + (change ? " · " + change : ""));
	tooltip.querySelector("tbody").replaceChildren(...tooltipRows(node, of).map(([head, ...cells]) => {
		const row = element("tr");
		row.append(element("th", head), ...cells.map(cell => element("td", cell)));
		return row;
	}));
	tooltip.querySelector(".source").textContent = profile.source(node);
}

function showTooltip(node, x, y, of = graph) {
	const tooltip = byId("tooltip");
	tooltip.hidden = node < 0;
	if (node < 0)
		return;
	fillTooltip(node, of);
	const { width, height } = tooltip.getBoundingClientRect();
	const above = y + height + 22 > innerHeight;
	tooltip.style.left = Math.max(6, Math.min(x + 14, innerWidth - width - 6)) + "px";
	tooltip.style.top = Math.max(6, above ? y - height - 12 : y + 18) + "px";
}

function hover(of, node, x, y) {
	if (of.hovered !== node) {
		of.hovered = node;
		of.redraw();
	}
	of.canvas.classList.toggle("over", node >= 0);
	showTooltip(node, x, y, of);
}

/* ---- zoom, selection, removal --------------------------------------------------- */

function zoom(node) {
	graph.zoom(node);
	showTooltip(-1);
	showPath();
	showMatched();
	showMethods();
	saveAddress();
}

function showPath() {
	const nodes = profile.ancestors(graph.focus), skipped = nodes.length - 2 * PATH_ENDS;
	const parts = [];
	nodes.forEach((node, i) => {
		if (skipped > 1 && i >= PATH_ENDS && i < nodes.length - PATH_ENDS) {
			if (i === PATH_ENDS)
				parts.push(element("span", "›"), element("span", ` … ${skipped} frames … `));
			return;
		}
		const button = element("button", Graph.form(nodeName(node), 1));
		button.title = nodeName(node);
		button.addEventListener("click", () => zoom(node));
		parts.push(...(i ? [element("span", "›")] : []), button);
	});
	byId("path").replaceChildren(...parts);
}

function select(node) {
	if (node < 0)
		return;
	graph.selected = node;
	graph.reveal(node);
	showPath();
	const part = percent(share(profile.width[node], profile.whole));
	byId("announce").textContent = `${nodeName(node)}, ${kindText(node)}, ${part}`;
	const place = graph.place(node);
	showTooltip(node, place.x, place.y + ROW);
}

/* Towards the leaf is up in a flame, down in an icicle. */
function walk(key) {
	const node = graph.selected, up = key === "ArrowUp", { parent } = profile;
	if (node < 0)
		return select(graph.focus);
	if (key === "ArrowLeft" || key === "ArrowRight")
		return select(profile.neighbour(node, key === "ArrowLeft" ? -1 : 1));
	return select(up === graph.inverted ? (node ? parent[node] : -1) : profile.widestChild(node));
}

function afterLayout() {
	graph.relayout();
	callers.relayout();
	byId("undo").hidden = profile.removed.length === 0;
	showTooltip(-1);
	showSide();
	showSummary();
	showPath();
	refreshSearch();
	showMethods();
	showLegend();
	saveAddress();
}

function remove(node) {
	if (node <= 0)
		return;
	profile.remove(node);
	afterLayout();
}

function undo() {
	if (!profile.removed.length)
		return;
	profile.undo();
	afterLayout();
}

/* Lays out the other of two profiles: what only one has is only there. */
function switchSide() {
	if (!profile.compares)
		return;
	const other = profile.shown === A ? B : A;
	for (const shown of new Set([eventProfile(view.event), profile, callers.profile]))
		shown.show(other);
	afterLayout();
}

/* ---- search -------------------------------------------------------------------------- */

function readExpression(text) {
	try {
		byId("search").parentNode.classList.remove("wrong");
		return text ? new RegExp(text, "i") : null;
	} catch (error) {
		byId("search").parentNode.classList.add("wrong");
		return null;
	}
}

function refreshSearch() {
	search.expression = readExpression(byId("search").value);
	graph.match = search.expression && profile.matchLabels(search.expression);
	search.hits = [];
	search.at = -1;
	if (graph.match)
		profile.eachTopMatch(graph.match, 0, node => search.hits.push(node));
	search.hits.sort((a, b) => profile.width[b] - profile.width[a]);
	callers.match = graph.match;
	showMatched();
	saveAddress();
	graph.redraw();
	callers.redraw();
}

function showMatched() {
	const wrong = byId("search").parentNode.classList.contains("wrong");
	const place = (search.at >= 0 ? `${search.at + 1}/` : "") + numbers.format(search.hits.length);
	const text = graph.match ? `${percent(profile.matchedShare(graph.match, graph.focus))} · ${place}` : "";
	byId("matched").textContent = wrong ? "not a valid regex" : text;
	byId("previous").hidden = byId("next").hidden = search.hits.length === 0;
	byId("search-key").hidden = byId("search").value !== "";
}

function nextMatch(direction) {
	const count = search.hits.length;
	if (!count)
		return;
	search.at = search.at < 0 && direction < 0 ? count - 1 : (search.at + direction + count) % count;
	select(search.hits[search.at]);
	showMatched();
}

/* The expression that this name alone fits. */
function exactly(name) {
	return "^" + name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&") + "$";
}

function searchFor(text) {
	byId("search").value = text;
	refreshSearch();
}

function clearSearch() {
	searchFor("");
	graph.highlight = -1;
	graph.selected = -1;
	showTooltip(-1);
	showLegend();
	graph.redraw();
}

/* ---- hot methods ------------------------------------------------------------------------ */

function compareMethods(a, b) {
	const order = sorting.by === "name" ? a.label - b.label : b[sorting.by] - a[sorting.by];
	return sorting.up ? -order : order;
}

function aroundButton(name) {
	const button = element("button", "⇅", "around");
	button.title = `Callers and callees of ${name}`;
	button.setAttribute("aria-label", button.title);
	button.addEventListener("click", () => showAround(name));
	return button;
}

function methodRow(method, whole) {
	const row = element("tr"), cell = element("td"), button = element("button"), name = profile.names[method.label];
	const color = profile.compares ? graph.palette.change(profile.strength(method.change)) : groupColor(method.group);
	button.append(swatch(color), name);
	button.title = name;
	button.addEventListener("click", () => searchFor(exactly(name)));
	cell.append(aroundButton(name), button);
	for (const part of [method.self, method.total])
		row.append(element("td", percent(share(part, whole))));
	if (profile.compares) {
		const format = profile.normalizes ? percent : profile.total ? amount : value => numbers.format(value);
		row.append(element("td", signed(format(Math.abs(method.change)), method.change)));
	}
	row.append(cell);
	return row;
}

function showMethods() {
	if (byId("methods").hidden)
		return;
	const whole = profile.width[graph.focus];
	const methods = profile.methods(graph.focus).sort(compareMethods).slice(0, METHOD_ROWS);
	byId("rows").replaceChildren(...methods.map(method => methodRow(method, whole)));
}

function toggleMethods() {
	byId("methods").hidden = !byId("methods").hidden;
	byId("hot").setAttribute("aria-pressed", String(!byId("methods").hidden));
	showMethods();
	saveAddress();
	graph.resize();
	callers.resize();
}

function sortMethods(by) {
	sorting.up = sorting.by === by && !sorting.up;
	sorting.by = by;
	const rises = (by === "name") !== sorting.up;
	for (const button of document.querySelectorAll("[data-sort]")) {
		button.parentNode.removeAttribute("aria-sort");
		if (button.dataset.sort === by)
			button.parentNode.setAttribute("aria-sort", rises ? "ascending" : "descending");
	}
	showMethods();
}

/* ---- legend, footer, theme ---------------------------------------------------------------- */

function showLegend() {
	const shares = profile.groupShares();
	byId("legend").replaceChildren(...profile.groups.map((name, group) => {
		const button = element("button");
		button.append(swatch(groupColor(group)), name, element("small", percent(shares[group])));
		button.title = profile.compares ? `Self share of frames that are ${name}; click to highlight them` :
			`Self time in ${name} frames; click to highlight them`;
		button.setAttribute("aria-pressed", String(graph.highlight === group));
		button.hidden = !profile.nodesOfGroup(group);
		button.addEventListener("click", () => highlight(group));
		return button;
	}));
}

function highlight(group) {
	graph.highlight = graph.highlight === group ? -1 : group;
	if (graph.highlight >= 0 && profile.sideOfGroup(group) !== profile.shown)
		switchSide();
	showLegend();
	graph.redraw();
}

function sumText({ unit, samples, amounts }) {
	const noun = samples[0] === 1 ? "sample" : "samples", text = `${numbers.format(samples[0])} ${noun}`;
	return isWeighed(unit) ? `${text} · ${amount(amounts[0], unit)}` : text;
}

function showSummary() {
	const sums = profile.sides.map((side, i) => (profile.compares ? `${"AB"[i]}: ` : "") + sumText(side));
	byId("summary").textContent = [...sums, `${numbers.format(profile.count - 1)} frames`].join(" · ");
}

function showSide() {
	byId("side").hidden = byId("changes").hidden = !profile.compares;
	byId("side").textContent = `Widths of ${"AB"[profile.shown]}`;
	byId("empty").hidden = profile.samples[0] > 0;
}

function showFooter() {
	byId("facts").replaceChildren(...profile.facts.map(([key, value]) => {
		const fact = element("div");
		fact.append(element("dt", key), element("dd", value));
		return fact;
	}));
	const losses = profile.losses.map(([count, text]) => element("li", `${numbers.format(count)} ${text}`));
	byId("losses").classList.toggle("none", losses.length === 0);
	byId("losses").replaceChildren(...(losses.length ? losses : [element("li", "nothing was lost")]));
}

/* Storage is refused to pages from disk by some browsers: the theme then lasts as long as the page. */
function storedTheme(theme) {
	try {
		if (theme)
			localStorage.setItem(THEME_KEY, theme);
		return localStorage.getItem(THEME_KEY);
	} catch (error) {
		return theme || null;
	}
}

function setTheme(theme) {
	document.documentElement.dataset.theme = theme;
	byId("theme").setAttribute("aria-pressed", String(theme === "dark"));
	graph.setPalette(new Palette(profile.kinds, theme));
	callers.setPalette(graph.palette);
	showLegend();
	showMethods();
	showTimes();
}

function systemTheme() {
	return darkQuery.matches ? "dark" : "light";
}

function toggleTheme() {
	const theme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
	storedTheme(theme);
	setTheme(theme);
}

/* The callers grow away from the callees. */
function turn(inverted) {
	graph.inverted = inverted;
	callers.inverted = !inverted;
	byId("panes").classList.toggle("inverted", inverted);
	byId("invert").setAttribute("aria-pressed", String(inverted));
}

function invert() {
	turn(!graph.inverted);
	showTooltip(-1);
	for (const each of [graph, callers]) {
		each.scrollToRoot();
		each.redraw();
	}
	saveAddress();
}

/* ---- events ---------------------------------------------------------------------------------- */

const KEYS = {
	"/": () => byId("search").focus(),
	"0": () => zoom(0),
	"?": () => byId("help").showModal(),
	"i": invert,
	"d": toggleTheme,
	"b": switchSide,
	"m": toggleMethods,
	"v": toggleView,
	"r": () => changeView({ reverse: !view.reverse }),
	"s": () => showAround(view.method || methodInHand()),
	"c": () => copyStack(graph, inHand()),
	"u": undo,
	"n": () => nextMatch(1),
	"N": () => nextMatch(-1),
	"Escape": () => byId("menu").hidden ? clearSearch() : hideMenu(),
	"Enter": () => graph.selected >= 0 && zoom(graph.selected),
	"Backspace": () => zoom(profile.parent[graph.focus]),
	"Delete": () => remove(graph.selected),
	"ArrowUp": () => walk("ArrowUp"),
	"ArrowDown": () => walk("ArrowDown"),
	"ArrowLeft": () => walk("ArrowLeft"),
	"ArrowRight": () => walk("ArrowRight"),
};

function onSearchKey(event) {
	if (event.key === "Enter")
		nextMatch(event.shiftKey ? -1 : 1);
	if (event.key !== "Escape")
		return;
	clearSearch();
	graph.canvas.focus();
}

function controlAction(event) {
	if (event.altKey || event.shiftKey)
		return null;
	return event.key === "f" ? KEYS["/"] : event.key === "z" ? undo : null;
}

function onKey(event) {
	if (byId("help").open)
		return;
	if (event.target === byId("search") && !(event.ctrlKey || event.metaKey))
		return onSearchKey(event);
	if (event.key === "Enter" && event.target.tagName === "BUTTON")
		return;
	const plain = KEYS[event.key] || (event.shiftKey ? null : KEYS[event.key.toLowerCase()]);
	const action = event.ctrlKey || event.metaKey ? controlAction(event) : event.altKey ? null : plain;
	if (!action)
		return;
	event.preventDefault();
	action();
}

/* The frame that keys act on: the one under the pointer, the selected or the zoomed one. */
function inHand() {
	return graph.hovered >= 0 ? graph.hovered : graph.selected >= 0 ? graph.selected : graph.focus;
}

function methodInHand() {
	return inHand() ? nodeName(inHand()) : "";
}

function onCallersClick(event) {
	const node = callers.nodeAt(event.clientX, event.clientY);
	if (node >= 0)
		callers.zoom(node);
}

function onClick(event) {
	const node = graph.nodeAt(event.clientX, event.clientY);
	if (node < 0)
		return;
	graph.selected = -1;
	if (event.altKey || event.ctrlKey)
		remove(node);
	else
		zoom(node);
}

function listen() {
	for (const each of [graph, callers]) {
		each.canvas.addEventListener("mousemove", ({ clientX: x, clientY: y }) => hover(each, each.nodeAt(x, y), x, y));
		each.canvas.addEventListener("mouseleave", () => hover(each, -1));
		each.canvas.addEventListener("contextmenu", event => showMenu(each, event));
		new ResizeObserver(() => each.printing || each.resize()).observe(each.scroller);
	}
	graph.canvas.addEventListener("click", onClick);
	callers.canvas.addEventListener("click", onCallersClick);
	document.addEventListener("keydown", onKey);
	byId("search").addEventListener("input", refreshSearch);
	byId("next").addEventListener("click", () => nextMatch(1));
	byId("previous").addEventListener("click", () => nextMatch(-1));
	byId("undo").addEventListener("click", undo);
	byId("reset").addEventListener("click", () => zoom(0));
	byId("side").addEventListener("click", switchSide);
	byId("invert").addEventListener("click", invert);
	byId("hot").addEventListener("click", toggleMethods);
	byId("theme").addEventListener("click", toggleTheme);
	byId("keys").addEventListener("click", () => byId("help").showModal());
	for (const button of document.querySelectorAll("[data-sort]"))
		button.addEventListener("click", () => sortMethods(button.dataset.sort));
	darkQuery.addEventListener("change", () => storedTheme() || setTheme(systemTheme()));
	listenToView();
	addEventListener("hashchange", readAddress);
	addEventListener("beforeprint", () => { setTheme("light"); graph.print(true); });
	addEventListener("afterprint", () => { setTheme(storedTheme() || systemTheme()); graph.print(false); });
}

function showNames() {
	document.title = byId("title").textContent = byId("title").title = profile.title; // the last: it may be cut
	graph.canvas.setAttribute("aria-label", `Flame graph, ${profile.title}: arrow keys walk, Enter zooms`);
}

function start() {
	showNames();
	setTheme(storedTheme() || systemTheme());
	turn(profile.inverted);
	showSide();
	showSummary();
	showFooter();
	showPath();
	showMatched();
	showView();
	listen();
	graph.resize();
	if (!location.hash)
		searchFor(sources[0].highlight || "");
	readAddress();
}
