// SPDX-License-Identifier: MIT
"use strict";

/*
 * The heat map: how much was sampled in each moment. Time goes down each column and then to the next one. Thread, event,
 * search and range are those of the page, so that the graph below it shows the range.
 */
const COLUMN_WIDTHS = [8, 120], CELL_HEIGHTS = [3, 9]; // CSS pixels, least and most
const MAP_PART = 0.28; // of the window's height
const AXIS = 16;
const TICK = 90; // least distance of times, which take most of it
const SECOND = 1e6, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
/* Each divides the next one. A column is as long as the first that holds enough cells. */
const CELLS = [1e4, 2e4, 1e5, 2e5, 1e6, 2e6, 1e7, 2e7, MINUTE, 2 * MINUTE, 10 * MINUTE, 20 * MINUTE, HOUR, 2 * HOUR,
	6 * HOUR, 12 * HOUR];
const COLUMNS = [SECOND, 10 * SECOND, MINUTE, 10 * MINUTE, HOUR, 12 * HOUR, DAY];
const LEAST_CELLS = 24, MOST_CELLS = 60, MOST_COLUMNS = 2000, MOST_CELLS_IN_ALL = 2e7;
const heat = { cell: 0, bars: new Float64Array(0), most: 0, drag: -1, hovered: -1 }; // cell: 0 is what fits

const columnOf = cell => COLUMNS.find(time => time % cell === 0 && time / cell >= LEAST_CELLS) || DAY;

function isHeat() {
	return view.shape === "heat" && samplesInTime();
}

/* The shortest cells with which the map is neither too high nor too long. */
function cellThatFits(samples) {
	return CELLS.find(cell => columnOf(cell) / cell <= MOST_CELLS && samples.lastTime / columnOf(cell) < MOST_COLUMNS) ||
		CELLS[CELLS.length - 1];
}

/* Of a row of the data, threads and stacks may be known in longer steps only. */
function cellTime() {
	const samples = samplesInTime();
	return Math.max(heat.cell || cellThatFits(samples), samples.stepFor(view.threads, graph.match));
}

/* Times of cells, and where they are. */
function mapShape() {
	const cell = cellTime(), column = columnOf(cell), rows = column / cell, { lastTime } = samplesInTime();
	const columns = Math.floor(lastTime / column) + 1, width = byId("map-scroller").clientWidth;
	const fit = (size, [least, most]) => Math.max(least, Math.min(most, Math.floor(size)));
	return { cell, rows, columns, wide: fit(width / columns, COLUMN_WIDTHS), high: fit(innerHeight * MAP_PART / rows, CELL_HEIGHTS) };
}

/* Fills the cells: all samples, or those whose stack has what is searched. */
function countCells({ cell, rows, columns }) {
	const base = eventProfile(view.event), match = search.expression && base.matchLabels(search.expression);
	heat.bars = samplesInTime().histogram(cell, rows * columns,
		{ threads: view.threads, total: profile.total, nodes: match && base.matchedNodes(match) });
	heat.most = heat.bars.reduce((most, bar) => Math.max(most, bar), 0);
}

function showHeat() {
	byId("heat").hidden = !isHeat();
	if (byId("heat").hidden)
		return;
	const shape = heat.shape = mapShape();
	countCells(shape);
	byId("map-room").style.width = shape.columns * shape.wide + "px";
	byId("map-room").style.height = shape.rows * shape.high + AXIS + "px";
	byId("all-cells").hidden = !view.range;
	drawMap();
	sayCell(-1);
}

function isChosen(cell) {
	const range = heat.drag >= 0 ? rangeOfCells() : view.range;
	return !range || ((cell + 1) * heat.shape.cell > range[0] && cell * heat.shape.cell <= range[1]);
}

/* The part of the map that is in sight. */
function drawMap() {
	const canvas = byId("map"), scroller = byId("map-scroller"), { rows, columns, wide, high } = heat.shape;
	const ratio = window.devicePixelRatio || 1, width = Math.min(scroller.clientWidth, columns * wide);
	const first = Math.floor(scroller.scrollLeft / wide), context = canvas.getContext("2d"), { palette } = graph;
	canvas.width = Math.round(width * ratio);
	canvas.height = Math.round((rows * high + AXIS) * ratio);
	canvas.style.width = width + "px";
	canvas.style.height = rows * high + AXIS + "px";
	context.setTransform(ratio, 0, 0, ratio, 0, 0);
	for (let column = first; column < columns && (column - first) * wide < width; column++)
		for (let row = 0; row < rows; row++) {
			const cell = column * rows + row;
			context.globalAlpha = isChosen(cell) ? 1 : 0.3;
			context.fillStyle = palette.heat(heat.most ? heat.bars[cell] / heat.most : 0);
			context.fillRect((column - first) * wide, AXIS + row * high, wide - 1, high > 4 ? high - 1 : high - 0.5);
		}
	drawAxis(context, first, width);
	canvas.setAttribute("aria-label", `Heat map of ${profile.title}: drag over cells to select a range of time`);
}

function drawAxis(context, first, width) {
	const { rows, cell, wide } = heat.shape, step = Math.ceil(TICK / wide);
	context.globalAlpha = 1;
	context.font = FONT;
	context.fillStyle = getComputedStyle(byId("heat")).color;
	for (let column = Math.ceil(first / step) * step; (column - first) * wide < width - 0.7 * TICK; column += step)
		context.fillText(clock(column * rows * cell), (column - first) * wide, AXIS - 5);
}

/* Microseconds since the start as the time of day, or where it is not known as what they are. */
function clock(time) {
	const { startMs } = samplesInTime(), part = heat.shape.cell < SECOND / 10 ? 23 : 19;
	if (!startMs)
		return duration(time * 1e3);
	return new Date(startMs + time / 1e3).toISOString().slice(11, time % SECOND ? part : 19);
}

function sayCell(cell) {
	const { cell: length, rows } = heat.shape, long = time => duration(time * 1e3);
	const weigh = value => profile.total ? amount(value) : `${numbers.format(value)} samples`;
	const legend = `A column is ${long(rows * length)} from top to bottom, a cell ${long(length)}` +
		`, the fullest has ${weigh(heat.most)}.`;
	const wish = heat.cell || cellThatFits(samplesInTime());
	const coarse = length > wish ? ` Shorter cells do not say which ${graph.match ? "stacks" : "threads"} they are of.` : "";
	byId("map-about").textContent = cell < 0 ? legend + coarse + (view.range ? "" : " Drag over cells to select their time.") :
		`${clock(cell * length)}: ${weigh(heat.bars[cell])}`;
}

/* ---- events ---- */

function cellAt({ clientX, clientY }) {
	const box = byId("map").getBoundingClientRect(), { rows, columns, wide, high } = heat.shape;
	const first = Math.floor(byId("map-scroller").scrollLeft / wide);
	const column = Math.max(0, Math.min(columns - 1, first + Math.floor((clientX - box.left) / wide)));
	return column * rows + Math.max(0, Math.min(rows - 1, Math.floor((clientY - box.top - AXIS) / high)));
}

function rangeOfCells() {
	const [from, to] = [heat.drag, heat.hovered].sort((a, b) => a - b), { cell } = heat.shape;
	return [from * cell, (to + 1) * cell - 1];
}

function onMapMove(event) {
	heat.hovered = cellAt(event);
	sayCell(heat.hovered);
	if (heat.drag >= 0)
		drawMap();
}

function onMapUp() {
	if (heat.drag < 0)
		return;
	const range = rangeOfCells();
	heat.drag = -1;
	changeView({ range });
}

/* To the next length of cells, a shorter or a longer one. */
function changeCells(by) {
	const now = cellTime(), least = samplesInTime().lastTime / MOST_CELLS_IN_ALL;
	const next = CELLS.find((cell, i) => by < 0 ? CELLS[i + 1] >= now && cell >= least : cell > now);
	heat.cell = next || heat.cell;
	showHeat();
	saveAddress();
}

function listenToHeat() {
	const map = byId("map");
	map.addEventListener("pointerdown", event => {
		heat.drag = heat.hovered = cellAt(event);
		map.setPointerCapture(event.pointerId);
		drawMap();
	});
	map.addEventListener("pointermove", onMapMove);
	map.addEventListener("pointerup", onMapUp);
	map.addEventListener("pointerleave", () => sayCell(-1));
	byId("map-scroller").addEventListener("scroll", drawMap);
	byId("finer").addEventListener("click", () => changeCells(-1));
	byId("coarser").addEventListener("click", () => changeCells(1));
	byId("all-cells").addEventListener("click", () => changeView({ range: null }));
	new ResizeObserver(() => isHeat() && showHeat()).observe(byId("map-scroller"));
}
