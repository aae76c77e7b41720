// Reservations page: the calendar and the list of reservations, what is free on a link, and what would be granted.
import { listReservations, type Network, type Reservation, type ReservationList } from "../api.gen";
import { allPages } from "../call";
import { fill, h, text } from "../dom";
import { subscribe } from "../live";
import { hostName, Names, shortID } from "../network/names";
import { calendar } from "../reservations/calendar";
import { detail } from "../reservations/detail";
import { links } from "../reservations/links";
import { classOf, endText, fullName, keyOf } from "../reservations/request";
import { showTime } from "../reservations/times";
import { whatIf } from "../reservations/whatif";
import { route } from "../router";
import { isTenantSession, mayChange } from "../session";
import { button, command, empty, errorText, title } from "../ui";
import { showRate } from "../units";
import { virtualTable } from "../virtual";

const pageSize = 1000;
const states: Reservation["state"][] = ["active", "degraded", "scheduled", "ended"];

route("/reservations", () => "Reservations", (on, _, signal) => {
	const about = h("span"), note = h("div"), body = h("div", { hidden: true });
	let network: Network | undefined, names: Names | undefined, known: Reservation[] = [];
	const nameOf = (id: string): string => names?.of(id) ?? shortID(id);
	const open = (r: Reservation): void => detail(r, nameOf);
	const times = calendar(open, signal), none = h("div", { hidden: true });
	const list = virtualTable<Reservation>("Reservations", [
		{ name: "Reservation", cell: (r) => opener(r, open), sort: fullName },
		{ name: "State", cell: (r) => h("span", { class: r.state === "degraded" ? "bad" : null }, r.state), sort: (r) => states.indexOf(r.state) },
		{ name: "Class", cell: (r) => classOf(r.request), sort: (r) => classOf(r.request), number: true, wide: true },
		{ name: "Rate", cell: (r) => showRate(r.rate_bps), sort: (r) => r.rate_bps, number: true },
		{ name: "Rate back", cell: (r) => (r.back_bps > 0 ? showRate(r.back_bps) : "–"), sort: (r) => r.back_bps, number: true, wide: true },
		{ name: "From", cell: (r) => endText(r.request.from), sort: (r) => endText(r.request.from), wide: true },
		{ name: "To", cell: (r) => endText(r.request.to), sort: (r) => endText(r.request.to), wide: true },
		{ name: "Start", cell: (r) => moment(r.start), sort: (r) => Date.parse(r.start), wide: true },
		{ name: "End", cell: (r) => moment(r.end), sort: (r) => Date.parse(r.end) },
	], keyOf, () => {}, signal);
	const ask = mayChange() ? whatIf(nameOf, (name) => network?.switches.find((s) => s.name === name)?.id ?? name) : undefined;
	const available = isTenantSession() ? undefined : links(nameOf, ask?.use, signal); // a tenant gets no calendar of links
	fill(body, none, times.on, h("section", {}, h("h2", {}, "List"), list.on), ask?.on, available?.on);
	fill(on, title("Reservations", about), note, body);
	fill(note, h("p", { class: "quiet", role: "status" }, "Waiting for the controller…"));

	const show = (all: Reservation[]): void => {
		body.hidden = false;
		none.hidden = all.length > 0;
		fill(none, h("section", {}, empty("No reservations.", [ask && "Ask below what fits, or reserve with ", !ask && "Operators and tenants reserve with ", command("headgate reserve create NAME --from HOST --to HOST --rate 200Mbit --for 2h"), "."])));
		text(about, states.map((s) => [all.filter((r) => r.state === s).length, s] as const).filter(([n]) => n > 0).map(([n, s]) => `${n} ${s}`).join(", ") || "Bandwidth promised across the network");
		times.show(all);
		list.show(all);
		known = all;
		available?.show(network, all);
	};
	subscribe(`/v1/reservations?limit=${pageSize}`, (data, status) => {
		if (status !== 200) {
			fill(note, h("p", { class: "bad", role: "status" }, `Not updated at this moment: ${(data as { detail?: string } | undefined)?.detail ?? `the controller answered with status ${status}`}`));
			return;
		}
		const page = data as ReservationList;
		fill(note);
		if (!page.next) {
			show(page.items);
			return;
		}
		// The stream has the first page only: a change on it, as any other, reads the others again.
		allPages((after) => listReservations({ after: after ?? page.next, limit: pageSize })).then(
			(rest) => !signal.aborted && show([...page.items, ...rest]),
			(e: unknown) => fill(note, h("p", { class: "bad", role: "status" }, errorText(e))));
	}, signal);
	if (isTenantSession()) return; // the network is not a tenant's to see
	subscribe("/v1/network", (data, status) => {
		if (status !== 200) return;
		network = data as Network;
		names = new Names(network);
		ask?.setEnds([...network.hosts.map(hostName), ...(network.sites ?? []).map((s) => `site:${s.name}`)]);
		available?.show(network, known);
	}, signal);
});

/** opener returns the button that opens a reservation. */
function opener(r: Reservation, open: (r: Reservation) => void): HTMLElement {
	const b = button(fullName(r), () => open(r), "plain");
	b.dataset["version"] = `${r.state} ${r.generation}`; // a button of an older version is replaced, so that it opens what is shown
	return b;
}

/** moment returns an element with a time. */
const moment = (at: string): HTMLElement => h("time", { datetime: at }, showTime(Date.parse(at)));
