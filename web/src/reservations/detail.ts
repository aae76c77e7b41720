// The dialog of one reservation: what was granted, its paths, and its cancellation.
import { deleteReservation, getReservation, type Reservation } from "../api.gen";
import { fill, h } from "../dom";
import { dialog } from "../edit";
import { mayChange } from "../session";
import { button, confirmDialog, notify } from "../ui";
import { showRate } from "../units";
import { classOf, describe, endText, fullName, pathText, rates, type NameOf } from "./request";
import { showLength, showTime } from "./times";
import { usage } from "./usage";

/** detail opens the dialog of a reservation. */
export function detail(r: Reservation, nameOf: NameOf): void {
	const { on, close, closed } = dialog(fullName(r));
	const open = new AbortController();
	void closed.then(() => open.abort());
	const start = Date.parse(r.start), end = Date.parse(r.end);
	fill(on, r.degraded !== undefined && h("p", { class: "bad" }, `Degraded: ${r.degraded}`), facts([
		["State", r.state], ["Class", String(classOf(r.request))], ["From", endText(r.request.from)], ["To", endText(r.request.to)],
		["Granted", rates(r.rate_bps, r.back_bps)], ["Reserved", rates(r.reserved_bps, r.reserved_back_bps)],
		...carriers(r),
		["Start", showTime(start)], ["End", `${showTime(end)}, after ${showLength(end - start)}`],
	]), pathList(r, nameOf), r.state !== "scheduled" && usage(r, open.signal),
	h("div", { class: "actions" }, mayChange() && r.state !== "ended" && button("Cancel the reservation", async () => {
		if (await cancel(r)) close();
	}, "apart"), button("Close", close)));
}

/** cancel asks for a confirmation, cancels a reservation, and returns whether it did. */
export async function cancel(shown: Reservation): Promise<boolean> {
	// What is confirmed is what is cancelled: with the version, a reservation that has changed since is left alone.
	const { data, etag } = await getReservation(shown.owner, shown.name);
	const body = [h("p", {}, describe(data)), h("p", {}, "Its traffic loses its bandwidth at once, and others can reserve it. This cannot be undone.")];
	if (!(await confirmDialog(`Cancel ${fullName(data)}?`, body, "Cancel the reservation", "danger", "Keep it"))) return false;
	await deleteReservation(data.owner, data.name, { ...(etag ? { ifMatch: etag } : {}), key: crypto.randomUUID() });
	notify(`Cancelled ${fullName(data)}`);
	return true;
}

/** carriers returns the relay agents that carry the traffic of a reservation, if there are any. */
export function carriers(r: Reservation): [string, string][] {
	return r.relays ? [["Carried by", `relay agents ${r.relays.near} and ${r.relays.far}`]] : [];
}

/** facts returns a list of names and values. */
export function facts(all: [string, string][]): HTMLElement {
	return h("dl", { class: "facts" }, all.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

/** pathList returns the paths of a reservation. */
export function pathList(r: Reservation, nameOf: NameOf): HTMLElement | null {
	if (r.paths.length === 0) return null;
	return h("ul", { class: "list" }, r.paths.map((p) => h("li", {}, p.spare ? "Spare path " : "Path ", h("code", {}, pathText(p, nameOf)), `: ${p.spare ? "in case another fails" : p.back_bps > 0 ? rates(p.rate_bps, p.back_bps) : showRate(p.rate_bps)}`)));
}
