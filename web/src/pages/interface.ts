// Interface page: rates of the groups over time, the groups, and the assigned connections.
import { deleteConnection, getGroup, listConnections, putConnection, type Connection, type GroupRates, type GroupState, type Interface, type RateList } from "../api.gen";
import { allPages, withQuery } from "../call";
import { chart, type Line } from "../chart";
import { fill, h, text } from "../dom";
import { confirmEdit, form } from "../edit";
import { subscribe } from "../live";
import { formatRules, listAllGroups, remove, type Direction, type DirectionRef } from "../resources/groups";
import { getDocument } from "../resources/interfaces";
import { path, route } from "../router";
import { isTenantSession, mayChange } from "../session";
import { bar, button, command, empty, endpoints, field, notifyUndoable, runAction, table, title } from "../ui";
import { rate, showRate, showSeconds } from "../units";
import { virtualTable } from "../virtual";

route("/hosts/:/:", ([host, dev]) => `${dev} of ${host}`, async (on, args, signal) => {
	const [host, dev] = args as [string, string];
	const { data: doc } = await getDocument(host, dev);
	const directions = (["out", "in"] as const).filter((d) => doc[d]);
	const requested = new URLSearchParams(location.search).get("direction") as Direction | null;
	const direction = requested && directions.includes(requested) ? requested : directions[0];
	const head = title(dev, [h("a", { href: path("hosts", host) }, host), doc.dev === dev ? "" : `, configured by ${doc.dev}`]);
	if (!direction) {
		fill(on, head, empty("Neither direction is configured.", ["Write a file with a limit and groups, and apply it with ", command(`headgate apply -f FILE --server default --host ${host}`), "."]));
		return;
	}
	const tabs = h("nav", { class: "tabs", "aria-label": "Directions" }, directions.map((d) => h("a", { href: `${path("hosts", host, dev)}?direction=${d}`, "aria-current": d === direction ? "page" : null }, d === "out" ? "Out" : "In")));
	const page = h("div");
	fill(on, head, tabs, page);
	await directionOf(page, { host, dev: doc.dev ?? dev, direction }, dev, doc, signal);
});

const drawn = 8; // series in the chart of all groups, besides bounds

/** directionOf draws one direction of an interface. */
async function directionOf(on: HTMLElement, at: DirectionRef, dev: string, doc: Interface, signal: AbortSignal): Promise<void> {
	const limit = rate(doc[at.direction]?.limit);
	let groups = await listAllGroups(at);
	const now = new Map<string, GroupRates>(), before = new Map<string, { drops: number; marks: number; at: number }>(), perSecond = new Map<string, { drops: number; marks: number }>();
	const picture = chart(`Rates of the groups of ${dev} ${at.direction}`, signal);
	const which = h("select", { "aria-label": "Groups in the chart" });
	const rateTile = h("dd"), guaranteedTile = h("dd"), riskTile = h("dd"), note = h("p", { class: "quiet", role: "status" });

	// The chart shows the top-level groups, stacked, or one group with its guarantee and ceiling.
	let lines: { line: Line; value: () => number }[] = [];
	const delivered = (p: string): number => now.get(p)?.delivered_bps ?? 0;
	const choose = (): void => {
		const one = groups.find((g) => g.path === which.value);
		if (one) {
			lines = [{ line: { name: one.path, stacked: true }, value: () => delivered(one.path) }, { line: { name: "guarantee", dotted: true }, value: () => one.guaranteed_bps }];
			const ceiling = one.ceiling_bps || limit;
			if (ceiling) lines.push({ line: { name: one.ceiling_bps ? "ceiling" : "limit", dashed: true }, value: () => ceiling });
		} else {
			const top = topLevelGroups(groups).toSorted((a, b) => b.guaranteed_bps - a.guaranteed_bps);
			const own = top.slice(0, top.length > drawn ? drawn - 1 : drawn);
			lines = own.map((g) => ({ line: { name: g.path, stacked: true }, value: () => delivered(g.path) }));
			if (top.length > own.length) lines.push({ line: { name: "other groups", stacked: true }, value: () => Math.max(0, total - own.reduce((sum, g) => sum + delivered(g.path), 0)) });
			lines.push({ line: { name: "sum of guarantees", dotted: true }, value: () => guaranteedSum });
			if (limit) lines.push({ line: { name: "limit", dashed: true }, value: () => limit });
		}
		picture.setLines(lines.map((l) => l.line));
	};
	let total = 0, guaranteedSum = 0;
	which.addEventListener("change", () => {
		choose();
		subscribeRates(visible);
	});

	const reload = async (): Promise<void> => {
		groups = await listAllGroups(at);
		show();
	};
	const show = (): void => {
		const kept = which.value;
		fill(which, h("option", { value: "" }, "All groups"), groups.slice(0, 500).map((g) => h("option", { value: g.path, selected: g.path === kept }, g.path)));
		choose();
		list.show(groups);
	};
	const list = virtualTable<GroupState>("Groups", [
		{ name: "Group", cell: (g) => groupName(g) },
		{ name: "Match", cell: (g) => h("span", { class: "rules", title: rulesOf(g) }, rulesOf(g)), wider: true },
		{ name: "Guarantee", cell: (g) => showRate(g.guaranteed_bps), number: true },
		{ name: "Rate", cell: (g) => rateOf(g, now.get(g.path), limit) },
		{ name: "Borrowed", cell: (g) => of(g, (r) => (r.borrowed_bps > 0 ? showRate(r.borrowed_bps) : "–")), number: true, wide: true },
		{ name: "Lent", cell: (g) => of(g, (r) => (r.lent_bps > 0 ? showRate(r.lent_bps) : "–")), number: true, wide: true },
		{ name: "Unused", cell: (g) => of(g, (r) => (r.unused_bps > 0 ? showRate(r.unused_bps) : "–")), number: true, wide: true },
		{ name: "Queue delay", cell: (g) => of(g, (r) => (r.queue_delay_ns === undefined ? "–" : showSeconds(r.queue_delay_ns / 1e9))), number: true, wide: true },
		{ name: "Drops/s", cell: (g) => String(perSecond.get(g.path)?.drops ?? "–"), number: true, wide: true },
		{ name: "Marks/s", cell: (g) => String(perSecond.get(g.path)?.marks ?? "–"), number: true, wide: true },
		...(mayChange() ? [{ name: "Actions", cell: (g: GroupState) => actions(g) }] : []),
	], (g) => `${g.path} ${g.guaranteed_bps} ${g.tenant ?? ""} ${g.default ?? ""}`, (seen) => subscribeRates(seen), signal);
	const of = (g: GroupState, f: (r: GroupRates) => string): string => {
		const r = now.get(g.path);
		return r ? f(r) : "–";
	};

	// A tenant may change the groups below its own groups. The tenant's own groups belong to the operator.
	const mayEdit = (g: GroupState): boolean => !isTenantSession() || groups.some((p) => p.path !== g.path && g.path.startsWith(`${p.path}/`));
	const actionCells = new Map<string, HTMLElement | string>();
	const actions = (g: GroupState): HTMLElement | string => {
		const key = JSON.stringify(g);
		let cell = actionCells.get(key);
		if (cell === undefined) {
			cell = mayEdit(g) ? h("span", { class: "actions" }, button("Edit", async () => {
				const { data, etag } = await getGroup(at.host, at.dev, at.direction, g.path);
				form(at, [], data, etag, () => void reload());
			}, "plain"), button("Remove", async () => void (await confirmEdit(await remove(at, g.path), () => void reload())), "plain wide")) : "";
			if (cell instanceof HTMLElement) for (const b of cell.querySelectorAll("button")) b.setAttribute("aria-label", `${b.textContent} ${g.path}`);
			actionCells.set(key, cell);
		}
		return cell;
	};

	let subscription: AbortController | undefined;
	let visible: GroupState[] = [];
	const subscribeRates = (seen: GroupState[]): void => {
		visible = seen;
		subscription?.abort();
		subscription = new AbortController();
		// Rates are streamed for the groups in the window and in the chart.
		const wanted = new Set([...seen.map((g) => g.path), ...lines.map((l) => l.line.name), which.value].filter((p) => groups.some((g) => g.path === p)));
		const query: Record<string, string | string[]> = { dev, direction: at.direction };
		if (wanted.size < groups.length) query["group"] = [...wanted].slice(0, 200);
		subscribe(withQuery(path("v1", "hosts", at.host, "rates"), query), (data, status) => {
			if (status !== 200) {
				text(note, status === 404 ? "Agent disconnected. The kernel keeps enforcing the applied configuration; rates are not available." : "Rates are not available at the moment.");
				return;
			}
			text(note, "");
			draw(data as RateList);
		}, AbortSignal.any([subscription.signal, signal]));
	};
	const draw = (l: RateList): void => {
		const t = l.at ? Date.parse(l.at) / 1000 : Date.now() / 1000;
		for (const g of l.items) {
			const is = { drops: g.drops ?? 0, marks: g.marks ?? 0, at: t }, was = before.get(g.group);
			now.set(g.group, g);
			if (!was) before.set(g.group, is);
			else if (t - was.at >= 1) {
				const each = (a: number, b: number): number => Math.max(0, Math.round((a - b) / (t - was.at)));
				perSecond.set(g.group, { drops: each(is.drops, was.drops), marks: each(is.marks, was.marks) });
				before.set(g.group, is);
			}
		}
		const all = l.totals?.[0];
		total = all?.delivered_bps ?? 0;
		text(rateTile, limit && !isTenantSession() ? `${showRate(total)} of ${showRate(limit)}` : showRate(total));
		guaranteedSum = all?.guaranteed_bps ?? 0;
		text(guaranteedTile, showRate(guaranteedSum));
		text(riskTile, String(all?.at_risk ?? 0));
		riskTile.classList.toggle("bad", (all?.at_risk ?? 0) > 0);
		if (all) picture.push(t, lines.map((x) => x.value()));
		list.draw();
	};
	const parents = (): string[] => [...(isTenantSession() ? [] : [""]), ...groups.filter((g) => g.path.split("/").length < 3).map((g) => g.path)];
	fill(on,
		h("dl", { class: "tiles" }, h("div", {}, h("dt", {}, "Rate"), rateTile), h("div", {}, h("dt", {}, "Guaranteed"), guaranteedTile), h("div", {}, h("dt", {}, "Groups at risk"), riskTile)),
		note,
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Rates"), which), picture.on),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Groups"), mayChange() && button("Add a group", () => form(at, parents(), undefined, "", () => void reload()), "primary")),
			groups.length === 0 ? empty("No visible groups.", "An operator creates groups for a tenant.") : list.on),
		await connections(at, () => groups));
	show();
	// Reload the groups when another client has changed them.
	let shape = JSON.stringify(groups.slice(0, 1000));
	subscribe(withQuery(path("v1", "hosts", at.host, "interfaces", at.dev, at.direction, "groups"), { limit: "1000" }), (data, status) => {
		const first = JSON.stringify((data as { items?: GroupState[] } | undefined)?.items);
		if (status !== 200 || first === shape) return;
		shape = first;
		void reload();
	}, signal);
}

/** topLevelGroups returns the groups whose parent is not in the list. */
function topLevelGroups(groups: GroupState[]): GroupState[] {
	const paths = new Set(groups.map((g) => g.path));
	return groups.filter((g) => !paths.has(g.path.split("/").slice(0, -1).join("/")));
}

/** groupName shows a group's path, tenant, and whether it is a default group. */
function groupName(g: GroupState): HTMLElement {
	const parts = g.path.split("/");
	return h("span", { class: "group" }, h("span", {}, parts.slice(0, -1).map((p) => h("span", { class: "quiet" }, `${p}/`)), parts.at(-1) ?? ""),
		g.default && [" ", h("span", { class: "tag" }, "default")], g.tenant && [" ", h("span", { class: "tag" }, g.tenant)]);
}

/** rulesOf returns the rules of a group on one line. */
function rulesOf(g: GroupState): string {
	return formatRules(g.match).replaceAll("\n", "; ") || (g.default ? "default" : "–");
}

/** rateOf shows the rate of a group, as a part of its ceiling or limit, with a mark at the guarantee. */
function rateOf(g: GroupState, r: GroupRates | undefined, limit: number): HTMLElement | string {
	if (!r) return "–";
	const ceiling = g.ceiling_bps || limit || Math.max(r.guaranteed_bps, r.delivered_bps, 1);
	return h("span", { class: r.at_risk ? "busy rate risk" : "busy rate" }, bar(r.delivered_bps / ceiling, r.guaranteed_bps / ceiling), h("span", {}, showRate(r.delivered_bps), r.at_risk && h("span", { class: "tag bad" }, "at risk")));
}

/** connections shows the connections that were assigned to groups at run time. */
async function connections(at: DirectionRef, groups: () => GroupState[]): Promise<HTMLElement> {
	const on = h("section");
	const draw = async (): Promise<void> => {
		const list = await allPages((after) => listConnections(at.host, at.dev, { after, limit: 1000 }));
		const paths = groups().map((g) => g.path);
		const leaves = paths.filter((p) => !paths.some((other) => other.startsWith(`${p}/`)));
		const menu = (label: string, chosen?: string): HTMLSelectElement => h("select", { "aria-label": label }, leaves.map((p) => h("option", { value: p, selected: p === chosen }, p)));
		const put = async (connection: string, group: string): Promise<void> => {
			const { data, etag } = await putConnection(at.host, at.dev, connection, { group });
			const name = data.connection ?? connection;
			const before = list.find((c) => c.connection === name)?.group;
			notifyUndoable(`Assigned ${name} to ${group}`, async () => {
				if (before === undefined) await deleteConnection(at.host, at.dev, name, { ifMatch: etag });
				else await putConnection(at.host, at.dev, name, { group: before }, { ifMatch: etag });
			}, draw);
			await draw();
		};
		const back = async (c: Connection): Promise<void> => {
			const name = c.connection ?? "";
			await deleteConnection(at.host, at.dev, name);
			notifyUndoable(`Unassigned ${name}`, async () => void (await putConnection(at.host, at.dev, name, { group: c.group })), draw);
			await draw();
		};
		const actions = (c: Connection): HTMLElement => {
			// A selection alone moves nothing, because the arrow keys pass through all options of the menu.
			const to = menu(`Group of ${c.connection}`, c.group);
			const move = button("Move", () => put(c.connection ?? "", to.value)), rules = button("Unassign", () => back(c), "plain");
			move.setAttribute("aria-label", `Move ${c.connection}`);
			rules.setAttribute("aria-label", `Unassign ${c.connection}`);
			return h("span", { class: "actions" }, to, move, rules);
		};
		const name = h("input", { required: true, placeholder: "tcp 10.0.0.1:443 10.0.0.2:55000", autocomplete: "off", spellcheck: "false" });
		const to = menu("Group");
		const submit = h("button", { type: "submit" }, "Assign");
		const f = h("form", { class: "line" }, field("Connection", name), field("Group", to), submit);
		f.addEventListener("submit", (e) => {
			e.preventDefault();
			void runAction(submit, () => put(name.value.trim(), to.value));
		});
		fill(on, h("h2", {}, "Assigned connections"),
			list.length === 0 ? h("p", { class: "quiet" }, "No assigned connections: the rules apply to all.") : table("Assigned connections", [
				{ name: "Connection", cell: (c) => endpoints(...(c.connection ?? "").split(" ")) },
				{ name: "Group", cell: (c) => (mayChange() ? actions(c) : c.group) },
			], list),
			mayChange() && leaves.length > 0 && f);
	};
	await draw();
	return on;
}
