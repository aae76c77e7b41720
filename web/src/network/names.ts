// Names of what a network has, as the map, the panel and the tables show them.
import type { Network, NetworkHost, NetworkLink, NetworkPortID, NetworkSwitch } from "../api.gen";
import { showRate, showShare } from "../units";
import type { Cable } from "./cables";
import { utilizationOf } from "./scale";

/** shortID returns a datapath id without its leading zeros: "…0001". */
export function shortID(id: string): string {
	const digits = id.replace(/^0+/, "").padStart(4, "0");
	return digits.length < id.length ? `…${digits}` : digits;
}

/** Names returns the names of switches and ports. */
export class Names {
	private readonly switches: Map<string, NetworkSwitch>;

	constructor(n: Network) {
		this.switches = new Map(n.switches.map((s) => [s.id, s]));
	}

	/** of returns the name of a switch, or what is short of its id. */
	of(id: string): string {
		return this.switches.get(id)?.name ?? shortID(id);
	}

	/** port returns the name of a port: "s1/eth3". */
	port(p: NetworkPortID): string {
		return `${this.of(p.switch)}/${this.portOnly(p)}`;
	}

	/** portOnly returns the name of a port in its switch, or its number. */
	portOnly(p: NetworkPortID): string {
		return this.switches.get(p.switch)?.ports.find((q) => q.number === p.port)?.name ?? String(p.port);
	}

	/** cable returns the name of a cable: "s1/1 – s2/3". */
	cable(c: Cable): string {
		return `${this.port(c.a)} – ${this.port(c.b)}`;
	}

	/** cableState describes a cable in a sentence for each direction. */
	cableState(c: Cable, now: number): string {
		if (c.removed !== undefined) return `removed ${ago(now - c.removed)}`;
		const state = [c.ab, c.ba].flatMap((l) => (l ? `${this.of(l.from.switch)} sends ${load(l)}` : [])).join(", ");
		return c.fault ? [`${c.fault.kind}: ${c.fault.message}`, state].filter(Boolean).join(". ") : state;
	}
}

/** load describes the rate of a direction: "430 Mbit/s, 43 % of 1 Gbit/s". */
export function load(l: NetworkLink): string {
	if (l.rate_bps === undefined) return "at a rate that is not measured yet";
	const part = utilizationOf(l);
	return part === undefined ? showRate(l.rate_bps) : `${showRate(l.rate_bps)}, ${showShare(part)} of ${showRate(l.capacity_bps)}`;
}

/** hostName returns the name of a host: its own, its first address, or its MAC. */
export const hostName = (h: NetworkHost): string => h.name ?? h.addresses[0] ?? h.mac;

/** problemOf returns what is wrong with a switch, "" if nothing is. */
export function problemOf(s: NetworkSwitch): string {
	return s.error ?? (s.current ? "" : "its flows are being changed");
}

/** ago returns a duration in ms as text: "2 min ago". */
export function ago(ms: number): string {
	const s = Math.max(0, Math.round(ms / 1000));
	return s < 60 ? `${s} s ago` : s < 3600 ? `${Math.round(s / 60)} min ago` : `${Math.round(s / 3600)} h ago`;
}

/** counted returns a number with its noun: "1 switch", "2 switches". */
export function counted(n: number, one: string, many = `${one}s`): string {
	return `${n} ${n === 1 ? one : many}`;
}

/** countBy returns how often each key occurs. */
export function countBy(keys: string[]): Map<string, number> {
	const out = new Map<string, number>();
	for (const key of keys) out.set(key, (out.get(key) ?? 0) + 1);
	return out;
}
