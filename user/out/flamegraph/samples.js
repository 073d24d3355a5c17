// SPDX-License-Identifier: MIT
"use strict";

/* Single samples with thread and time, written by page_samples.c, in the order of threads and times. */
class SamplesInTime {
	constructor(data) {
		const count = this.count = data.times.length;
		this.startMs = data.start;
		this.threads = [];
		this.thread = new Uint32Array(count);
		this.time = new Float64Array(count); // microseconds since the start
		this.leaf = Uint32Array.from(data.leaves, leaf => leaf >>> 1);
		this.isSelf = Uint8Array.from(data.leaves, leaf => leaf & 1);
		this.samples = new Float64Array(count).fill(1);
		this.amounts = new Float64Array(count).fill(data.period);
		for (let i = 0, row = 0; i < data.weights.length; i += 3) {
			row += data.weights[i];
			this.samples[row] += data.weights[i + 1];
			this.amounts[row] = this.samples[row] * data.period + data.weights[i + 2];
		}
		this.readThreads(data);
		this.lastTime = this.time.reduce((last, time) => Math.max(last, time), 0);
	}

	readThreads(data) {
		for (let i = 0, row = 0; i < data.threads.length; i += 2) {
			const thread = { name: data.threads[i], samples: 0, amounts: 0 };
			for (let time = 0, end = row + data.threads[i + 1]; row < end; row++) {
				this.thread[row] = this.threads.length;
				this.time[row] = time += data.times[row];
				thread.samples += this.samples[row];
				thread.amounts += this.amounts[row];
			}
			this.threads.push(thread);
		}
	}

	isSelected(row, threads, range) {
		return (!threads || threads.has(this.thread[row])) &&
			(!range || (this.time[row] >= range[0] && this.time[row] <= range[1]));
	}

	/* Sets the weights of the profile's only side. */
	select(profile, threads, range) {
		const side = profile.sides[0];
		Object.assign(side, side.full);
		if (!threads && !range)
			return;
		for (const column of ["allSamples", "allAmounts", "selfSamples", "selfAmounts"])
			side[column] = new Float64Array(profile.count);
		for (let row = 0; row < this.count; row++)
			if (this.isSelected(row, threads, range))
				this.add(side, row);
		for (let node = profile.count - 1; node > 0; node--) {
			side.allSamples[profile.parent[node]] += side.allSamples[node];
			side.allAmounts[profile.parent[node]] += side.allAmounts[node];
		}
	}

	add(side, row) {
		const node = this.leaf[row], samples = this.samples[row], amounts = this.amounts[row];
		side.allSamples[node] += samples;
		side.allAmounts[node] += amounts;
		side.selfSamples[node] += this.isSelf[row] ? samples : 0;
		side.selfAmounts[node] += this.isSelf[row] ? amounts : 0;
	}

	/* What the samples of each of `count` equal parts of the time weigh. */
	histogram(count, threads, total) {
		const bars = new Float64Array(count), step = (this.lastTime + 1) / count;
		for (let row = 0; row < this.count; row++)
			if (!threads || threads.has(this.thread[row]))
				bars[Math.floor(this.time[row] / step)] += total ? this.amounts[row] : this.samples[row];
		return bars;
	}
}
