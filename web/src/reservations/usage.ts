// What a reservation does at this moment: offered, delivered, reserved and its limit, as figure 5.3 of the thesis draws them.
import type { Reservation, ReservationUsage, ReservationUsageList } from "../api.gen";
import { chart } from "../chart";
import { fill, h } from "../dom";
import { subscribe } from "../live";
import { showRate } from "../units";

const chartHeight = 180;

/** usage returns charts of both directions of a reservation, which go on until the signal is aborted. */
export function usage(r: Reservation, signal: AbortSignal): HTMLElement {
	const on = h("div", { class: "history" }), note = h("p", { class: "quiet", role: "status" }, "Waiting for the first measurement…");
	const charts = new Map<ReservationUsage["direction"], (u: ReservationUsage) => void>();
	fill(on, note);
	subscribe(`/v1/reservations/usage?${new URLSearchParams({ owner: r.owner, reservation: r.name })}`, (data, status) => {
		const items = status === 200 ? (data as ReservationUsageList).items : [];
		if (items.length === 0) {
			fill(note, status === 200 ? "Nothing is measured: it has not begun, or it ended more than an hour ago." : `Not updated at this moment: the controller answered with status ${status}.`);
			return;
		}
		fill(note, items.map(sentence).join(" "));
		for (const u of items) {
			if (!charts.has(u.direction)) charts.set(u.direction, direction(u, on, signal));
			charts.get(u.direction)!(u);
		}
	}, signal);
	return on;
}

/** direction adds the chart of a direction, and returns what shows its newest usage. */
function direction(first: ReservationUsage, on: HTMLElement, signal: AbortSignal): (u: ReservationUsage) => void {
	const name = first.direction === "back" ? "Back" : "Forward";
	const picture = chart(`${name}: offered and delivered rate`, signal, showRate, chartHeight);
	picture.setLines([{ name: "offered" }, { name: "delivered" }, { name: "limit", dashed: true }, { name: "reserved", dotted: true }]);
	on.append(h("h3", {}, name), picture.on);
	return (u) => picture.push(Date.now() / 1000, [u.offered_bps, u.delivered_bps, u.limit_bps ?? Math.max(u.reserved_bps, u.offered_bps), u.reserved_bps]);
}

/** sentence says what limits a direction, and how long it lacked what is reserved. */
function sentence(u: ReservationUsage): string {
	const name = u.direction === "back" ? "Back" : "Forward";
	if (u.held_by === "nowhere") return `${name}: nothing on the path limits the packets, and they are not measured.`;
	if (u.problem !== undefined) return `${name}: ${u.problem}.`;
	return `${name}: limited by a ${u.held_by}, ${showRate(u.delivered_bps)} of ${showRate(u.offered_bps)} offered; unmet for ${Math.round(u.unmet_seconds)} s.`;
}
