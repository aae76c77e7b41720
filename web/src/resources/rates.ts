// What groups carry, as agents tell it.
import type { DirectionRates, GroupRates, HostRates } from "../api.gen";
import { rate } from "../units";

export interface Reading {
	/** bits per second */
	delivered: number;
	guaranteed: number;
	/** bytes */
	backlog: number;
	/** seconds that packets wait, undefined if that is not measured or nothing leaves */
	delay: number | undefined;
	/** packets, since the group was made */
	drops: number;
	marks: number;
	atRisk: boolean;
}

export function reading(g: GroupRates): Reading {
	return {
		delivered: rate(g.delivered), guaranteed: rate(g.guaranteed), backlog: g.backlog ?? 0,
		delay: g.queue_delay_ns === undefined ? undefined : g.queue_delay_ns / 1e9,
		drops: g.drops ?? 0, marks: g.marks ?? 0, atRisk: g.at_risk ?? false,
	};
}

/** borrowed is what a group has beyond its guarantee, left what of that it leaves to others. */
export function borrowed(r: Reading): number {
	return Math.max(0, r.delivered - r.guaranteed);
}
export function left(r: Reading): number {
	return Math.max(0, r.guaranteed - r.delivered);
}

/** delay is how long packets wait, in seconds: as measured, or else what waits at the present rate; undefined if nothing leaves. */
export function delay(r: Reading): number | undefined {
	if (r.delay) return r.delay;
	return r.delivered === 0 ? undefined : (8 * r.backlog) / r.delivered;
}

/** use is how much of its limit a direction has, undefined without one. */
export function use(d: DirectionRates): number | undefined {
	const limit = rate(d.limit);
	return limit === 0 ? undefined : rate(d.delivered) / limit;
}

/** busiest is the direction that has most of its limit. */
export function busiest(h: HostRates): DirectionRates | undefined {
	return h.directions.reduce<DirectionRates | undefined>((a, b) => (a === undefined || (use(b) ?? 0) > (use(a) ?? 0) ? b : a), undefined);
}
