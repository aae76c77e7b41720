// The panel beside the map: what is selected, else the faults, and the events.
import type { NetworkEvent, NetworkHost, NetworkLink, NetworkLinkHistory, NetworkPort, NetworkPortID, NetworkSwitch } from "../api.gen";
import { call } from "../call";
import { chart, type Chart } from "../chart";
import { fill, h, text, type Child } from "../dom";
import { path } from "../router";
import { button, command, table } from "../ui";
import { virtualTable } from "../virtual";
import { showRate, showShare } from "../units";
import { cableKey, portKey, type Cable } from "./cables";
import type { Scene, Selection } from "./map";
import { ago, hostName, problemOf } from "./names";
import { utilizationOf } from "./scale";

/** Panel is the panel in the document. */
export interface Panel {
	on: HTMLElement;
	/** show updates the panel. */
	show: (s: Scene, events: NetworkEvent[]) => void;
	/** select shows a selection, or the whole network. */
	select: (s: Selection | undefined) => void;
}

const listed = 100; // events
const chartHeight = 150; // px

/** Detail draws what is selected, again after each update. It returns false if that is not in the network. */
type Detail = (s: Scene) => boolean;

/** panel returns the panel. choose is called to select something else. */
export function panel(choose: (s: Selection | undefined) => void, signal: AbortSignal): Panel {
	const detail = h("div"), faults = h("div"), logTitle = h("h2", {}, "Events");
	const log = h("ul", { class: "list", tabindex: 0, "aria-label": "Events, newest first" }), noEvents = h("p", { class: "quiet" }, "None since the controller leads.");
	const box = h("section", { class: "detail", hidden: true, "aria-live": "off" }, detail);
	const troubles = h("section", { hidden: true }, h("h2", {}, "Faults"), faults);
	const on = h("div", { class: "aside" }, box, troubles, h("section", { class: "log" }, logTitle, log, noEvents));
	let scene: Scene | undefined, events: NetworkEvent[] = [];
	let selected: Selection | undefined, draw: Detail | undefined, shown: AbortController | undefined;

	const update = (): void => {
		if (!scene) return;
		if (draw && !draw(scene) && !detail.querySelector(".missing")) {
			fill(detail, heading("Not in the network now", choose), h("p", { class: "quiet missing" }, "It was removed, or the controller does not see it."));
		}
		const { network, names } = scene;
		troubles.hidden = network.faults.length === 0 || selected !== undefined;
		replace(faults, JSON.stringify(network.faults), () => h("ul", { class: "list" }, network.faults.map((f) => h("li", {}, h("strong", { class: "bad" }, f.kind), " ",
			f.peer && f.peer.switch !== f.at.switch ? pick(`${names.port(f.peer)} → ${names.port(f.at)}`, { kind: "cable", key: cableKey(f.at, f.peer) }, choose) : pick(f.at.port === 0 ? names.of(f.at.switch) : names.port(f.at), { kind: "switch", key: f.at.switch }, choose),
			h("p", {}, f.message)))));
		const about = events.filter((e) => !selected || isAbout(e, selected)).slice(-listed).reverse();
		text(logTitle, selected ? "Events here" : "Events");
		log.hidden = about.length === 0;
		noEvents.hidden = about.length > 0;
		replace(log, JSON.stringify(about), () => about.map((e) => h("li", {}, h("time", { datetime: e.at, class: "quiet" }, timeOf(e.at)), " ", h("span", { class: isTrouble(e) ? "bad" : null }, e.message, e.count && e.last && ` (${e.count} times, last at ${timeOf(e.last)})`))));
	};
	return {
		on,
		show: (s, all) => {
			scene = s;
			events = all;
			update();
		},
		select: (s) => {
			if (s?.kind === selected?.kind && s?.key === selected?.key) return;
			selected = s;
			shown?.abort();
			shown = new AbortController();
			const until = AbortSignal.any([shown.signal, signal]);
			draw = s && (s.kind === "switch" ? switchDetail(detail, s.key, choose, until) : cableDetail(detail, s.key, choose, until));
			box.hidden = s === undefined;
			if (!s) fill(detail);
			update();
		},
	};
}

/** replace replaces the content of an element when what it shows has changed. */
function replace(on: HTMLElement, shows: string, make: () => Child): void {
	if (on.dataset["shows"] === shows) return;
	on.dataset["shows"] = shows;
	fill(on, make());
}

/** pick returns a button that selects something. */
export function pick(words: string, s: Selection, choose: (s: Selection) => void): HTMLButtonElement {
	return button(words, () => choose(s), "plain");
}

/** isAbout reports whether an event is about what is selected. */
export function isAbout(e: NetworkEvent, s: Selection): boolean {
	if (s.kind === "cable") return e.link !== undefined ? cableKey(e.link.from, e.link.to) === s.key : e.port !== undefined && s.key.split(" ").includes(portKey(e.port));
	return [e.switch, e.port?.switch, e.link?.from.switch, e.link?.to.switch].includes(s.key);
}

/** isTrouble reports whether an event is a failure. */
function isTrouble(e: NetworkEvent): boolean {
	return /-(removed|refused|faulty|claimed|limit)$/.test(e.kind) && !e.kind.startsWith("host-removed");
}

/** timeOf returns the time of day, with the date if it is not today. */
function timeOf(at: string): string {
	const d = new Date(at), time = d.toLocaleTimeString([], { hour12: false });
	return d.toDateString() === new Date().toDateString() ? time : `${d.toLocaleDateString()} ${time}`;
}

/** heading returns the heading of a selection, with the button that closes it. */
function heading(name: string, choose: (s: undefined) => void): HTMLElement {
	const close = button("×", () => choose(undefined), "plain close");
	close.setAttribute("aria-label", `Close ${name}`);
	return h("div", { class: "head" }, h("h2", {}, name), close);
}

/** facts returns a list of names and values, without those that have no value. */
function facts(all: [string, Child][]): HTMLElement {
	return h("dl", { class: "facts" }, all.map(([name, value]) => value !== undefined && value !== "" && [h("dt", {}, name), h("dd", {}, value)]));
}

/** switchDetail shows a switch with its ports and hosts. */
function switchDetail(on: HTMLElement, id: string, choose: (s: Selection | undefined) => void, signal: AbortSignal): Detail {
	const head = h("div"), foot = h("div"), ports = portsOf(id, choose, signal);
	return (s) => {
		const one = s.network.switches.find((each) => each.id === id), gone = s.gone.find((g) => g.id === id);
		if (!one && !gone) return false;
		const faults = s.network.faults.filter((f) => f.at.switch === id), hosts = s.network.hosts.filter((host) => host.at.switch === id);
		const cables = s.cables.filter((c) => c.a.switch === id || c.b.switch === id);
		if (!head.isConnected) fill(on, head, h("h3", {}, "Ports"), ports.on, foot);
		replace(head, JSON.stringify([{ ...one, ports: [] }, faults, gone]), () => [
			heading(s.names.of(id), choose),
			gone && h("p", { class: "bad" }, `Disconnected ${ago(Date.parse(s.network.at) - gone.removed)}`),
			one && problemOf(one) && h("p", { class: one.error ? "bad" : "quiet" }, `Not as planned: ${problemOf(one)}`),
			faults.map((f) => h("p", { class: "bad" }, `${f.kind}: ${f.message}`)),
			one?.limits.map((limit) => h("p", { class: "quiet" }, limit)),
			facts([
				["Datapath id", h("code", {}, id)], ["Site", one?.site], ["Address", one?.address], ["Description", one?.description],
				["Hardware", [one?.manufacturer, one?.hardware].filter(Boolean).join(", ")], ["Software", one?.software], ["Serial number", one?.serial_number],
			]),
		]);
		ports.show(s, one, cables);
		replace(foot, JSON.stringify(hosts), () => [
			hosts.length > 0 && hostsOf(s, hosts),
			h("p", { class: "help" }, "Flows: ", command(`headgate network flows ${s.names.of(id).startsWith("…") ? id : s.names.of(id)}`)),
		]);
		return true;
	};
}

/** portsOf returns the table of a switch's ports. */
function portsOf(id: string, choose: (s: Selection) => void, signal: AbortSignal): { on: HTMLElement; show: (s: Scene, one: NetworkSwitch | undefined, cables: Cable[]) => void } {
	let scene: Scene | undefined, cablesAt = new Map<string, Cable>();
	const cableOf = (p: NetworkPort): Cable | undefined => cablesAt.get(portKey({ switch: id, port: p.number }));
	const peer = (p: NetworkPort): string => {
		const c = cableOf(p);
		if (c) return scene!.names.port(c.a.switch === id ? c.b : c.a);
		return p.state !== "up" ? p.state : p.use;
	};
	const rows = virtualTable<NetworkPort>("Ports", [
		{ name: "Port", cell: (p) => p.name ?? p.number, sort: (p) => p.name ?? p.number },
		{ name: "To", cell: (p) => (cableOf(p) ? pick(peer(p), { kind: "cable", key: cableOf(p)!.key }, choose) : h("span", { class: p.use === "faulty" ? "bad" : "quiet" }, peer(p))), sort: peer },
		{ name: "Sends", cell: (p) => (p.tx_bps === undefined ? "–" : showRate(p.tx_bps)), sort: (p) => p.tx_bps, number: true },
		{ name: "Receives", cell: (p) => (p.rx_bps === undefined ? "–" : showRate(p.rx_bps)), sort: (p) => p.rx_bps, number: true },
	], (p) => String(p.number), () => {}, signal);
	return {
		on: rows.on,
		show: (s, one, cables) => {
			scene = s;
			cablesAt = new Map(cables.filter((c) => c.removed === undefined).map((c) => [portKey(c.a.switch === id ? c.a : c.b), c]));
			rows.show(one?.ports ?? []);
		},
	};
}

/** hostsOf returns the table of a switch's hosts. */
function hostsOf(s: Scene, hosts: NetworkHost[]): HTMLElement {
	return h("div", {}, h("h3", {}, "Hosts"), table("Hosts", [
		{ name: "Host", cell: (host) => [hostName(host), host.vlan !== undefined && h("span", { class: "tag" }, `VLAN ${host.vlan}`)] },
		{ name: "MAC", cell: (host) => h("code", {}, host.mac) },
		{ name: "Port", cell: (host) => s.names.portOnly(host.at) },
	], hosts));
}

/** cableDetail shows a cable, with a chart of each direction. */
function cableDetail(on: HTMLElement, key: string, choose: (s: Selection | undefined) => void, signal: AbortSignal): Detail {
	const head = h("div"), directions = h("div");
	fill(on, head, directions);
	delete on.dataset["shows"];
	const charts = new Map<string, History>();
	return (s) => {
		const c = s.cables.find((each) => each.key === key);
		if (!c) return false;
		if (!head.isConnected) fill(on, head, directions); // it was away
		replace(head, JSON.stringify([s.names.cable(c), c.fault, c.removed]), () => [
			heading(s.names.cable(c), choose),
			c.fault && h("p", { class: "bad" }, `${c.fault.kind}: ${c.fault.message}`),
			c.removed !== undefined && h("p", { class: "bad" }, `Removed ${ago(Date.parse(s.network.at) - c.removed)}`),
			h("p", {}, pick(s.names.of(c.a.switch), { kind: "switch", key: c.a.switch }, choose), pick(s.names.of(c.b.switch), { kind: "switch", key: c.b.switch }, choose)),
		]);
		for (const [l, from, to] of [[c.ab, c.a, c.b], [c.ba, c.b, c.a]] as const) {
			let one = charts.get(portKey(from));
			if (!one) {
				one = history(from, `${s.names.port(from)} to ${s.names.port(to)}`, signal);
				charts.set(portKey(from), one);
				directions.append(one.on);
			}
			one.show(l, Date.parse(s.network.at) / 1000);
		}
		return true;
	};
}

/** History is the chart of a direction, with its facts. */
interface History {
	on: HTMLElement;
	show: (l: NetworkLink | undefined, at: number) => void;
}

/** history loads what a direction has carried, and then goes on with each update. */
function history(from: NetworkPortID, name: string, signal: AbortSignal): History {
	const about = h("div"), picture: Chart = chart(`Rate from ${name}`, signal, showRate, chartHeight);
	picture.setLines([{ name: "rate", stacked: true }, { name: "capacity", dashed: true }]);
	let last = -Infinity, capacity = 0, loaded = false;
	const waiting: [number, number][] = [];
	const push = (at: number, rate: number): void => {
		if (at <= last) return;
		last = at;
		picture.push(at, [rate, capacity]);
	};
	void call<NetworkLinkHistory>("GET", `${path("v1", "network", "links", from.switch, String(from.port))}/history`)
		.then(({ data }) => data.items.forEach((i) => push(Date.parse(i.at) / 1000, i.rate_bps)), () => {}) // without it the chart begins now
		.finally(() => {
			loaded = true;
			waiting.forEach(([at, rate]) => push(at, rate));
		});
	return {
		on: h("div", { class: "history" }, h("h3", {}, name), about, picture.on),
		show: (l, at) => {
			if (l) capacity = l.capacity_bps;
			const part = utilizationOf(l);
			replace(about, JSON.stringify(l ?? null), () => (l === undefined ? h("p", { class: "bad" }, "No frames pass in this direction.") : facts([
				["Rate", l.rate_bps === undefined ? "not measured yet" : `${showRate(l.rate_bps)}${part === undefined ? "" : `, ${showShare(part)}`}`],
				["Capacity", `${showRate(l.capacity_bps)}, ${l.capacity_source}`],
				["Cost", l.cost],
				["Drops", l.drops_per_s === undefined ? undefined : perSecond(l.drops_per_s)],
				["Errors", l.errors_per_s === undefined ? undefined : perSecond(l.errors_per_s)],
			])));
			if (l?.rate_bps === undefined) return;
			if (loaded) push(at, l.rate_bps);
			else waiting.push([at, l.rate_bps]);
		},
	};
}

/** perSecond formats a number of frames in a second. */
export const perSecond = (n: number): string => `${n >= 10 ? Math.round(n) : Number(n.toFixed(1))} frames/s`;
