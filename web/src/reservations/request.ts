// Requests of reservations as text. Ends are written as "headgate reserve create" takes them.
import type { NetworkPortID, Reservation, ReservationEnd, ReservationPath, ReservationRequest } from "../api.gen";
import { shortID } from "../network/names";
import { rate, showRate } from "../units";
import { parseLength, showLength, showTime } from "./times";

/** NameOf returns the name of a switch. */
export type NameOf = (id: string) => string;

/** parseEnd parses an end: a host, site:NAME, a prefix or vlan:NUMBER, each with @SWITCH/PORT if the network does not know the port. idOf returns the datapath id of a switch. */
export function parseEnd(text: string, idOf: (name: string) => string): ReservationEnd {
	const [name = "", at] = text.trim().split("@");
	const end: ReservationEnd = name.startsWith("site:") ? { site: name.slice(5) } : name.startsWith("vlan:") ? { vlan: Number(name.slice(5)) } : name.includes("/") ? { prefix: name } : { host: name };
	if (end.vlan !== undefined && !Number.isInteger(end.vlan)) throw new Error(`"${name}" is not a VLAN: write vlan: and a number from 1 to 4094`);
	if (at === undefined) return end;
	const port = /^(.+)\/([1-9][0-9]*)$/.exec(at);
	if (!port) throw new Error(`"${at}" is not a port: write SWITCH/NUMBER after the @, such as s1/3`);
	return { ...end, at: { switch: idOf(port[1]!), port: Number(port[2]) } };
}

/** endText returns the text of an end, without its port. */
export function endText(e: ReservationEnd): string {
	return e.host ?? e.prefix ?? (e.site !== undefined ? `site:${e.site}` : e.vlan !== undefined ? `vlan:${e.vlan}` : "–");
}

/** fullName returns the name of a reservation with its owner, unless the operator owns it. */
export const fullName = (r: { owner: string; name: string }): string => (r.owner === "-" ? r.name : `${r.owner}/${r.name}`);

/** keyOf returns the key of a reservation among all. */
export const keyOf = (r: { owner: string; name: string }): string => `${r.owner}/${r.name}`;

/** rates returns the rates of both directions, or of the one that there is. */
export function rates(there: number, back: number): string {
	return back > 0 ? `${showRate(there)}, ${showRate(back)} back` : showRate(there);
}

/** classOf returns the class of a request. */
export const classOf = (r: ReservationRequest): number => r.class ?? 4;

/** describe describes a reservation in a sentence, as the text alternative of its bar in the calendar. */
export function describe(r: Reservation): string {
	return `${fullName(r)}: ${r.state}, class ${classOf(r.request)}, ${rates(r.rate_bps, r.back_bps)} from ${endText(r.request.from)} to ${endText(r.request.to)}, ${showTime(Date.parse(r.start))} to ${showTime(Date.parse(r.end))}${r.degraded ? `. ${r.degraded}` : ""}`;
}

/** describeRequest describes a request, such as a counter-offer: "200 Mbit/s for 2 h, from Nov 28, 14:00". */
export function describeRequest(r: ReservationRequest): string {
	const what = r.volume !== undefined ? r.volume : rates(rate(r.rate), rate(r.back));
	const length = r.duration === undefined ? "" : ` for ${showLength(parseLength(r.duration))}`;
	const start = r.start === undefined ? "now" : showTime(Date.parse(r.start));
	return `${what}${length}, ${r.until !== undefined ? `between ${start} and ${showTime(Date.parse(r.until))}` : r.start === undefined ? "from now" : `from ${start}`}`;
}

/** pathText returns the ports through which a path goes, and its last switch. */
export function pathText(p: ReservationPath, nameOf: NameOf): string {
	const last = p.links.at(-1);
	return last ? [...p.links.map((l) => portText(l.from, nameOf)), nameOf(last.to.switch)].join(" ") : "in one switch";
}

/** portText returns the name of a port: s1/3. */
export const portText = (p: NetworkPortID, nameOf: NameOf = shortID): string => `${nameOf(p.switch)}/${p.port}`;
