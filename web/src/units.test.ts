import { equal, test } from "./testing/test";
import { rate, rateText, showRate } from "./units";

test("units: a rate is written exactly, as a configuration has it", () => {
	const all = [1e9, 2.5e9, 100e6, 58_905_000, 1_234_567, 999, 0];
	equal(all.map(rateText), ["1Gbit", "2.5Gbit", "100Mbit", "58.905Mbit", "1234.567kbit", "999bit", "0bit"]);
	equal(all.map(rateText).map(rate), all);
});

test("units: a rate is shown with three digits", () => {
	equal([1e9, 58_905_000, 0].map(showRate), ["1 Gbit/s", "58.9 Mbit/s", "0 bit/s"]);
});
