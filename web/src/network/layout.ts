// Layout: where the switches of a network are on the map. The same network gets the same layout, and a switch that has a place
// keeps it. First places are those of classical scaling of hop counts to pivots (Brandes and Pich, "Eigensolver methods for
// progressive multidimensional scaling of large data", 2006). Forces (d3-force) then even out the distances.
import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type Body, type Force } from "d3-force";

/** Place is the place of a switch, in px at zoom 1. */
export interface Place {
	x: number;
	y: number;
	/** A person has put it here. */
	pinned?: true;
	/** It had no cable when it was placed, so that it may move once it has one. */
	alone?: true;
}

/** Graph has the switches to place, by datapath id, and the pairs of them that have a cable. */
export interface Graph {
	switches: { id: string; site: string | undefined }[];
	pairs: [string, string][];
}

// Chosen for labels of 12 px.
const linkLength = 120;
const labelRadius = 42; // within which no other switch is
const newNearby = 90; // from a neighbour to a switch that is new
const siteRadius = 70; // of a site with one switch
const sitePull = 0.15; // part of the way to the middle of its site that a switch moves in the first tick
const maxPivots = 60;
const ticks = 300; // in which the simulation cools down

interface Node extends Body {
	id: string;
	site: string | undefined;
	x: number;
	y: number;
}

/** arrange returns a place for each switch. Those with a known place keep it, unless most of the network is new. */
export function arrange(g: Graph, known: Map<string, Place>): Map<string, Place> {
	const ids = g.switches.map((s) => s.id).sort();
	const next = neighbours(ids, g.pairs);
	const has = (id: string): Place | undefined => {
		const p = known.get(id);
		return p && !p.pinned && p.alone && next.get(id)!.size > 0 ? undefined : p;
	};
	let fixed = new Map(ids.flatMap((id): [string, Place][] => (has(id) ? [[id, has(id)!]] : [])));
	if (fixed.size === ids.length) return fixed;
	if (fixed.size < ids.length / 2 && ![...fixed.values()].some((p) => p.pinned)) fixed = new Map();
	const first = fixed.size > 0 ? besideKnown(ids, next, fixed) : scaled(ids, next);
	const site = new Map(g.switches.map((s) => [s.id, s.site]));
	const nodes = ids.map((id): Node => {
		const at = fixed.get(id), p = at ?? first.get(id)!;
		return { id, site: site.get(id), x: p.x, y: p.y, ...(at ? { fx: at.x, fy: at.y } : {}) };
	});
	relax(nodes, g.pairs);
	return new Map(nodes.map((n) => [n.id, fixed.get(n.id) ?? { x: Math.round(n.x), y: Math.round(n.y), ...(next.get(n.id)!.size === 0 ? { alone: true } : {}) }]));
}

/** neighbours returns the switches that each switch has a cable to. */
function neighbours(ids: string[], pairs: [string, string][]): Map<string, Set<string>> {
	const out = new Map(ids.map((id) => [id, new Set<string>()]));
	for (const [a, b] of pairs) {
		if (a === b || !out.has(a) || !out.has(b)) continue;
		out.get(a)!.add(b);
		out.get(b)!.add(a);
	}
	return out;
}

/** besideKnown returns first places of new switches: beside their neighbours that have a place, else beside the map. */
function besideKnown(ids: string[], next: Map<string, Set<string>>, fixed: Map<string, Place>): Map<string, Place> {
	const out = new Map<string, Place>(fixed);
	const all = [...fixed.values()];
	const right = Math.max(...all.map((p) => p.x)) + linkLength;
	let todo = ids.filter((id) => !out.has(id));
	while (todo.length > 0) {
		let placed = todo.filter((id) => [...next.get(id)!].some((n) => out.has(n)));
		if (placed.length === 0) placed = [todo[0]!];
		const now = placed.map((id): [string, Place] => {
			const near = [...next.get(id)!].flatMap((n) => out.get(n) ?? []);
			const turn = 2 * Math.PI * hash(id), y = all.reduce((sum, p) => sum + p.y, 0) / all.length;
			const mid = near.length > 0 ? { x: mean(near.map((p) => p.x)), y: mean(near.map((p) => p.y)) } : { x: right, y };
			return [id, { x: mid.x + newNearby * Math.cos(turn), y: mid.y + newNearby * Math.sin(turn) }];
		});
		for (const [id, p] of now) out.set(id, p);
		todo = todo.filter((id) => !out.has(id));
	}
	return out;
}

/** scaled returns first places by classical scaling of hop counts. */
function scaled(ids: string[], next: Map<string, Set<string>>): Map<string, Place> {
	const rows: number[][] = []; // the hops from each pivot to each switch
	let pivot = 0;
	const nearest = ids.map(() => Infinity); // hops to the nearest pivot
	while (rows.length < Math.min(maxPivots, ids.length)) {
		const row = hops(ids, next, ids[pivot]!);
		rows.push(row);
		row.forEach((d, i) => (nearest[i] = Math.min(nearest[i]!, d)));
		pivot = nearest.indexOf(Math.max(...nearest));
	}
	const squares = rows.map((row) => row.map((d) => d * d));
	const byRow = squares.map(mean), byColumn = ids.map((_, i) => mean(squares.map((row) => row[i]!))), whole = mean(byRow);
	const centred = squares.map((row, p) => row.map((d, i) => -(d - byRow[p]! - byColumn[i]! + whole) / 2));
	const x = principal(centred, ids, []), y = principal(centred, ids, [x]);
	const index = new Map(ids.map((id, i) => [id, i]));
	const lengths = ids.flatMap((id, i) => [...next.get(id)!].map((n) => Math.hypot(x[i]! - x[index.get(n)!]!, y[i]! - y[index.get(n)!]!)));
	const by = linkLength / Math.max(lengths.length > 0 ? mean(lengths) : 0, 1e-6 * linkLength, Math.max(...x.map(Math.abs)) / 1000);
	// Switches with equal hop counts have the same place, from which forces move them only if they differ a little.
	return new Map(ids.map((id, i) => [id, { x: x[i]! * by + 30 * (hash(id) - 0.5), y: y[i]! * by + 30 * (hash(`${id} y`) - 0.5) }]));
}

/** hops returns the number of hops from a switch to each. Those that it does not reach are a little farther than the farthest. */
function hops(ids: string[], next: Map<string, Set<string>>, from: string): number[] {
	const at = new Map([[from, 0]]);
	for (const id of at.keys()) for (const n of next.get(id)!) if (!at.has(n)) at.set(n, at.get(id)! + 1);
	const beyond = Math.max(...at.values()) + 2;
	return ids.map((id) => at.get(id) ?? beyond);
}

/** principal returns the coordinates of columns along the longest axis that is orthogonal to others, by power iteration. */
function principal(rows: number[][], ids: string[], others: number[][]): number[] {
	let v = ids.map((id) => hash(`${id} ${others.length}`) - 0.5);
	for (let round = 0; round < 60; round++) {
		for (const o of others) {
			const along = dot(v, o) / (dot(o, o) || 1);
			v = v.map((n, i) => n - along * o[i]!);
		}
		const length = Math.hypot(...v) || 1;
		const unit = v.map((n) => n / length);
		const by = rows.map((row) => dot(row, unit));
		v = ids.map((_, i) => rows.reduce((sum, row, p) => sum + row[i]! * by[p]!, 0));
	}
	for (const o of others) {
		const along = dot(v, o) / (dot(o, o) || 1);
		v = v.map((n, i) => n - along * o[i]!);
	}
	// The coordinates are as long as the square root of the axis's share.
	const length = Math.hypot(...v) || 1;
	return v.map((n) => n / Math.sqrt(length));
}

/** relax lets forces move the nodes that are not held, until distances are even and labels do not overlap. */
function relax(nodes: Node[], pairs: [string, string][]): void {
	const by = new Map(nodes.map((n) => [n.id, n]));
	const links = [...new Set(pairs.map((p) => [...p].sort().join(" ")))].sort().flatMap((key) => {
		const [a, b] = key.split(" ").map((id) => by.get(id));
		return a && b && a !== b ? [{ source: a, target: b }] : [];
	});
	forceSimulation(nodes)
		.force("link", forceLink<Node>(links).distance(linkLength))
		.force("charge", forceManyBody<Node>().strength(-700).distanceMax(1000))
		.force("collide", forceCollide<Node>(labelRadius))
		.force("x", forceX<Node>(0).strength(0.03))
		.force("y", forceY<Node>(0).strength(0.06)) // a map is wider than it is high
		.force("sites", sitesTogether(nodes))
		.stop()
		.tick(ticks);
}

/** sitesTogether pulls the switches of each site together, and sites apart. */
function sitesTogether(nodes: Node[]): Force<Node> {
	const sites = [...new Set(nodes.flatMap((n) => n.site ?? []))].map((site) => nodes.filter((n) => n.site === site));
	return (alpha) => {
		const at = sites.map((members) => ({ members, x: mean(members.map((n) => n.x)), y: mean(members.map((n) => n.y)), r: siteRadius * Math.sqrt(members.length) }));
		const push = (members: Node[], x: number, y: number): void => members.forEach((n) => {
			n.vx = (n.vx ?? 0) + x;
			n.vy = (n.vy ?? 0) + y;
		});
		at.forEach((a, i) => {
			for (const n of a.members) push([n], (a.x - n.x) * sitePull * alpha, (a.y - n.y) * sitePull * alpha);
			for (const b of at.slice(i + 1)) {
				const x = b.x - a.x, y = b.y - a.y, far = Math.hypot(x, y) || 1, by = (Math.max(0, a.r + b.r - far) * alpha) / far / 4;
				push(a.members, -x * by, -y * by);
				push(b.members, x * by, y * by);
			}
		});
	};
}

/** hash returns a number from 0 to 1 that depends on the text only (FNV-1a, mixed as by MurmurHash3). */
export function hash(s: string): number {
	let n = 0x811c9dc5;
	for (const c of s) n = Math.imul(n ^ c.codePointAt(0)!, 0x01000193);
	n = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
	n = Math.imul(n ^ (n >>> 13), 0xc2b2ae35);
	return ((n ^ (n >>> 16)) >>> 0) / 2 ** 32;
}

const mean = (all: number[]): number => all.reduce((sum, n) => sum + n, 0) / all.length;
const dot = (a: number[], b: number[]): number => a.reduce((sum, n, i) => sum + n * b[i]!, 0);
