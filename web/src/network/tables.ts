// The tables below the map, which have all that the map shows.
import type { NetworkHost, NetworkLink, NetworkSwitch } from "../api.gen";
import { fill, h, set } from "../dom";
import { bar, button } from "../ui";
import { showRate, showShare } from "../units";
import { virtualTable, type Rows } from "../virtual";
import type { Cable } from "./cables";
import type { Scene, Selection } from "./map";
import { ago, countBy, hostName, problemOf } from "./names";
import { perSecond, pick } from "./panel";
import { utilizationOf } from "./scale";

/** Tables are in the document; show updates them. */
export interface Tables {
	on: HTMLElement;
	show: (s: Scene) => void;
}

/** Direction is a row of the table of links. */
interface Direction {
	cable: Cable;
	link: NetworkLink | undefined;
	from: NetworkLink["from"];
	to: NetworkLink["to"];
}

/** tables returns the tables. choose is called to select something on the map. */
export function tables(choose: (s: Selection) => void, signal: AbortSignal): Tables {
	let scene: Scene | undefined;
	const names = (): Scene["names"] => scene!.names;
	const state = (words: string, bad = true): HTMLElement | string => (words === "" ? "–" : h("span", { class: bad ? "bad" : "quiet" }, words));
	let cables = new Map<string, number>(), hostsAt = new Map<string, number>();

	const switches = virtualTable<NetworkSwitch>("Switches", [
		{ name: "Switch", cell: (s) => pick(names().of(s.id), { kind: "switch", key: s.id }, choose), sort: (s) => names().of(s.id) },
		{ name: "Site", cell: (s) => s.site ?? "–", sort: (s) => s.site, wide: true },
		{ name: "Datapath id", cell: (s) => h("code", {}, s.id), sort: (s) => s.id, wider: true },
		{ name: "Address", cell: (s) => s.address || "–", sort: (s) => s.address, wide: true },
		{ name: "Software", cell: (s) => s.software ?? "–", sort: (s) => s.software, wider: true },
		{ name: "Cables", cell: (s) => cables.get(s.id) ?? 0, sort: (s) => cables.get(s.id) ?? 0, number: true },
		{ name: "Hosts", cell: (s) => hostsAt.get(s.id) ?? 0, sort: (s) => hostsAt.get(s.id) ?? 0, number: true },
		{ name: "Problem", cell: (s) => state(problemOf(s), s.error !== undefined), sort: (s) => problemOf(s) || undefined },
	], (s) => s.id, () => {}, signal);

	const load = (d: Direction): HTMLElement | string => {
		const part = utilizationOf(d.link);
		return part === undefined ? "–" : h("span", { class: "busy" }, bar(part), h("span", {}, showShare(part)));
	};
	const trouble = ({ cable: c, link }: Direction): string => (c.removed !== undefined ? `removed ${ago(Date.parse(scene!.network.at) - c.removed)}` : c.fault ? `${c.fault.kind}: ${c.fault.message}` : link ? "" : "no frames pass");
	const links = virtualTable<Direction>("Links, a row for each direction", [
		{ name: "From", cell: (d) => pick(names().port(d.from), { kind: "cable", key: d.cable.key }, choose), sort: (d) => names().port(d.from) },
		{ name: "To", cell: (d) => names().port(d.to), sort: (d) => names().port(d.to) },
		{ name: "Utilization", cell: load, sort: (d) => utilizationOf(d.link), number: true },
		{ name: "Rate", cell: (d) => (d.link?.rate_bps === undefined ? "–" : showRate(d.link.rate_bps)), sort: (d) => d.link?.rate_bps, number: true, wide: true },
		{ name: "Capacity", cell: (d) => (d.link ? showRate(d.link.capacity_bps) : "–"), sort: (d) => d.link?.capacity_bps, number: true, wide: true },
		{ name: "Source", cell: (d) => d.link?.capacity_source ?? "–", sort: (d) => d.link?.capacity_source, wider: true },
		{ name: "Cost", cell: (d) => d.link?.cost ?? "–", sort: (d) => d.link?.cost, number: true, wider: true },
		{ name: "Drops", cell: (d) => (d.link?.drops_per_s === undefined ? "–" : perSecond(d.link.drops_per_s)), sort: (d) => d.link?.drops_per_s, number: true, wide: true },
		{ name: "Problem", cell: (d) => state(trouble(d)), sort: (d) => trouble(d) || undefined },
	], (d) => `${d.cable.key} ${d.from.switch}`, () => {}, signal);

	const hosts = virtualTable<NetworkHost>("Hosts", [
		{ name: "Host", cell: (host) => hostName(host), sort: hostName },
		{ name: "Addresses", cell: (host) => host.addresses.join(", ") || "–", sort: (host) => host.addresses[0], wide: true },
		{ name: "MAC", cell: (host) => h("code", {}, host.mac), sort: (host) => host.mac },
		{ name: "VLAN", cell: (host) => host.vlan ?? "–", sort: (host) => host.vlan, number: true, wide: true },
		{ name: "Port", cell: (host) => pick(names().port(host.at), { kind: "switch", key: host.at.switch }, choose), sort: (host) => names().port(host.at) },
		{ name: "Learned by", cell: (host) => host.learned, sort: (host) => host.learned, wider: true },
	], (host) => `${host.mac} ${host.vlan ?? ""}`, () => {}, signal);

	const place = h("div");
	const tabs = ([["Switches", switches], ["Links", links], ["Hosts", hosts]] as [string, { on: HTMLElement }][]).map(([name, rows]) => ({ rows, button: button(name, () => open(rows)), name }));
	const open = (rows: { on: HTMLElement }): void => {
		for (const t of tabs) set(t.button, { "aria-pressed": String(t.rows === rows) });
		fill(place, rows.on);
		if (scene) show(scene);
	};
	const show = (s: Scene): void => {
		scene = s;
		cables = countBy(s.cables.flatMap((c) => (c.removed === undefined ? [c.a.switch, c.b.switch] : [])));
		hostsAt = countBy(s.network.hosts.map((host) => host.at.switch));
		const rows = s.cables.flatMap((cable): Direction[] => [{ cable, link: cable.ab, from: cable.a, to: cable.b }, { cable, link: cable.ba, from: cable.b, to: cable.a }]);
		tabs.forEach((t, i) => (t.button.textContent = `${t.name} (${[s.network.switches.length, s.network.links.length, s.network.hosts.length][i]})`));
		const update = <T>(t: Rows<T>, all: T[]): void => (t.on.isConnected ? t.show(all) : undefined);
		update(switches, s.network.switches.toSorted((a, b) => (s.names.of(a.id) < s.names.of(b.id) ? -1 : 1)));
		update(links, rows);
		update(hosts, s.network.hosts);
	};
	open(switches);
	return { on: h("section", {}, h("div", { class: "tabs", role: "group", "aria-label": "Tables" }, tabs.map((t) => t.button)), place), show };
}
