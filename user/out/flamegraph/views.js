// SPDX-License-Identifier: MIT
"use strict";

/*
 * Other trees of the frames of a profile: leaf first, the callers and callees of one method, with frames left out or
 * taken together. A view has
 *   reverse    leaf first
 *   recursion  a frame that is on its own stack already is taken together with that one
 *   rules      {prefix, hide}: frames whose name begins with the prefix are left out, or, if they follow each other,
 *              are taken together
 */
const NO_VIEW = { reverse: false, recursion: false, rules: [] };

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
		const { order, depths } = this.order(), made = Object.create(Profile.prototype);
		const { title, event, kinds, facts, losses, total, compares, normalizes, inverted, names, rootLabel, modules,
			groups, shown } = this.base;
		Object.assign(made, { base: this.base, title, event, kinds, facts, losses, total, compares, normalizes, inverted,
			names, rootLabel, modules, groups, shown, removed: [], samplesInTime: null, count: order.length });
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
		made.levels = made.depth.reduce((most, depth) => Math.max(most, depth), 0) + 1;
		made.end = new Uint32Array(order.length);
		for (let node = order.length - 1; node >= 0; node--) {
			made.end[node] = Math.max(made.end[node], node + 1);
			made.end[made.parent[node]] = Math.max(made.end[made.parent[node]], made.end[node]);
		}
	}
}

class Views {
	/* Returns the profile itself where there is nothing to change. */
	static of(base, view) {
		const changed = view.rules.length || view.recursion ? Views.forward(base, view) : base;
		return view.reverse ? Views.reversed(changed, base) : changed;
	}

	static weights(profile, node) {
		return profile.sides.map(({ samples, amounts }) => ({ samples: samples[node], amounts: amounts[node] }));
	}

	static selfWeights(profile, node) {
		return profile.sides.map(({ selfSamples, selfAmounts }) =>
			({ samples: selfSamples[node], amounts: selfAmounts[node] }));
	}

	/* What a node has that its children in the page do not have: its own, and that of frames too narrow to be there. */
	static rest(profile, node) {
		const rest = Views.weights(profile, node);
		for (let child = node + 1; child < profile.end[node]; child = profile.end[child])
			rest.forEach((weight, i) => {
				weight.samples -= profile.sides[i].samples[child];
				weight.amounts -= profile.sides[i].amounts[child];
			});
		return rest;
	}

	static isNothing(weights) {
		return weights.every(({ samples, amounts }) => samples <= 0 && amounts <= 0);
	}

	/* For each label: the rule that holds, or null. The first that fits counts. */
	static ruleOfLabels(profile, rules) {
		return profile.names.map((name, label) =>
			label === profile.rootLabel ? null : rules.find(rule => name.startsWith(rule.prefix)) || null);
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
		const rules = Views.ruleOfLabels(base, view.rules), maker = new TreeMaker(base, base.rootLabel, base.kinds.length);
		const made = new Uint32Array(base.count);
		maker.add(0, 0, Views.weights(base, 0));
		for (let node = 1; node < base.count; node++) {
			const caller = made[base.parent[node]], rule = rules[base.label[node]];
			const label = rule && !rule.hide ? Views.labelOfRule(base, rule) : base.label[node];
			const same = rule && rule.hide ? caller : Views.sameFrame(maker, caller, label, view.recursion, rule);
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

	/* Adds the path from a node to the root, below node `at`. */
	static addCallers(maker, profile, at, node, weights) {
		for (; node; node = profile.parent[node]) {
			at = maker.child(at, profile.label[node]);
			maker.add(at, node, weights);
		}
		maker.addSelf(at, weights);
	}

	static reversed(profile, base) {
		const maker = new TreeMaker(profile, base.rootLabel, base.kinds.length);
		maker.add(0, 0, Views.weights(profile, 0));
		for (let node = 0; node < profile.count; node++) {
			const rest = profile.hidden[node] ? null : Views.rest(profile, node);
			if (rest && !Views.isNothing(rest))
				Views.addCallers(maker, profile, 0, node, rest);
		}
		return Views.based(maker.finish(), base);
	}

	/* The outermost frames of a label. */
	static eachOutermost(profile, label, visit) {
		const match = new Uint8Array(profile.names.length);
		match[label] = 1;
		profile.eachTopMatch(match, 0, visit);
	}

	/* Two trees whose root is the method: who has called it, and what it has called. */
	static around(profile, base, label) {
		const callers = new TreeMaker(profile, label, base.kinds.length);
		const callees = new TreeMaker(profile, label, base.kinds.length);
		Views.eachOutermost(profile, label, node => {
			const weights = Views.weights(profile, node);
			callers.kind[0] = callees.kind[0] = profile.kind[node];
			callers.add(0, node, weights);
			Views.addCallers(callers, profile, 0, profile.parent[node], weights);
			Views.addCallees(callees, profile, node);
		});
		return [callers, callees].map(maker => Views.based(maker.finish(), base));
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
