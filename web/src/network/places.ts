// Places of switches, which this browser remembers for each network.
import type { Place } from "./layout";

const most = 4000; // places of a network; the oldest are forgotten

const storageKey = (network: string): string => `headgate-network-map ${network}`;

/** loadPlaces returns the places of switches, by datapath id. */
export function loadPlaces(network: string): Map<string, Place> {
	try {
		const all = Object.entries(JSON.parse(localStorage.getItem(storageKey(network)) ?? "{}") as Record<string, Place>);
		return new Map(all.filter(([, p]) => Number.isFinite(p.x) && Number.isFinite(p.y)));
	} catch {
		return new Map(); // it was written by something else
	}
}

/** savePlaces stores the places of switches. Switches that are not connected now keep theirs. */
export function savePlaces(network: string, places: Map<string, Place>): void {
	try {
		localStorage.setItem(storageKey(network), JSON.stringify(Object.fromEntries([...places].slice(-most))));
	} catch {
		// The storage is full or forbidden: the map works without it.
	}
}
