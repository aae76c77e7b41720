// The free rate of a link over time, and when a request would fit.
import type { ReservationCalendar } from "../api.gen";
import type { Span } from "./axis";

/** Free is a time in which a link has a free rate in bit/s: Infinity for a link without a limit. */
export interface Free extends Span {
	free: number;
}

/** freeOf returns the free rate of a link over time, without gaps, until an end. */
export function freeOf(c: ReservationCalendar, end: number): Free[] {
	return c.steps.map((s, n) => ({
		from: Date.parse(s.at), to: n + 1 < c.steps.length ? Date.parse(c.steps[n + 1]!.at) : end,
		free: c.limit_bps === undefined ? Infinity : Math.max(0, c.limit_bps - s.reserved_bps),
	})).filter((f) => f.to > f.from);
}

/** enough returns the longest times in which a rate is free throughout. */
export function enough(all: Free[], rate: number): Span[] {
	const out: Span[] = [];
	for (const f of all) {
		if (f.free < rate) continue;
		const last = out.at(-1);
		if (last && last.to === f.from) last.to = f.to;
		else out.push({ from: f.from, to: f.to });
	}
	return out;
}

/** starts returns when a reservation of a rate in bit/s and a length in ms can start: from the first to the last moment of each time. */
export function starts(all: Free[], rate: number, length: number): Span[] {
	return enough(all, rate).filter((s) => s.to - s.from >= length).map((s) => ({ from: s.from, to: s.to - length }));
}
