// Collectives pages: connection sets, with the learned rate, share and cap of each connection.
import { getOverview, type CollectiveState, type CollectiveStateList } from "../api.gen";
import { chart, type Chart } from "../chart";
import { fill, h, text } from "../dom";
import { subscribe } from "../live";
import { path, route } from "../router";
import { command, empty, endpoints, table, title } from "../ui";
import { showBytes, showRate, showSeconds, showShare } from "../units";

route("/collectives", () => "Collectives", async (on) => {
	const names = (await getOverview({ names: true })).data.names ?? [];
	fill(on, title("Collectives", "Connection sets: connections of one application that keep their proportions under congestion"),
		names.length === 0 ? empty("No hosts.", ["Create a host with ", command("headgate host create NAME"), "."])
			: h("ul", { class: "cards" }, names.map((n) => h("li", {}, h("a", { href: path("collectives", n) }, n)))));
});

const drawn = 8; // connections in the chart of a set

route("/collectives/:", ([host]) => `Collectives of ${host}`, (on, [host], signal) => {
	const name = host ?? "";
	const note = h("p", { class: "quiet", role: "status" }, "Waiting for the agent…"), sets = h("div");
	const shown = new Map<string, { on: HTMLElement; head: HTMLElement; body: HTMLElement; picture: Chart; lines: string }>();
	fill(on, title("Collectives", [h("a", { href: path("hosts", name) }, name)]), note, sets);
	subscribe(path("v1", "hosts", name, "collective-states"), (data, status) => {
		if (status !== 200) {
			text(note, "Connection sets are not available at the moment.");
			return;
		}
		const list = data as CollectiveStateList;
		text(note, list.truncated ? "Not all connections are shown." : "");
		const keys = list.items.map((s) => `${s.set} ${s.destination ?? ""} ${s.bottleneck ?? ""}`);
		for (const [key, one] of shown) {
			if (keys.includes(key)) continue;
			one.on.remove();
			shown.delete(key);
		}
		if (list.items.length === 0) {
			if (!sets.querySelector(".empty")) fill(sets, empty("No connection sets on this host.", ["Write a file with ", command("kind: Collective"), ", and apply it with ", command(`headgate apply -f FILE --server default --host ${name}`), "."]));
			return;
		}
		sets.querySelector(".empty")?.remove();
		list.items.forEach((s, n) => {
			let one = shown.get(keys[n]!);
			if (!one) {
				const head = h("p"), body = h("div"), picture = chart(`Share of each connection in the set ${s.set}`, signal, showShare);
				one = { on: h("section", {}, h("h2", {}, s.destination ? `${s.set} to ${s.destination}` : s.bottleneck ? `${s.set} at ${s.bottleneck}` : s.set), head, picture.on, body), head, body, picture, lines: "" };
				shown.set(keys[n]!, one);
				sets.append(one.on);
			}
			text(one.head, about(s));
			one.head.className = s.error ? "bad" : "";
			draw(s, one);
		});
	}, signal);
});

/** about describes the state of a set: error, cgroup missing, controlled or released, and a notice. */
function about(s: CollectiveState): string {
	if (s.error) return s.error;
	if (s.cgroup_missing) return "Waiting: the cgroup or unit does not exist.";
	const retransmitted = s.retransmitted === undefined ? "" : `, ${showShare(s.retransmitted)} of segments retransmitted${s.retransmitted_before === undefined ? "" : ` (${showShare(s.retransmitted_before)} before)`}`;
	const state = s.controlling ? "Controlled" : s.notice ? "Released" : "Released: no congestion";
	return `${state}${retransmitted}.${s.notice ? ` ${s.notice}.` : ""}`;
}

/** draw shows the connections of a set, and their shares in the chart. */
function draw(s: CollectiveState, one: { body: HTMLElement; picture: Chart; lines: string }): void {
	const all = s.connections;
	const proportion = (c: (typeof all)[number]): number => c.weight ?? c.learned_bps ?? 0;
	const proportions = all.reduce((sum, c) => sum + proportion(c), 0), total = all.reduce((sum, c) => sum + (c.rate_bps ?? 0), 0);
	const part = (of: number, whole: number): number => (whole === 0 ? 0 : of / whole);
	if (all.length === 0) fill(one.body, !s.error && !s.cgroup_missing && h("p", { class: "quiet" }, "No connections now. New connections join the set."));
	else fill(one.body, table(`Connections of ${s.set}`, [
		{ name: "Connection", cell: (c) => endpoints(`${c.local} →`, c.remote) },
		{ name: "Learned rate", cell: (c) => (c.weight !== undefined ? `weight ${c.weight}` : c.learned_bps ? showRate(c.learned_bps) : "learning"), number: true },
		{ name: "Target share", cell: (c) => showShare(part(proportion(c), proportions)), number: true },
		{ name: "Share", cell: (c) => showShare(part(c.rate_bps ?? 0, total)), number: true },
		{ name: "Rate", cell: (c) => showRate(c.rate_bps ?? 0), number: true },
		{ name: "RTT", cell: (c) => (c.rtt_ns ? showSeconds(c.rtt_ns / 1e9) : "–"), number: true, wide: true },
		{ name: "Cap", cell: (c) => (c.pacing_cap_bps ? showRate(c.pacing_cap_bps) : c.window_cap_bytes ? showBytes(c.window_cap_bytes) : "–"), number: true, wide: true },
		{ name: "Retransmits", cell: (c) => c.retransmits ?? "–", number: true, wide: true },
	], all));
	const first = all.slice(0, drawn);
	const lines = first.map((c) => c.id).join(" ");
	if (lines !== one.lines) {
		one.lines = lines;
		one.picture.setLines(first.map((c) => ({ name: `${c.local} → ${c.remote}`, stacked: true })));
	}
	one.picture.on.hidden = all.length === 0;
	if (all.length > 0) one.picture.push(Date.now() / 1000, first.map((c) => part(c.rate_bps ?? 0, total)));
}
