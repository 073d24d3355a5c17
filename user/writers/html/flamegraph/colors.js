// SPDX-License-Identifier: MIT
"use strict";

/* Hue and saturation of a kind; how light it is depends on the theme. */
const KIND_COLORS = {
	"kernel": [24, 90],
	"native": [350, 78],
	"JVM": [45, 88],
	"compiled": [142, 56],
	"inlined": [182, 58],
	"interpreted": [84, 46],
	"Java native": [214, 82],
	"thread": [226, 18],
	"process": [250, 24],
	"container": [215, 24],
	"mark": [292, 62],
	"class": [30, 70],
	"state": [262, 58],
	"waker": [0, 84],
	"CPU": [196, 30],
	"span": [320, 64],
};
const ROOT_COLOR = [222, 12];
const SHADES = 6;

const THEMES = {
	light: {
		lightness: 74, spread: 1.7, saturation: 0.92,
		text: "#14171f", dimText: "#3b4252", outline: "#14171f", dim: 0.32,
		match: "#7c3aed", matchText: "#ffffff",
		same: [224, 228, 236], more: [239, 83, 80], less: [79, 140, 245],
		cold: [255, 236, 190], hot: [190, 18, 24], still: "rgb(20 23 31 / 6%)",
	},
	dark: {
		lightness: 65, spread: 1.8, saturation: 0.6,
		text: "#0d1017", dimText: "#b4bccb", outline: "#f4f6fb", dim: 0.3,
		match: "#7c3aed", matchText: "#ffffff",
		same: [188, 194, 206], more: [226, 78, 74], less: [82, 134, 232],
		cold: [74, 40, 32], hot: [255, 214, 120], still: "rgb(233 237 245 / 7%)",
	},
};
const CHANGE_STEPS = 32;

/* CSS colours by kind and shade. Neighbours differ a little, so that edges are seen without lines. */
class Palette {
	constructor(kinds, theme) {
		Object.assign(this, THEMES[theme]);
		this.fills = [...kinds, "root"].map(kind => this.shades(KIND_COLORS[kind] || ROOT_COLOR));
		this.changes = Array.from({ length: 2 * CHANGE_STEPS + 1 }, (_, step) => this.mixed(step / CHANGE_STEPS - 1));
	}

	static mix(from, to, part) {
		return `rgb(${from.map((value, i) => Math.round(value + (to[i] - value) * part)).join(", ")})`;
	}

	/* -1: all blue, 0: neither, 1: all red. */
	mixed(strength) {
		return Palette.mix(this.same, strength < 0 ? this.less : this.more, Math.abs(strength));
	}

	/* Of a cell with this part of what the fullest has, 0 to 1. */
	heat(part) {
		return part > 0 ? Palette.mix(this.cold, this.hot, Math.sqrt(part)) : this.still;
	}

	/* Of a change relative to the greatest; only where there is none at all it is neither red nor blue. */
	change(strength) {
		const steps = Math.max(Math.round(Math.abs(strength) * CHANGE_STEPS), strength ? 1 : 0);
		return this.changes[CHANGE_STEPS + Math.sign(strength) * steps];
	}

	shades([hue, saturation]) {
		return Array.from({ length: SHADES }, (_, shade) => {
			const offset = shade - (SHADES - 1) / 2;
			const light = this.lightness + offset * this.spread;
			return `hsl(${hue + offset * 1.6}, ${saturation * this.saturation}%, ${light}%)`;
		});
	}

	fill(kind, label) {
		return this.fills[kind][(Math.imul(label + 1, 2654435761) >>> 16) % SHADES];
	}

	swatch(kind) {
		return this.fills[kind][SHADES >> 1];
	}
}
