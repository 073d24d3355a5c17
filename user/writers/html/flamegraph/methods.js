// SPDX-License-Identifier: MIT
"use strict";

/* The list of hot methods. */
const METHOD_ROWS = 500;
let listWidth = 0; // for which the names were shortened
const SHARE = 74, BESIDE_NAME = 66; // CSS pixels of a column of numbers, and of all that stands beside a name

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

function methodRow(method, whole, room) {
	const row = element("tr"), cell = element("td"), button = element("button"), name = profile.names[method.label];
	const color = profile.compares ? graph.palette.change(profile.strength(method.change)) : groupColor(method.group);
	button.append(swatch(color), graph.shorten(name, room));
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
	const numbers = profile.compares ? 3 : 2, room = byId("methods").clientWidth - numbers * SHARE - BESIDE_NAME;
	listWidth = byId("methods").clientWidth;
	byId("rows").replaceChildren(...methods.map(method => methodRow(method, whole, room)));
}

function toggleMethods() {
	byId("methods").hidden = !byId("methods").hidden;
	byId("hot").setAttribute("aria-pressed", String(!byId("methods").hidden));
	saveAddress();
	resizeAll();
	showMethods();
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
