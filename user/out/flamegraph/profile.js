// SPDX-License-Identifier: MIT
"use strict";

/*
 * The profile as typed arrays, written by writer_flamegraph.c. Node 0 is the root. Nodes are in preorder:
 * those below a node are node + 1 .. end[node] - 1, and nodes of one depth stand in drawing order.
 */
class Profile {
	constructor(data) {
		this.title = data.title;
		this.kinds = data.kinds;
		this.facts = data.facts;
		this.losses = data.losses;
		this.unit = data.unit;
		this.total = data.total;
		this.inverted = data.inverted;
		this.count = data.depth.length + 1;
		this.names = Profile.decodeLabels(data.labels);
		this.rootLabel = this.names.push(data.reverse ? "all, leaf first" : "all") - 1;
		this.modules = data.module.map(place => data.modules[place]);
		this.readNodes(data);
		this.readRows(data);
		this.removed = [];
		this.layout();
	}

	static decodeLabels(pairs) {
		const names = [];
		for (let i = 0, name = ""; i < pairs.length; i += 2)
			names.push(name = name.slice(0, pairs[i]) + pairs[i + 1]);
		return names;
	}

	readNodes(data) {
		const count = this.count;
		this.depth = new Uint32Array(count);
		this.parent = new Uint32Array(count);
		this.end = new Uint32Array(count).fill(count);
		this.label = new Uint32Array(count);
		this.kind = new Uint8Array(count);
		this.allSamples = new Float64Array(count);
		this.label[0] = this.rootLabel;
		this.kind[0] = this.kinds.length;
		this.allSamples[0] = data.samples;
		const open = [0];
		for (let node = 1; node < count; node++) {
			const depth = this.depth[node] = this.depth[node - 1] + data.depth[node - 1];
			while (open.length > depth)
				this.end[open.pop()] = node;
			this.parent[node] = open[depth - 1];
			open.push(node);
			this.label[node] = data.label[node - 1];
			this.kind[node] = data.kind.charCodeAt(node - 1) - 97;
			this.allSamples[node] = data.width[node - 1];
		}
		this.levels = this.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1;
	}

	readRows(data) {
		const count = this.count, period = data.period;
		this.selfSamples = new Float64Array(count);
		this.selfAmounts = new Float64Array(count);
		this.allAmounts = this.allSamples.map(samples => samples * period);
		this.inlined = new Float64Array(count);
		this.interpreted = new Float64Array(count);
		this.line = new Uint32Array(count);
		this.lineSpan = new Uint32Array(count);
		Profile.eachRow(data.self, (node, samples, ns) => {
			this.selfSamples[node] = samples;
			this.selfAmounts[node] = samples * period + ns;
		});
		Profile.eachRow(data.time, (node, ns) => { this.allAmounts[node] += ns; });
		this.allAmounts[0] = data.amount;
		Profile.eachRow(data.mix, (node, inlined, interpreted) => {
			this.inlined[node] = inlined;
			this.interpreted[node] = interpreted;
		});
		Profile.eachRow(data.lines, (node, line, span) => {
			this.line[node] = line;
			this.lineSpan[node] = span;
		});
	}

	static eachRow(rows, set) {
		for (let i = 0, node = 1; i < rows.length; i += 3) {
			node += rows[i];
			set(node, rows[i + 1], rows[i + 2]);
		}
	}

	/* Recomputes widths without the removed stacks, places of all nodes, and the list of nodes of each level. */
	layout() {
		this.samples = this.allSamples.slice();
		this.amounts = this.allAmounts.slice();
		this.hidden = new Uint8Array(this.count);
		for (const node of this.removed)
			this.subtract(node);
		this.width = this.total ? this.amounts : this.samples;
		this.left = new Float64Array(this.count);
		const cursor = new Float64Array(this.count);
		for (let node = 1; node < this.count; node++) {
			const parent = this.parent[node];
			cursor[node] = this.left[node] = cursor[parent];
			cursor[parent] += this.width[node];
		}
		this.indexLevels();
	}

	subtract(removed) {
		const samples = this.samples[removed], ns = this.amounts[removed];
		for (let node = this.parent[removed]; ; node = this.parent[node]) {
			this.samples[node] -= samples;
			this.amounts[node] -= ns;
			if (!node)
				break;
		}
		for (let node = removed; node < this.end[removed]; node++)
			this.samples[node] = this.amounts[node] = 0;
		this.hidden.fill(1, removed, this.end[removed]);
	}

	/* Counting sort by depth: level d is levelNodes[levelStart[d] .. levelStart[d + 1]), from left to right. */
	indexLevels() {
		const start = new Uint32Array(this.levels + 1);
		for (let node = 0; node < this.count; node++)
			if (!this.hidden[node])
				start[this.depth[node] + 1]++;
		for (let level = 0; level < this.levels; level++)
			start[level + 1] += start[level];
		const fill = start.slice();
		this.levelNodes = new Uint32Array(start[this.levels]);
		for (let node = 0; node < this.count; node++)
			if (!this.hidden[node])
				this.levelNodes[fill[this.depth[node]]++] = node;
		this.levelStart = start;
	}

	/* Place in levelNodes of the first node of the level that ends after `value`. */
	firstAfter(level, value) {
		let low = this.levelStart[level], high = this.levelStart[level + 1];
		while (low < high) {
			const middle = (low + high) >>> 1, node = this.levelNodes[middle];
			if (this.left[node] + this.width[node] > value)
				high = middle;
			else
				low = middle + 1;
		}
		return low;
	}

	/* The node of the level at `value`, or -1. */
	nodeAt(level, value) {
		if (level < 0 || level >= this.levels)
			return -1;
		const place = this.firstAfter(level, value);
		if (place >= this.levelStart[level + 1])
			return -1;
		const node = this.levelNodes[place];
		return this.left[node] <= value ? node : -1;
	}

	/* The next node of the same level in a direction (-1, 1), or -1. Nodes of a level are in ascending order. */
	neighbour(node, direction) {
		const depth = this.depth[node];
		const level = this.levelNodes.subarray(this.levelStart[depth], this.levelStart[depth + 1]);
		let low = 0, high = level.length - 1;
		while (low < high) {
			const middle = (low + high) >>> 1;
			if (level[middle] < node)
				low = middle + 1;
			else
				high = middle;
		}
		const next = level[low + direction];
		return next === undefined ? -1 : next;
	}

	/* The widest child, or -1. */
	widestChild(node) {
		let widest = -1;
		for (let child = node + 1; child < this.end[node]; child = this.end[child])
			if (!this.hidden[child] && (widest < 0 || this.width[child] > this.width[widest]))
				widest = child;
		return widest;
	}

	isBelow(node, root) {
		return node >= root && node < this.end[root];
	}

	ancestors(node) {
		const path = [node];
		while (node)
			path.push(node = this.parent[node]);
		return path.reverse();
	}

	/* Levels of the whole graph that are needed to show what is below `root` and not narrower than `least`. */
	levelsBelow(root, least) {
		let most = this.depth[root];
		for (let node = root; node < this.end[root]; node++)
			if (!this.hidden[node] && this.width[node] >= least && this.depth[node] > most)
				most = this.depth[node];
		return most + 1;
	}

	remove(node) {
		if (!node || this.hidden[node])
			return;
		this.removed.push(node);
		this.layout();
	}

	undo() {
		const node = this.removed.pop();
		this.layout();
		return node;
	}

	/* One byte a label: 1 where the expression matches its text. */
	matchLabels(expression) {
		const match = Uint8Array.from(this.names, name => expression.test(name) ? 1 : 0);
		match[this.rootLabel] = 0;
		return match;
	}

	/* Calls visit for the matching nodes at or below `root` that have no matching node between them and it. */
	eachTopMatch(match, root, visit) {
		for (let node = root; node < this.end[root];) {
			const hit = match[this.label[node]] && !this.hidden[node];
			if (hit)
				visit(node);
			node = hit ? this.end[node] : node + 1;
		}
	}

	/* Part of `root` that is below a match, 0..1. */
	matchedShare(match, root) {
		let sum = 0;
		this.eachTopMatch(match, root, node => { sum += this.width[node]; });
		return this.width[root] ? sum / this.width[root] : 0;
	}

	/* Self and total of each label below `root`; recursion counts once. */
	methods(root) {
		const rows = new Map(), open = new Uint32Array(this.names.length), path = [];
		const self = this.total ? this.selfAmounts : this.selfSamples;
		for (let node = root; node < this.end[root]; node++) {
			if (this.hidden[node] || node === 0)
				continue;
			while (path.length > this.depth[node] - this.depth[root])
				open[path.pop()]--;
			const label = this.label[node];
			let row = rows.get(label);
			if (!row)
				rows.set(label, row = { label, kind: this.kind[node], self: 0, total: 0 });
			row.self += self[node];
			row.total += open[label] ? 0 : this.width[node];
			open[label]++;
			path.push(label);
		}
		return [...rows.values()];
	}

	/* Share of self samples of each kind. */
	kindShares() {
		const shares = new Float64Array(this.kinds.length + 1);
		const self = this.total ? this.selfAmounts : this.selfSamples;
		for (let node = 1; node < this.count; node++)
			shares[this.kind[node]] += this.hidden[node] ? 0 : self[node];
		return shares.map(share => this.width[0] ? share / this.width[0] : 0);
	}

	nodesOfKind(kind) {
		return this.kind.some(other => other === kind);
	}

	/* "HashMap.java:120", "libc.so.6" or "". */
	source(node) {
		const file = this.modules[this.label[node]] || "";
		if (!this.line[node])
			return file;
		const last = this.lineSpan[node] ? "–" + (this.line[node] + this.lineSpan[node]) : "";
		return (file || "line ") + (file ? ":" : "") + this.line[node] + last;
	}
}
