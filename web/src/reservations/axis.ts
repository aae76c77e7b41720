// The axis of time that the calendar and the availability of a link have in common.
import { h } from "../dom";
import { ticks } from "./times";

/** Span is a time from and to, in ms since 1970. */
export interface Span {
	from: number;
	to: number;
}

/** place sets where an element is on the axis: from one time to another, both limited to what is shown. */
export function place(on: HTMLElement, shown: Span, from: number, to = from): void {
	const part = (at: number): number => (100 * (Math.min(shown.to, Math.max(shown.from, at)) - shown.from)) / (shown.to - shown.from);
	on.style.left = `${part(from).toFixed(3)}%`;
	if (to > from) on.style.width = `${(part(to) - part(from)).toFixed(3)}%`;
}

/** axis returns the lines and times of the axis, and a line at the present time. It is drawn behind what has the same place. */
export function axis(shown: Span, now: number): HTMLElement {
	const line = (at: number, kind: string, name: string): HTMLElement => {
		const i = h("i", { class: kind }, h("span", {}, name));
		place(i, shown, at);
		return i;
	};
	// A label next to the right edge would be cut off.
	const most = innerWidth < 700 ? 5 : 9, edge = shown.to - (shown.to - shown.from) * (innerWidth < 700 ? 0.12 : 0.05);
	return h("div", { class: "axis", "aria-hidden": true }, ticks(shown.from, shown.to, most).map((t) => line(t.at, "", t.at > edge ? "" : t.name)), now >= shown.from && now <= shown.to && line(now, "now", ""));
}
