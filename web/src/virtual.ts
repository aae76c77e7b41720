// Long tables: rows that are in the window are there, and those that are not take room alone.
import { fill, h, set, type Child } from "./dom";

export interface Column<T> {
	name: string;
	cell: (row: T) => Child;
	number?: boolean;
	/** Left out where there is little room, or not much. */
	wide?: boolean;
	wider?: boolean;
}

export interface Rows<T> {
	on: HTMLElement;
	/** show has these rows from now on. */
	show: (rows: T[]) => void;
	/** draw fills the cells of those in sight anew. */
	draw: () => void;
}

const height = 44; // px, as in style.css
const beyond = 8; // rows above and below those in sight
const pressable = "a, button, select";

/** rows is a table of any length; inSight is told which are, after that was another. */
export function rows<T>(caption: string, columns: Column<T>[], key: (row: T) => string, inSight: (rows: T[]) => void, signal: AbortSignal): Rows<T> {
	const above = h("tr", { class: "room", "aria-hidden": true }), below = h("tr", { class: "room", "aria-hidden": true });
	const body = h("tbody");
	const table = h("table", { class: "rows" }, h("caption", {}, caption),
		h("thead", {}, h("tr", { "aria-rowindex": 1 }, columns.map((c) => h("th", { scope: "col", class: kind(c) }, c.name)))), body);
	const on = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
	let all: T[] = [];
	let shown = "";
	let cells: { row: T; on: HTMLElement[] }[] = [];

	const draw = (): void => {
		for (const c of cells) columns.forEach((column, n) => refill(c.on[n]!, column.cell(c.row)));
	};
	const place = (): void => {
		const top = body.getBoundingClientRect().top;
		const first = Math.max(0, Math.min(all.length, Math.floor(-top / height) - beyond));
		const end = Math.min(all.length, Math.max(first, Math.ceil((innerHeight - top) / height) + beyond));
		const seen = all.slice(first, end);
		const now = `${first} ${all.length} ${seen.map(key).join("\n")}`;
		if (now === shown) return;
		shown = now;
		// What has the keyboard keeps it, if it is still there.
		const held = body.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
		const holder = held?.closest<HTMLElement>("tr[data-key]");
		const within = holder ? [...holder.querySelectorAll(pressable)].indexOf(held!) : -1;
		cells = seen.map((row) => ({ row, on: columns.map((c) => h("td", { class: kind(c) })) }));
		above.style.height = `${first * height}px`;
		below.style.height = `${(all.length - end) * height}px`;
		fill(body, first > 0 && above, cells.map((c, n) => h("tr", { "data-key": key(c.row), "aria-rowindex": first + n + 2 }, c.on)), end < all.length && below);
		draw();
		if (holder) {
			const again = [...body.querySelectorAll<HTMLElement>("tr[data-key]")].find((r) => r.dataset["key"] === holder.dataset["key"]);
			again?.querySelectorAll<HTMLElement>(pressable)[within]?.focus({ preventScroll: true });
		}
		inSight(seen);
	};
	let asked = 0;
	const later = (): void => {
		asked ||= requestAnimationFrame(() => {
			asked = 0;
			place();
		});
	};
	addEventListener("scroll", later, { passive: true, signal });
	addEventListener("resize", later, { passive: true, signal });
	return {
		on,
		draw,
		show: (now) => {
			all = now;
			shown = "";
			set(table, { "aria-rowcount": all.length + 1 });
			if (on.isConnected) place();
			else later();
		},
	};
}

/** kind is the class of a column's cells. */
export function kind<T>(c: Column<T>): string | null {
	return [c.number && "number", c.wide && "wide", c.wider && "wider"].filter(Boolean).join(" ") || null;
}

// A cell whose words are the same is not touched, nor one with what can be pressed.
function refill(on: HTMLElement, now: Child): void {
	if (typeof now === "string" || typeof now === "number") {
		if (on.textContent !== String(now)) on.textContent = String(now);
		return;
	}
	if (now instanceof HTMLElement && on.firstChild === now) return;
	if (on.firstElementChild && now instanceof HTMLElement && on.firstElementChild.isEqualNode(now)) return;
	fill(on, now);
}
