// SPDX-License-Identifier: MIT
"use strict";

/*
 * Samples with thread and time, in the order of threads and times. Where samples weigh as long as a wait has lasted, a
 * sample stands for the time before its own. In a page of too many samples, one row has all of a thread, a stack and a
 * step of time.
 */
class SamplesInTime {
	constructor(count, lasts) {
		this.count = count;
		this.lasts = lasts; // whether the weight is the time before the sample
		this.step = 0; // of time, in microseconds; 0: single samples
		this.hasThreads = this.hasStacks = true;
		this.threads = [];
		this.thread = new Uint32Array(count);
		this.time = new Float64Array(count); // microseconds since the start
		this.leaf = new Uint32Array(count);
		this.isSelf = new Uint8Array(count);
		this.samples = new Float64Array(count).fill(1);
		this.amounts = new Float64Array(count);
	}

	/* Of an event, whose columns page_samples.c writes. */
	static of(data, lasts) {
		const made = new SamplesInTime(data.times.length, lasts);
		made.startMs = data.start;
		data.leaves.forEach((leaf, row) => made.setLeaf(row, leaf));
		made.amounts.fill(data.period);
		for (let i = 0, row = 0; i < data.weights.length; i += 3) {
			row += data.weights[i];
			made.samples[row] += data.weights[i + 1];
			made.amounts[row] = made.samples[row] * data.period + data.weights[i + 2];
		}
		made.readThreads(data);
		made.close();
		return made;
	}

	setLeaf(row, leaf) {
		this.leaf[row] = leaf >>> 1;
		this.isSelf[row] = leaf & 1;
	}

	readThreads(data) {
		const places = this.nameThreads(data.threads.filter(part => typeof part === "string"));
		for (let i = 0, row = 0; i < data.threads.length; i += 2)
			for (let time = 0, end = row + data.threads[i + 1]; row < end; row++) {
				this.thread[row] = places[i / 2];
				this.time[row] = time += data.times[row];
			}
	}

	/* Returns the place of each in `threads`: those of one id are one thread, which has its last name. */
	nameThreads(names) {
		const places = new Map();
		return names.map(name => {
			const id = / (\d+\/\d+) /.exec(name)?.[1] ?? name;
			if (!places.has(id))
				places.set(id, this.threads.push({ name, samples: 0, amounts: 0 }) - 1);
			this.threads[places.get(id)].name = name;
			return places.get(id);
		});
	}

	/* Sets what follows from the rows. */
	close() {
		this.lastTime = this.time.reduce((last, time) => Math.max(last, time), 0) + this.reach;
		for (let row = 0; this.hasThreads && row < this.count; row++) {
			this.threads[this.thread[row]].samples += this.samples[row];
			this.threads[this.thread[row]].amounts += this.amounts[row];
		}
	}

	/* From the row's time to the last moment of its step. */
	get reach() {
		return Math.max(0, this.step - 1);
	}

	/* When what the row stands for began. */
	begin(row) {
		return Math.max(0, this.time[row] - (this.lasts ? this.amounts[row] / this.samples[row] / 1e3 : 0));
	}

	/* The shortest time that can be told apart, if threads and stacks matter. */
	stepFor() {
		return this.step;
	}

	/* The part of the row's weight that is in the range. */
	partIn(row, range) {
		const begin = this.begin(row), end = this.time[row];
		if (end + this.reach < range[0] || begin > range[1])
			return 0;
		return end - begin < 1 ? 1 : (Math.min(end, range[1]) - Math.max(begin, range[0])) / (end - begin);
	}

	/* Sets the weights of the profile's only side: of some threads (a Set), in a range of microseconds. */
	select(profile, threads, range) {
		const side = profile.sides[0];
		Object.assign(side, side.full);
		if (!threads && !range)
			return;
		for (const column of ["allSamples", "allAmounts", "selfSamples", "selfAmounts"])
			side[column] = new Float64Array(profile.count);
		for (let row = 0; row < this.count; row++)
			if (!threads || threads.has(this.thread[row]))
				this.add(side, row, range ? this.partIn(row, range) : 1);
		for (let node = profile.count - 1; node > 0; node--) {
			side.allSamples[profile.parent[node]] += side.allSamples[node];
			side.allAmounts[profile.parent[node]] += side.allAmounts[node];
		}
	}

	add(side, row, part) {
		const node = this.leaf[row], samples = part > 0 ? this.samples[row] : 0, amounts = this.amounts[row] * part;
		side.allSamples[node] += samples;
		side.allAmounts[node] += amounts;
		side.selfSamples[node] += this.isSelf[row] ? samples : 0;
		side.selfAmounts[node] += this.isSelf[row] ? amounts : 0;
	}

	/*
	 * What the samples of each of `count` parts of the time weigh, which are `step` microseconds long. Only samples of
	 * `threads`, and whose leaf is marked in `nodes`; null: all.
	 */
	histogram(step, count, { threads, total, nodes }) {
		const bars = new Float64Array(count), slope = new Float64Array(count + 1);
		for (let row = 0; row < this.count; row++) {
			if ((threads && !threads.has(this.thread[row])) || (nodes && !nodes[this.leaf[row]]))
				continue;
			if (total)
				SamplesInTime.spread(bars, slope, step, this.begin(row), this.time[row], this.amounts[row]);
			else
				bars[Math.floor(this.time[row] / step)] += this.samples[row];
		}
		for (let i = 0, sum = 0; i < count; i++)
			bars[i] += Math.abs(sum += slope[i]) < 1e-3 ? 0 : sum;
		return bars;
	}

	/* Adds a value over a time; `slope` has what whole bars have more than the bar before them. */
	static spread(bars, slope, step, begin, end, value) {
		const first = Math.floor(begin / step), last = Math.floor(end / step), each = value / (end - begin);
		if (first === last) {
			bars[last] += value;
			return;
		}
		bars[first] += each * ((first + 1) * step - begin);
		bars[last] += each * (end - last * step);
		slope[first + 1] += each * step;
		slope[last] -= each * step;
	}
}

/*
 * The tables of page_heat.c: the fewer of threads and stacks a table tells apart, the shorter are its steps. Has what
 * SamplesInTime has.
 */
class SamplesInTables {
	constructor(data, tables) {
		this.startMs = data.start;
		this.tables = tables;
		this.threads = tables.find(table => table.hasThreads).threads;
		this.lastTime = tables.reduce((last, table) => Math.max(last, table.lastTime), 0);
	}

	static async of(data, lasts) {
		const next = SamplesInTables.numbers(await SamplesInTables.unpack(data.heat.rows));
		return new SamplesInTables(data, data.heat.tables.map(table => SamplesInTables.read(data, table, next, lasts)));
	}

	static async unpack(text) {
		const bytes = Uint8Array.from(atob(text), sign => sign.charCodeAt(0));
		return new Uint8Array(await new Response(new Blob([bytes]).stream()
			.pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
	}

	/* Returns what reads one number after the other. */
	static numbers(bytes) {
		let at = 0;
		return () => {
			for (let value = 0, scale = 1; ; scale *= 128) {
				const byte = bytes[at++];
				value += (byte & 127) * scale;
				if (byte < 128)
					return value;
			}
		};
	}

	/* Series of rows, each of a thread and a stack; then the columns of the rows. */
	static read(data, { stepMs, hasThreads, hasStacks, rows }, next, lasts) {
		const made = new SamplesInTime(rows, lasts), first = new Set([rows]);
		Object.assign(made, { step: stepMs * 1e3, hasThreads, hasStacks });
		const places = made.nameThreads(data.heat.threads);
		for (let series = next(), row = 0; series; series--) {
			const thread = hasThreads ? places[next()] : 0, leaf = hasStacks ? next() : 0;
			first.add(row);
			for (let end = row + next(); row < end; row++) {
				made.thread[row] = thread;
				made.setLeaf(row, leaf);
			}
		}
		for (let row = 0; row < rows; row++)
			made.time[row] = next() * made.step + (first.has(row) ? 0 : made.time[row - 1]);
		for (let row = 0; row < rows; row++)
			made.samples[row] = next();
		for (let row = 0; row < rows; row++) {
			const sign = next();
			made.amounts[row] = made.samples[row] * data.period + (sign % 2 ? -(sign + 1) / 2 : sign / 2);
		}
		made.close();
		return made;
	}

	/* The table with the shortest steps that knows what matters. */
	table(threads, stacks) {
		const able = this.tables.filter(table => (table.hasThreads || !threads) && (table.hasStacks || !stacks));
		return able.reduce((best, table) => table.step < best.step ? table : best);
	}

	stepFor(threads, stacks) {
		return this.table(threads, stacks).step;
	}

	select(profile, threads, range) {
		this.table(threads, true).select(profile, threads, range);
	}

	histogram(step, count, what) {
		return this.table(what.threads, what.nodes).histogram(step, count, what);
	}
}
