// What pages are made of.
import { Problem } from "./call";
import { h, type Child } from "./dom";
import { kind, type Column } from "./virtual";

/** title is a page's head: its name, what it is about, and what can be done. */
export function title(name: string, about: Child = null, ...actions: Child[]): HTMLElement {
	return h("header", { class: "title" }, h("div", {}, h("h1", { tabindex: -1 }, name), about && h("p", {}, about)), actions.length > 0 && h("div", { class: "actions" }, actions));
}

export function button(words: string, onclick: () => void | Promise<void>, kind = ""): HTMLButtonElement {
	const b = h("button", { type: "button", class: kind }, words);
	b.addEventListener("click", () => void busy(b, onclick));
	return b;
}

/** busy lets nobody press twice, and says what went wrong. */
export async function busy(b: HTMLButtonElement, f: () => void | Promise<void>): Promise<void> {
	b.disabled = true;
	try {
		await f();
	} catch (e) {
		say(words(e), "bad");
	} finally {
		b.disabled = false;
	}
}

/** words are an error's, for people. */
export function words(e: unknown): string {
	if (e instanceof Problem && e.fields.length > 0) return `${e.message}: ${e.fields.map((f) => (f.field ? `${f.field}: ${f.message}` : f.message)).join("; ")}`;
	return e instanceof Error ? e.message : String(e);
}

const spoken = h("div", { class: "toasts", role: "status", "aria-live": "polite" });

/** say tells of something in passing, with what can be done about it, and gives what takes that away. */
export function say(what: string, kind: "good" | "bad" = "good", ...actions: Child[]): () => void {
	if (!spoken.isConnected) document.body.append(spoken);
	const close = (): void => {
		const held = one.contains(document.activeElement);
		one.remove();
		// The keyboard goes on with the page.
		if (held) document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true });
	};
	const one: HTMLElement = h("div", { class: `toast ${kind}` }, h("span", {}, what), actions, button("Dismiss", close, "plain"));
	spoken.append(one);
	// What can be done about it stays until it is dismissed; of those the newest three.
	if (actions.length === 0) setTimeout(() => one.remove(), 20_000);
	while (spoken.childElementCount > 3) spoken.firstElementChild?.remove();
	return close;
}

/** made tells of a change, and takes it back at a press. */
export function made(what: string, undo: () => Promise<void>, then: () => void | Promise<void>): void {
	const close = say(what, "good", button("Undo", async () => {
		await undo();
		close();
		say(`Taken back: ${what}`);
		await then();
	}));
}

/** empty is shown where there is nothing, with what to do next. */
export function empty(what: string, next: Child): HTMLElement {
	return h("div", { class: "empty" }, h("p", {}, what), h("p", {}, next));
}

/** command is one to type. */
export function command(text: string): HTMLElement {
	return h("code", { class: "command" }, text);
}

/** ends are a connection's, each whole on its line. */
export function ends(...parts: string[]): HTMLElement {
	return h("code", { class: "ends" }, parts.map((p, n) => [n > 0 && " ", h("span", {}, p)]));
}

/** table has a caption that is read out, and a head. */
export function table<T>(caption: string, columns: Column<T>[], rows: T[]): HTMLElement {
	return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
		h("table", {}, h("caption", {}, caption),
			h("thead", {}, h("tr", {}, columns.map((c) => h("th", { scope: "col", class: kind(c) }, c.name)))),
			h("tbody", {}, rows.map((r) => h("tr", {}, columns.map((c) => h("td", { class: kind(c) }, c.cell(r))))))));
}

/** bar shows a part of a whole, and where the guarantee is. */
export function bar(part: number, mark?: number): HTMLElement {
	const shown = Math.max(0, Math.min(1, part));
	const fill = h("i"), line = h("b");
	fill.style.width = `${(100 * shown).toFixed(1)}%`;
	if (mark !== undefined) line.style.left = `${(100 * Math.min(1, mark)).toFixed(1)}%`;
	return h("span", { class: "bar", "aria-hidden": true }, fill, mark !== undefined && line);
}

/** field is a labelled input with words that help. */
export function field(label: string, input: HTMLElement, help: Child = null): HTMLElement {
	const id = (input.id ||= `f${++fields}`);
	if (help) input.setAttribute("aria-describedby", `${id}-help`);
	return h("div", { class: "field" }, h("label", { for: id }, label), input, help && h("p", { class: "help", id: `${id}-help` }, help));
}
let fields = 0;

/** ask opens a dialog, and is true if it was said yes to. */
export function ask(name: string, body: Child, yes: string, kind = "primary"): Promise<boolean> {
	return new Promise((resolve) => {
		const accept = h("button", { type: "submit", class: kind, value: "yes" }, yes);
		const on = h("dialog", { "aria-label": name }, h("form", { method: "dialog" }, h("h2", {}, name), body, h("div", { class: "actions" }, h("button", { type: "submit", value: "no" }, "Cancel"), accept)));
		on.addEventListener("close", () => {
			resolve(on.returnValue === "yes");
			on.remove();
		});
		document.body.append(on);
		on.showModal();
	});
}
