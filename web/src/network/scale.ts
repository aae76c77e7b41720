// Scale of the map: utilization as width and color, in few steps that are distinguishable with any kind of color vision.
import type { NetworkLink } from "../api.gen";

/** Step is a range of utilization. style.css has the color of the step n as --load{n}. */
export interface Step {
	/** The least part of the capacity, 0 to 1. */
	from: number;
	name: string;
	/** px */
	width: number;
}

/** steps has the steps, in ascending order. */
export const steps: Step[] = [
	{ from: 0, name: "below 1 %", width: 2 },
	{ from: 0.01, name: "1 to 25 %", width: 3 },
	{ from: 0.25, name: "25 to 50 %", width: 4.5 },
	{ from: 0.5, name: "50 to 80 %", width: 6 },
	{ from: 0.8, name: "80 % and above", width: 8 },
];

/** unknownWidth is the width of a direction without a rate, in px. */
export const unknownWidth = 1.5;

/** utilizationOf returns the part of its capacity that a direction carries, undefined if its rate or capacity is not known. */
export function utilizationOf(l: NetworkLink | undefined): number | undefined {
	return l?.rate_bps === undefined || l.capacity_bps <= 0 ? undefined : l.rate_bps / l.capacity_bps;
}

/** stepOf returns the index of the step of a utilization. */
export function stepOf(part: number): number {
	return Math.max(0, steps.findLastIndex((s) => part >= s.from));
}
