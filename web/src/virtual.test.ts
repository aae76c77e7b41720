import { equal, test } from "./testing/test";
import { sorted } from "./virtual";

test("virtual: rows are sorted by number or text, and those without a value are last", () => {
	const by = (values: (string | number | undefined)[], down = false): unknown => sorted(values.map((v) => ({ v })), (r) => r.v, down).map((r) => r.v ?? "none");
	equal(by(["s10", "s2", undefined, "s1"]), ["s1", "s2", "s10", "none"]);
	equal(by(["s10", "s2", undefined, "s1"], true), ["s10", "s2", "s1", "none"]);
	equal(by([10, 9, undefined, 100]), [9, 10, 100, "none"]);
});
