// SPDX-License-Identifier: MIT
"use strict";

/* Groups of the frames of two profiles. */
const MORE = 0, LESS = 1, SAME = 2, ONLY_B = 3, ONLY_A = 4, CHANGES = 5;
const A = 0, B = 1;
const NOISE = 2; // standard deviations of a difference that chance explains
const LEADING = ["thread", "process", "container"]; // kinds that stay at the root of stacks from their leaves
const ROUNDING = 1e-9; // shares that differ by less are equal
const LIKE = 0.02; // part of the weight by which samples may differ and still be alike

/*
 * One event as typed arrays, written by writer_flamegraph.c. Node 0 is the root. Nodes are in preorder:
 * those below a node are node + 1 .. end[node] - 1, and nodes of one depth stand in drawing order.
 *
 * Of two profiles that are compared, `sides` has the weights of A and of B. One of them is shown: its weights are the
 * widths, and frames that it does not have are hidden. Of one profile, `sides` has one entry.
 *
 * views.js makes other trees of the same frames. In those, `base` is the profile that was read; here it is null.
 */
class Profile {
	constructor(data) {
		this.base = null;
		this.title = data.title;
		this.event = data.event;
		this.kinds = data.kinds;
		this.facts = data.facts;
		this.losses = data.losses;
		this.total = data.total ?? Profile.isWeighed(data);
		this.compares = Boolean(data.diff);
		this.normalizes = this.compares && data.diff.normalize;
		this.inverted = data.inverted;
		this.reversed = data.reverse;
		this.noise = true; // differences within noise are no change
		this.count = data.depth.length + 1;
		this.names = Profile.decodeLabels(data.labels);
		this.rootLabel = this.names.push(data.reverse ? "all, leaf first" : "all") - 1;
		this.modules = data.module.map(place => data.modules[place]);
		this.readNodes(data);
		this.readRows(data);
		this.sides = (this.compares ? [data.diff, data] : [data]).map(part => this.readSide(part));
		this.samplesInTime = data.times ? SamplesInTime.of(data, Profile.lasts(data)) : null;
		this.sideNames = this.compares ? Profile.shortNames(data.diff.names) : [];
		this.removed = [];
		this.shown = this.sides.length - 1;
		this.layout();
		if (this.compares && !this.width[0])
			this.show(A);
	}

	/* Shows the samples of some threads (a Set) in a range of microseconds only; null: all. */
	select(threads, range) {
		if (!this.samplesInTime)
			return;
		this.samplesInTime.select(this, threads, range);
		this.removed = [];
		this.layout();
	}

	/* Lays the other profile out: A or B. */
	show(side) {
		this.shown = side;
		this.layout();
	}

	/* Samples that weigh unlike, as waits do, are not counted but summed up. */
	static isWeighed(data) {
		let unlike = 0;
		Profile.eachRow(data.self, (node, samples, difference) => { unlike += Math.abs(difference); });
		return (data.unit === "ns" || data.unit === "bytes") && !data.diff && unlike > LIKE * data.amount;
	}

	/* Whether a sample weighs as much as the time before it. */
	static lasts(data) {
		return data.unit === "ns" && Profile.isWeighed(data);
	}

	/* The shortest ends of two paths that differ, without what they end in alike. */
	static shortNames(paths) {
		const parts = paths.map(path => path.split("/"));
		let kept = 1;
		while (kept < Math.max(parts[A].length, parts[B].length) &&
			parts[A].slice(-kept).join("/") === parts[B].slice(-kept).join("/"))
			kept++;
		const names = parts.map(part => part.slice(-kept).join("/"));
		const short = names.map(name => name.replace(/(?<=.)\.(duet|jfr|html|collapsed|pb\.gz)$/, ""));
		const best = short[A] === short[B] ? names : short;
		return best[A] === best[B] ? ["A", "B"] : best.map(name => middle(name, 28));
	}

	/* What groups are called: kinds of frames, or the changes between two profiles. */
	get groups() {
		const [a, b] = this.sideNames;
		return !this.compares ? this.kinds : [`more in ${b}`, `less in ${b}`,
			this.noise ? "no clear change" : "the same", `only in ${b}`, `only in ${a}`];
	}

	/* Makes frames as wide as their weight, or as the number of their samples. */
	measure(total) {
		this.total = total;
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
		this.label[0] = this.rootLabel;
		this.kind[0] = this.kinds.length;
		const open = [0];
		for (let node = 1; node < count; node++) {
			const depth = this.depth[node] = this.depth[node - 1] + data.depth[node - 1];
			while (open.length > depth)
				this.end[open.pop()] = node;
			this.parent[node] = open[depth - 1];
			open.push(node);
			this.label[node] = data.label[node - 1];
			this.kind[node] = data.kind.charCodeAt(node - 1) - 97;
		}
		this.levels = this.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1;
	}

	/* A profile for another tree of the frames of `base`, without nodes and weights. */
	static like(base) {
		const { title, event, kinds, facts, losses, total, compares, normalizes, inverted, names, rootLabel, modules,
			reversed, noise, sideNames, shown } = base;
		return Object.assign(Object.create(Profile.prototype), { base, title, event, kinds, facts, losses, total,
			compares, normalizes, inverted, names, rootLabel, modules, reversed, noise, sideNames, shown,
			removed: [], samplesInTime: null });
	}

	/* Sets what follows from the parents and depths of all nodes. */
	closeNodes() {
		this.levels = this.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1;
		this.end = new Uint32Array(this.count);
		for (let node = this.count - 1; node >= 0; node--) {
			this.end[node] = Math.max(this.end[node], node + 1);
			this.end[this.parent[node]] = Math.max(this.end[this.parent[node]], this.end[node]);
		}
	}

	/* What the nodes weigh in one profile. */
	readSide(data) {
		const count = this.count, period = data.period;
		const allSamples = Float64Array.from({ length: count }, (_, node) => node ? data.width[node - 1] : data.samples);
		const side = { unit: data.unit, allSamples, allAmounts: allSamples.map(samples => samples * period),
			selfSamples: new Float64Array(count), selfAmounts: new Float64Array(count) };
		Profile.eachRow(data.self, (node, samples, ns) => {
			side.selfSamples[node] = samples;
			side.selfAmounts[node] = samples * period + ns;
		});
		Profile.eachRow(data.time, (node, ns) => { side.allAmounts[node] += ns; });
		side.allAmounts[0] = data.amount;
		side.full = { ...side }; // of all threads, at all times
		return side;
	}

	readRows(data) {
		const count = this.count;
		this.inlined = new Float64Array(count);
		this.interpreted = new Float64Array(count);
		this.line = new Uint32Array(count);
		this.lineSpan = new Uint32Array(count);
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
		this.hidden = new Uint8Array(this.count);
		for (const side of this.sides)
			this.subtractRemoved(side);
		const side = this.sides[this.shown], { unit, samples, amounts, width, self, whole } = side;
		Object.assign(this, { unit, samples, amounts, width, self, whole,
			selfSamples: this.own(side.selfSamples, samples), selfAmounts: this.own(side.selfAmounts, amounts) });
		this.hideUnselected();
		this.compareSides();
		this.left = new Float64Array(this.count);
		const cursor = new Float64Array(this.count);
		for (let node = 1; node < this.count; node++) {
			const parent = this.parent[node];
			cursor[node] = this.left[node] = cursor[parent];
			cursor[parent] += this.width[node];
		}
		this.indexLevels();
	}

	/* What no selected sample has. */
	hideUnselected() {
		const { allSamples, full } = this.sides[0];
		for (let node = 1; full && allSamples !== full.allSamples && node < this.count; node++)
			if (!allSamples[node])
				this.hidden[node] = 1;
	}

	subtractRemoved(side) {
		side.samples = side.allSamples.slice();
		side.amounts = side.allAmounts.slice();
		side.width = this.total ? side.amounts : side.samples;
		side.whole = this.base ? this.base.sides[this.sides.indexOf(side)].width[0] : side.width[0];
		for (const node of this.removed)
			this.subtract(side, node);
		side.self = this.total ? this.own(side.selfAmounts, side.amounts) : this.own(side.selfSamples, side.samples);
	}

	/* What ends in each frame. In stacks from their leaves, these are the frames at the root. */
	own(ends, all) {
		if (!this.reversed)
			return ends;
		const own = new Float64Array(this.count), leads = new Uint8Array(this.count);
		leads[0] = 1;
		for (let node = 1; node < this.count; node++) {
			if (!leads[this.parent[node]])
				continue;
			leads[node] = LEADING.includes(this.kinds[this.kind[node]]) ? 1 : 0;
			own[node] = leads[node] ? ends[node] : all[node];
		}
		return own;
	}

	subtract(side, removed) {
		const samples = side.samples[removed], ns = side.amounts[removed];
		for (let node = this.parent[removed]; ; node = this.parent[node]) {
			side.samples[node] -= samples;
			side.amounts[node] -= ns;
			if (!node)
				break;
		}
		for (let node = removed; node < this.end[removed]; node++)
			side.samples[node] = side.amounts[node] = 0;
		this.hidden.fill(1, removed, this.end[removed]);
	}

	/* What is compared of a weight in one profile: its part of `whole`, or itself. */
	part(value, whole) {
		return !this.normalizes ? value : whole ? value / whole : 0;
	}

	/* By how much the part in B is greater, and the group of each node; hides what the shown profile does not have. */
	compareSides() {
		this.group = this.kind;
		if (!this.compares)
			return;
		const [a, b] = this.sides.map(side => side.width);
		this.group = new Uint8Array(this.count);
		this.change = new Float64Array(this.count);
		for (let node = 0; node < this.count; node++) {
			this.change[node] = this.difference([a[node], b[node]], this.sides.map(side => side.samples[node]), [a[0], b[0]]);
			this.group[node] = node ? this.changeGroup(a[node], b[node], this.change[node]) : CHANGES;
			if (node && !this.width[node])
				this.hidden[node] = 1;
		}
		this.greatestChange = this.change.reduce((most, change) => Math.max(most, Math.abs(change)), 0);
	}

	/*
	 * By how much the part of B is greater. 0 where the numbers of samples are too small to tell: a part that n samples
	 * show is uncertain by a share of it that falls with the root of n.
	 */
	difference(values, samples, wholes) {
		const [a, b] = values.map((value, i) => this.part(value, wholes[i]));
		if (Math.abs(b - a) <= ROUNDING * Math.max(a, b))
			return 0;
		let variance = 0;
		[a, b].forEach((part, i) => {
			const rest = this.normalizes ? 1 - values[i] / wholes[i] : 1;
			variance += samples[i] ? part * part * rest / samples[i] : 0;
		});
		return this.noise && Math.abs(b - a) <= NOISE * Math.sqrt(variance) ? 0 : b - a;
	}

	changeGroup(a, b, change) {
		if (this.noise && !change)
			return SAME;
		if (!a || !b)
			return b ? ONLY_B : a ? ONLY_A : SAME;
		return change > 0 ? MORE : change < 0 ? LESS : SAME;
	}

	/* A change relative to the greatest one, -1 to 1. */
	strength(change) {
		return this.greatestChange ? Math.max(-1, Math.min(1, change / this.greatestChange)) : 0;
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

	/* One byte a node: 1 at and below each match. */
	matchedNodes(match) {
		const nodes = new Uint8Array(this.count);
		for (let node = 0; node < this.count; node++)
			nodes[node] = match[this.label[node]] || nodes[this.parent[node]] ? 1 : 0;
		return nodes;
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

	/* False where a node was removed; `hidden` also has those that only the other profile has. */
	isThere(node) {
		return this.compares ? this.sides.some(side => side.width[node] > 0) : !this.hidden[node];
	}

	/* Self and total of each label below `root`, and the change from A to B; recursion counts once. */
	methods(root) {
		const rows = new Map(), open = new Uint32Array(this.names.length), path = [];
		for (let node = root; node < this.end[root]; node++) {
			if (node === 0 || !this.isThere(node))
				continue;
			while (path.length > this.depth[node] - this.depth[root])
				open[path.pop()]--;
			const label = this.label[node];
			let row = rows.get(label);
			if (!row)
				rows.set(label, row = { label, group: this.group[node], self: 0, totals: this.sides.map(() => 0),
					samples: this.sides.map(() => 0) });
			row.self += this.self[node];
			this.sides.forEach((side, i) => {
				row.totals[i] += open[label] ? 0 : side.width[node];
				row.samples[i] += open[label] ? 0 : side.samples[node];
			});
			open[label]++;
			path.push(label);
		}
		return Array.from(rows.values(), row => this.finishMethod(row, root));
	}

	finishMethod(row, root) {
		row.total = row.totals[this.shown];
		row.change = this.compares ?
			this.difference(row.totals, row.samples, this.sides.map(side => side.width[root])) : 0;
		return row;
	}

	/* The profile that has the frames of a group: the one that is shown, if it can. */
	sideOfGroup(group) {
		return !this.compares || group < ONLY_B ? this.shown : group === ONLY_A ? A : B;
	}

	/* Share of self samples of each group. */
	groupShares() {
		const shares = new Float64Array(this.groups.length + 1);
		for (let node = 1; node < this.count; node++) {
			const group = this.group[node], { self, width } = this.sides[this.sideOfGroup(group)];
			if (this.isThere(node) && width[0])
				shares[group] += self[node] / width[0];
		}
		return shares;
	}

	nodesOfGroup(group) {
		return this.group.some((other, node) => node > 0 && other === group);
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
