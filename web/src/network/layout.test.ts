import { id } from "../testing/networks";
import { check, equal, random, test } from "../testing/test";
import { arrange, type Graph, type Place } from "./layout";

const ring = (n: number): Graph => ({ switches: Array.from({ length: n }, (_, i) => ({ id: id(i + 1), site: undefined })), pairs: Array.from({ length: n }, (_, i) => [id(i + 1), id(((i + 1) % n) + 1)]) });

/** tree returns a random tree with more cables, at sites. */
function anyGraph(seed: number): Graph {
	const next = random(seed), n = 2 + Math.floor(40 * next());
	const pairs: [string, string][] = [];
	for (let i = 1; i < n; i++) pairs.push([id(i + 1), id(1 + Math.floor(i * next()))]);
	for (let i = 0; i < n; i++) pairs.push([id(1 + Math.floor(n * next())), id(1 + Math.floor(n * next()))]);
	return { switches: Array.from({ length: n }, (_, i) => ({ id: id(i + 1), site: next() < 0.5 ? `site${Math.floor(3 * next())}` : undefined })), pairs };
}

const far = (a: Place, b: Place): number => Math.hypot(a.x - b.x, a.y - b.y);

test("layout: the same network has the same places, in whichever order it is listed", () => {
	for (let seed = 1; seed <= 20; seed++) {
		const g = anyGraph(seed), other = { switches: g.switches.toReversed(), pairs: g.pairs.toReversed().map(([a, b]): [string, string] => [b, a]) };
		equal([...arrange(other, new Map())], [...arrange(g, new Map())], `seed ${seed}`);
	}
});

test("layout: no two switches are so near that their labels overlap", () => {
	for (let seed = 1; seed <= 20; seed++) {
		const all = [...arrange(anyGraph(seed), new Map()).values()];
		all.forEach((a, i) => all.slice(i + 1).forEach((b) => check(far(a, b) > 50, `seed ${seed}: ${JSON.stringify([a, b])}`)));
	}
});

test("layout: a ring is drawn without crossings", () => {
	const crosses = (a: Place, b: Place, c: Place, d: Place): boolean => {
		const side = (p: Place, q: Place, r: Place): number => Math.sign((q.x - p.x) * (r.y - p.y) - (q.y - p.y) * (r.x - p.x));
		return side(a, b, c) !== side(a, b, d) && side(c, d, a) !== side(c, d, b);
	};
	for (const n of [4, 6, 12, 24]) {
		const g = ring(n), at = arrange(g, new Map());
		for (const [a, b] of g.pairs) for (const [c, d] of g.pairs) {
			if (new Set([a, b, c, d]).size === 4) check(!crosses(at.get(a)!, at.get(b)!, at.get(c)!, at.get(d)!), `${n}: ${a} ${b} crosses ${c} ${d}`);
		}
	}
});

test("layout: known places stay exactly, also those without cables", () => {
	for (let seed = 1; seed <= 20; seed++) {
		const g = anyGraph(seed), known = arrange(g, new Map());
		const more = { switches: [...g.switches, { id: id(900), site: undefined }, { id: id(901), site: "new" }], pairs: [...g.pairs, [id(900), id(1)] as [string, string]] };
		const now = arrange(more, known);
		for (const [key, p] of known) check(now.get(key) === p, `seed ${seed}: ${key} moved`);
		const near = [...known].map(([key, p]) => [key, far(p, now.get(id(900))!)] as const).sort((a, b) => a[1] - b[1]).slice(0, 1 + known.size / 2);
		check(near.some(([key]) => key === id(1)) && far(now.get(id(900))!, known.get(id(1))!) < 500, `seed ${seed}: the new switch is far from its neighbour`);
	}
});

test("layout: a switch that had no cable moves to its neighbours once it has one, unless it was put there", () => {
	const g = ring(6), alone = { switches: [...g.switches, { id: id(7), site: undefined }], pairs: g.pairs };
	const first = arrange(alone, new Map()), connected = { ...alone, pairs: [...g.pairs, [id(7), id(1)] as [string, string]] };
	const second = arrange(connected, first);
	check(second.get(id(7)) !== first.get(id(7)) && far(second.get(id(7))!, second.get(id(1))!) < 200, `it is at ${JSON.stringify(second.get(id(7)))}`);
	const put = new Map([...first, [id(7), { x: 999, y: 999, pinned: true as const }]]);
	equal(arrange(connected, put).get(id(7)), { x: 999, y: 999, pinned: true });
});

test("layout: a network that is mostly new is arranged as a whole, unless a switch of it was put somewhere", () => {
	const g = ring(8), whole = [...arrange(g, new Map())];
	equal([...arrange(g, new Map([[id(3), { x: 5000, y: 0 }]]))], whole);
	equal(arrange(g, new Map([[id(3), { x: 5000, y: 0, pinned: true }]])).get(id(3)), { x: 5000, y: 0, pinned: true });
});

test("layout: sites are apart", () => {
	const g = ring(12);
	g.switches.forEach((s, i) => (s.site = i < 6 ? "a" : "b"));
	const at = arrange(g, new Map()), mean = (n: number[]): number => n.reduce((a, b) => a + b, 0) / n.length;
	const middle = (site: string): Place => {
		const own = g.switches.filter((s) => s.site === site).map((s) => at.get(s.id)!);
		return { x: mean(own.map((p) => p.x)), y: mean(own.map((p) => p.y)) };
	};
	const a = middle("a"), b = middle("b");
	for (const s of g.switches) check((far(at.get(s.id)!, a) < far(at.get(s.id)!, b)) === (s.site === "a"), `${s.id} is in the other site`);
});

test("layout: one switch, none, and switches without cables", () => {
	equal([...arrange({ switches: [], pairs: [] }, new Map())], []);
	for (const n of [1, 2, 5]) {
		for (const p of arrange({ ...ring(n), pairs: [] }, new Map()).values()) check(Number.isFinite(p.x) && Number.isFinite(p.y) && p.alone === true, JSON.stringify(p));
	}
});
