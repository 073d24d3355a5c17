// SPDX-License-Identifier: MIT
"use strict";

/* The state of the page in its address, after the '#', so that a link or a reload shows the same. */
let savedAddress = 0; // the timer of the next saveAddress()
const startsWeighed = sources.map(source => source.total ?? Profile.isWeighed(source));

function addressText() {
	const words = new URLSearchParams(), put = (key, value) => value && words.set(key, value);
	put("event", view.event && sources[view.event].event);
	put("method", view.method);
	put("reverse", view.reverse && 1);
	put("recursion", view.recursion && 1);
	put("threads", view.threads && ([...view.threads].join("-") || "none"));
	put("time", view.range && view.range.join("-"));
	put("width", profile.total !== startsWeighed[view.event] && (profile.total ? "weight" : "samples"));
	put("turned", graph.inverted !== profile.inverted && 1);
	put("side", profile.compares && "AB"[profile.shown]);
	put("methods", !byId("methods").hidden && 1);
	put("view", view.shape !== (sources[0].view || "flames") && view.shape);
	put("cell", view.shape === "heat" && heat.cell);
	put("presets", view.presets.join("-"));
	put("noise", profile.compares && !profile.noise && "counts");
	put("search", byId("search").value);
	for (const rule of view.rules)
		words.append(rule.does, rule.prefix);
	put("zoom", graph.focus && profile.ancestors(graph.focus).slice(1).map(node => profile.label[node]).join("-"));
	return words.toString();
}

/* Browsers allow few changes of the address in a second. */
function saveAddress() {
	clearTimeout(savedAddress);
	savedAddress = setTimeout(writeAddress, 150);
}

function writeAddress() {
	const text = addressText();
	if (text === location.hash.slice(1))
		return;
	try {
		history.replaceState(null, "", text ? "#" + text : location.pathname + location.search);
	} catch (error) {
		return; // some browsers refuse it to pages from disk
	}
}

function numbersOf(text) {
	return (text || "").split("-").filter(part => /^\d+$/.test(part)).map(Number);
}

/* The node whose labels from the root are these, as far as they go. */
function nodeOfPath(labels) {
	let node = 0;
	for (const label of labels) {
		let child = node + 1;
		while (child < profile.end[node] && (profile.label[child] !== label || profile.hidden[child]))
			child = profile.end[child];
		if (child >= profile.end[node])
			break;
		node = child;
	}
	return node;
}

function viewOfAddress(words) {
	const event = Math.max(0, sources.findIndex(source => source.event === words.get("event")));
	const samples = eventProfile(event).samplesInTime;
	const rules = [...words].filter(([key, prefix]) => ["hide", "collapse", "only"].includes(key) && prefix)
		.map(([does, prefix]) => ({ prefix, does }));
	const presets = (words.get("presets") || "").split("-").filter(name => Object.hasOwn(PRESETS, name));
	const shapes = { tree: "tree", flames: "flames", ...samples && { heat: "heat" } };
	const range = numbersOf(words.get("time"));
	const threads = numbersOf(words.get("threads")).filter(index => samples && index < samples.threads.length);
	return { event, rules, presets, shape: shapes[words.get("view")] || sources[0].view || "flames", method: words.get("method") || "", reverse: words.has("reverse"),
		recursion: words.has("recursion"), threads: words.has("threads") && samples ? new Set(threads) : null,
		range: samples && range.length === 2 ? range : null };
}

/* Called when the page opens, and when its address changes. */
function readAddress() {
	const words = new URLSearchParams(location.hash.slice(1));
	if (location.hash.slice(1) === addressText())
		return;
	const change = viewOfAddress(words), width = words.get("width"), [cell] = numbersOf(words.get("cell"));
	heat.cell = CELLS.includes(cell) ? cell : 0;
	eventProfile(change.event).noise = words.get("noise") !== "counts";
	eventProfile(change.event).measure(width ? width === "weight" : startsWeighed[change.event]);
	changeView(change);
	if (words.has("turned") !== (graph.inverted !== profile.inverted))
		invert();
	if (profile.compares && words.has("side") && words.get("side") !== "AB"[profile.shown])
		switchSide();
	if (words.has("methods") === byId("methods").hidden)
		toggleMethods();
	searchFor(words.get("search") || "");
	const node = nodeOfPath(numbersOf(words.get("zoom")));
	if (node !== graph.focus)
		zoom(node);
}
