import { check, equal, random, test } from "../testing/test";
import { enough, freeOf, starts } from "./availability";

const at = (minutes: number): string => new Date(minutes * 60_000).toISOString();
const calendar = { limit_bps: 100, steps: [{ at: at(0), reserved_bps: 80 }, { at: at(10), reserved_bps: 30 }, { at: at(20), reserved_bps: 40 }, { at: at(50), reserved_bps: 100 }, { at: at(60), reserved_bps: 0 }] };
const minutes = (all: { from: number; to: number }[]): number[][] => all.map((s) => [s.from / 60_000, s.to / 60_000]);

test("availability: a rate is free where all steps leave it", () => {
	const all = freeOf(calendar, 100 * 60_000);
	equal(all.map((f) => f.free), [20, 70, 60, 0, 100]);
	equal(minutes(enough(all, 60)), [[10, 50], [60, 100]]);
	equal(minutes(enough(all, 70)), [[10, 20], [60, 100]]);
	equal(minutes(starts(all, 60, 40 * 60_000)), [[10, 10], [60, 60]]);
	equal(minutes(starts(all, 60, 15 * 60_000)), [[10, 35], [60, 85]]);
	equal(minutes(starts(all, 101, 60_000)), []);
});

test("availability: a link without a limit has every rate", () => {
	equal(minutes(starts(freeOf({ steps: [{ at: at(0), reserved_bps: 5e12 }] }, 60 * 60_000), 1e12, 60_000)), [[0, 59]]);
});

test("availability: a reservation fits at a start if and only if all its moments have the rate", () => {
	const next = random(7);
	for (let run = 0; run < 200; run++) {
		const steps = Array.from({ length: 12 }, (_, n) => ({ at: at(n), reserved_bps: Math.floor(4 * next()) * 25 }));
		const all = freeOf({ limit_bps: 100, steps }, 12 * 60_000), rate = 25 + Math.floor(3 * next()) * 25, length = 1 + Math.floor(4 * next());
		const found = starts(all, rate, length * 60_000);
		for (let start = 0; start + length <= 12; start++) {
			const fits = steps.slice(start, start + length).every((s) => 100 - s.reserved_bps >= rate);
			check(fits === found.some((s) => s.from <= start * 60_000 && start * 60_000 <= s.to), `run ${run}, start ${start}`);
		}
	}
});
