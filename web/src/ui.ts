// Building blocks of pages: headings, buttons, tables, form fields, dialogs and notifications.
import { Problem } from "./call";
import { h, type Child } from "./dom";
import { cellClass, type Column } from "./virtual";

/** title returns the header of a page: its heading, a subtitle and its actions. */
export function title(name: string, about: Child = null, ...actions: Child[]): HTMLElement {
	return h("header", { class: "title" }, h("div", {}, h("h1", { tabindex: -1 }, name), about && h("p", {}, about)), actions.length > 0 && h("div", { class: "actions" }, actions));
}

/** button returns a button that is disabled while its action runs. */
export function button(words: string, onclick: () => void | Promise<void>, kind = ""): HTMLButtonElement {
	const b = h("button", { type: "button", class: kind }, words);
	b.addEventListener("click", () => void runAction(b, onclick));
	return b;
}

/** runAction disables a button while f runs, and shows the error if f fails. */
export async function runAction(b: HTMLButtonElement, f: () => void | Promise<void>): Promise<void> {
	b.disabled = true;
	try {
		await f();
	} catch (e) {
		notify(errorText(e), "bad");
	} finally {
		b.disabled = false;
	}
}

/** errorText returns the text of an error, with the message of each invalid field. */
export function errorText(e: unknown): string {
	if (e instanceof Problem && e.fields.length > 0) return `${e.message}: ${e.fields.map((f) => (f.field ? `${f.field}: ${f.message}` : f.message)).join("; ")}`;
	return e instanceof Error ? e.message : String(e);
}

/** notifications contains the notifications on the page. */
const notifications = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

/** notify shows a notification with optional actions, and returns a function that closes it. */
export function notify(what: string, kind: "good" | "bad" = "good", ...actions: Child[]): () => void {
	if (!notifications.isConnected) document.body.append(notifications);
	const close = (): void => {
		const held = one.contains(document.activeElement);
		one.remove();
		// The removed element had the focus: the focus moves to the heading of the page.
		if (held) document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
	};
	const one: HTMLElement = h("div", { class: `toast ${kind}` }, h("span", {}, what), actions, button("Dismiss", close, "plain"));
	notifications.append(one);
	// A notification with actions stays until it is dismissed. At most three notifications are shown.
	if (actions.length === 0) setTimeout(() => one.remove(), 20_000);
	while (notifications.childElementCount > 3) notifications.firstElementChild?.remove();
	return close;
}

/** notifyUndoable shows a notification of a change, with a button that undoes the change and then calls then. */
export function notifyUndoable(what: string, undo: () => Promise<void>, then: () => void | Promise<void>): void {
	const close = notify(what, "good", button("Undo", async () => {
		await undo();
		close();
		notify(`Undone: ${what}`);
		await then();
	}));
}

/** empty returns the empty state of a list: what is missing, and the next step. */
export function empty(what: string, next: Child): HTMLElement {
	return h("div", { class: "empty" }, h("p", {}, what), h("p", {}, next));
}

/** command returns the text of a command to type. */
export function command(text: string): HTMLElement {
	return h("code", { class: "command" }, text);
}

/** endpoints returns the parts of a connection, such as its endpoints. No part is broken across lines. */
export function endpoints(...parts: string[]): HTMLElement {
	return h("code", { class: "ends" }, parts.map((p, n) => [n > 0 && " ", h("span", {}, p)]));
}

/** table returns a table with a header row. Only screen readers read the caption. */
export function table<T>(caption: string, columns: Column<T>[], rows: T[]): HTMLElement {
	return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
		h("table", {}, h("caption", {}, caption),
			h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: cellClass(c) }, c.name)))),
			h("tbody", {}, rows.map((r) => h("tr", {}, columns.map((c) => h("td", { class: cellClass(c) }, c.cell(r))))))));
}

/** bar shows a part of a whole (0 to 1), with an optional mark at the guarantee. */
export function bar(part: number, mark?: number): HTMLElement {
	const shown = Math.max(0, Math.min(1, part));
	const fill = h("i"), line = h("b");
	fill.style.width = `${(100 * shown).toFixed(1)}%`;
	if (mark !== undefined) line.style.left = `${(100 * Math.min(1, mark)).toFixed(1)}%`;
	return h("span", { class: "bar", "aria-hidden": true }, fill, mark !== undefined && line);
}

/** field returns an input with its label and an optional hint. */
export function field(label: string, input: HTMLElement, help: Child = null): HTMLElement {
	const id = (input.id ||= `f${++fields}`);
	if (help) input.setAttribute("aria-describedby", `${id}-help`);
	return h("div", { class: "field" }, h("label", { for: id }, label), input, help && h("p", { class: "help", id: `${id}-help` }, help));
}
let fields = 0;

/** confirmDialog opens a confirmation dialog, and resolves to true if the user confirms. */
export function confirmDialog(name: string, body: Child, yes: string, kind = "primary", no = "Cancel"): Promise<boolean> {
	return new Promise((resolve) => {
		const accept = h("button", { type: "submit", class: kind, value: "yes" }, yes);
		const on = h("dialog", { "aria-label": name }, h("form", { method: "dialog" }, h("h2", {}, name), body, h("div", { class: "actions" }, h("button", { type: "submit", value: "no" }, no), accept)));
		on.addEventListener("close", () => {
			resolve(on.returnValue === "yes");
			on.remove();
		});
		document.body.append(on);
		on.showModal();
	});
}
