import { check, equal, random, test } from "../testing/test";
import { fit, freeAngle, hull, overlap, Space, spanOf, zoomedAt, type Box, type Point } from "./geometry";

test("geometry: a hull is convex, has only given points, and has all points inside", () => {
	for (let seed = 1; seed <= 50; seed++) {
		const next = random(seed), all: Point[] = Array.from({ length: 3 + Math.floor(20 * next()) }, () => ({ x: Math.floor(20 * next()), y: Math.floor(20 * next()) }));
		const around = hull(all);
		around.forEach((a, i) => {
			const b = around[(i + 1) % around.length]!;
			for (const p of all) check((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x) >= 0, `seed ${seed}: ${JSON.stringify(p)} is outside of ${JSON.stringify(around)}`);
			check(all.includes(a), `seed ${seed}: ${JSON.stringify(a)} was not given`);
		});
	}
});

test("geometry: labels in a space do not overlap, and one is left out only if it would", () => {
	for (let seed = 1; seed <= 50; seed++) {
		const next = random(seed), space = new Space(), taken: Box[] = [];
		for (let i = 0; i < 60; i++) {
			const b = { x: 600 * next() - 300, y: 600 * next() - 300, w: 5 + 60 * next(), h: 5 + 20 * next() };
			const is = space.first([b]) === b;
			equal(is, !taken.some((o) => overlap(o, b)), `seed ${seed}`);
			if (is) taken.push(b);
		}
	}
});

test("geometry: the visible part of a cable is outside of both labels", () => {
	const a: Box = { x: 0, y: 0, w: 30, h: 10 }, b: Box = { x: 300, y: 0, w: 40, h: 10 };
	equal(spanOf(a, b, 0, 1), { from: { x: 30, y: 0 }, to: { x: 260, y: 0 } });
	equal(spanOf(a, b, 1, 1).from, { x: 30, y: 11 });
	equal(spanOf(a, { ...b, x: 20 }, 0, 1), { from: { x: 0, y: 0 }, to: { x: 20, y: 0 } }, "labels that overlap");
});

test("geometry: hosts are where there are no cables", () => {
	const close = (a: number, b: number): boolean => Math.abs(a - b) < 1e-9;
	check(close(freeAngle([0]).at, Math.PI), "opposite of one cable");
	check(close(freeAngle([0, Math.PI / 2]).at, (5 * Math.PI) / 4), "opposite of two");
	check(close(freeAngle([-3, 3]).width, 6), "over zero");
	check(close(freeAngle([]).width, 2 * Math.PI), "all around");
});

test("geometry: the whole network is visible, and zooming keeps the point under the pointer", () => {
	const all = [{ x: -500, y: 10 }, { x: 900, y: 200 }, { x: 0, y: -70 }], v = fit(all, 800, 600, { x: 100, y: 50 }, 2);
	for (const p of all) {
		const x = p.x * v.zoom + v.x, y = p.y * v.zoom + v.y;
		check(x >= 99.9 && x <= 700.1 && y >= 49.9 && y <= 550.1, JSON.stringify([p, v]));
	}
	const at = { x: 123, y: 45 }, w = zoomedAt(v, 3, at, 0.1, 9), under = (u: typeof v): number => (at.x - u.x) / u.zoom;
	check(Math.abs(under(v) - under(w)) < 1e-6, "the point moved");
	equal([zoomedAt(v, 1e9, at, 0.1, 9).zoom, zoomedAt(v, 0, at, 0.1, 9).zoom], [9, 0.1]);
});
