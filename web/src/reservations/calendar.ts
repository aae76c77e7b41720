// The calendar of reservations: time across, a reservation in each row. A bar has the color of its class and the
// pattern of its state; its name for screen readers says both.
import type { Reservation } from "../api.gen";
import { fill, h, set, text } from "../dom";
import { counted } from "../network/names";
import { button } from "../ui";
import { axis, place, type Span } from "./axis";
import { classOf, describe, fullName, keyOf, rates } from "./request";
import { day, hour, showTime } from "./times";

/** Calendar is the calendar on a page. */
export interface Calendar {
	on: HTMLElement;
	/** show replaces the reservations. */
	show: (all: Reservation[]) => void;
}

const zooms: { name: string; span: number }[] = [{ name: "Hour", span: hour }, { name: "6 hours", span: 6 * hour }, { name: "Day", span: day }, { name: "Week", span: 7 * day }];
const maxRows = 200; // rows in the document; a longer list is for the table, which is virtual
const before = 1 / 12; // the part of the calendar that is in the past, as long as it follows the present time

interface Row {
	on: HTMLElement;
	name: HTMLElement;
	about: HTMLElement;
	bar: HTMLElement;
	reservation: Reservation;
}

/** calendar returns a calendar, which calls open with the reservation that a user selects. */
export function calendar(open: (r: Reservation) => void, signal: AbortSignal): Calendar {
	let zoom = 2, from: number | undefined; // from is undefined as long as the calendar follows the present time
	let all: Reservation[] = [];
	const rows = new Map<string, Row>();
	const back = h("div"), list = h("ul"), note = h("p", { class: "quiet", role: "status" });
	const range = h("span", { class: "quiet" });
	const shown = (): Span => {
		const { span } = zooms[zoom]!, start = from ?? Date.now() - span * before;
		return { from: start, to: start + span };
	};
	const move = (part: number): void => {
		from = shown().from + part * zooms[zoom]!.span;
		draw();
	};
	const setZoom = (n: number): void => {
		if (!zooms[n]) return;
		const was = shown();
		// The middle of the calendar stays in the middle, unless it follows the present time.
		if (from !== undefined) from = (was.from + was.to - zooms[n].span) / 2;
		zoom = n;
		draw();
	};
	const buttons = zooms.map((z, n) => button(z.name, () => setZoom(n)));
	const now = button("Now", () => {
		from = undefined;
		draw();
	});
	const tool = (name: string, label: string, f: () => void): HTMLElement => {
		const b = button(name, f);
		set(b, { "aria-label": label });
		return b;
	};
	const box = h("div", { class: "calendar", tabindex: 0, role: "group", "aria-label": "Calendar. Arrow keys move it in time, + and - zoom, 0 returns to now." }, back, list);
	box.addEventListener("keydown", (e) => {
		const act: Record<string, () => void> = { ArrowLeft: () => move(-0.25), ArrowRight: () => move(0.25), "+": () => setZoom(zoom - 1), "-": () => setZoom(zoom + 1), "0": () => now.click() };
		if (e.ctrlKey || e.metaKey || e.altKey || !act[e.key]) return;
		e.preventDefault();
		act[e.key]!();
	});

	const row = (r: Reservation): Row => {
		const name = h("strong"), about = h("span", { class: "quiet" }), bar = h("button", { type: "button" });
		const out: Row = { on: h("li", {}, h("div", { class: "label" }, name, " ", about), h("div", { class: "lane" }, bar)), name, about, bar, reservation: r };
		bar.addEventListener("click", () => open(out.reservation));
		return out;
	};
	const draw = (): void => {
		const span = shown();
		const visible = all.filter((r) => Date.parse(r.end) > span.from && Date.parse(r.start) < span.to).toSorted((a, b) => Date.parse(a.start) - Date.parse(b.start) || (keyOf(a) < keyOf(b) ? -1 : 1));
		const drawn = visible.slice(0, maxRows);
		for (const r of drawn) {
			const one = rows.get(keyOf(r)) ?? row(r);
			rows.set(keyOf(r), one);
			one.reservation = r;
			text(one.name, fullName(r));
			text(one.about, `class ${classOf(r.request)}, ${rates(r.rate_bps, r.back_bps)}${r.state === "degraded" ? ", degraded" : ""}`);
			set(one.bar, { class: `span class${classOf(r.request)}`, "data-state": r.state, "aria-label": describe(r), title: describe(r) });
			place(one.bar, span, Date.parse(r.start), Date.parse(r.end));
		}
		const want = drawn.map((r) => rows.get(keyOf(r))!);
		for (const [key, one] of rows) if (!want.includes(one)) rows.delete(key);
		// The elements are moved only if their order differs, so that the focus in them is kept.
		if (want.length !== list.children.length || want.some((one, n) => list.children[n] !== one.on)) {
			const held = document.activeElement as HTMLElement | null;
			fill(list, want.map((one) => one.on));
			if (held && list.contains(held)) held.focus({ preventScroll: true });
		}
		fill(back, axis(span, Date.now()));
		buttons.forEach((b, n) => set(b, { "aria-pressed": String(n === zoom) }));
		set(now, { "aria-pressed": String(from === undefined) });
		text(range, `${showTime(span.from)} to ${showTime(span.to)}`);
		const outside = all.length - visible.length;
		text(note, [visible.length === 0 && "No reservation is in this time.", outside > 0 && `${counted(outside, "reservation is", "reservations are")} at other times.`,
			visible.length > maxRows && `The first ${maxRows} of ${visible.length} are shown; the list has all.`].filter(Boolean).join(" "));
	};
	addEventListener("resize", draw, { signal });
	const timer = setInterval(draw, 10_000); // the present time moves on
	signal.addEventListener("abort", () => clearInterval(timer));
	draw();
	return {
		on: h("section", {}, h("div", { class: "head" }, h("h2", {}, "Calendar"), range,
			h("div", { class: "tabs timetools", role: "group", "aria-label": "Time shown" }, tool("‹", "Earlier", () => move(-0.5)), now, tool("›", "Later", () => move(0.5)), buttons)), box, note, legend()),
		show: (now) => {
			all = now;
			draw();
		},
	};
}

/** legend explains the colors and patterns of bars. */
function legend(): HTMLElement {
	const key = (kind: string, state: string, words: string): HTMLElement => h("li", {}, h("i", { class: `span ${kind}`, "data-state": state, "aria-hidden": true }), words);
	return h("ul", { class: "keys" }, [1, 2, 3, 4].map((n) => key(`class${n}`, "active", `class ${n}`)),
		key("classnone", "scheduled", "scheduled"), key("classnone", "active", "active"), key("classnone", "degraded", "degraded"), key("classnone", "ended", "ended"));
}
