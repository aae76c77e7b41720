// Geometry of the map, in px of the screen.

export interface Point {
	x: number;
	y: number;
}

/** Box is a rectangle by its centre and half its width and height. */
export interface Box extends Point {
	w: number;
	h: number;
}

/** View is the zoom and the place of the origin. */
export interface View extends Point {
	zoom: number;
}

const laneWidth = 11; // between cables of the same switches
const gap = 1.5; // between the two directions, and between a direction and its switch
const headLength = 7, headWidth = 4; // of arrows; the width is added on each side

/** Span is the part of a cable between two switches that their labels leave visible. */
export interface Span {
	from: Point;
	to: Point;
}

/** spanOf returns the visible part of a cable in a lane. scale is that of widths. */
export function spanOf(a: Box, b: Box, lane: number, scale: number): Span {
	const length = Math.hypot(b.x - a.x, b.y - a.y) || 1;
	const ux = (b.x - a.x) / length, uy = (b.y - a.y) / length;
	const aside = lane * laneWidth * scale;
	const begin = exit(a, ux, uy), end = length - exit(b, ux, uy);
	const at = (along: number): Point => ({ x: a.x + ux * along - uy * aside, y: a.y + uy * along + ux * aside });
	return begin + 6 < end ? { from: at(begin), to: at(end) } : { from: at(0), to: at(length) };
}

/** exit returns how far from the centre of a box a direction leaves it. */
function exit(b: Box, ux: number, uy: number): number {
	return Math.min(b.w / Math.max(Math.abs(ux), 1e-9), b.h / Math.max(Math.abs(uy), 1e-9));
}

/** middle returns the point in the middle of a span. */
export const middle = (s: Span): Point => ({ x: (s.from.x + s.to.x) / 2, y: (s.from.y + s.to.y) / 2 });

/** arrow returns the outline of a direction: from one end of the span to its middle, with a head there. scale is that of widths. */
export function arrow(s: Span, backwards: boolean, width: number, scale: number): string {
	const from = backwards ? s.to : s.from, m = middle(s);
	const length = Math.hypot(m.x - from.x, m.y - from.y) || 1;
	const ux = (m.x - from.x) / length, uy = (m.y - from.y) / length;
	const tip = Math.max(length - gap, gap), half = (scale * width) / 2, head = Math.min(scale * headLength + half, 0.5 * tip);
	const wide = half + Math.min(scale * headWidth, 0.5 * head);
	const p = (along: number, aside: number): string => `${round(from.x + ux * along - uy * aside)} ${round(from.y + uy * along + ux * aside)}`;
	return `M${p(gap, half)}L${p(tip - head, half)}L${p(tip - head, wide)}L${p(tip, 0)}L${p(tip - head, -wide)}L${p(tip - head, -half)}L${p(gap, -half)}Z`;
}

/** line returns the path of a span. */
export const line = (s: Span): string => `M${round(s.from.x)} ${round(s.from.y)}L${round(s.to.x)} ${round(s.to.y)}`;

/** hull returns the corners of the smallest convex polygon around points, in order (Andrew's monotone chain). */
export function hull(points: Point[]): Point[] {
	const sorted = [...points].sort((p, q) => p.x - q.x || p.y - q.y);
	const half = (all: Point[]): Point[] => {
		const out: Point[] = [];
		for (const p of all) {
			while (out.length > 1 && turn(out.at(-2)!, out.at(-1)!, p) <= 0) out.pop();
			out.push(p);
		}
		return out.slice(0, -1);
	};
	return sorted.length < 3 ? sorted : [...half(sorted), ...half(sorted.reverse())];
}

const turn = (a: Point, b: Point, c: Point): number => (b.x - a.x) * (c.y - a.y) - (b.y - a.y) * (c.x - a.x);

/** corners returns the corners of a box that is enlarged on all sides. */
export function corners(b: Box, by: number): Point[] {
	return [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => ({ x: b.x + x! * (b.w + by), y: b.y + y! * (b.h + by) }));
}

/** outline returns the path of a closed polygon. */
export const outline = (points: Point[]): string => (points.length === 0 ? "" : `M${points.map((p) => `${round(p.x)} ${round(p.y)}`).join("L")}Z`);

/** overlap reports whether two boxes overlap. */
export const overlap = (a: Box, b: Box): boolean => Math.abs(a.x - b.x) < a.w + b.w && Math.abs(a.y - b.y) < a.h + b.h;

/** Space has the boxes that are taken, so that labels do not overlap. */
export class Space {
	private readonly cells = new Map<string, Box[]>(); // by the cells of a grid that a box covers

	/** take adds a box. */
	take(b: Box): void {
		for (const c of cellsOf(b)) {
			const all = this.cells.get(c);
			if (all) all.push(b);
			else this.cells.set(c, [b]);
		}
	}

	/** free reports whether a box overlaps no other; own is a box that does not count. */
	free(b: Box, own?: Box): boolean {
		return cellsOf(b).every((c) => this.cells.get(c)?.every((o) => o === own || !overlap(o, b)) ?? true);
	}

	/** first returns the first box that is free, and takes it. */
	first(boxes: Box[], own?: Box): Box | undefined {
		const found = boxes.find((b) => this.free(b, own));
		if (found) this.take(found);
		return found;
	}
}

const cellSize = 80; // px

function cellsOf(b: Box): string[] {
	const all: string[] = [];
	for (let x = Math.floor((b.x - b.w) / cellSize); x <= Math.floor((b.x + b.w) / cellSize); x++) {
		for (let y = Math.floor((b.y - b.h) / cellSize); y <= Math.floor((b.y + b.h) / cellSize); y++) all.push(`${x} ${y}`);
	}
	return all;
}

/** freeAngle returns the middle of the widest angle between directions, and its width, in radians. */
export function freeAngle(directions: number[]): { at: number; width: number } {
	if (directions.length === 0) return { at: Math.PI / 2, width: 2 * Math.PI };
	const sorted = [...directions].sort((a, b) => a - b);
	let best = { at: 0, width: -1 };
	sorted.forEach((a, i) => {
		const width = (sorted[i + 1] ?? sorted[0]! + 2 * Math.PI) - a;
		if (width > best.width + 1e-6) best = { at: a + width / 2, width };
	});
	return best;
}

/** fit returns the view that shows all points of the map in a window, with a margin in px of the screen. */
export function fit(points: Point[], width: number, height: number, margin: Point, most: number): View {
	if (points.length === 0) return { zoom: 1, x: width / 2, y: height / 2 };
	const xs = points.map((p) => p.x), ys = points.map((p) => p.y);
	const left = Math.min(...xs), right = Math.max(...xs), top = Math.min(...ys), bottom = Math.max(...ys);
	const zoom = Math.min(most, Math.max(width - 2 * margin.x, 50) / Math.max(right - left, 1), Math.max(height - 2 * margin.y, 50) / Math.max(bottom - top, 1));
	return { zoom, x: width / 2 - (zoom * (left + right)) / 2, y: height / 2 - (zoom * (top + bottom)) / 2 };
}

/** zoomedAt returns a view that is zoomed by a factor, with a point of the screen that stays. */
export function zoomedAt(v: View, by: number, at: Point, least: number, most: number): View {
	const zoom = Math.min(most, Math.max(least, v.zoom * by)), k = zoom / v.zoom;
	return { zoom, x: at.x - (at.x - v.x) * k, y: at.y - (at.y - v.y) * k };
}

const round = (n: number): number => Math.round(10 * n) / 10;
