// SPDX-License-Identifier: MIT
"use strict";

const PATH_ENDS = 4;	 // frames shown at each end of a long path
const THEME_KEY = "duet-flamegraph-theme";

const byId = id => document.getElementById(id);
const sources = JSON.parse(byId("profiles").textContent), loaded = []; // by event
let profile = eventProfile(0); // what is shown
const graph = new Graph(profile, byId("scroller"), byId("spacer"), byId("graph"));
const tree = new Tree(graph, byId("tree"), byId("tree-heads"), byId("tree-room"), byId("tree-rows"));
const callers = new Graph(profile, byId("callers"), byId("callers-spacer"), byId("callers-graph"));
/*
 * What is shown of which event; method is the name of the one whose callers and callees are shown, or "". `shape` is
 * how: "flames", "tree" or "heat".
 */
const view = { ...NO_VIEW, event: 0, threads: null, range: null, method: "", shape: sources[0].view || "flames" };
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
	showShape();
	showNames();
	showFooter();
	turn(graph.inverted);
	afterLayout();
	showView();
	resizeAll();
	graph.scrollToRoot();
	callers.scrollToRoot();
}

/* Shows the graph or the tree, and the time as a line or as the heat map. */
function showShape() {
	const isTree = view.shape === "tree", shown = view.shape === "heat" && !samplesInTime() ? "flames" : view.shape;
	byId("tree").hidden = !isTree;
	byId("scroller").hidden = isTree;
	for (const button of document.querySelectorAll("[data-shape]")) {
		button.setAttribute("aria-pressed", String(button.dataset.shape === shown));
		button.hidden = button.dataset.shape === "heat" && !samplesInTime();
	}
	byId("invert").hidden = isTree;
}

function changeShape(shape) {
	if (shape === "heat" && !samplesInTime())
		return;
	view.shape = shape;
	showShape();
	showTimes();
	showHeat();
	resizeAll();
	if (shape === "tree")
		tree.openWidest();
	saveAddress();
}

/* After the room of the graph has changed. */
function resizeAll() {
	graph.resize();
	callers.resize();
	tree.update();
}

/* Changes the view, and removes from it what the other event or method does not have. */
function changeView(change) {
	const other = change.event !== undefined && change.event !== view.event;
	Object.assign(view, other ? { threads: null, range: null } : {}, change);
	if (!eventProfile(view.event).names.includes(view.method))
		view.method = "";
	applyView();
}

function addRule(prefix, does) {
	changeView({ rules: [...view.rules.filter(rule => rule.prefix !== prefix), { prefix, does }] });
}

function togglePreset(name) {
	const { presets } = view;
	changeView({ presets: presets.includes(name) ? presets.filter(other => other !== name) : [...presets, name] });
}

function showAround(name) {
	if (name)
		changeView({ method: view.method === name ? "" : name });
}

/* ---- zoom, selection, removal --------------------------------------------------- */

function zoom(node) {
	graph.zoom(node);
	showTooltip(-1);
	tree.update();
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
	if (view.shape === "tree")
		tree.reveal(node);
	else
		graph.reveal(node);
	showPath();
	const part = percent(share(profile.width[node], profile.whole));
	byId("announce").textContent = `${nodeName(node)}, ${kindText(node)}, ${part}`;
	if (view.shape === "tree")
		return;
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
	tree.update();
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

function changeNoise(is) {
	eventProfile(view.event).noise = is;
	eventProfile(view.event).layout();
	applyView();
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

/* A '/' is any sign, so that names of classes are found in both of their forms. */
function readExpression(text) {
	try {
		byId("search").parentNode.classList.remove("wrong");
		return text ? new RegExp(text.replace(/\\?\//g, "."), "i") : null;
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
	if (view.shape === "tree" && search.hits.length)
		tree.reveal(search.hits[0]);
	tree.draw();
	showHeat();
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
	tree.draw();
}

/* Closes what is open above the graph and beside it; returns false if nothing is. */
function closeOpen() {
	const open = ["menu", "panel", "methods"].filter(id => !byId(id).hidden);
	if (open[0] === "menu")
		hideMenu();
	else
		open.forEach(id => id === "panel" ? toggleView() : toggleMethods());
	return open.length > 0;
}

/* ---- legend, footer, theme ---------------------------------------------------------------- */

function showLegend() {
	const shares = profile.groupShares();
	byId("legend").replaceChildren(...profile.groups.map((name, group) => {
		const button = element("button");
		button.append(swatch(groupColor(group)), name, element("small", percent(shares[group])));
		button.title = profile.compares ? `Self share of frames with this change: ${name}; click to highlight them` :
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
	tree.draw();
}

function sumText({ unit, samples, amounts }) {
	const noun = samples[0] === 1 ? "sample" : "samples", text = `${numbers.format(samples[0])} ${noun}`;
	return isWeighed(unit) ? `${text} · ${amount(amounts[0], unit)}` : text;
}

function showSummary() {
	const sums = profile.sides.map((side, i) => (profile.compares ? `${profile.sideNames[i]}: ` : "") + sumText(side));
	byId("summary").textContent = [...sums, `${numbers.format(profile.count - 1)} frames`].join(" · ");
}

function showSide() {
	byId("side").hidden = byId("changes").hidden = !profile.compares;
	byId("side").textContent = `Widths of ${profile.sideNames[profile.shown]}`;
	byId("noise-part").hidden = !profile.compares;
	byId("noise").checked = profile.noise;
	byId("empty").hidden = profile.samples[0] > 0;
}

/* Of two profiles, A and B have the names of their files. */
function ofSide(text, pattern) {
	return profile.compares ? text.replace(pattern, (_, side) => profile.sideNames["AB".indexOf(side)]) : text;
}

/* "cpu every 10 ms for 95.4 s", and what weighs most of what was lost. */
function showFooter() {
	const facts = profile.facts.map(([key, value]) => [ofSide(key, /^([AB])(?=: |$)/), value]), fact = new Map(facts);
	const losses = profile.losses.map(([count, text]) => [count, ofSide(text, /(?<=\()([AB])(?=\)$)/)]);
	const parts = [fact.get("event"), fact.has("duration") && `for ${fact.get("duration")}`,
		fact.has("started") && `from ${fact.get("started")}`].filter(Boolean);
	const loss = losses.reduce((most, other) => !most || other[0] > most[0] ? other : most, null);
	const more = losses.length > 1 ? `, and ${losses.length - 1} more` : "";
	byId("taken").textContent = parts.join(" ");
	byId("lost").textContent = loss ? `${numbers.format(loss[0])} ${loss[1]}${more}` : "nothing was lost";
	byId("lost").classList.toggle("none", !loss);
	byId("facts").replaceChildren(...facts.map(([key, value]) => {
		const row = element("div");
		row.append(element("dt", key), element("dd", value));
		return row;
	}));
	byId("losses").replaceChildren(...losses.map(([count, text]) => element("li", `${numbers.format(count)} ${text}`)));
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
	showHeat();
	tree.draw();
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
	"f": () => changeShape("flames"),
	"t": () => changeShape("tree"),
	"h": () => changeShape("heat"),
	"Escape": () => closeOpen() || clearSearch(),
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
	if (event.key === "Enter" && ["BUTTON", "SUMMARY"].includes(event.target.tagName))
		return;
	if (["INPUT", "SELECT"].includes(event.target.tagName) && event.target.type !== "checkbox" && event.key !== "Escape")
		return;
	const own = view.shape === "tree" && tree.profile ? tree.keys() : {};
	const plain = own[event.key] || KEYS[event.key] || (event.shiftKey ? null : KEYS[event.key.toLowerCase()]);
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

function onTreeClick(event) {
	const node = tree.nodeAt(event.clientX, event.clientY);
	if (node < 0)
		return;
	if (event.altKey || event.ctrlKey)
		remove(node);
	else
		tree.toggle(node);
}

function listen() {
	for (const each of [graph, callers, tree]) {
		each.canvas.addEventListener("mousemove", ({ clientX: x, clientY: y }) => hover(each, each.nodeAt(x, y), x, y));
		each.canvas.addEventListener("mouseleave", () => hover(each, -1));
		each.canvas.addEventListener("contextmenu", event => showMenu(each, event));
		new ResizeObserver(() => each === tree ? tree.update() : each.printing || each.resize()).observe(each.scroller);
	}
	new ResizeObserver(() => byId("methods").clientWidth !== listWidth && showMethods()).observe(byId("methods"));
	byId("tree").addEventListener("click", onTreeClick);
	for (const button of document.querySelectorAll("[data-shape]"))
		button.addEventListener("click", () => changeShape(button.dataset.shape));
	byId("noise").addEventListener("change", () => changeNoise(byId("noise").checked));
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
	listenToHeat();
	addEventListener("hashchange", readAddress);
	addEventListener("beforeprint", () => { setTheme("light"); graph.print(true); });
	addEventListener("afterprint", () => { setTheme(storedTheme() || systemTheme()); graph.print(false); });
}

function showNames() {
	document.title = byId("title").textContent = byId("title").title = profile.title; // the last: it may be cut
	graph.canvas.setAttribute("aria-label", `Flame graph, ${profile.title}: arrow keys walk, Enter zooms`);
}

/* Some pages have their samples in compressed tables. */
async function readTables() {
	for (let event = 0; event < sources.length; event++)
		if (sources[event].heat)
			eventProfile(event).samplesInTime = await SamplesInTables.of(sources[event], Profile.lasts(sources[event]));
}

async function start() {
	await readTables();
	showNames();
	showShape();
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
	if (view.shape === "tree")
		tree.openWidest();
	if (!location.hash)
		searchFor(sources[0].highlight || "");
	readAddress();
}
