// SPDX-License-Identifier: MIT
"use strict";

const ROW = 20;		   // CSS pixels of a frame's height, with the gap
const NARROWEST = 0.5;	   // frames below this many pixels are not drawn
const ROUNDED = 6;	   // frames from this many pixels on have round corners
const LABELLED = 22;	   // frames from this many pixels on have text
const PADDING = 5;
const ZOOM_MS = 180;
const PRINT_HEIGHT = 12000; // what a canvas can surely hold
const FONT = '12px "Inter", system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

/* At most so many characters of a text, and an ellipsis in its middle: names differ at both ends. */
function middle(text, room) {
	const end = room < 8 ? 0 : room >> 1;
	return text.length <= room ? text : text.slice(0, room - end).trimEnd() + "…" + text.slice(text.length - end).trimStart();
}

/*
 * Draws the part of the profile that is in view. The canvas is as large as the window onto it and stays in
 * place, `spacer` gives the scroll bar its length: stacks may be deeper than any canvas is high.
 */
class Graph {
	constructor(profile, scroller, spacer, canvas) {
		this.scroller = scroller;
		this.spacer = spacer;
		this.canvas = canvas;
		this.context = canvas.getContext("2d");
		this.inverted = false;
		this.pending = 0;
		this.content = 0;	// height of all levels
		this.height = 0;	// height of the window onto them
		this.setProfile(profile);
		scroller.addEventListener("scroll", () => this.redraw());
	}

	setProfile(profile) {
		this.profile = profile;
		this.match = null;	// one byte a label, or none
		this.highlight = -1;	// group
		this.hovered = -1;
		this.selected = -1;
		this.widths = new Float32Array(profile.names.length * 3); // of each form of a name; 0 = not measured
		this.reset();
	}

	reset() {
		this.focus = 0;
		this.from = 0;
		this.to = this.profile.width[0];
	}

	setPalette(palette) {
		this.palette = palette;
		this.redraw();
	}

	/* ---- geometry -------------------------------------------------------- */

	/* Draws at once: a canvas that changes its size is blank, and no animation frame may follow. */
	resize() {
		if (!this.scroller.clientWidth)
			return; // another view is shown
		const ratio = window.devicePixelRatio || 1, fromRoot = this.distanceFromRoot();
		this.width = this.scroller.clientWidth;
		this.height = this.printing || this.scroller.clientHeight;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = this.width + "px";
		this.canvas.style.height = this.height + "px";
		this.ratio = ratio;
		this.measureContent();
		this.scroller.scrollTop = this.inverted ? fromRoot : this.content - this.height - fromRoot;
		this.draw();
	}

	/* Pixels between the window and the end of the content where the stacks start, as before a change of size. */
	distanceFromRoot() {
		const { scrollTop, clientHeight } = this.scroller;
		if (this.inverted)
			return scrollTop;
		/* A scroller that has grown has moved its content already, so its new height tells whether it is there. */
		return scrollTop + clientHeight >= this.content - 1 ? 0 : this.content - scrollTop - this.height;
	}

	/* Height of the levels that have anything to draw once the focus fills the width. */
	contentHeight() {
		const least = this.profile.width[this.focus] * NARROWEST / this.width;
		return this.profile.levelsBelow(this.focus, least) * ROW + 2;
	}

	measureContent() {
		this.content = Math.max(this.contentHeight(), this.height);
		this.spacer.style.height = this.content - this.height + "px";
	}

	/* Top of a level in pixels below the top of the content. */
	levelTop(level) {
		return this.inverted ? level * ROW + 1 : this.content - (level + 1) * ROW;
	}

	levelAt(y) {
		return Math.floor((this.inverted ? y - 1 : this.content - y) / ROW);
	}

	scrollTop() {
		return this.printing ? 0 : this.scroller.scrollTop;
	}

	scale() {
		return this.width / (this.to - this.from || 1);
	}

	/* The node under a point of the window, or -1. */
	nodeAt(clientX, clientY) {
		const box = this.canvas.getBoundingClientRect();
		const x = clientX - box.left, y = clientY - box.top + this.scrollTop();
		return this.profile.nodeAt(this.levelAt(y), this.from + x / this.scale());
	}

	/* Where a node is in the window: {x, y, width}. */
	place(node) {
		const box = this.canvas.getBoundingClientRect();
		const x = (this.profile.left[node] - this.from) * this.scale();
		const right = x + this.profile.width[node] * this.scale();
		const visible = Math.max(0, x);
		return { x: box.left + visible, y: box.top + this.levelTop(this.profile.depth[node]) - this.scrollTop(),
			width: Math.min(right, this.width) - visible };
	}

	scrollToLevel(level) {
		const top = this.levelTop(level), margin = 3 * ROW;
		if (top < this.scroller.scrollTop + margin)
			this.scroller.scrollTop = top - margin;
		else if (top + ROW + margin > this.scroller.scrollTop + this.height)
			this.scroller.scrollTop = top + ROW + margin - this.height;
	}

	/* To the end of the content where the stacks start. */
	scrollToRoot() {
		this.scroller.scrollTop = this.inverted ? 0 : this.content;
	}

	/* ---- zoom ---------------------------------------------------------------- */

	zoom(node) {
		const left = this.profile.left[node];
		this.focus = node;
		this.measureContent();
		this.scrollToRoot();
		this.scrollToLevel(this.profile.depth[node]);
		this.animate(left, left + this.profile.width[node]);
	}

	animate(from, to) {
		const start = performance.now(), oldFrom = this.from, oldTo = this.to;
		const still = matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden;
		const step = now => {
			const part = still ? 1 : Math.min(1, Math.max(0, now - start) / ZOOM_MS);
			const eased = 1 - Math.pow(1 - part, 3);
			this.from = part < 1 ? oldFrom + (from - oldFrom) * eased : from;
			this.to = part < 1 ? oldTo + (to - oldTo) * eased : to;
			this.draw();
			this.animation = part < 1 ? requestAnimationFrame(step) : 0;
		};
		cancelAnimationFrame(this.animation);
		step(start);
	}

	/* Zooms out of what hides the node, or into what surrounds it, until it can be seen. */
	reveal(node) {
		const { left, width, parent, depth } = this.profile;
		const inside = left[node] + width[node] > this.from && left[node] < this.to;
		if (!inside || depth[node] < depth[this.focus] || width[node] * this.scale() < 4) {
			let root = node;
			while (root && width[node] > 0.05 * width[parent[root]])
				root = parent[root];
			this.zoom(root);
		}
		this.scrollToLevel(depth[node]);
		this.redraw();
	}

	/* The profile's layout changed. */
	relayout() {
		while (this.profile.hidden[this.focus])
			this.focus = this.profile.parent[this.focus];
		this.hovered = -1;
		this.selected = this.selected >= 0 && this.profile.hidden[this.selected] ? -1 : this.selected;
		this.from = this.profile.left[this.focus];
		this.to = this.from + this.profile.width[this.focus];
		this.measureContent();
		this.redraw();
	}

	/* ---- drawing --------------------------------------------------------------- */

	redraw() {
		if (!this.pending)
			this.pending = requestAnimationFrame(() => this.draw());
	}

	draw() {
		cancelAnimationFrame(this.pending);
		this.pending = 0;
		const context = this.context, top = this.scrollTop();
		const ends = [this.levelAt(top), this.levelAt(top + this.height)];
		const first = Math.max(0, Math.min(...ends));
		const last = Math.min(this.profile.levels - 1, Math.max(...ends));
		context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
		context.clearRect(0, 0, this.width, this.height);
		context.font = FONT;
		context.textBaseline = "middle";
		this.drawn = 0;
		for (let level = first; level <= last; level++)
			this.drawLevel(level, this.levelTop(level) - top);
		this.drawOutline(this.hovered, 1.5);
		this.drawOutline(this.selected, 2.5);
		context.globalAlpha = 1;
	}

	drawLevel(level, y) {
		const { levelStart, levelNodes, left, width } = this.profile;
		const scale = this.scale(), stop = levelStart[level + 1], labelled = [];
		for (let place = this.profile.firstAfter(level, this.from); place < stop; place++) {
			const node = levelNodes[place], x = (left[node] - this.from) * scale, w = width[node] * scale;
			if (x >= this.width)
				break;
			if (w < NARROWEST)
				continue;
			const start = Math.max(0, x), end = Math.min(this.width, x + w);
			this.drawFrame(node, start, y, end - start);
			if (end - start >= LABELLED)
				labelled.push(node, start, end - start);
		}
		for (let i = 0; i < labelled.length; i += 3)
			this.drawLabel(labelled[i], labelled[i + 1], y, labelled[i + 2]);
	}

	isDimmed(node) {
		if (this.match)
			return !this.match[this.profile.label[node]];
		if (this.highlight >= 0)
			return this.profile.group[node] !== this.highlight;
		return this.profile.depth[node] < this.profile.depth[this.focus];
	}

	isMatch(node) {
		return this.match !== null && this.match[this.profile.label[node]] === 1;
	}

	color(node) {
		const { compares, change, kind, label } = this.profile;
		if (compares)
			return this.palette.change(this.profile.strength(change[node]));
		return this.palette.fill(kind[node], label[node]);
	}

	drawFrame(node, x, y, w) {
		const context = this.context;
		context.globalAlpha = this.isDimmed(node) ? this.palette.dim : 1;
		context.fillStyle = this.isMatch(node) ? this.palette.match : this.color(node);
		this.drawn++;
		if (w < ROUNDED) {
			context.fillRect(x, y, w > 2.5 ? w - 0.75 : w, ROW - 1);
			return;
		}
		context.beginPath();
		context.roundRect(x, y, w - 1, ROW - 1, 3);
		context.fill();
	}

	drawLabel(node, x, y, w) {
		const text = this.fit(this.profile.label[node], w - 2 * PADDING);
		if (!text)
			return;
		this.context.globalAlpha = 1;
		this.context.fillStyle = this.isMatch(node) ? this.palette.matchText :
			this.isDimmed(node) ? this.palette.dimText : this.palette.text;
		this.context.fillText(text, x + PADDING, y + ROW / 2);
	}

	drawOutline(node, thickness) {
		if (node < 0 || this.profile.hidden[node])
			return;
		const context = this.context, { left, width, depth } = this.profile, scale = this.scale();
		const x = Math.max(0, (left[node] - this.from) * scale);
		const end = Math.min(this.width, (left[node] + width[node] - this.from) * scale);
		if (end <= x)
			return;
		context.globalAlpha = 1;
		context.strokeStyle = this.palette.outline;
		context.lineWidth = thickness;
		context.beginPath();
		const y = this.levelTop(depth[node]) - this.scrollTop();
		context.roundRect(x + 0.75, y + 0.75, Math.max(1, end - x - 2.5), ROW - 2.5, 3);
		context.stroke();
	}

	/* ---- names --------------------------------------------------------------------- */

	/* 0: java.util.HashMap.put, 1: HashMap.put, 2: put. Names that are not Java's have one form. */
	static form(name, form) {
		const java = /^((?:[\w$-]+\.)*)([A-Z][^.(]*\.)([^.]+)$/.exec(name);
		return !java || form === 0 ? name : form === 1 ? java[2] + java[3] : java[3];
	}

	/* As much of a name as fits into so many pixels of a list: without its package, or with an ellipsis. */
	shorten(name, width) {
		const size = text => this.context.measureText(text).width;
		this.context.font = FONT;
		if (size(name) <= width)
			return name;
		const short = Graph.form(name, 1), whole = size(short);
		return whole <= width ? short : this.cut(short, Math.floor(short.length * width / whole), width) || short;
	}

	/* The longest form of the name that fits into the width, cut when none does. */
	fit(label, width) {
		const name = this.profile.names[label];
		let text = name, size = 0;
		for (let form = 0; form < 3; form++) {
			text = Graph.form(name, form);
			size = this.widths[label * 3 + form] || this.measure(label * 3 + form, text);
			if (size <= width)
				return text;
		}
		return this.cut(text, Math.floor(text.length * width / size), width);
	}

	/* As many of `room` characters as fit, "" when they say nothing. */
	cut(text, room, width) {
		while (room > 1 && this.context.measureText(middle(text, room)).width > width)
			room--;
		return room < 2 ? "" : middle(text, room);
	}

	measure(place, text) {
		return this.widths[place] = this.context.measureText(text).width;
	}

	/* ---- pictures ----------------------------------------------------------------------- */

	/* The whole graph at once, as far as a canvas goes; false goes back to the window. */
	print(on) {
		this.printing = on ? Math.min(PRINT_HEIGHT, this.contentHeight()) : 0;
		this.resize();
	}

	/* The zoomed part of the graph with all its levels, as the text of an SVG file. */
	svg(describe) {
		const { left, width, depth, label, hidden, end } = this.profile, scale = this.scale();
		const height = this.contentHeight(), parts = [];
		const escape = text => text.replace(/[&<>"]/g, sign => `&#${sign.charCodeAt(0)};`);
		this.context.font = FONT;
		for (let node = this.focus; node < end[this.focus]; node++) {
			const w = width[node] * scale;
			if (hidden[node] || w < NARROWEST)
				continue;
			const x = (left[node] - this.from) * scale;
			const y = this.inverted ? depth[node] * ROW + 1 : height - (depth[node] + 1) * ROW;
			const text = w >= LABELLED ? this.fit(label[node], w - 2 * PADDING) : "";
			parts.push(`<g><title>${escape(describe(node))}</title><rect x="${x.toFixed(2)}" y="${y}" ` +
				`width="${Math.max(0.5, w - 1).toFixed(2)}" height="${ROW - 1}" rx="2" fill="${this.color(node)}"/>` +
				(text ? `<text x="${(x + PADDING).toFixed(2)}" y="${y + 14}">${escape(text)}</text>` : "") + "</g>");
		}
		const namespace = document.querySelector("svg").namespaceURI;
		return `<svg xmlns="${namespace}" width="${this.width}" height="${height}" ` +
			`font-family="sans-serif" font-size="12">\n${parts.join("\n")}\n</svg>\n`;
	}
}
