// Virtual tables: only rows in or near the window are in the document. Spacer rows replace all others.
import { fill, h, set, type Child } from "./dom";

/** Column describes a column of a table. */
export interface Column<T> {
	name: string;
	cell: (row: T) => Child;
	/** Align right, as numbers. */
	number?: boolean;
	/** Hide the column in windows up to 900 px wide. */
	wide?: boolean;
	/** Hide the column in windows up to 1,300 px wide. */
	wider?: boolean;
	/** Text or number by which a virtual table can be sorted. Rows without one come last. */
	sort?: (row: T) => string | number | undefined;
}

/** Rows is a virtual table. */
export interface Rows<T> {
	on: HTMLElement;
	/** show replaces the rows. */
	show: (rows: T[]) => void;
	/** draw refreshes the cells of the rows in the document. */
	draw: () => void;
}

const height = 44; // px of a row, as in style.css
const overscan = 8; // rows that are drawn above and below the window
const focusable = "a, button, select";

/** virtualTable returns a virtual table. It calls onVisible with the rows in the document whenever these change. */
export function virtualTable<T>(caption: string, columns: Column<T>[], key: (row: T) => string, onVisible: (rows: T[]) => void, signal: AbortSignal): Rows<T> {
	const above = h("tr", { class: "spacer", "aria-hidden": true }), below = h("tr", { class: "spacer", "aria-hidden": true });
	const body = h("tbody");
	const heads = columns.map((c) => h("th", { scope: "col", class: cellClass(c) }, c.sort ? h("button", { type: "button", class: "sort", onclick: () => sortBy(c) }, c.name) : c.name));
	const table = h("table", { class: "rows" }, h("caption", {}, caption), h("thead", {}, h("tr", { "aria-rowindex": 1 }, heads)), body);
	const on = h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, table);
	let given: T[] = [], all: T[] = [];
	let order: { by: Column<T>; down: boolean } | undefined;
	let updated = false; // the rows in the document may have other values
	let shown = "";
	let cells: { row: T; on: HTMLElement[] }[] = [];

	const draw = (): void => {
		for (const c of cells) columns.forEach((column, n) => updateCell(c.on[n]!, column.cell(c.row)));
	};
	const place = (): void => {
		const top = body.getBoundingClientRect().top;
		const first = Math.max(0, Math.min(all.length, Math.floor(-top / height) - overscan));
		const end = Math.min(all.length, Math.max(first, Math.ceil((innerHeight - top) / height) + overscan));
		const seen = all.slice(first, end);
		const now = `${first} ${all.length} ${seen.map(key).join("\n")}`;
		if (now === shown) {
			// The elements stay, so that a click or the focus in them is not lost.
			if (updated) cells.forEach((c, n) => (c.row = seen[n]!));
			if (updated) draw();
			updated = false;
			return;
		}
		shown = now;
		updated = false;
		// The element with the focus keeps the focus if its row is still in the document.
		const held = body.contains(document.activeElement) ? (document.activeElement as HTMLElement) : null;
		const holder = held?.closest<HTMLElement>("tr[data-key]");
		const within = holder ? [...holder.querySelectorAll(focusable)].indexOf(held!) : -1;
		cells = seen.map((row) => ({ row, on: columns.map((c) => h("td", { class: cellClass(c) })) }));
		above.style.height = `${first * height}px`;
		below.style.height = `${(all.length - end) * height}px`;
		fill(body, first > 0 && above, cells.map((c, n) => h("tr", { "data-key": key(c.row), "aria-rowindex": first + n + 2 }, c.on)), end < all.length && below);
		draw();
		if (holder) {
			const again = [...body.querySelectorAll<HTMLElement>("tr[data-key]")].find((r) => r.dataset["key"] === holder.dataset["key"]);
			again?.querySelectorAll<HTMLElement>(focusable)[within]?.focus({ preventScroll: true });
		}
		onVisible(seen);
	};
	const sortBy = (by: Column<T>): void => {
		// Numbers are of interest from the highest on.
		order = { by, down: order?.by === by ? !order.down : Boolean(by.number) };
		heads.forEach((th, n) => set(th, { "aria-sort": columns[n] === by ? (order?.down ? "descending" : "ascending") : null }));
		show(given);
	};
	const show = (now: T[]): void => {
		given = now;
		all = order?.by.sort ? sorted(now, order.by.sort, order.down) : now;
		updated = true;
		set(table, { "aria-rowcount": all.length + 1 });
		if (on.isConnected) place();
		else later();
	};
	let pendingFrame = 0;
	const later = (): void => {
		pendingFrame ||= requestAnimationFrame(() => {
			pendingFrame = 0;
			place();
		});
	};
	addEventListener("scroll", later, { passive: true, signal });
	addEventListener("resize", later, { passive: true, signal });
	return { on, draw, show };
}

/** sorted returns rows in the order of their values. Numbers in text are compared as numbers: s2 is before s10. */
export function sorted<T>(rows: T[], value: (row: T) => string | number | undefined, down: boolean): T[] {
	return rows.toSorted((x, y) => {
		const a = value(x), b = value(y);
		if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
		const n = typeof a === "number" && typeof b === "number" ? a - b : collator.compare(String(a), String(b));
		return down ? -n : n;
	});
}
const collator = new Intl.Collator("en", { numeric: true });

/** cellClass returns the CSS class of the cells of a column. */
export function cellClass<T>(c: Column<T>): string | null {
	return [c.number && "number", c.wide && "wide", c.wider && "wider"].filter(Boolean).join(" ") || null;
}

/** updateCell updates a cell. It leaves a cell alone whose content is equal, so that the focus in it is kept. */
function updateCell(on: HTMLElement, now: Child): void {
	if (typeof now === "string" || typeof now === "number") {
		if (on.textContent !== String(now)) on.textContent = String(now);
		return;
	}
	if (now instanceof HTMLElement && on.firstChild === now) return;
	if (on.firstElementChild && now instanceof HTMLElement && on.firstElementChild.isEqualNode(now)) return;
	fill(on, now);
}
