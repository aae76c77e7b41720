// Networks of tests.
import type { Network, NetworkEvent, NetworkLink, NetworkPortID, NetworkSwitch } from "../api.gen";

export const at = "2026-11-26T12:00:00Z";

/** id returns the datapath id of the switch n. */
export const id = (n: number): string => n.toString(16).padStart(16, "0");

/** port returns a port: of the switch 1 the port 2 is port("1/2"). */
export function port(name: string): NetworkPortID {
	const [n, no] = name.split("/").map(Number);
	return { switch: id(n!), port: no! };
}

/** link returns a direction, at 0 to 1 of its capacity. */
export function link(from: string, to: string, part?: number): NetworkLink {
	return { from: port(from), to: port(to), capacity_bps: 1e9, capacity_source: "reported", ...(part === undefined ? {} : { rate_bps: part * 1e9 }) };
}

/** network returns a network of switches 1 to n. */
export function network(n: number, more: Partial<Network> = {}): Network {
	return {
		at, settled: true, listen: [], hosts: [], links: [], faults: [],
		switches: Array.from({ length: n }, (_, i) => ({ id: id(i + 1), name: `s${i + 1}`, address: "10.0.0.1:1", ports: [], current: true, limits: [], capabilities: {} as NetworkSwitch["capabilities"] })),
		counters: { packet_ins: 0, dropped: 0, forged: 0, answered: 0, flooded: 0, plans: 0 }, ...more,
	};
}

/** before returns an event, so many seconds before the time of the networks. */
export function before(seconds: number, kind: string, more: Partial<NetworkEvent>): NetworkEvent {
	return { at: new Date(Date.parse(at) - 1000 * seconds).toISOString(), kind, message: kind, ...more };
}
