// SPDX-License-Identifier: MIT
// Reads the PNG files that Chromium writes for screenshots: 8 bits a channel, RGB or RGBA, not interlaced.
import { inflateSync } from "node:zlib";

const HEADER_BYTES = 8, CHANNELS = { 2: 3, 6: 4 }; // by colour type

function* chunks(file) {
	for (let at = HEADER_BYTES; at < file.length;) {
		const bytes = file.readUInt32BE(at);
		yield [file.toString("latin1", at + 4, at + 8), file.subarray(at + 8, at + 8 + bytes)];
		at += 12 + bytes;
	}
}

function paeth(left, up, corner) {
	const guess = left + up - corner;
	const a = Math.abs(guess - left), b = Math.abs(guess - up), c = Math.abs(guess - corner);
	return a <= b && a <= c ? left : b <= c ? up : corner;
}

const FILTERS = [
	() => 0,
	left => left,
	(left, up) => up,
	(left, up) => (left + up) >> 1,
	paeth,
];

/* Each line has its filter in front, and was made from the pixel to the left and the line above. */
function unfilter(lines, width, height, channels) {
	const stride = width * channels, pixels = new Uint8Array(stride * height);
	for (let y = 0; y < height; y++) {
		const filter = FILTERS[lines[y * (stride + 1)]], line = y * stride;
		for (let x = 0; x < stride; x++) {
			const left = x < channels ? 0 : pixels[line + x - channels];
			const up = y ? pixels[line - stride + x] : 0;
			const corner = y && x >= channels ? pixels[line - stride + x - channels] : 0;
			pixels[line + x] = lines[line + y + 1 + x] + filter(left, up, corner);
		}
	}
	return pixels;
}

export class Picture {
	constructor(file) {
		const parts = [];
		for (const [type, data] of chunks(file)) {
			if (type === "IHDR") {
				this.width = data.readUInt32BE(0);
				this.height = data.readUInt32BE(4);
				this.channels = CHANNELS[data[9]];
			} else if (type === "IDAT") {
				parts.push(data);
			}
		}
		this.pixels = unfilter(inflateSync(Buffer.concat(parts)), this.width, this.height, this.channels);
	}

	/* 0xrrggbb */
	at(x, y) {
		const i = (y * this.width + x) * this.channels;
		return this.pixels[i] << 16 | this.pixels[i + 1] << 8 | this.pixels[i + 2];
	}

	/* The most frequent colour of a line of pixels, and its share of them. */
	usual(y, from = 0, to = this.width) {
		const seen = new Map();
		for (let x = from; x < to; x++)
			seen.set(this.at(x, y), (seen.get(this.at(x, y)) || 0) + 1);
		const [color, count] = [...seen].sort((a, b) => b[1] - a[1])[0];
		return { color, share: count / (to - from) };
	}

	/* The share of pixels that are neither grey nor nearly so. */
	colored() {
		let count = 0;
		for (let i = 0; i < this.pixels.length; i += this.channels) {
			const red = this.pixels[i], green = this.pixels[i + 1], blue = this.pixels[i + 2];
			count += Math.max(red, green, blue) - Math.min(red, green, blue) > 50 ? 1 : 0;
		}
		return count / (this.width * this.height);
	}
}
