// Cables: both directions of a link as one, with its fault, and those that were removed a moment ago.
import type { Network, NetworkEvent, NetworkFault, NetworkLink, NetworkPortID } from "../api.gen";

/** Cable connects two ports. Its ends are in the order of their keys. */
export interface Cable {
	key: string;
	a: NetworkPortID;
	b: NetworkPortID;
	/** The directions that pass frames. */
	ab: NetworkLink | undefined;
	ba: NetworkLink | undefined;
	fault: NetworkFault | undefined;
	/** When it was removed, in ms; undefined for a cable that is there. */
	removed: number | undefined;
	/** Where it is drawn among the cables between the same switches: 0 is the middle, -1 and 1 are beside it. */
	lane: number;
}

/** Gone is a switch that was removed a moment ago. */
export interface Gone {
	id: string;
	/** When it was removed, in ms. */
	removed: number;
}

/** shownRemoved is for how long removed cables and switches are shown, in ms. */
export const shownRemoved = 5 * 60_000;

/** portKey returns the key of a port. */
export const portKey = (p: NetworkPortID): string => `${p.switch}/${p.port}`;

/** cableKey returns the key of the cable between two ports, in any order. */
export function cableKey(a: NetworkPortID, b: NetworkPortID): string {
	return [portKey(a), portKey(b)].sort().join(" ");
}

/** cablesOf returns the cables of a network, in the order of their keys: those that pass frames, those with a fault, and those that events say were removed a moment ago. */
export function cablesOf(n: Network, events: NetworkEvent[]): Cable[] {
	const all = new Map<string, Cable>();
	const between = (p: NetworkPortID, q: NetworkPortID): Cable => {
		const key = cableKey(p, q);
		let c = all.get(key);
		if (!c) {
			const [a, b] = portKey(p) < portKey(q) ? [p, q] : [q, p];
			all.set(key, (c = { key, a, b, ab: undefined, ba: undefined, fault: undefined, removed: undefined, lane: 0 }));
		}
		return c;
	};
	for (const l of n.links) {
		const c = between(l.from, l.to);
		if (portKey(l.from) === portKey(c.a)) c.ab = l;
		else c.ba = l;
	}
	for (const f of n.faults) if (f.peer && f.peer.switch !== f.at.switch) between(f.at, f.peer).fault ??= f;
	for (const [key, { ends, at }] of removedLinks(n, events)) {
		if (!all.has(key) && ends.from.switch !== ends.to.switch) between(ends.from, ends.to).removed = at;
	}
	const sorted = [...all.values()].sort((x, y) => (x.key < y.key ? -1 : 1));
	const pairs = new Map<string, Cable[]>();
	for (const c of sorted) {
		const pair = `${c.a.switch} ${c.b.switch}`;
		pairs.set(pair, [...(pairs.get(pair) ?? []), c]);
	}
	for (const side of pairs.values()) side.forEach((c, i) => (c.lane = i - (side.length - 1) / 2));
	return sorted;
}

/** removedLinks returns the links whose last event is their removal, a moment ago. */
function removedLinks(n: Network, events: NetworkEvent[]): Map<string, { ends: NonNullable<NetworkEvent["link"]>; at: number }> {
	const out = new Map<string, { ends: NonNullable<NetworkEvent["link"]>; at: number }>();
	for (const e of events) {
		if (!e.link) continue;
		const key = cableKey(e.link.from, e.link.to), at = Date.parse(e.at);
		if (e.kind === "link-removed" && Date.parse(n.at) - at <= shownRemoved) out.set(key, { ends: e.link, at });
		else if (e.kind === "link-added") out.delete(key);
	}
	return out;
}

/** goneSwitches returns the switches that were removed a moment ago. */
export function goneSwitches(n: Network, events: NetworkEvent[]): Gone[] {
	const present = new Set(n.switches.map((s) => s.id));
	const out = new Map<string, Gone>();
	for (const e of events) {
		const at = Date.parse(e.at);
		if (e.switch && e.kind === "switch-removed" && !present.has(e.switch) && Date.parse(n.at) - at <= shownRemoved) out.set(e.switch, { id: e.switch, removed: at });
	}
	return [...out.values()].sort((x, y) => (x.id < y.id ? -1 : 1));
}

/** localFaults returns the faults of ports that are of no cable between two switches, by switch. */
export function localFaults(n: Network): Map<string, NetworkFault[]> {
	const out = new Map<string, NetworkFault[]>();
	for (const f of n.faults) if (!f.peer || f.peer.switch === f.at.switch) out.set(f.at.switch, [...(out.get(f.at.switch) ?? []), f]);
	return out;
}
