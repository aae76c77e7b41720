// Forms and previews of group changes: each change is previewed by a dry run, and can be undone.
import type { Group, GroupPatch, GroupState } from "./api.gen";
import { fill, h } from "./dom";
import { add, edit, formatRules, parseRules, remove, type DirectionRef, type Edit } from "./resources/groups";
import { isOperator } from "./session";
import { button, errorText, field, notifyUndoable, runAction, table } from "./ui";
import { showRate } from "./units";

/** confirmEdit shows the result of a dry run, and applies the edit if the user confirms. It resolves to whether the edit was applied. */
export async function confirmEdit(e: Edit, done: () => void): Promise<boolean> {
	const after = await e.dryRun();
	let is = false;
	const { on, close, closed } = dialog(e.before === undefined ? `Add ${e.path}?` : after === undefined ? `Remove ${e.path}?` : `Change ${e.path}?`);
	const error = h("p", { class: "error", role: "alert" });
	const rows = changedFields(e.before, after);
	const make = h("button", { type: "button", class: after === undefined ? "danger" : "primary" }, after === undefined ? "Remove" : e.before === undefined ? "Add" : "Apply");
	make.addEventListener("click", () => void runAction(make, async () => {
		try {
			await e.apply();
		} catch (why) {
			fill(error, errorText(why));
			return;
		}
		is = true;
		close();
		done();
		notifyUndoable(e.notification, () => e.undo(), done);
	}));
	fill(on, h("p", {}, "Dry run: nothing has changed yet."),
		table("Changes", [
			{ name: "Field", cell: (r) => r[0] },
			{ name: "Current", cell: (r) => r[1] },
			{ name: "New", cell: (r) => h("strong", {}, r[2]) },
		], rows),
		error, h("div", { class: "actions" }, button("Cancel", close), make));
	make.focus();
	await closed;
	return is;
}

/** changedFields returns the fields that differ, as name, current value and new value. The guaranteed rate is always included. */
function changedFields(a: GroupState | undefined, b: GroupState | undefined): [string, string, string][] {
	const of: [string, (g: GroupState) => string][] = [
		["Guaranteed rate", (g) => showRate(g.guaranteed_bps)],
		["Guarantee", (g) => g.guarantee ?? "–"],
		["Ceiling", (g) => g.ceiling ?? "–"],
		["Effective ceiling", (g) => (g.ceiling_bps ? showRate(g.ceiling_bps) : "–")],
		["Priority", (g) => String(g.priority ?? "–")],
		["Default", (g) => (g.default ? "yes" : "no")],
		["Tenant", (g) => g.tenant ?? "–"],
		["Match", (g) => formatRules(g.match) || "–"],
		["Child groups", (g) => String(count(g))],
	];
	const out: [string, string, string][] = [];
	for (const [name, show] of of) {
		const now = a ? show(a) : "–", then = b ? show(b) : "–";
		if (now !== then || name === "Guaranteed rate") out.push([name, now, b ? then : "removed"]);
	}
	return out;
}

/** count returns the number of groups below a group. */
function count(g: Group): number {
	return (g.groups ?? []).reduce((n, inner) => n + 1 + count(inner), 0);
}

/** form opens the form of a group: to edit the group before, or to add a group to one of the parents. */
export function form(at: DirectionRef, parents: string[], before: GroupState | undefined, etag: string, done: () => void): void {
	const { on, close } = dialog(before ? `Edit ${before.path}` : "Add a group");
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off", spellcheck: "false" });
	const parent = h("select", {}, parents.map((p) => h("option", { value: p }, p === "" ? `none (top level of ${at.direction})` : p)));
	const guarantee = input(before?.guarantee), ceiling = input(before?.ceiling);
	const priority = h("input", { type: "number", min: 0, max: 6, value: before?.priority ?? null });
	const isDefault = h("input", { type: "checkbox", checked: before?.default ?? false });
	const tenant = input(before?.tenant);
	const match = h("textarea", { rows: 4, spellcheck: "false" });
	match.value = formatRules(before?.match);
	const error = h("p", { class: "error", role: "alert" });
	const submit = h("button", { type: "submit", class: "primary" }, "Preview changes");
	const f = h("form", {},
		!before && field("Name", name),
		!before && parents.length > 1 && field("Parent group", parent),
		field("Guarantee", guarantee, "A rate such as 100Mbit, or a percentage such as 40% of the parent group's guarantee (at the top level, of the limit)."),
		field("Ceiling", ceiling, "The maximum rate. Empty: the limit."),
		field("Rules", match, "One rule per line, such as: proto=tcp dport=80,443"),
		field("Priority", priority, "0 (served first) to 6, for the spare policy priority."),
		h("div", { class: "check" }, h("label", {}, isDefault, " Default group: gets the packets that no rule matches")),
		isOperator() && field("Tenant", tenant, "The tenant that owns this group and may divide it into groups."),
		error, h("div", { class: "actions" }, before && button("Remove", async () => {
			if (await confirmEdit(await remove(at, before.path), done)) close();
		}, "apart"), button("Cancel", close), submit));
	f.addEventListener("submit", (event) => {
		event.preventDefault();
		void runAction(submit, async () => {
			try {
				const now = {
					guarantee: guarantee.value.trim() || undefined, ceiling: ceiling.value.trim() || undefined,
					priority: priority.value === "" ? undefined : Number(priority.value),
					default: isDefault.checked || undefined, match: match.value.trim() === "" ? undefined : parseRules(match.value),
					tenant: isOperator() ? tenant.value.trim() || undefined : before?.tenant,
				};
				const e = before ? editOf(at, before, etag, now) : add(at, parent.value ? `${parent.value}/${name.value}` : name.value, withoutUndefined(now));
				if (!e) {
					fill(error, "Nothing has changed.");
					return;
				}
				if (await confirmEdit(e, done)) close();
			} catch (why) {
				fill(error, errorText(why));
			}
		});
	});
	fill(on, f);
	(before ? guarantee : name).focus();
}

/** Values has the fields of the form. */
type Values = { [name in "guarantee" | "ceiling" | "priority" | "default" | "match" | "tenant"]: Group[name] | undefined };

/** withoutUndefined returns a group with the fields that have a value. */
function withoutUndefined(v: Values): Group {
	return Object.fromEntries(Object.entries(v).filter(([, value]) => value !== undefined)) as Group;
}

/** editOf returns the edit that sets the changed fields, or undefined if no field has changed. */
function editOf(at: DirectionRef, before: GroupState, etag: string, now: Values): Edit | undefined {
	const patch: Record<string, unknown> = {};
	for (const [name, value] of Object.entries(now)) {
		const was = before[name as keyof Values];
		if (JSON.stringify(was ?? null) !== JSON.stringify(value ?? null) && !(was === false && value === undefined)) patch[name] = value ?? null;
	}
	return Object.keys(patch).length === 0 ? undefined : edit(at, before, etag, patch as GroupPatch);
}

/** input returns a text input with a value. */
function input(value: string | undefined): HTMLInputElement {
	return h("input", { value: value ?? null, autocomplete: "off", spellcheck: "false" });
}

/** dialog opens a modal dialog. Escape closes the dialog, and the focus returns to the element that had the focus before. */
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
