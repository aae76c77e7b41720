// Network page: the switches, cables and hosts as a map, with a panel of what is selected, events, and tables.
import type { Network, NetworkEvent, NetworkEventList } from "../api.gen";
import { fill, h, text } from "../dom";
import { subscribe } from "../live";
import { cablesOf, goneSwitches } from "../network/cables";
import { arrange, type Place } from "../network/layout";
import { networkMap, type Scene, type Selection } from "../network/map";
import { counted, Names } from "../network/names";
import { panel } from "../network/panel";
import { loadPlaces, savePlaces } from "../network/places";
import { steps } from "../network/scale";
import { tables } from "../network/tables";
import { route } from "../router";
import { command, empty, title } from "../ui";

route("/network", () => "Network", (on, _, signal) => {
	const about = h("span"), note = h("div"), body = h("div", { hidden: true });
	fill(on, title("Network", about), note, body);
	fill(note, h("p", { class: "quiet", role: "status" }, "Waiting for the controller…"));
	let network: Network | undefined, events: NetworkEvent[] = [], places = new Map<string, Place>(), loadedFor: string | undefined;

	const choose = (s: Selection | undefined, center = false): void => {
		picture.select(s, center);
		side.select(s);
		// The address has the selection, so that reload and shared links show it.
		history.replaceState(null, "", s ? `/network?${new URLSearchParams({ [s.kind]: s.key })}` : "/network");
	};
	const fromTable = (s: Selection): void => {
		choose(s, true);
		picture.on.scrollIntoView({ block: "nearest" });
	};
	const side = panel((s) => choose(s), signal), list = tables(fromTable, signal);
	const picture = networkMap({
		select: (s) => choose(s),
		move: (id, to) => {
			places.set(id, to);
			save();
		},
		arrange: () => {
			places = new Map();
			draw();
			picture.fit();
		},
	}, signal);
	fill(body, h("div", { class: "network" }, h("section", { class: "mapcard" }, picture.on, legend()), side.on), list.on);

	const save = (): void => savePlaces(loadedFor ?? "", places);
	const draw = (): void => {
		if (!network) return;
		const name = network.name ?? "";
		if (loadedFor !== name) {
			loadedFor = name;
			places = loadPlaces(name);
		}
		const cables = cablesOf(network, events), gone = goneSwitches(network, events);
		const graph = {
			switches: [...network.switches.map((s) => ({ id: s.id, site: s.site })), ...gone.map((g) => ({ id: g.id, site: undefined }))],
			pairs: cables.map((c): [string, string] => [c.a.switch, c.b.switch]),
		};
		const arranged = arrange(graph, places);
		if ([...arranged].some(([id, p]) => places.get(id) !== p)) {
			places = new Map([...places, ...arranged]);
			save();
		}
		const scene: Scene = { network, names: new Names(network), cables, gone, places: new Map(arranged) };
		picture.show(scene);
		side.show(scene, events);
		list.show(scene);
		const down = network.switches.filter((s) => s.error !== undefined).length;
		text(about, [network.name, counted(network.switches.length, "switch", "switches"), counted(cables.filter((c) => c.removed === undefined).length, "cable"), counted(network.hosts.length, "host"),
			down > 0 && `${counted(down, "switch", "switches")} with a problem`, network.faults.length > 0 && counted(network.faults.length, "fault"), !network.settled && "changes in progress"].filter(Boolean).join(", "));
	};
	let chosen = false;
	subscribe("/v1/network", (data, status) => {
		const n = status === 200 ? (data as Network) : undefined;
		const none = n && n.switches.length === 0 && goneSwitches(n, events).length === 0;
		fill(note, !n ? unavailable(data, status, network !== undefined) : none ? noSwitches(n) : null);
		body.hidden = none || (n ?? network) === undefined;
		if (!n) return;
		network = n;
		draw();
		if (!chosen && !none) {
			chosen = true;
			const query = new URLSearchParams(location.search), id = query.get("switch"), key = query.get("cable");
			if (id ?? key) choose(id ? { kind: "switch", key: id } : { kind: "cable", key: key! });
		}
	}, signal);
	subscribe("/v1/network/events", (data, status) => {
		if (status !== 200) return;
		events = (data as NetworkEventList).items;
		draw();
	}, signal);
});

/** unavailable says why there is no network to show, and what to do. */
function unavailable(data: unknown, status: number, before: boolean): HTMLElement {
	const detail = (data as { detail?: string } | undefined)?.detail ?? `The controller answered with status ${status}.`;
	if (before) return h("p", { class: "bad", role: "status" }, `Not updated at this moment: ${detail}`);
	return empty(status === 503 ? "No controller leads the network." : "The network cannot be shown.", status !== 503 ? detail
		: "The page continues when one leads. If none does within a minute, check that most controllers of the service run and reach each other.");
}

/** noSwitches says how to connect the first switch. */
function noSwitches(n: Network): HTMLElement {
	const l = n.listen.find((one) => !one.error);
	if (!l) {
		const why = n.listen[0]?.error;
		return empty("The service accepts no switches.", why ? why : ["Set the configuration of the network with ", command("headgate network apply -f network.yaml"), ", then connect switches: docs/fabric.md."]);
	}
	// A controller that listens at every address is reached at that of its pages.
	const at = l.address.replace(/^(0\.0\.0\.0|\[::\])(?=:)/, location.hostname);
	const files = l.tls ? " --ca ca.pem --cert cert.pem --key key.pem" : "";
	return empty("No switches are connected.", ["Connect a bridge of Open vSwitch with ", command(`headgate network connect BRIDGE --controller ${l.tls ? "ssl" : "tcp"}:${at}${files}`), ". Other switches: docs/fabric.md."]);
}

/** legend explains the lines of the map. */
function legend(): HTMLElement {
	const mark = (kind: string, words: string): HTMLElement => h("li", {}, h("i", { class: kind, "aria-hidden": true }), words);
	return h("div", { class: "legend" }, h("span", {}, "Utilization:"),
		h("ul", { class: "keys" }, steps.map((s, n) => mark(`load load${n}`, s.name)), mark("load loadnone", "not measured")),
		h("ul", { class: "keys" }, mark("fault", "fault"), mark("gone", "removed in the last 5 minutes")),
		h("span", { class: "quiet" }, "The half of a line at a switch is what the switch sends."));
}
