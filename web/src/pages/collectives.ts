// Sets of connections that keep their proportions: what each learned, and what it has.
import { getOverview, type CollectiveState, type CollectiveStateList } from "../api.gen";
import { chart, type Chart } from "../chart";
import { fill, h, text } from "../dom";
import { look } from "../live";
import { path, route } from "../router";
import { command, empty, ends, table, title } from "../ui";
import { rate, showRate, showSeconds, showShare } from "../units";

route("/collectives", () => "Collectives", async (on) => {
	const names = (await getOverview({ names: true })).data.names ?? [];
	fill(on, title("Collectives", "Connections of one application that keep their proportions when bandwidth runs short"),
		names.length === 0 ? empty("There are no hosts yet.", ["Make one with ", command("headgate host create NAME"), "."])
			: h("ul", { class: "cards" }, names.map((n) => h("li", {}, h("a", { href: path("collectives", n) }, n)))));
});

const drawn = 8; // connections of a set in its picture

route("/collectives/:", ([host]) => `Collectives of ${host}`, (on, [host], signal) => {
	const name = host ?? "";
	const note = h("p", { class: "quiet", role: "status" }, "Waiting for the agent…"), sets = h("div");
	const shown = new Map<string, { on: HTMLElement; head: HTMLElement; body: HTMLElement; picture: Chart; lines: string }>();
	fill(on, title("Collectives", [h("a", { href: path("hosts", name) }, name)]), note, sets);
	look(path("v1", "hosts", name, "collective-states"), (data, status) => {
		if (status !== 200) {
			text(note, "The agent does not tell of its sets at the moment.");
			return;
		}
		const list = data as CollectiveStateList;
		text(note, list.cut ? "There are more connections than are shown." : "");
		const keys = list.items.map((s) => `${s.set} ${s.destination ?? ""}`);
		for (const [key, one] of shown) {
			if (keys.includes(key)) continue;
			one.on.remove();
			shown.delete(key);
		}
		if (list.items.length === 0) {
			if (!sets.querySelector(".empty")) fill(sets, empty("No set of connections is controlled on this host.", ["Write one (", command("kind: Collective"), ") and apply it with ", command(`headgate apply -f FILE --server default --host ${name}`), "."]));
			return;
		}
		sets.querySelector(".empty")?.remove();
		list.items.forEach((s, n) => {
			let one = shown.get(keys[n]!);
			if (!one) {
				const head = h("p"), body = h("div"), picture = chart(`Part of the set ${s.set} that each connection has`, signal, showShare);
				one = { on: h("section", {}, h("h2", {}, s.destination ? `${s.set} to ${s.destination}` : s.set), head, picture.on, body), head, body, picture, lines: "" };
				shown.set(keys[n]!, one);
				sets.append(one.on);
			}
			text(one.head, about(s));
			one.head.className = s.trouble ? "bad" : "";
			draw(s, one);
		});
	}, signal);
});

function about(s: CollectiveState): string {
	if (s.trouble) return s.trouble;
	if (s.waiting) return "Waiting: its cgroup or unit is not there.";
	const resent = s.resent === undefined ? "" : `, ${showShare(s.resent)} of segments sent again${s.resent_before === undefined ? "" : ` (${showShare(s.resent_before)} before)`}`;
	return `${s.controlling ? "Controlled" : "Let go: there is enough for all"}${resent}.`;
}

function draw(s: CollectiveState, one: { body: HTMLElement; picture: Chart; lines: string }): void {
	const all = s.connections;
	const needs = (c: (typeof all)[number]): number => c.weight ?? rate(c.needs);
	const wanted = all.reduce((sum, c) => sum + needs(c), 0), has = all.reduce((sum, c) => sum + rate(c.rate), 0);
	const part = (of: number, whole: number): number => (whole === 0 ? 0 : of / whole);
	if (all.length === 0) fill(one.body, !s.trouble && !s.waiting && h("p", { class: "quiet" }, "It has no connections now: those that begin are taken in."));
	else fill(one.body, table(`Connections of ${s.set}`, [
		{ name: "Connection", cell: (c) => ends(`${c.local} →`, c.remote) },
		{ name: "Learned", cell: (c) => (c.weight !== undefined ? `weight ${c.weight}` : rate(c.needs) === 0 ? "not yet" : showRate(rate(c.needs))), number: true },
		{ name: "To have", cell: (c) => showShare(part(needs(c), wanted)), number: true },
		{ name: "Has", cell: (c) => showShare(part(rate(c.rate), has)), number: true },
		{ name: "Rate", cell: (c) => showRate(rate(c.rate)), number: true },
		{ name: "Round trip", cell: (c) => (c.rtt_ns ? showSeconds(c.rtt_ns / 1e9) : "–"), number: true, wide: true },
		{ name: "Cap", cell: (c) => (rate(c.pace) > 0 ? showRate(rate(c.pace)) : c.window && c.window !== "0" && c.window !== "0B" ? c.window : "–"), number: true, wide: true },
		{ name: "Sent again", cell: (c) => c.retransmits ?? "–", number: true, wide: true },
	], all));
	const first = all.slice(0, drawn);
	const lines = first.map((c) => c.id).join(" ");
	if (lines !== one.lines) {
		one.lines = lines;
		one.picture.has(first.map((c) => ({ name: `${c.local} → ${c.remote}`, stacked: true })));
	}
	one.picture.on.hidden = all.length === 0;
	if (all.length > 0) one.picture.push(Date.now() / 1000, first.map((c) => part(rate(c.rate), has)));
}
