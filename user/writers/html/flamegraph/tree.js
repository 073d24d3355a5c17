// SPDX-License-Identifier: MIT
"use strict";

const TREE_ROW = 22; // CSS pixels
const TREE_INDENT = 12;
const TREE_STEP = 20; // rows of a page key

/*
 * The call tree: what is at and below the graph's focus as rows, the widest callees first. Profile, focus, search and
 * selection are the graph's. Rows are indented where a frame has several callees, so that long chains stay in sight.
 */
class Tree {
	constructor(graph, scroller, heads, room, rows) {
		Object.assign(this, { graph, scroller, heads, room, rows, profile: null, shown: [] });
		scroller.addEventListener("scroll", () => this.draw());
	}

	get canvas() {
		return this.scroller;
	}

	get palette() {
		return this.graph.palette;
	}

	get focus() {
		return this.graph.focus;
	}

	color(node) {
		return this.graph.color(node);
	}

	/* Makes the rows anew where the graph shows something else. */
	update() {
		if (!this.scroller.clientWidth)
			return;
		if (this.profile !== this.graph.profile) {
			this.profile = this.graph.profile;
			this.open = new Uint8Array(this.profile.count);
			this.sorted = new Map();
		}
		this.sorted.clear();
		this.showHeads();
		this.openChain(this.focus);
		this.list();
	}

	/* Callees that have samples, the widest first. */
	callees(node) {
		const { end, width, hidden } = this.profile;
		let found = this.sorted.get(node);
		if (!found) {
			found = [];
			for (let child = node + 1; child < end[node]; child = end[child])
				if (!hidden[child] && width[child])
					found.push(child);
			this.sorted.set(node, found.sort((a, b) => width[b] - width[a]));
		}
		return found;
	}

	/* Opens a frame, and as much as has no choice: a frame with one callee opens that one too. */
	openChain(node) {
		for (let callees = [node]; callees.length === 1; callees = this.callees(callees[0]))
			this.open[callees[0]] = 1;
	}

	/* Opens what leads from the focus to the widest leaf. */
	openWidest() {
		this.update();
		for (let node = this.focus; node >= 0; node = this.callees(node)[0] ?? -1)
			this.open[node] = 1;
		this.list();
	}

	openAll(is) {
		this.open.fill(is);
		this.openChain(this.focus);
		this.list();
	}

	openCallersOf(node) {
		for (let at = this.profile.parent[node]; ; at = this.profile.parent[at]) {
			this.open[at] = 1;
			if (!at)
				return;
		}
	}

	/* Lists the open rows: {node, indent}. */
	list() {
		const todo = [{ node: this.focus, indent: 0 }];
		this.shown = [];
		while (todo.length) {
			const row = todo.pop(), callees = this.open[row.node] ? this.callees(row.node) : [];
			this.shown.push(row);
			for (let i = callees.length - 1; i >= 0; i--)
				todo.push({ node: callees[i], indent: row.indent + (callees.length > 1 ? 1 : 0) });
		}
		this.room.style.height = this.shown.length * TREE_ROW + "px";
		this.draw();
	}

	draw() {
		if (!this.profile || !this.scroller.clientWidth)
			return;
		const first = Math.max(0, Math.floor(this.scroller.scrollTop / TREE_ROW) - 5);
		const last = first + Math.ceil(this.scroller.clientHeight / TREE_ROW) + 10;
		this.rows.style.top = first * TREE_ROW + "px";
		this.rows.replaceChildren(...this.shown.slice(first, last).map(row => this.makeRow(row)));
	}

	/* Shares of all samples, in both profiles where two are compared, and the samples or their weight. */
	numbers(node) {
		const { profile } = this, { sides, self, whole } = profile;
		const totals = sides.map(side => percent(share(side.width[node], side.whole)));
		return [...totals, percent(share(self[node], whole)),
			profile.total ? amount(profile.amounts[node]) : numbers.format(profile.samples[node])];
	}

	showHeads() {
		const { profile } = this, totals = profile.compares ? profile.sideNames : ["Total"];
		const texts = [...totals.map(name => middle(name, 10)), "Self", profile.total ? "Weight" : "Samples"];
		this.heads.replaceChildren(...texts.map(text => element("span", text, "number")), element("span", "Frame", "name"));
	}

	makeRow({ node, indent }) {
		const { profile, graph } = this, row = element("div", undefined, "row"), label = profile.label[node];
		const name = element("span", nodeName(node), "name"), isLeaf = !this.callees(node).length;
		row.dataset.node = node;
		row.setAttribute("role", "treeitem");
		row.setAttribute("aria-level", profile.depth[node] + 1);
		if (!isLeaf)
			row.setAttribute("aria-expanded", String(this.open[node] === 1));
		row.classList.toggle("match", Boolean(graph.match && graph.match[label]));
		row.classList.toggle("dim", graph.highlight >= 0 && profile.group[node] !== graph.highlight);
		row.setAttribute("aria-selected", String(node === graph.selected));
		name.style.paddingLeft = indent * TREE_INDENT + "px";
		name.prepend(element("i", isLeaf ? "" : this.open[node] ? "▾" : "▸"), swatch(graph.color(node)));
		row.append(...this.numbers(node).map(text => element("span", text, "number")), name);
		return row;
	}

	nodeAt(x, y) {
		const row = document.elementFromPoint(x, y)?.closest("#tree .row");
		return row ? Number(row.dataset.node) : -1;
	}

	redraw() {
	}

	/* Brings the row of a node into sight. */
	reveal(node) {
		this.openCallersOf(node);
		this.list();
		const top = this.shown.findIndex(row => row.node === node) * TREE_ROW, { scrollTop, clientHeight } = this.scroller;
		if (top < scrollTop || top + TREE_ROW > scrollTop + clientHeight)
			this.scroller.scrollTop = top - clientHeight / 2;
		this.draw();
	}

	toggle(node, is = !this.open[node]) {
		if (is)
			this.openChain(node);
		else
			this.open[node] = 0;
		this.graph.selected = node;
		this.list();
	}

	move(by) {
		const at = this.shown.findIndex(row => row.node === this.graph.selected);
		const next = at < 0 ? 0 : Math.max(0, Math.min(this.shown.length - 1, at + by));
		this.graph.selected = this.shown[next].node;
		this.reveal(this.graph.selected);
	}

	/* What a key does here; undefined: nothing of its own. */
	keys() {
		const at = Math.max(this.graph.selected, this.focus), { parent } = this.profile;
		return {
			ArrowDown: () => this.move(1),
			ArrowUp: () => this.move(-1),
			PageDown: () => this.move(TREE_STEP),
			PageUp: () => this.move(-TREE_STEP),
			ArrowRight: () => this.open[at] ? this.move(1) : this.toggle(at, true),
			ArrowLeft: () => this.open[at] && this.callees(at).length ? this.toggle(at, false) : this.toggle(parent[at], true),
			Enter: () => this.toggle(at),
			"+": () => this.openAll(1),
			"-": () => this.openAll(0),
		};
	}
}
