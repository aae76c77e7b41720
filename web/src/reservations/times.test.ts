import { check, equal, test } from "../testing/test";
import { day, formatLength, hour, parseLength, showLength, ticks } from "./times";

test("times: a duration is read as the API writes it", () => {
	equal(["2h", "1h30m", "90s", "0.5h", "250ms", "", "2d", "h", undefined].map(parseLength), [2 * hour, 1.5 * hour, 90_000, hour / 2, 250, 0, 0, 0, 0]);
});

test("times: a duration is written as the API reads it, and as people do", () => {
	equal([2 * hour, 1.5 * hour, 90_000, 3 * day, 0].map(formatLength), ["2h", "1h30m", "1m30s", "72h", "0s"]);
	equal([2 * hour, 1.5 * hour, 90_000, day + 6 * hour, 0].map(showLength), ["2 h", "1 h 30 min", "1 min 30 s", "1 d 6 h", "0 s"]);
});

test("times: ticks are round, ascending, within their time, and not too many", () => {
	const from = new Date(2026, 4, 1, 13, 7).getTime();
	equal(ticks(from, from + hour, 8).map((t) => t.name), ["13:10", "13:20", "13:30", "13:40", "13:50", "14:00"]);
	equal(ticks(from, from + 7 * day, 8).map((t) => t.name), ["May 2", "May 3", "May 4", "May 5", "May 6", "May 7", "May 8"]);
	for (const span of [hour, 6 * hour, day, 7 * day]) {
		const all = ticks(from, from + span, 5);
		check(all.length > 1 && all.length <= 6 && all.every((t, n) => t.at >= from && t.at <= from + span && (n === 0 || t.at > all[n - 1]!.at)), `${span}: ${JSON.stringify(all)}`);
	}
});
