// The availability of a link over time, with sliders for a rate and a duration that show when such a request would fit.
import type { Network, NetworkPortID, Reservation, ReservationCalendar } from "../api.gen";
import { withQuery } from "../call";
import { fill, h, set, svg, text } from "../dom";
import { subscribe } from "../live";
import { hostName, Names } from "../network/names";
import { button, field, table } from "../ui";
import { showRate } from "../units";
import { enough, freeOf, starts, type Free } from "./availability";
import { axis, place, type Span } from "./axis";
import { portText, type NameOf } from "./request";
import { day, formatLength, hour, showLength, showTime } from "./times";

/** Wish is what the sliders ask for. */
export interface Wish {
	/** bit/s */
	rate: number;
	duration: string;
	/** The first start that fits; undefined for now, or if none does. */
	start: number | undefined;
}

/** Links is the section on a page. */
export interface Links {
	on: HTMLElement;
	/** show replaces the links that can be selected. */
	show: (network: Network | undefined, all: Reservation[]) => void;
}

const lengths = [1 / 12, 1 / 4, 1 / 2, 1, 2, 3, 4, 6, 8, 12, 24, 48, 72, 120].map((hours) => hours * hour);
const unlimited = 10e9; // bit/s at the end of the slider, for a link without a limit
const horizon = 7 * day; // as the API answers without a time

/** links returns the section. use is called with what the sliders ask for, and is undefined for users who cannot reserve. */
export function links(nameOf: NameOf, use: ((w: Wish) => void) | undefined, signal: AbortSignal): Links {
	const which = h("select");
	const rate = h("input", { type: "range", min: 1, max: 100, value: 20 }), length = h("input", { type: "range", min: 0, max: lengths.length - 1, value: 4 });
	const rateIs = h("output"), lengthIs = h("output"), answer = h("p", { role: "status" }), note = h("p", { class: "bad", role: "status" });
	const picture = h("div", { class: "free", role: "img", hidden: true, "aria-label": "Free rate over the next week" }), steps = h("div"), details = h("details", {}, h("summary", {}, "Steps"), steps);
	const body = h("div", { hidden: true });
	const link = field("Link and direction", which), asked = [field("Rate", rate), field("Duration", length)];
	asked[0]!.append(rateIs);
	asked[1]!.append(lengthIs);
	const take = use && button("Use in what-if", () => use({ rate: wanted(), duration: formatLength(lasting()), start: first() }));
	fill(body, h("div", { class: "form" }, link, asked), answer, picture, legend(), take && h("div", { class: "actions" }, take), details);

	let calendar: ReservationCalendar | undefined, now = Date.now();
	const wanted = (): number => ((calendar?.limit_bps ?? unlimited) * Number(rate.value)) / 100;
	const lasting = (): number => lengths[Number(length.value)]!;
	const free = (): Free[] => (calendar ? freeOf(calendar, now + horizon) : []);
	const first = (): number | undefined => {
		const at = starts(free(), wanted(), lasting())[0]?.from;
		return at === undefined || at <= now + 1000 ? undefined : at;
	};
	const draw = (): void => {
		picture.hidden = answer.hidden = !calendar;
		if (!calendar) return;
		const all = free(), fit = starts(all, wanted(), lasting());
		const shown: Span = { from: now, to: now + horizon };
		text(rateIs, showRate(wanted()));
		text(lengthIs, showLength(lasting()));
		set(rate, { "aria-valuetext": showRate(wanted()) });
		set(length, { "aria-valuetext": showLength(lasting()) });
		const what = `${showRate(wanted())} for ${showLength(lasting())}`;
		const words = fit.length === 0 ? `${what} fits at no time of the next week on this link.`
			: `${what} fits on this link if it starts ${fit.slice(0, 3).map((s) => startText(s, now)).join(", or ")}${fit.length > 3 ? `, or in ${fit.length - 3} later times` : ""}.`;
		text(answer, words);
		set(answer, { class: fit.length === 0 ? "bad" : null });
		const bands = enough(all, wanted()).filter((s) => s.to - s.from >= lasting()).map((s) => {
			const band = h("b");
			place(band, shown, s.from, s.to);
			return band;
		});
		fill(picture, axis(shown, now), h("div", { class: "bands" }, bands), graph(all, calendar.limit_bps ?? unlimited, wanted(), shown),
			h("span", { class: "quiet top" }, calendar.limit_bps === undefined ? "no limit" : `limit ${showRate(calendar.limit_bps)}`));
		set(picture, { "aria-label": `Free rate over the next week. ${words}` });
	};
	const list = (): void => {
		if (!details.open || !calendar) return;
		fill(steps, table("Steps of the calendar", [
			{ name: "From", cell: (f: Free) => showTime(f.from) },
			{ name: "To", cell: (f) => showTime(f.to) },
			{ name: "Free", cell: (f) => (f.free === Infinity ? "no limit" : showRate(f.free)), number: true },
		], free()));
	};
	for (const slider of [rate, length]) slider.addEventListener("input", draw);
	details.addEventListener("toggle", list);
	addEventListener("resize", draw, { signal });

	let shown: AbortController | undefined;
	const follow = (): void => {
		shown?.abort();
		shown = new AbortController();
		calendar = undefined;
		draw();
		const [at = "", arriving] = which.value.split(" ");
		subscribe(withQuery("/v1/reservations/calendar", { link: at, ...(arriving ? { arriving: "true" } : {}) }), (data, status) => {
			text(note, status === 200 ? "" : ((data as { detail?: string } | undefined)?.detail ?? `The controller answered with status ${status}.`));
			if (status !== 200) return;
			calendar = data as ReservationCalendar;
			now = Date.now();
			draw();
			list();
		}, AbortSignal.any([shown.signal, signal]));
	};
	which.addEventListener("change", follow);

	let offered = "";
	return {
		on: h("section", {}, h("h2", {}, "Availability of a link"), note, body),
		show: (network, all) => {
			const options = linksOf(network, all, nameOf), now = JSON.stringify(options);
			body.hidden = options.length === 0;
			if (now === offered) return;
			offered = now;
			const before = which.value;
			fill(which, options.map((o) => h("option", { value: o.value }, o.name)));
			if (options.some((o) => o.value === before)) which.value = before;
			else if (options.length > 0) follow();
		},
	};
}

/** legend explains the picture. */
function legend(): HTMLElement {
	const key = (kind: string, words: string): HTMLElement => h("li", {}, h("i", { class: kind, "aria-hidden": true }), words);
	return h("ul", { class: "keys" }, key("area", "free rate"), key("asked", "rate of the slider"), key("fits", "the request fits in this time"));
}

/** startText describes when a reservation can start. */
function startText(s: Span, now: number): string {
	const from = s.from <= now + 1000 ? "now" : `at ${showTime(s.from)}`;
	return s.to - s.from < 60_000 ? from : `${from === "now" ? "from now" : `from ${showTime(s.from)}`} until ${showTime(s.to)}`;
}

/** linksOf returns the directions of links, and the lines of hosts. Links between Linux routers are known from the paths of reservations alone. */
function linksOf(network: Network | undefined, all: Reservation[], nameOf: NameOf): { value: string; name: string }[] {
	const names = network && new Names(network);
	const port = (p: NetworkPortID): string => names?.port(p) ?? portText(p, nameOf);
	const value = (p: NetworkPortID): string => `${p.switch}/${p.port}`;
	const out = new Map<string, string>();
	for (const l of [...(network?.links ?? []), ...all.flatMap((r) => r.paths.flatMap((p) => p.links))]) out.set(value(l.from), `${port(l.from)} to ${port(l.to)}`);
	for (const one of network?.hosts ?? []) {
		out.set(`${value(one.at)} arriving`, `${hostName(one)} to ${port(one.at)}`);
		out.set(value(one.at), `${port(one.at)} to ${hostName(one)}`);
	}
	return [...out].map(([value, name]) => ({ value, name }));
}

/** graph draws the free rate as an area, and the rate that is asked for as a line. */
function graph(all: Free[], limit: number, rate: number, shown: Span): SVGElement {
	const x = (at: number): string => ((1000 * (at - shown.from)) / (shown.to - shown.from)).toFixed(1);
	const y = (bps: number): string => (100 - (100 * Math.min(bps, limit)) / limit).toFixed(2);
	const top = all.map((f) => `L${x(Math.max(f.from, shown.from))},${y(f.free)}L${x(f.to)},${y(f.free)}`).join("");
	return svg("svg", { viewBox: "0 0 1000 100", preserveAspectRatio: "none", "aria-hidden": "true" },
		svg("path", { class: "area", d: `M0,100${top}L1000,100Z` }), svg("path", { class: "asked", d: `M0,${y(rate)}L1000,${y(rate)}` }));
}
