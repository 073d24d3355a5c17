// SPDX-License-Identifier: MIT
"use strict";

/*
 * Other trees of the frames of a profile: leaf first, the callers and callees of one method, with frames left out or
 * taken together. A view has
 *   reverse    leaf first
 *   recursion  a frame that is on its own stack already is taken together with that one
 *   rules      {prefix, does}: frames whose name begins with the prefix are left out ("hide"), are taken together if
 *              they follow each other ("collapse"), or all others are left out ("only")
 *   presets    names of PRESETS
 */
const PRESETS = {
	java: "Java only",
	mine: "My packages",
	entry: "Hide JVM entry",
	jdk: "Hide JDK",
	kernel: "Hide kernel",
};
const KERNEL = ["kernel"], BELOW_JAVA = ["native", "JVM"], JAVA = ["compiled", "inlined", "interpreted", "Java native"];
const JDK_NAME = /^(java|javax|jdk|sun|com\.sun)\./;
const FEW = 24; // stacks that are sorted by insertion
const NO_VIEW = { reverse: false, recursion: false, rules: [], presets: [] };
const HIDE = { does: "hide" };

/* A tree that grows by paths. Node 0 is the root. */
class TreeMaker {
	constructor(base, rootLabel, rootKind) {
		this.base = base;
		this.parent = [0];
		this.label = [rootLabel];
		this.kind = [rootKind];
		this.weight = [0]; // of the frame that gave the kind
		this.children = [null]; // label -> node
		this.inlined = [0];
		this.interpreted = [0];
		this.low = [0];
		this.high = [0];
		this.sides = base.sides.map(() => ({ samples: [0], amounts: [0], selfSamples: [0], selfAmounts: [0] }));
	}

	child(parent, label) {
		const children = this.children[parent] || (this.children[parent] = new Map());
		let node = children.get(label);
		if (node === undefined) {
			children.set(label, node = this.parent.length);
			this.parent.push(parent);
			this.label.push(label);
			for (const column of [this.kind, this.weight, this.inlined, this.interpreted, this.low, this.high])
				column.push(0);
			this.children.push(null);
			for (const side of this.sides)
				Object.values(side).forEach(column => column.push(0));
		}
		return node;
	}

	/* Adds what a node of the base has of these weights, {samples, amounts} a side, to a node here. */
	add(node, from, weights) {
		const base = this.base;
		let samples = 0, all = 0;
		weights.forEach((weight, i) => {
			this.sides[i].samples[node] += weight.samples;
			this.sides[i].amounts[node] += weight.amounts;
			samples += weight.samples;
			all += (base.sides[i].full || base.sides[i]).allSamples[from];
		});
		const part = all ? samples / all : 0;
		this.inlined[node] += base.inlined[from] * part;
		this.interpreted[node] += base.interpreted[from] * part;
		if (samples > this.weight[node] && node) {
			this.weight[node] = samples;
			this.kind[node] = base.kind[from];
		}
		this.addLines(node, base.line[from], base.line[from] + base.lineSpan[from]);
	}

	addLines(node, low, high) {
		if (low && (!this.low[node] || low < this.low[node]))
			this.low[node] = low;
		if (high > this.high[node])
			this.high[node] = high;
	}

	addSelf(node, weights) {
		weights.forEach((weight, i) => {
			this.sides[i].selfSamples[node] += weight.samples;
			this.sides[i].selfAmounts[node] += weight.amounts;
		});
	}

	/* The nodes in preorder, children in the order of their labels, and the depth of each. */
	order() {
		const order = [], depths = [], open = [[0, 0]];
		while (open.length) {
			const [node, depth] = open.pop();
			order.push(node);
			depths.push(depth);
			const children = this.children[node] ? [...this.children[node].values()] : [];
			children.sort((a, b) => this.label[b] - this.label[a]);
			children.forEach(child => open.push([child, depth + 1]));
		}
		return { order, depths };
	}

	finish() {
		const { order, depths } = this.order(), made = Profile.like(this.base);
		made.count = order.length;
		this.finishNodes(made, order, depths);
		made.sides = this.sides.map((side, i) => ({
			unit: this.base.sides[i].unit,
			allSamples: Float64Array.from(order, node => side.samples[node]),
			allAmounts: Float64Array.from(order, node => side.amounts[node]),
			selfSamples: Float64Array.from(order, node => side.selfSamples[node]),
			selfAmounts: Float64Array.from(order, node => side.selfAmounts[node]),
		}));
		made.layout();
		return made;
	}

	finishNodes(made, order, depths) {
		const places = new Uint32Array(order.length), pick = (type, column) => type.from(order, node => column[node]);
		order.forEach((node, place) => { places[node] = place; });
		made.depth = Uint32Array.from(depths);
		made.parent = Uint32Array.from(order, node => places[this.parent[node]]);
		made.label = pick(Uint32Array, this.label);
		made.kind = pick(Uint8Array, this.kind);
		made.inlined = pick(Float64Array, this.inlined);
		made.interpreted = pick(Float64Array, this.interpreted);
		made.line = pick(Uint32Array, this.low);
		made.lineSpan = Uint32Array.from(order, node => this.high[node] - this.low[node]);
		made.closeNodes();
	}
}

/*
 * A tree of stacks from their leaves, for many of them: the stacks are sorted by one frame after the other, so that the
 * tree is made in preorder and no frame is looked up.
 */
class CallersMaker {
	constructor(base, rootLabel, rootKind) {
		this.base = base;
		this.full = base.sides.map(side => (side.full || side).allSamples);
		this.at = []; // of each stack: the next frame
		this.weights = base.sides.map(() => ({ samples: [], amounts: [] })); // of each stack
		this.count = 0;
		this.size = 1024;
		this.columns = { parent: new Uint32Array(this.size), depth: new Uint32Array(this.size),
			label: new Uint32Array(this.size), low: new Uint32Array(this.size), high: new Uint32Array(this.size),
			kind: new Uint8Array(this.size), inlined: new Float64Array(this.size),
			interpreted: new Float64Array(this.size) };
		this.sides = base.sides.map(() => ({ allSamples: new Float64Array(this.size),
			allAmounts: new Float64Array(this.size), selfSamples: new Float64Array(this.size),
			selfAmounts: new Float64Array(this.size) }));
		this.columns.kind[this.push(0, 0, rootLabel)] = rootKind;
	}

	push(parent, depth, label) {
		if (this.count === this.size)
			this.grow();
		const node = this.count++;
		this.columns.parent[node] = parent;
		this.columns.depth[node] = depth;
		this.columns.label[node] = label;
		return node;
	}

	grow() {
		this.size *= 2;
		for (const columns of [this.columns, ...this.sides])
			for (const [name, column] of Object.entries(columns)) {
				columns[name] = new column.constructor(this.size);
				columns[name].set(column);
			}
	}

	/* A stack whose leaf is `node`, and which has what the columns of `sides` have at `from`. */
	add(node, from, sides) {
		this.at.push(node);
		sides.forEach(({ samples, amounts }, i) => {
			this.weights[i].samples.push(samples[from]);
			this.weights[i].amounts.push(amounts[from]);
		});
	}

	/* Adds what the root has of the base's node. */
	setRoot(from, weights, kind = this.columns.kind[0]) {
		this.columns.kind[0] = kind;
		this.addFrame(0, from, weights.reduce((sum, { samples }) => sum + samples, 0));
		weights.forEach(({ samples, amounts }, i) => {
			this.sides[i].allSamples[0] += samples;
			this.sides[i].allAmounts[0] += amounts;
		});
	}

	/* Adds how the frame ran, and its lines. */
	addFrame(node, from, samples) {
		const { base, columns } = this, low = base.line[from], high = low + base.lineSpan[from];
		if (base.inlined[from] !== 0 || base.interpreted[from] !== 0) {
			let all = 0;
			for (const column of this.full)
				all += column[from];
			const part = all ? samples / all : 0;
			columns.inlined[node] += base.inlined[from] * part;
			columns.interpreted[node] += base.interpreted[from] * part;
		}
		if (low && (!columns.low[node] || low < columns.low[node]))
			columns.low[node] = low;
		if (high > columns.high[node])
			columns.high[node] = high;
	}

	/* Makes the node of the stacks order[from .. to), whose next frame has this label, and goes on to their callers. */
	makeNode(order, from, to, parent, depth) {
		const { base, at, weights } = this, node = this.push(parent, depth, base.label[at[order[from]]]);
		let most = -1;
		for (let i = from; i < to; i++) {
			const stack = order[i], frame = at[stack];
			let samples = 0;
			for (let side = 0; side < weights.length; side++) {
				const { allSamples, allAmounts } = this.sides[side], count = weights[side].samples[stack];
				allSamples[node] += count;
				allAmounts[node] += weights[side].amounts[stack];
				samples += count;
			}
			if (samples > most) {
				most = samples;
				this.columns.kind[node] = base.kind[frame];
			}
			this.addFrame(node, frame, samples);
			at[stack] = base.parent[frame];
		}
		return node;
	}

	/* Stacks that end here are the node's own. */
	endStack(node, stack) {
		for (let i = 0; i < this.sides.length; i++) {
			this.sides[i].selfSamples[node] += this.weights[i].samples[stack];
			this.sides[i].selfAmounts[node] += this.weights[i].amounts[stack];
		}
	}

	/* Sorts the stacks by the label of their next frame; those that have ended come first. */
	sort(order, from, to) {
		const { keys } = this;
		for (let i = from; i < to; i++)
			keys[order[i]] = this.at[order[i]] ? this.base.label[this.at[order[i]]] + 1 : 0;
		if (to - from > FEW) {
			const sorted = new Float64Array(to - from), before = order.slice(from, to);
			for (let i = 0; i < sorted.length; i++)
				sorted[i] = keys[before[i]] * 2 ** 24 + i;
			sorted.sort();
			for (let i = 0; i < sorted.length; i++)
				order[from + i] = before[sorted[i] % 2 ** 24];
			return;
		}
		for (let i = from + 1; i < to; i++) {
			const stack = order[i], key = keys[stack];
			let place = i;
			for (; place > from && keys[order[place - 1]] > key; place--)
				order[place] = order[place - 1];
			order[place] = stack;
		}
	}

	/* The path of a single stack. */
	makePath(order, from, parent, depth) {
		let node = parent;
		while (this.at[order[from]])
			node = this.makeNode(order, from, from + 1, node, ++depth);
		this.endStack(node, order[from]);
	}

	makeTree() {
		const order = Uint32Array.from(this.at, (_, i) => i), open = [[0, order.length, 0, 0]];
		this.at = Uint32Array.from(this.at);
		this.keys = new Uint32Array(order.length);
		for (const side of this.weights)
			for (const name of ["samples", "amounts"])
				side[name] = Float64Array.from(side[name]);
		while (open.length) {
			const [from, to, parent, depth] = open.pop();
			const node = depth ? this.makeNode(order, from, to, parent, depth) : 0;
			this.sort(order, from, to);
			let first = from;
			while (first < to && !this.at[order[first]])
				this.endStack(node, order[first++]);
			if (to - first === 1)
				this.makePath(order, first, node, depth);
			else
				this.openGroups(open, order, first, to, node, depth + 1);
		}
	}

	/* The stacks with the same next frame are a group. The last is first, as the list is read from its end. */
	openGroups(open, order, from, to, node, depth) {
		for (let begin = to - 1; to > from; to = begin--) {
			while (begin > from && this.keys[order[begin - 1]] === this.keys[order[begin]])
				begin--;
			open.push([begin, to, node, depth]);
		}
	}

	finish() {
		this.makeTree();
		const { parent, depth, label, low, high, kind, inlined, interpreted } = this.columns, all = this.count;
		const made = Profile.like(this.base);
		Object.assign(made, { count: all, parent: parent.subarray(0, all), depth: depth.subarray(0, all),
			label: label.subarray(0, all), kind: kind.subarray(0, all), inlined: inlined.subarray(0, all),
			interpreted: interpreted.subarray(0, all), line: low.subarray(0, all),
			lineSpan: high.subarray(0, all).map((value, node) => value - low[node]) });
		made.closeNodes();
		made.sides = this.sides.map((side, i) => ({ unit: this.base.sides[i].unit,
			...Object.fromEntries(Object.entries(side).map(([name, column]) => [name, column.subarray(0, all)])) }));
		return made;
	}
}

class Views {
	/* Returns the profile itself where there is nothing to change. */
	static of(base, view) {
		const isChanged = view.rules.length || view.presets.length || view.recursion;
		const changed = isChanged ? Views.forward(base, view) : base;
		return view.reverse ? Views.reversed(changed, base) : changed;
	}

	static weights(profile, node) {
		return profile.sides.map(({ samples, amounts }) => ({ samples: samples[node], amounts: amounts[node] }));
	}

	static selfWeights(profile, node) {
		return profile.sides.map(({ selfSamples, selfAmounts }) =>
			({ samples: selfSamples[node], amounts: selfAmounts[node] }));
	}

	/* Returns what tells for a node the rule that holds, or null. Of prefixes, the first that fits counts. */
	static rulesOfNodes(profile, { rules, presets }) {
		const chosen = rules.filter(rule => rule.does !== "only"), only = rules.filter(rule => rule.does === "only");
		const fits = (some, name) => some.find(rule => name.startsWith(rule.prefix)) || null;
		const ofLabel = profile.names.map((name, label) => label === profile.rootLabel ? null : fits(chosen, name));
		const isOther = profile.names.map(name => only.length > 0 && !fits(only, name));
		const isJdk = profile.names.map(name => JDK_NAME.test(name));
		const [java, mine, entry, jdk, kernel] = Object.keys(PRESETS).map(name => presets.includes(name));
		const kinds = names => profile.kinds.map(kind => names.includes(kind)), isJava = kinds(JAVA);
		const isHidden = kinds([...(java || mine || kernel ? KERNEL : []), ...(java || mine ? BELOW_JAVA : [])]);
		const isCode = kinds([...KERNEL, ...BELOW_JAVA, ...JAVA]), isEntry = entry ? Views.entryNodes(profile) : null;
		return node => {
			const label = profile.label[node], kind = profile.kind[node];
			const hides = isHidden[kind] || (isEntry && isEntry[node]) || (isOther[label] && isCode[kind]) ||
				((jdk || mine) && isJava[kind] && isJdk[label]);
			return hides ? HIDE : ofLabel[label];
		};
	}

	/* One byte a node: 1 for frames of the JVM and native code through which threads come to their first Java frame. */
	static entryNodes(profile) {
		const entry = new Uint8Array(profile.count), above = new Uint8Array(profile.count);
		const below = new Uint8Array(profile.count), isJava = profile.kinds.map(kind => JAVA.includes(kind));
		for (let node = 1; node < profile.count; node++)
			above[node] = above[profile.parent[node]] || isJava[profile.kind[node]] ? 1 : 0;
		for (let node = profile.count - 1; node > 0; node--) {
			const kind = profile.kind[node], [before, after] = profile.reversed ? [below, above] : [above, below];
			entry[node] = BELOW_JAVA.includes(profile.kinds[kind]) && !before[node] && after[node] ? 1 : 0;
			below[profile.parent[node]] |= below[node] || isJava[kind] ? 1 : 0;
		}
		return entry;
	}

	/* The label of frames that are taken together: the prefix and "*". */
	static labelOfRule(profile, rule) {
		const name = rule.prefix + "*";
		let label = profile.names.indexOf(name);
		if (label < 0) {
			label = profile.names.push(name) - 1;
			profile.modules.push("");
		}
		return label;
	}

	static forward(base, view) {
		const ruleOf = Views.rulesOfNodes(base, view), maker = new TreeMaker(base, base.rootLabel, base.kinds.length);
		const made = new Uint32Array(base.count);
		maker.add(0, 0, Views.weights(base, 0));
		for (let node = 1; node < base.count; node++) {
			const caller = made[base.parent[node]], rule = ruleOf(node), hides = rule && rule.does === "hide";
			const label = rule && !hides ? Views.labelOfRule(base, rule) : base.label[node];
			const same = hides ? caller : Views.sameFrame(maker, caller, label, view.recursion, rule);
			made[node] = same >= 0 ? same : maker.child(caller, label);
			if (base.hidden[node])
				continue;
			if (same < 0)
				maker.add(made[node], node, Views.weights(base, node));
			maker.addSelf(made[node], Views.selfWeights(base, node));
		}
		return maker.finish();
	}

	/* The frame of the stack with which one of this label is taken together, or -1. */
	static sameFrame(maker, caller, label, recursion, rule) {
		if (rule && maker.label[caller] === label)
			return caller;
		for (let node = caller; recursion && node; node = maker.parent[node])
			if (maker.label[node] === label)
				return node;
		return -1;
	}

	static reversed(profile, base) {
		const maker = new CallersMaker(profile, base.rootLabel, base.kinds.length);
		const rest = profile.sides.map(({ samples, amounts }) => ({ samples: samples.slice(), amounts: amounts.slice() }));
		for (let node = 1; node < profile.count; node++)
			rest.forEach((left, i) => {
				left.samples[profile.parent[node]] -= profile.sides[i].samples[node];
				left.amounts[profile.parent[node]] -= profile.sides[i].amounts[node];
			});
		for (let node = 0; node < profile.count; node++)
			if (!profile.hidden[node] && rest.some(({ samples, amounts }) => samples[node] > 0 || amounts[node] > 0))
				maker.add(node, node, rest);
		maker.setRoot(0, Views.weights(profile, 0));
		return Views.based(Object.assign(maker.finish(), { reversed: !profile.reversed }), base);
	}

	/* The outermost frames of a label. */
	static eachOutermost(profile, label, visit) {
		const match = new Uint8Array(profile.names.length);
		match[label] = 1;
		profile.eachTopMatch(match, 0, visit);
	}

	/* Two trees whose root is the method: who has called it, and what it has called. */
	static around(profile, base, label) {
		const callers = new CallersMaker(profile, label, base.kinds.length);
		const callees = new TreeMaker(profile, label, base.kinds.length);
		Views.eachOutermost(profile, label, node => {
			callees.kind[0] = profile.kind[node];
			callers.setRoot(node, Views.weights(profile, node), profile.kind[node]);
			callers.add(profile.parent[node], node, profile.sides);
			Views.addCallees(callees, profile, node);
		});
		return [callers, callees].map(maker => Views.based(Object.assign(maker.finish(), { reversed: false }), base));
	}

	static addCallees(maker, profile, root) {
		const made = new Map([[root, 0]]);
		for (let node = root; node < profile.end[root]; node++) {
			const at = node === root ? 0 : maker.child(made.get(profile.parent[node]), profile.label[node]);
			made.set(node, at);
			if (profile.hidden[node])
				continue;
			maker.add(at, node, Views.weights(profile, node));
			maker.addSelf(at, Views.selfWeights(profile, node));
		}
	}

	/* Shares are of all samples of the base, also in a tree that was made of another view. */
	static based(made, base) {
		made.base = base;
		made.layout();
		return made;
	}
}
