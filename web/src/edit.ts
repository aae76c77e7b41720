// Changes without fear: what would be is shown first, and what was comes back with a press.
import type { Group, GroupPatch, GroupState } from "./api.gen";
import { fill, h } from "./dom";
import { add, edit, readMatch, remove, showMatch, type At, type Edit } from "./resources/groups";
import { isOperator } from "./session";
import { button, busy, field, made, table, words } from "./ui";
import { rate, showRate } from "./units";

/** preview shows what an edit would do, and makes it if one says so: it is true then. */
export async function preview(e: Edit, done: () => void): Promise<boolean> {
	const after = await e.tried();
	let is = false;
	const { on, close, closed } = dialog(e.before === undefined ? `Add ${e.path}?` : after === undefined ? `Remove ${e.path}?` : `Change ${e.path}?`);
	const error = h("p", { class: "error", role: "alert" });
	const rows = differences(e.before, after);
	const make = h("button", { type: "button", class: after === undefined ? "danger" : "primary" }, after === undefined ? "Remove" : e.before === undefined ? "Add" : "Change");
	make.addEventListener("click", () => void busy(make, async () => {
		try {
			await e.make();
		} catch (why) {
			fill(error, words(why));
			return;
		}
		is = true;
		close();
		done();
		made(e.done, () => e.undo(), done);
	}));
	fill(on, h("p", {}, "Tried, and not made yet."),
		table("What would change", [
			{ name: "What", cell: (r) => r[0] },
			{ name: "Now", cell: (r) => r[1] },
			{ name: "Then", cell: (r) => h("strong", {}, r[2]) },
		], rows),
		error, h("div", { class: "actions" }, button("Cancel", close), make));
	make.focus();
	await closed;
	return is;
}

function differences(a: GroupState | undefined, b: GroupState | undefined): [string, string, string][] {
	const of: [string, (g: GroupState) => string][] = [
		["Guaranteed", (g) => showRate(rate(g.rate))],
		["Guarantee", (g) => g.guarantee ?? "–"],
		["Ceiling", (g) => g.ceiling ?? "–"],
		["Never more than", (g) => (g.most ? showRate(rate(g.most)) : "–")],
		["Priority", (g) => String(g.priority ?? "–")],
		["Default", (g) => (g.default ? "yes" : "no")],
		["Tenant", (g) => g.tenant ?? "–"],
		["Takes", (g) => showMatch(g.match) || "–"],
		["Groups in it", (g) => String(count(g))],
	];
	const out: [string, string, string][] = [];
	for (const [name, show] of of) {
		const now = a ? show(a) : "–", then = b ? show(b) : "–";
		if (now !== then || name === "Guaranteed") out.push([name, now, b ? then : "gone"]);
	}
	return out;
}

function count(g: Group): number {
	return (g.groups ?? []).reduce((n, inner) => n + 1 + count(inner), 0);
}

/** form asks for a group's values: of one that is there, or of a new one in a parent. */
export function form(at: At, parents: string[], before: GroupState | undefined, etag: string, done: () => void): void {
	const { on, close } = dialog(before ? `Change ${before.path}` : "Add a group");
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off", spellcheck: "false" });
	const parent = h("select", {}, parents.map((p) => h("option", { value: p }, p === "" ? `the ${at.direction} direction itself` : p)));
	const guarantee = input(before?.guarantee), ceiling = input(before?.ceiling);
	const priority = h("input", { type: "number", min: 0, max: 6, value: before?.priority ?? null });
	const isDefault = h("input", { type: "checkbox", checked: before?.default ?? false });
	const tenant = input(before?.tenant);
	const match = h("textarea", { rows: 4, spellcheck: "false" });
	match.value = showMatch(before?.match);
	const error = h("p", { class: "error", role: "alert" });
	const submit = h("button", { type: "submit", class: "primary" }, "Show what would change");
	const f = h("form", {},
		!before && field("Name", name),
		!before && parents.length > 1 && field("In", parent),
		field("Guarantee", guarantee, "A rate such as 100Mbit, or a share of what it is in, such as 40%."),
		field("Ceiling", ceiling, "What it never gets more than; empty is no bound but the limit."),
		field("Rules", match, "A rule a line, such as: proto=tcp dport=80,443"),
		field("Priority", priority, "0 to 6, where spare bandwidth goes by priority."),
		h("div", { class: "check" }, h("label", {}, isDefault, " Takes what no other group takes")),
		isOperator() && field("Tenant", tenant, "Whose it is; what is in it is then that one's to divide."),
		error, h("div", { class: "actions" }, before && button("Remove", async () => {
			if (await preview(await remove(at, before.path), done)) close();
		}, "apart"), button("Cancel", close), submit));
	f.addEventListener("submit", (event) => {
		event.preventDefault();
		void busy(submit, async () => {
			try {
				const now = {
					guarantee: guarantee.value.trim() || undefined, ceiling: ceiling.value.trim() || undefined,
					priority: priority.value === "" ? undefined : Number(priority.value),
					default: isDefault.checked || undefined, match: match.value.trim() === "" ? undefined : readMatch(match.value),
					tenant: isOperator() ? tenant.value.trim() || undefined : before?.tenant,
				};
				const e = before ? edited(at, before, etag, now) : add(at, parent.value ? `${parent.value}/${name.value}` : name.value, given(now));
				if (!e) {
					fill(error, "Nothing is another than it was.");
					return;
				}
				if (await preview(e, done)) close();
			} catch (why) {
				fill(error, words(why));
			}
		});
	});
	fill(on, f);
	(before ? guarantee : name).focus();
}

type Values = { [name in "guarantee" | "ceiling" | "priority" | "default" | "match" | "tenant"]: Group[name] | undefined };

function given(v: Values): Group {
	return Object.fromEntries(Object.entries(v).filter(([, value]) => value !== undefined)) as Group;
}

function edited(at: At, before: GroupState, etag: string, now: Values): Edit | undefined {
	const patch: Record<string, unknown> = {};
	for (const [name, value] of Object.entries(now)) {
		const was = before[name as keyof Values];
		if (JSON.stringify(was ?? null) !== JSON.stringify(value ?? null) && !(was === false && value === undefined)) patch[name] = value ?? null;
	}
	return Object.keys(patch).length === 0 ? undefined : edit(at, before, etag, patch as GroupPatch);
}

function input(value: string | undefined): HTMLInputElement {
	return h("input", { value: value ?? null, autocomplete: "off", spellcheck: "false" });
}

/** dialog opens one; Escape closes it, and the keyboard goes back to where it was. */
export function dialog(name: string): { on: HTMLElement; close: () => void; closed: Promise<void> } {
	const on = h("div");
	const id = `d${++dialogs}`;
	const box = h("dialog", { "aria-labelledby": id }, h("h2", { id }, name), on);
	const back = document.activeElement as HTMLElement | null;
	const close = (): void => box.close();
	const closed = new Promise<void>((resolve) => {
		box.addEventListener("close", () => {
			box.remove();
			back?.focus();
			resolve();
		});
	});
	document.body.append(box);
	box.showModal();
	return { on, close, closed };
}
let dialogs = 0;
