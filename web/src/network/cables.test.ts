import { before, id, link, network, port } from "../testing/networks";
import { check, equal, test } from "../testing/test";
import { cableKey, cablesOf, goneSwitches, localFaults } from "./cables";

test("cables: both directions are one cable, whichever comes first", () => {
	for (const links of [[link("1/1", "2/3", 0.5), link("2/3", "1/1", 0.1)], [link("2/3", "1/1", 0.1), link("1/1", "2/3", 0.5)]]) {
		const [c, ...others] = cablesOf(network(2, { links }), []);
		equal(others, []);
		equal([c?.a, c?.b, c?.ab?.rate_bps, c?.ba?.rate_bps, c?.lane], [port("1/1"), port("2/3"), 0.5e9, 0.1e9, 0]);
	}
});

test("cables: one direction alone is a cable", () => {
	const [c] = cablesOf(network(2, { links: [link("2/1", "1/1")] }), []);
	equal([c?.ab, c?.ba?.from], [undefined, port("2/1")]);
});

test("cables: those between the same switches have lanes beside each other", () => {
	const lanes = (n: number): number[] => cablesOf(network(3, { links: [link("1/9", "3/1"), ...Array.from({ length: n }, (_, i) => link(`2/${i + 1}`, `1/${i + 1}`))] }), []).filter((c) => c.b.switch === id(2)).map((c) => c.lane);
	equal([lanes(1), lanes(2), lanes(3)], [[0], [-0.5, 0.5], [-1, 0, 1]]);
});

test("cables: a fault is of the cable between its ports, if there is a link or not", () => {
	const fault = { kind: "one-way" as const, at: port("2/2"), peer: port("1/1"), message: "m" };
	for (const links of [[], [link("1/1", "2/2")]]) {
		const all = cablesOf(network(2, { links, faults: [fault] }), []);
		equal(all.map((c) => [c.key, c.fault?.kind, c.ab !== undefined]), [[cableKey(port("2/2"), port("1/1")), "one-way", links.length > 0]]);
	}
});

test("cables: a fault of one port, or of two of a switch, is of the switch", () => {
	const alone = { kind: "shared" as const, at: port("1/1"), message: "m" }, looped = { kind: "looped" as const, at: port("2/1"), peer: port("2/2"), message: "m" };
	const n = network(2, { faults: [alone, looped] });
	equal(cablesOf(n, []), []);
	equal([...localFaults(n)], [[id(1), [alone]], [id(2), [looped]]]);
});

test("cables: one that was removed is shown for five minutes, unless it is there again", () => {
	const ends = { from: port("1/1"), to: port("2/1") }, back = { from: ends.to, to: ends.from };
	const removed = (seconds: number): unknown[] => cablesOf(network(2), [before(seconds, "link-removed", { link: ends }), before(seconds, "link-removed", { link: back })]).map((c) => [c.key, c.removed !== undefined]);
	equal(removed(10), [[cableKey(ends.from, ends.to), true]]);
	equal(removed(301), []);
	equal(cablesOf(network(2), [before(20, "link-removed", { link: ends }), before(10, "link-added", { link: ends })]), []);
	const [there] = cablesOf(network(2, { links: [link("1/1", "2/1")] }), [before(10, "link-removed", { link: ends })]);
	check(there?.removed === undefined, "a cable that is there counts as removed");
});

test("cables: a switch that was removed is shown for five minutes, unless it is there again", () => {
	const event = before(60, "switch-removed", { switch: id(3) });
	equal(goneSwitches(network(2), [event]).map((g) => g.id), [id(3)]);
	equal(goneSwitches(network(3), [event]), []);
	equal(goneSwitches(network(2), [before(301, "switch-removed", { switch: id(3) })]), []);
});
