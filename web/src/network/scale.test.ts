import { link } from "../testing/networks";
import { check, equal, test } from "../testing/test";
import { stepOf, steps, utilizationOf } from "./scale";

test("scale: a step begins at its value", () => {
	equal([0, 0.009, 0.01, 0.2499, 0.25, 0.5, 0.7999, 0.8, 1, 1.2].map(stepOf), [0, 0, 1, 1, 2, 3, 3, 4, 4, 4]);
	steps.slice(1).forEach((s, i) => check(s.width > steps[i]!.width && s.from > steps[i]!.from, "the steps do not ascend"));
});

test("scale: a direction without a rate or capacity has no utilization", () => {
	equal([undefined, link("1/1", "2/1"), { ...link("1/1", "2/1", 0.5), capacity_bps: 0 }, link("1/1", "2/1", 0.5)].map((l) => utilizationOf(l) ?? "none"), ["none", "none", "none", 0.5]);
});
