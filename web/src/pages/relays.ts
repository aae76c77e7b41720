// Relays pages: the relay agents of a host, with their paths, streams and connections.
import { getOverview, listRelayEnded, type Relay, type RelayConnection, type RelayList, type RelayPath, type RelayPeer, type RelayStream } from "../api.gen";
import { chart, type Chart } from "../chart";
import { fill, h, text } from "../dom";
import { subscribe } from "../live";
import { path, route } from "../router";
import { command, empty, endpoints, errorText, table, title } from "../ui";
import { showBytes, showRate, showSeconds, showShare } from "../units";
import { virtualTable, type Column, type Rows } from "../virtual";

route("/relays", () => "Relays", async (on) => {
	const names = (await getOverview({ names: true })).data.names ?? [];
	fill(on, title("Relays", "Relay agents: they carry connections of applications over many streams and several paths"),
		names.length === 0 ? empty("No hosts.", ["Create a host with ", command("headgate host create NAME"), "."])
			: h("ul", { class: "cards" }, names.map((n) => h("li", {}, h("a", { href: path("relays", n) }, n)))));
});

const drawn = 8; // paths in the chart of a relay agent
const listed = 100; // connections in the list of those that have ended

/** OnPath is a path, or a stream of it, with the other agent. */
interface OnPath {
	peer: string;
	path: RelayPath;
}
interface OnStream extends OnPath {
	stream: RelayStream;
}

/** Shown has the elements of a relay agent. */
interface Shown {
	on: HTMLElement;
	head: HTMLElement;
	paths: HTMLElement;
	problems: HTMLElement;
	picture: Chart;
	lines: string;
	none: HTMLElement;
	connections: Rows<RelayConnection>;
	streams: Rows<OnStream>;
	streamsTitle: HTMLElement;
	omitted: HTMLElement;
}

route("/relays/:", ([host]) => `Relays of ${host}`, (on, [host], signal) => {
	const name = host ?? "";
	const note = h("p", { class: "quiet", role: "status" }, "Waiting for the agent…"), all = h("div");
	const shown = new Map<string, Shown>();
	fill(on, title("Relays", [h("a", { href: path("hosts", name) }, name)]), note, all);
	subscribe(path("v1", "hosts", name, "relays"), (data, status) => {
		if (status !== 200) {
			text(note, "Relay agents are not available at the moment.");
			return;
		}
		const list = data as RelayList;
		text(note, list.error ?? "");
		for (const [agent, one] of shown) {
			if (list.items.some((r) => r.agent === agent)) continue;
			one.on.remove();
			shown.delete(agent);
		}
		if (list.items.length === 0) {
			if (!list.error && !all.querySelector(".empty")) fill(all, empty("No relay agent is running on this host.", ["Write a file with ", command("kind: Relay"), ", and run it on the host with ", command("headgate relay run -f FILE"), "."]));
			return;
		}
		all.querySelector(".empty")?.remove();
		for (const r of list.items) {
			let one = shown.get(r.agent);
			if (!one) {
				one = section(name, r.agent, signal);
				shown.set(r.agent, one);
				all.append(one.on);
			}
			draw(r, one);
		}
	}, signal);
});

/** section returns the elements of a relay agent. */
function section(host: string, agent: string, signal: AbortSignal): Shown {
	const head = h("p"), paths = h("div"), problems = h("div"), none = h("p", { class: "quiet" }, "No connections now."), omitted = h("p", { class: "quiet" }), streamsTitle = h("summary");
	const picture = chart(`Rate of each path of ${agent}, in both directions`, signal);
	const connections = virtualTable<RelayConnection>(`Connections of ${agent}`, connectionColumns, (c) => `${c.client} ${c.destination} ${c.began}`, () => {}, signal);
	const streams = virtualTable<OnStream>(`Streams of ${agent}`, streamColumns, (s) => `${s.peer} ${s.path.name} ${s.stream.number ?? ""}`, () => {}, signal);
	const ended = h("div");
	const history = h("details", { ontoggle: () => history.open && void loadEnded(host, agent, ended) }, h("summary", {}, "Ended connections"), ended);
	const details = h("details", { ontoggle: () => streams.draw() }, streamsTitle, streams.on);
	return {
		on: h("section", {}, h("h2", {}, agent), head, picture.on, h("h3", {}, "Paths"), paths, problems, h("h3", {}, "Connections"), none, connections.on, omitted, details, history),
		head, paths, problems, picture, lines: "", none, connections, streams, streamsTitle, omitted,
	};
}

const connectionColumns: Column<RelayConnection>[] = [
	{ name: "Connection", cell: (c) => endpoints(`${c.client} →`, c.destination) },
	{ name: "State", cell: (c) => c.state, wide: true },
	{ name: "Sending", cell: (c) => showRate(c.send_rate_bps), number: true },
	{ name: "Receiving", cell: (c) => showRate(c.receive_rate_bps), number: true },
	{ name: "Sent", cell: (c) => showBytes(c.sent_bytes), number: true, wider: true },
	{ name: "Received", cell: (c) => showBytes(c.received_bytes), number: true, wider: true },
	{ name: "Waiting", cell: (c) => showBytes(c.waiting_bytes + c.unacknowledged_bytes), number: true, wide: true },
	{ name: "Unread", cell: (c) => showBytes(c.unread_bytes), number: true, wide: true },
	{ name: "Reorder queue", cell: (c) => showBytes(c.reordering_bytes), number: true },
];

const streamColumns: Column<OnStream>[] = [
	{ name: "Stream", cell: (s) => s.stream.number ?? "–", number: true },
	{ name: "Peer", cell: (s) => s.peer, wide: true },
	{ name: "Path", cell: (s) => s.path.name },
	{ name: "State", cell: (s) => state(s.stream.state) },
	{ name: "RTT", cell: (s) => roundTrip(s.stream.rtt_ns), number: true },
	{ name: "Estimated rate", cell: (s) => showRate(s.stream.estimated_rate_bps), number: true, wide: true },
	{ name: "Sending", cell: (s) => showRate(s.stream.send_rate_bps), number: true },
	{ name: "Receiving", cell: (s) => showRate(s.stream.receive_rate_bps), number: true },
	{ name: "Unsent", cell: (s) => showBytes(s.stream.unsent_bytes), number: true, wider: true },
	{ name: "Unacknowledged", cell: (s) => showBytes(s.stream.unacknowledged_bytes), number: true, wider: true },
];

const roundTrip = (ns: number): string => (ns > 0 ? showSeconds(ns / 1e9) : "–");
const state = (s: RelayStream["state"]): string | HTMLElement => (s === "open" || s === "retired" ? s : h("strong", { class: "bad" }, s));

/** draw shows the state of a relay agent. */
function draw(r: Relay, one: Shown): void {
	const t = r.total;
	text(one.head, `${count(t.connections, "connection")} over ${count(t.streams, "stream")}, sending ${showRate(t.send_rate_bps)}, receiving ${showRate(t.receive_rate_bps)}. `
		+ `Waiting ${showBytes(t.waiting_bytes)}, unread ${showBytes(t.unread_bytes)}, reorder queue ${showBytes(t.reordering_bytes)}. ${count(t.ended, "connection")} ended, ${t.failed} of them with an error.`);
	const paths = pathsOf("exit", r.exits).concat(pathsOf("entry", r.entries));
	fill(one.paths, paths.length === 0 ? h("p", { class: "quiet" }, "No other agent has opened a stream.") : table(`Paths of ${r.agent}`, [
		{ name: "Peer", cell: (p) => p.peer },
		{ name: "Path", cell: (p) => p.path.name },
		{ name: "State", cell: (p) => state(p.path.state) },
		{ name: "Streams", cell: (p) => streamCounts(p.path), number: true },
		{ name: "RTT", cell: (p) => roundTrip(p.path.rtt_ns), number: true, wide: true },
		{ name: "Sending", cell: (p) => showRate(p.path.send_rate_bps), number: true },
		{ name: "Receiving", cell: (p) => showRate(p.path.receive_rate_bps), number: true },
		{ name: "Sent", cell: (p) => showBytes(p.path.sent_bytes), number: true, wider: true },
		{ name: "Received", cell: (p) => showBytes(p.path.received_bytes), number: true, wider: true },
	], paths));
	fill(one.problems, paths.filter((p) => p.path.error).map((p) => h("p", { class: "bad" }, `Path ${p.path.name} of ${p.peer}: ${p.path.error}`)));
	const first = paths.slice(0, drawn);
	const lines = first.map((p) => `${p.peer} ${p.path.name}`);
	if (lines.join("\n") !== one.lines) {
		one.lines = lines.join("\n");
		one.picture.setLines(lines.map((name) => ({ name, stacked: true })));
	}
	one.picture.on.hidden = paths.length === 0;
	if (paths.length > 0) one.picture.push(Date.now() / 1000, first.map((p) => p.path.send_rate_bps + p.path.receive_rate_bps));
	const rate = (c: RelayConnection): number => c.send_rate_bps + c.receive_rate_bps;
	one.none.hidden = r.connections.length > 0;
	one.connections.on.hidden = r.connections.length === 0;
	one.connections.show(r.connections.toSorted((a, b) => rate(b) - rate(a)));
	one.streams.show(paths.flatMap((p) => p.path.streams.map((stream) => ({ ...p, stream }))));
	text(one.streamsTitle, `Streams (${t.streams} open)`);
	const omitted = Object.entries(r.omitted ?? {}).map(([what, n]) => `${what}: ${n}`);
	text(one.omitted, omitted.length > 0 ? `Not listed, because others have higher rates: ${omitted.join(", ")}.` : "");
}

/** pathsOf returns the paths of peers, which are exits or entries. */
function pathsOf(kind: string, peers: RelayPeer[]): OnPath[] {
	return peers.flatMap((p) => p.paths.map((one) => ({ peer: `${kind} ${p.address}`, path: one })));
}

/** streamCounts returns the number of open streams, and of those that are suspect or closed. */
function streamCounts(p: RelayPath): string {
	return [String(p.open_streams), p.suspect_streams > 0 && `${p.suspect_streams} suspect`, p.closed_streams > 0 && `${p.closed_streams} closed`].filter(Boolean).join(", ");
}

/** loadEnded shows the connections that have ended, the newest first. */
async function loadEnded(host: string, agent: string, on: HTMLElement): Promise<void> {
	fill(on, h("p", { class: "quiet", role: "status" }, "Loading…"));
	try {
		const all = (await listRelayEnded(host, agent)).data.items ?? [];
		fill(on, all.length === 0 ? h("p", { class: "quiet" }, "No connection has ended.") : table(`Ended connections of ${agent}`, [
			{ name: "Connection", cell: (c) => endpoints(`${c.client} →`, c.destination) },
			{ name: "State", cell: (c) => (c.error ? h("span", { class: "bad" }, c.error) : c.state) },
			{ name: "Duration", cell: (c) => showSeconds(c.age_ns / 1e9), number: true },
			{ name: "Sent", cell: (c) => showBytes(c.sent_bytes), number: true },
			{ name: "Received", cell: (c) => showBytes(c.received_bytes), number: true },
			{ name: "Gain", cell: (c) => c.gain?.toFixed(1) ?? "–", number: true, wide: true },
			{ name: "Paths", cell: pathShares, wide: true },
		], all.toReversed().slice(0, listed)), all.length > listed && h("p", { class: "quiet" }, `The last ${listed} of ${all.length}. All: `, command(`headgate relay status --ended --server default --host ${host} --agent ${agent}`)));
	} catch (e) {
		fill(on, h("p", { class: "bad", role: "alert" }, errorText(e)));
	}
}

/** pathShares returns the part of a connection's bytes that each path has carried. */
function pathShares(c: RelayConnection): string {
	const bytes = (p: RelayConnection["paths"][number]): number => p.sent_bytes + p.received_bytes;
	const sum = c.paths.reduce((n, p) => n + bytes(p), 0);
	return c.paths.filter((p) => bytes(p) > 0).map((p) => `${p.path} ${showShare(bytes(p) / sum)}`).join(", ") || "–";
}

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;
