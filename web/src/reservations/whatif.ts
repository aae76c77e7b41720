// What-if: a form that asks what the service would grant, without reserving. The answer is a grant, or the reason of a refusal
// with counter-offers. Each has a button that makes the reservation.
import { createReservation, type NewReservation, type Reservation, type ReservationRefusal, type ReservationRequest } from "../api.gen";
import { Problem } from "../call";
import { fill, h } from "../dom";
import { isOperator } from "../session";
import { errorText, field, notify, runAction } from "../ui";
import { carriers, facts, pathList } from "./detail";
import { classOf, describe, describeRequest, fullName, parseEnd, rates, type NameOf } from "./request";
import type { Wish } from "./links";
import { localInput, showLength, showTime } from "./times";

/** WhatIf is the section on a page. */
export interface WhatIf {
	on: HTMLElement;
	/** use fills in a rate, a duration and a start, and shows the form. */
	use: (w: Wish) => void;
	/** setEnds replaces the ends that the fields From and To propose. */
	setEnds: (names: string[]) => void;
}

/** whatIf returns the section. idOf returns the datapath id of a switch by its name. */
export function whatIf(nameOf: NameOf, idOf: (name: string) => string): WhatIf {
	const text = (more: Record<string, string | number | boolean> = {}): HTMLInputElement => h("input", { autocomplete: "off", spellcheck: "false", ...more });
	const ends = h("datalist", { id: "reservation-ends" });
	const name = text({ required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}" }), owner = text(), from = text({ required: true, list: ends.id }), to = text({ required: true, list: ends.id });
	const what = h("select", {}, h("option", { value: "rate" }, "A rate for a time"), h("option", { value: "volume" }, "Bytes to be moved by a time"));
	const rate = text({ required: true }), back = text(), duration = text({ required: true, value: "2h" }), volume = text({ required: true });
	const protocol = h("select", {}, h("option", { value: "" }, "All between the ends"), ["tcp", "udp"].map((p) => h("option", { value: p }, p.toUpperCase()))), ports = text({ pattern: "[0-9]+(-[0-9]+)?" });
	const paths = h("select", {}, [1, 2, 3, 4].map((n) => h("option", { value: n }, n)));
	const level = h("select", {}, [1, 2, 3, 4].map((n) => h("option", { value: n, selected: n === 4 }, n === 1 ? "1 (served first)" : n === 4 ? "4 (served last)" : n)));
	const when = h("select", {}, h("option", { value: "now" }, "Now"), h("option", { value: "start" }, "At a time"), h("option", { value: "window" }, "Any time in a window"));
	const start = h("input", { type: "datetime-local" }), until = h("input", { type: "datetime-local", required: true });
	const safe = h("input", { type: "checkbox" }), carried = h("input", { type: "checkbox" });
	const carriedField = h("div", { class: "check" }, h("label", {}, carried, " Carried: relay agents carry the connections, and their streams have the rate"));
	const startField = field("Start", start, "In a window or for a volume: the earliest. Empty: now."), untilField = field("End by", until), whenField = field("When", when);
	const rateFields = [field("Rate", rate, "Of layer 2, such as 200Mbit."), field("Rate back", back, "Of the other direction. Empty: none."), field("Duration", duration, "Such as 30m or 2h.")];
	const volumeField = field("Volume", volume, "Bytes of layer 2, such as 2TB: the rate and the duration follow."), portsField = field("Destination ports", ports, "A port, or the first and the last, such as 5000-5010. Empty: every port.");
	const submit = h("button", { type: "submit", class: "primary" }, "Ask what fits"), answer = h("div", { class: "answer", "aria-live": "polite" });
	const form = h("form", {}, ends, h("div", { class: "form" },
		field("Name", name), isOperator() && field("Tenant", owner, "Empty: the operator."),
		field("From", from, "A host by name, address or MAC, site:NAME, a prefix, or vlan:NUMBER; with @SWITCH/PORT if the network does not know the port."), field("To", to),
		field("What", what), rateFields, volumeField, whenField, startField, untilField,
		field("Traffic", protocol), portsField, field("Class", level), field("Paths", paths, "Disjoint, among which the rate is divided.")),
	h("div", { class: "check" }, h("label", {}, safe, " Protected: with a disjoint spare path, to which traffic changes when a path fails")),
	carriedField,
	h("div", { class: "actions" }, submit));
	const moves = (): boolean => what.value === "volume";
	// A hidden input is disabled, so that it does not keep the form from being sent.
	const show = (shown: boolean, ...fields: HTMLElement[]): void => fields.forEach((f) => {
		f.hidden = !shown;
		f.querySelector<HTMLInputElement | HTMLSelectElement>("input, select")!.disabled = !shown;
	});
	const showFields = (): void => {
		show(!moves(), ...rateFields, whenField);
		show(moves(), volumeField);
		show(moves() || when.value !== "now", startField);
		show(moves() || when.value === "window", untilField);
		show(protocol.value !== "", portsField);
		show(protocol.value === "tcp", carriedField);
		start.required = !moves() && when.value === "start";
	};
	[what, when, protocol].forEach((s) => s.addEventListener("change", showFields));
	showFields();
	// An answer is to the request that was asked, not to one that the form has now.
	form.addEventListener("input", () => fill(answer));

	const request = (): NewReservation => {
		const iso = (input: HTMLInputElement): string => new Date(input.value).toISOString();
		return {
			name: name.value.trim(), ...(owner.value.trim() ? { owner: owner.value.trim() } : {}), from: parseEnd(from.value, idOf), to: parseEnd(to.value, idOf),
			...(moves() ? { volume: volume.value.trim() } : { rate: rate.value.trim(), ...(back.value.trim() ? { back: back.value.trim() } : {}), duration: duration.value.trim() }),
			...(protocol.value ? { flows: [{ protocol: protocol.value, ...(ports.value.trim() ? { destination_ports: ports.value.trim() } : {}) }] } : {}),
			class: Number(level.value), ...(paths.value !== "1" ? { paths: Number(paths.value) } : {}), ...(safe.checked ? { protected: true } : {}), ...(!carried.disabled && carried.checked ? { carry: "relay" } : {}),
			...(!startField.hidden && start.value ? { start: iso(start) } : {}), ...(!untilField.hidden ? { until: iso(until) } : {}),
		};
	};
	const failed = (asked: NewReservation, e: unknown): void => {
		fill(answer, h("p", { class: "error", role: "alert" }, errorText(e)), e instanceof Problem && e.refusal && offers(asked, e.refusal));
	};
	const reserve = (words: string, label: string, wanted: NewReservation): HTMLElement => {
		// Repeats of an attempt whose answer was lost have the key of the first, so that they reserve once.
		let key = crypto.randomUUID();
		const b = h("button", { type: "button", class: "primary", "aria-label": label }, words);
		b.addEventListener("click", () => void runAction(b, async () => {
			try {
				const { data } = await createReservation(wanted, { key });
				fill(answer, h("p", { class: "good" }, `Reserved ${describe(data)}`));
				notify(`Reserved ${fullName(data)}`);
			} catch (e) {
				if (!(e instanceof Problem) || e.status < 400 || e.status >= 500) throw e; // it may have been reserved: the button stays
				key = crypto.randomUUID();
				failed(wanted, e);
			}
		}));
		return b;
	};
	const offers = (asked: NewReservation, r: ReservationRefusal): HTMLElement => {
		const all = ([["The most that fits", r.most], ["The earliest start", r.earliest], ["The shortest window", r.window]] as [string, ReservationRequest | undefined][]).filter((o) => o[1] !== undefined);
		if (all.length === 0) return h("p", {}, "There is no counter-offer.");
		return h("ul", { class: "list offers" }, all.map(([title, offer]) => {
			const words = describeRequest(offer!);
			return h("li", {}, h("span", {}, h("strong", {}, title), `: ${words}`), reserve("Reserve this", `Reserve ${words}`, { ...offer!, name: asked.name, ...(asked.owner ? { owner: asked.owner } : {}) }));
		}));
	};
	const granted = (asked: NewReservation, r: Reservation): void => {
		const start = Date.parse(r.start), end = Date.parse(r.end);
		fill(answer, h("p", { class: "good" }, h("strong", {}, "This would be granted.")), facts([
			["Rate", rates(r.rate_bps, r.back_bps)], ["Class", String(classOf(r.request))], ...carriers(r), ["Start", showTime(start)], ["End", `${showTime(end)}, after ${showLength(end - start)}`],
		]), pathList(r, nameOf), h("div", { class: "actions" }, reserve("Reserve", `Reserve ${asked.name}`, asked)));
	};
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		void runAction(submit, async () => {
			fill(answer);
			let asked: NewReservation | undefined;
			try {
				asked = request();
				granted(asked, (await createReservation(asked, { dryRun: true })).data);
			} catch (why) {
				if (asked) failed(asked, why);
				else fill(answer, h("p", { class: "error", role: "alert" }, errorText(why)));
			}
		});
	});
	return {
		on: h("section", {}, h("h2", {}, "What if"), h("p", { class: "quiet" }, "Shows what would be granted, or why not and what fits instead. Nothing is reserved before you press Reserve."), form, answer),
		use: (w) => {
			fill(answer);
			what.value = "rate";
			// Down to kbit/s: what the form says is not more than what was free.
			rate.value = `${Math.floor(w.rate / 1e3) % 1000 === 0 ? `${Math.floor(w.rate / 1e6)}M` : `${Math.floor(w.rate / 1e3)}k`}bit`;
			duration.value = w.duration;
			when.value = w.start === undefined ? "now" : "start";
			// The input has minutes: the start is rounded up, so that it is not before the first that fits.
			if (w.start !== undefined) start.value = localInput(Math.ceil(w.start / 60_000) * 60_000);
			showFields();
			form.scrollIntoView({ block: "nearest" });
			[name, from, to].find((i) => i.value === "")?.focus();
		},
		setEnds: (names) => {
			if (names.join("\n") !== [...ends.options].map((o) => o.value).join("\n")) fill(ends, names.map((n) => h("option", { value: n })));
		},
	};
}
