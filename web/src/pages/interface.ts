// One interface: who gets what over time, and the groups to change.
import { deleteConnection, getGroup, listConnections, putConnection, type Connection, type GroupState, type Interface, type RateList } from "../api.gen";
import { address, all } from "../call";
import { chart, type Line } from "../chart";
import { fill, h, text } from "../dom";
import { form, preview } from "../edit";
import { look } from "../live";
import { listed, remove, showMatch, type At, type Direction } from "../resources/groups";
import { documentOf } from "../resources/interfaces";
import { borrowed, delay, left, reading, type Reading } from "../resources/rates";
import { path, route } from "../router";
import { isTenants, mayChange } from "../session";
import { bar, busy, button, command, empty, ends, field, made, table, title } from "../ui";
import { rate, showRate, showSeconds } from "../units";
import { rows } from "../virtual";

route("/hosts/:/:", ([host, dev]) => `${dev} of ${host}`, async (on, args, signal) => {
	const [host, dev] = args as [string, string];
	const { data: doc } = await documentOf(host, dev);
	const has = (["out", "in"] as const).filter((d) => doc[d]);
	const asked = new URLSearchParams(location.search).get("direction") as Direction | null;
	const direction = asked && has.includes(asked) ? asked : has[0];
	const head = title(dev, [h("a", { href: path("hosts", host) }, host), doc.dev === dev ? "" : `, divided by ${doc.dev}`]);
	if (!direction) {
		fill(on, head, empty("Neither direction is divided.", ["Write a limit and groups, and apply them with ", command(`headgate apply -f FILE --server default --host ${host}`), "."]));
		return;
	}
	const tabs = h("nav", { class: "tabs", "aria-label": "Directions" }, has.map((d) => h("a", { href: `${path("hosts", host, dev)}?direction=${d}`, "aria-current": d === direction ? "page" : null }, d === "out" ? "Out" : "In")));
	const page = h("div");
	fill(on, head, tabs, page);
	await directionOf(page, { host, dev: doc.dev ?? dev, direction }, dev, doc, signal);
});

const drawn = 8; // groups of their own in the picture of all

async function directionOf(on: HTMLElement, at: At, dev: string, doc: Interface, signal: AbortSignal): Promise<void> {
	const limit = rate(doc[at.direction]?.limit);
	let groups = await listed(at);
	const now = new Map<string, Reading>(), before = new Map<string, Reading & { at: number }>(), perSecond = new Map<string, { drops: number; marks: number }>();
	const picture = chart(`Rates of the groups of ${dev} ${at.direction}`, signal);
	const which = h("select", { "aria-label": "Groups in the picture" });
	const carried = h("dd"), guaranteed = h("dd"), risk = h("dd"), note = h("p", { class: "quiet", role: "status" });

	// The picture: all at the top, stacked, or one with its guarantee and bounds.
	let lines: { line: Line; value: () => number }[] = [];
	const value = (p: string, f: (r: Reading) => number) => () => (now.has(p) ? f(now.get(p)!) : 0);
	const choose = (): void => {
		const one = groups.find((g) => g.path === which.value);
		if (one) {
			lines = [{ line: { name: one.path, stacked: true }, value: value(one.path, (r) => r.delivered) }, { line: { name: "guarantee", dotted: true }, value: () => rate(one.rate) }];
			const most = rate(one.most) || limit;
			if (most) lines.push({ line: { name: one.most ? "ceiling" : "limit", dashed: true }, value: () => most });
		} else {
			const top = tops(groups).toSorted((a, b) => rate(b.rate) - rate(a.rate));
			const own = top.slice(0, top.length > drawn ? drawn - 1 : drawn);
			lines = own.map((g) => ({ line: { name: g.path, stacked: true }, value: value(g.path, (r) => r.delivered) }));
			if (top.length > own.length) lines.push({ line: { name: "others", stacked: true }, value: () => Math.max(0, total - own.reduce((sum, g) => sum + (now.get(g.path)?.delivered ?? 0), 0)) });
			lines.push({ line: { name: "guaranteed together", dotted: true }, value: () => promised });
			if (limit) lines.push({ line: { name: "limit", dashed: true }, value: () => limit });
		}
		picture.has(lines.map((l) => l.line));
	};
	let total = 0, promised = 0;
	which.addEventListener("change", () => {
		choose();
		see(inSight);
	});

	const again = async (): Promise<void> => {
		groups = await listed(at);
		show();
	};
	const show = (): void => {
		const kept = which.value;
		fill(which, h("option", { value: "" }, "All groups"), groups.slice(0, 500).map((g) => h("option", { value: g.path, selected: g.path === kept }, g.path)));
		choose();
		list.show(groups);
	};
	const list = rows<GroupState>("Groups", [
		{ name: "Group", cell: (g) => named(g) },
		{ name: "Takes", cell: (g) => h("span", { class: "takes", title: takesOf(g) }, takesOf(g)), wider: true },
		{ name: "Guaranteed", cell: (g) => showRate(rate(g.rate)), number: true },
		{ name: "Has", cell: (g) => has(g, now.get(g.path), limit) },
		{ name: "Borrows", cell: (g) => of(g, (r) => (borrowed(r) > 0 ? showRate(borrowed(r)) : "–")), number: true, wide: true },
		{ name: "Leaves", cell: (g) => of(g, (r) => (left(r) > 0 ? showRate(left(r)) : "–")), number: true, wide: true },
		{ name: "Queue", cell: (g) => of(g, (r) => (delay(r) ? showSeconds(delay(r)!) : "–")), number: true, wide: true },
		{ name: "Drops/s", cell: (g) => String(perSecond.get(g.path)?.drops ?? "–"), number: true, wide: true },
		{ name: "Marks/s", cell: (g) => String(perSecond.get(g.path)?.marks ?? "–"), number: true, wide: true },
		...(mayChange() ? [{ name: "Change", cell: (g: GroupState) => actions(g) }] : []),
	], (g) => `${g.path} ${g.rate} ${g.tenant ?? ""} ${g.default ?? ""}`, (seen) => see(seen), signal);
	const of = (g: GroupState, f: (r: Reading) => string): string => {
		const r = now.get(g.path);
		return r ? f(r) : "–";
	};

	// A tenant changes what is in its groups; these themselves are the operator's.
	const mine = (g: GroupState): boolean => !isTenants() || groups.some((p) => p.path !== g.path && g.path.startsWith(`${p.path}/`));
	const pressed = new Map<string, HTMLElement | string>();
	const actions = (g: GroupState): HTMLElement | string => {
		const key = JSON.stringify(g);
		let made = pressed.get(key);
		if (made === undefined) {
			made = mine(g) ? h("span", { class: "actions" }, button("Edit", async () => {
				const { data, etag } = await getGroup(at.host, at.dev, at.direction, g.path);
				form(at, [], data, etag, () => void again());
			}, "plain"), button("Remove", async () => void (await preview(await remove(at, g.path), () => void again())), "plain wide")) : "";
			if (made instanceof HTMLElement) for (const b of made.querySelectorAll("button")) b.setAttribute("aria-label", `${b.textContent} ${g.path}`);
			pressed.set(key, made);
		}
		return made;
	};

	let seeing: AbortController | undefined;
	let inSight: GroupState[] = [];
	const see = (seen: GroupState[]): void => {
		inSight = seen;
		seeing?.abort();
		seeing = new AbortController();
		// Those in sight, and those in the picture.
		const wanted = new Set([...seen.map((g) => g.path), ...lines.map((l) => l.line.name), which.value].filter((p) => groups.some((g) => g.path === p)));
		const query: Record<string, string | string[]> = { dev, direction: at.direction };
		if (wanted.size < groups.length) query["group"] = [...wanted].slice(0, 200);
		look(address(path("v1", "hosts", at.host, "rates"), query), (data, status) => {
			if (status !== 200) {
				text(note, status === 404 ? "The agent of this host is not connected: what is in force goes on without it, and is not shown." : "Rates are not told at the moment.");
				return;
			}
			text(note, "");
			draw(data as RateList);
		}, AbortSignal.any([seeing.signal, signal]));
	};
	const draw = (l: RateList): void => {
		const t = l.at ? Date.parse(l.at) / 1000 : Date.now() / 1000;
		for (const g of l.items) {
			const r = reading(g), was = before.get(g.group);
			now.set(g.group, r);
			if (!was) before.set(g.group, { ...r, at: t });
			else if (t - was.at >= 1) {
				const each = (a: number, b: number): number => Math.max(0, Math.round((a - b) / (t - was.at)));
				perSecond.set(g.group, { drops: each(r.drops, was.drops), marks: each(r.marks, was.marks) });
				before.set(g.group, { ...r, at: t });
			}
		}
		const all = l.totals?.[0];
		total = rate(all?.delivered);
		text(carried, limit && !isTenants() ? `${showRate(total)} of ${showRate(limit)}` : showRate(total));
		promised = rate(all?.guaranteed);
		text(guaranteed, showRate(promised));
		text(risk, String(all?.at_risk ?? 0));
		risk.classList.toggle("bad", (all?.at_risk ?? 0) > 0);
		if (all) picture.push(t, lines.map((x) => x.value()));
		list.draw();
	};
	const parents = (): string[] => [...(isTenants() ? [] : [""]), ...groups.filter((g) => g.path.split("/").length < 3).map((g) => g.path)];
	fill(on,
		h("dl", { class: "tiles" }, h("div", {}, h("dt", {}, "Carries"), carried), h("div", {}, h("dt", {}, "Guaranteed"), guaranteed), h("div", {}, h("dt", {}, "Guarantees at risk"), risk)),
		note,
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Rates"), which), picture.on),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Groups"), mayChange() && button("Add a group", () => form(at, parents(), undefined, "", () => void again()), "primary")),
			groups.length === 0 ? empty("There are no groups you may see here.", "An operator gives a tenant its groups.") : list.on),
		await connections(at, () => groups));
	show();
	// Somebody else's change shows as well.
	let shape = JSON.stringify(groups.slice(0, 1000));
	look(address(path("v1", "hosts", at.host, "interfaces", at.dev, at.direction, "groups"), { limit: "1000" }), (data, status) => {
		const first = JSON.stringify((data as { items?: GroupState[] } | undefined)?.items);
		if (status !== 200 || first === shape) return;
		shape = first;
		void again();
	}, signal);
}

function tops(groups: GroupState[]): GroupState[] {
	const paths = new Set(groups.map((g) => g.path));
	return groups.filter((g) => !paths.has(g.path.split("/").slice(0, -1).join("/")));
}

function named(g: GroupState): HTMLElement {
	const parts = g.path.split("/");
	return h("span", { class: "group" }, h("span", {}, parts.slice(0, -1).map((p) => h("span", { class: "quiet" }, `${p}/`)), parts.at(-1) ?? ""),
		g.default && [" ", h("span", { class: "tag" }, "default")], g.tenant && [" ", h("span", { class: "tag" }, g.tenant)]);
}

function takesOf(g: GroupState): string {
	return showMatch(g.match).replaceAll("\n", "; ") || (g.default ? "what no other takes" : "–");
}

function has(g: GroupState, r: Reading | undefined, limit: number): HTMLElement | string {
	if (!r) return "–";
	const most = rate(g.most) || limit || Math.max(rate(g.rate), r.delivered);
	return h("span", { class: r.atRisk ? "busy rate risk" : "busy rate" }, bar(r.delivered / most, rate(g.rate) / most), h("span", {}, showRate(r.delivered), r.atRisk && h("span", { class: "tag bad" }, "at risk")));
}

// Connections that programs or people put in groups by name.
async function connections(at: At, groups: () => GroupState[]): Promise<HTMLElement> {
	const on = h("section");
	const draw = async (): Promise<void> => {
		const list = await all((after) => listConnections(at.host, at.dev, { after, limit: 1000 }));
		const paths = groups().map((g) => g.path);
		const leaves = paths.filter((p) => !paths.some((other) => other.startsWith(`${p}/`)));
		const menu = (label: string, chosen?: string): HTMLSelectElement => h("select", { "aria-label": label }, leaves.map((p) => h("option", { value: p, selected: p === chosen }, p)));
		const put = async (connection: string, group: string): Promise<void> => {
			const { data, etag } = await putConnection(at.host, at.dev, connection, { group });
			const name = data.connection ?? connection;
			const before = list.find((c) => c.connection === name)?.group;
			made(`${name} is in ${group}`, async () => {
				if (before === undefined) await deleteConnection(at.host, at.dev, name, { ifMatch: etag });
				else await putConnection(at.host, at.dev, name, { group: before }, { ifMatch: etag });
			}, draw);
			await draw();
		};
		const back = async (c: Connection): Promise<void> => {
			const name = c.connection ?? "";
			await deleteConnection(at.host, at.dev, name);
			made(`${name} is where the rules put it`, async () => void (await putConnection(at.host, at.dev, name, { group: c.group })), draw);
			await draw();
		};
		const actions = (c: Connection): HTMLElement => {
			// Choosing alone moves nothing: the arrow keys go through all of a menu.
			const to = menu(`Group of ${c.connection}`, c.group);
			const move = button("Move", () => put(c.connection ?? "", to.value)), rules = button("Back to the rules", () => back(c), "plain");
			move.setAttribute("aria-label", `Move ${c.connection}`);
			rules.setAttribute("aria-label", `Back to the rules with ${c.connection}`);
			return h("span", { class: "actions" }, to, move, rules);
		};
		const name = h("input", { required: true, placeholder: "tcp 10.0.0.1:443 10.0.0.2:55000", autocomplete: "off", spellcheck: "false" });
		const to = menu("Group");
		const submit = h("button", { type: "submit" }, "Put it in the group");
		const f = h("form", { class: "line" }, field("Connection", name), field("Group", to), submit);
		f.addEventListener("submit", (e) => {
			e.preventDefault();
			void busy(submit, () => put(name.value.trim(), to.value));
		});
		fill(on, h("h2", {}, "Connections in groups by name"),
			list.length === 0 ? h("p", { class: "quiet" }, "None: the groups' rules say where each belongs.") : table("Connections in groups by name", [
				{ name: "Connection", cell: (c) => ends(...(c.connection ?? "").split(" ")) },
				{ name: "Group", cell: (c) => (mayChange() ? actions(c) : c.group) },
			], list),
			mayChange() && leaves.length > 0 && f);
	};
	await draw();
	return on;
}
