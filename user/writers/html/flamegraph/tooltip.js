// SPDX-License-Identifier: MIT
"use strict";

/* Numbers, names and elements as the page shows them, and what it says of the frame under the pointer. */
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

/* Cells of both profiles and of their difference. `format` takes the value alone. */
function comparedRow(head, values, format) {
	const change = values[B] - values[A];
	return [head, ...values.map(value => format(value)), signed(format(Math.abs(change)), change)];
}

function comparedRows(node, { profile, focus }) {
	const { sides } = profile, of = read => sides.map(read), count = value => numbers.format(value);
	const rows = [
		["", ...profile.sideNames, "Change"],
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
	tooltip.classList.toggle("compares", profile.compares);
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
