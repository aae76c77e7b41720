// What paths between hosts really give, and the limits that follow from it.
import {
	deleteInterface, deleteProbeSchedule, getInterface, getProbeSchedule, listProbeResults, listProposals, putInterface, putProbeSchedule,
	type ProbeEstimate, type ProbeMeasure, type ProbeResult, type ProbeSchedule, type ProbingState, type Proposal,
} from "../api.gen";
import { all } from "../call";
import { chart } from "../chart";
import { fill, h, text } from "../dom";
import { dialog } from "../edit";
import { look } from "../live";
import { go, path, route } from "../router";
import { isOperator } from "../session";
import { ask, busy, button, command, empty, field, made, say, table, title, words } from "../ui";
import { bytes, rate, showBytes, showRate, showSeconds } from "../units";

const measures: { measure: ProbeMeasure; name: string }[] = [
	{ measure: "available", name: "Available bandwidth" }, { measure: "tokenrate", name: "Token rate" }, { measure: "capacity", name: "Capacity" },
	{ measure: "limiter", name: "Limiter" }, { measure: "path", name: "Path" },
];

const nameOf = (measure: string): string => measures.find((m) => m.measure === measure)?.name ?? measure;

/** estimate is what a measurement says of a rate, in bit/s. */
function estimate(r: ProbeResult): ProbeEstimate | undefined {
	const a = r.answer;
	return r.measure === "capacity" ? a?.capacity : r.measure === "tokenrate" ? a?.token_rate?.rate
		: r.measure === "available" ? a?.available?.available : r.measure === "limiter" ? a?.limiter?.bucket?.rate : undefined;
}

/** cannot is why a measurement that was made has no value. */
function cannot(r: ProbeResult): string {
	return (r.measure === "limiter" ? r.answer?.limiter?.cannot_tell : estimate(r)?.cannot_tell) ?? "";
}

/** value is what a measurement found, in bit/s, undefined if it cannot tell. */
function value(r: ProbeResult): number | undefined {
	return estimate(r)?.value;
}

function found(r: ProbeResult): string {
	if (!r.at) return r.trouble ? "failed" : "not yet";
	if (r.measure === "path") return r.rtt_ns ? showSeconds(r.rtt_ns / 1e9) : "–";
	const v = value(r), size = r.answer?.limiter?.bucket?.size?.value ?? r.answer?.token_rate?.bucket?.value;
	const what = r.measure === "limiter" ? (r.answer?.limiter?.class ?? "") : "";
	return [what, v === undefined ? "" : showRate(v), size === undefined ? "" : `bucket ${showBytes(size)}`].filter(Boolean).join(", ") || "cannot tell";
}

route("/probes", () => "Probes", async (on, _, signal) => {
	const which = h("select", { "aria-label": "Measure" }, measures.map((m) => h("option", { value: m.measure }, m.name)));
	const matrix = h("div"), schedule = h("div"), limits = h("div");
	let newest: ProbeResult[] = [];
	const draw = (): void => {
		const list = newest.filter((r) => r.measure === which.value);
		fill(matrix, list.length === 0 ? empty(`${nameOf(which.value)} was not measured.`, newest.length === 0 ? "Set a schedule, and wait for its first measurements." : "Have the schedule measure it, or choose another measure.") : matrixOf(list));
	};
	let chosen = false; // by somebody; else it is one that was measured
	which.addEventListener("change", () => {
		chosen = true;
		draw();
	});
	fill(on, title("Probes", "What paths between hosts really give"), h("section", {}, h("h2", {}, "Schedule"), schedule),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Between hosts"), which), matrix), h("section", {}, h("h2", {}, "Limits that follow"), limits));
	const again = async (): Promise<void> => {
		newest = await all((after) => listProbeResults({ newest: true, after, limit: 1000 }));
		if (signal.aborted) return;
		if (!chosen) {
			const has = (told: (r: ProbeResult) => boolean) => measures.find((m) => newest.some((r) => r.measure === m.measure && told(r)))?.measure;
			which.value = has((r) => value(r) !== undefined) ?? has(() => true) ?? which.value;
		}
		draw();
		const hosts = [...new Set(newest.flatMap((r) => [r.from, r.to]))].sort();
		fill(limits, hosts.length === 0 ? h("p", { class: "quiet" }, "None: nothing was measured yet.") : table("Hosts that were measured, and what limits them", [
			{ name: "Host", cell: (host) => h("a", { href: path("hosts", host) }, host) },
			{ name: "Out", cell: (host) => limiter(newest.filter((r) => r.from === host)) },
			{ name: "In", cell: (host) => limiter(newest.filter((r) => r.to === host)) },
			{ name: "Limits", cell: (host) => proposing(host) },
		], hosts));
	};
	scheduleOf(schedule, () => void again().catch((e: unknown) => say(words(e), "bad")), signal);
	await again();
});

/** proposing is one press from what was measured to limits, as a plan. */
function proposing(host: string, kind = "plain"): HTMLButtonElement {
	return labelled(button("Propose limits", () => propose(host), kind), `Propose limits for ${host}`);
}

/** limiter is what limits a host one way: of several paths the one that gives most, because what another gives less is not at this end. */
function limiter(all: ProbeResult[]): HTMLElement | string {
	const rateOf = (r: ProbeResult): number => r.answer?.token_rate?.rate?.value ?? r.answer?.limiter?.bucket?.rate?.value ?? 0;
	const known = all.filter((r) => rateOf(r) > 0).sort((a, b) => rateOf(b) - rateOf(a));
	const best = known.find((r) => r.measure === "limiter") ?? known[0];
	if (!best || !known[0]) return all.some((r) => r.answer?.limiter?.class === "none") ? "none found" : "–";
	const kind = all.find((r) => r.measure === "limiter" && r.from === best.from && r.to === best.to && r.answer?.limiter?.class !== "none")?.answer?.limiter?.class;
	const size = best.answer?.limiter?.bucket?.size?.value ?? best.answer?.token_rate?.bucket?.value;
	return h("a", { href: `${path("probes", best.from, best.to)}?measure=${best.measure}` }, [kind, showRate(rateOf(known[0])), size ? `bucket ${showBytes(size)}` : ""].filter(Boolean).join(", "));
}

function labelled(b: HTMLButtonElement, label: string): HTMLButtonElement {
	b.setAttribute("aria-label", label);
	return b;
}

function matrixOf(list: ProbeResult[]): HTMLElement {
	const hosts = [...new Set(list.flatMap((r) => [r.from, r.to]))].sort();
	const of = (from: string, to: string): ProbeResult | undefined => list.find((r) => r.from === from && r.to === to);
	return table("From each host to each other, the newest", [
		{ name: "From, to", cell: (from) => h("strong", {}, from) },
		...hosts.map((to) => ({
			name: to,
			cell: (from: string) => {
				const r = of(from, to);
				return r ? h("a", { href: `${path("probes", from, to)}?measure=${r.measure}`, class: r.trouble ? "bad" : null }, found(r)) : "–";
			},
		})),
	], hosts);
}

// It is looked at by the stream: that there is none is an answer, and no error on the console.
function scheduleOf(on: HTMLElement, measured: () => void, signal: AbortSignal): void {
	let shown: AbortController | undefined;
	look("/v1/probe-schedule", (data, status) => {
		shown?.abort();
		shown = new AbortController();
		drawSchedule(on, status === 200 ? (data as ProbeSchedule) : undefined, measured, AbortSignal.any([shown.signal, signal]));
	}, signal);
}

function drawSchedule(on: HTMLElement, now: ProbeSchedule | undefined, measured: () => void, signal: AbortSignal): void {
	if (!now) {
		fill(on, empty("Nothing is measured by itself.", "With a schedule hosts measure to each other: never two through one host or link at once, and no more than a budget a day."),
			isOperator() && h("p", {}, button("Set a schedule", () => form(undefined, ""), "primary")));
		return;
	}
	const state = h("p", { role: "status" }), spent = h("div");
	const quiet = (now.quiet ?? []).map((q) => `${q.from} to ${q.to}${q.days ? ` (${q.days.join(", ")})` : ""}`).join("; ");
	fill(on, h("p", {}, now.measures.map((m) => `${nameOf(m.measure)} every ${m.every}`).join(", "), `; at most ${now.budget} a day through a host`, quiet ? `; quiet from ${quiet} ${now.zone ?? "UTC"}` : "", "."),
		state, spent, isOperator() && h("div", { class: "actions" }, button("Change", async () => {
			const { data, etag } = await getProbeSchedule();
			form(data, etag);
		}), button("Remove", async () => {
			if (!(await ask("Measure nothing any more?", h("p", {}, "Results stay."), "Remove", "danger"))) return;
			await deleteProbeSchedule();
			made("Removed the schedule", async () => void (await putProbeSchedule(now)), () => go("/probes"));
			go("/probes");
		})));
	let running = 0;
	look("/v1/probe-state", (data, status) => {
		if (status !== 200) return;
		const s = data as ProbingState;
		if (s.running.length < running) measured();
		running = s.running.length;
		text(state, s.running.length > 0 ? `Measuring now: ${s.running.map((r) => `${nameOf(r.measure)} between ${r.from} and ${r.to}`).join(", ")}.` : s.quiet ? "Quiet hours: nothing begins." : "Nothing is being measured at the moment.");
		fill(spent, s.spent.length > 0 && table("Through hosts today", [
			{ name: "Host", cell: (b) => b.host },
			{ name: "Today", cell: (b) => `${showBytes(bytes(b.bytes))} of ${showBytes(bytes(now.budget))}`, number: true },
		], s.spent));
	}, signal);
}

function form(before: ProbeSchedule | undefined, etag: string): void {
	const { on, close } = dialog(before ? "Change the schedule" : "Set a schedule");
	const every = measures.map((m) => ({ ...m, input: h("input", { value: before?.measures.find((b) => b.measure === m.measure)?.every ?? null, placeholder: "not", autocomplete: "off" }) }));
	const budget = h("input", { required: true, value: before?.budget ?? "1GB", autocomplete: "off" });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, before ? "Change" : "Set");
	const f = h("form", {}, h("p", {}, "How often each pair of hosts measures, such as 30m or 6h; empty is never."), every.map((e) => field(e.name, e.input)),
		field("Budget a day", budget, "What measurements bring through a host at the most, such as 1GB."), h("p", { class: "help" }, "Hosts, pairs, shared links and quiet hours: ", command("headgate probe schedule"), "."),
		error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void busy(submit, async () => {
			const doc: ProbeSchedule = { ...before, measures: every.filter((m) => m.input.value.trim() !== "").map((m) => ({ measure: m.measure, every: m.input.value.trim() })), budget: budget.value.trim() };
			let after = "";
			try {
				after = (await putProbeSchedule(doc, before ? { ifMatch: etag } : {})).etag;
			} catch (why) {
				fill(error, words(why));
				return;
			}
			close();
			made(before ? "Changed the schedule" : "Set a schedule", async () => {
				if (before) await putProbeSchedule(before, { ifMatch: after });
				else await deleteProbeSchedule({ ifMatch: after });
			}, () => go("/probes"));
			go("/probes");
		});
	});
	fill(on, f);
	every[0]?.input.focus();
}

/** propose shows a host's limits as they would be, as a plan, and makes one if one says so. */
async function propose(host: string): Promise<void> {
	const { items } = (await listProposals(host)).data;
	const { on, close } = dialog(`Limits for ${host}`);
	fill(on, items.length === 0 ? empty("No device of it was measured through.", "Its paths have to be measured first.") : items.map((p) => proposal(host, p, close)), h("div", { class: "actions" }, button("Close", close)));
}

function proposal(host: string, p: Proposal, close: () => void): HTMLElement {
	const rows = (["out", "in"] as const).flatMap((d) => (p[d] ? [{ d, of: p[d] }] : []));
	const error = h("p", { class: "error", role: "alert" }, (p.problems ?? []).join("; "));
	const make = p.interface && isOperator() && (p.problems ?? []).length === 0 && labelled(button("Make it so", async () => {
		const doc = p.interface ?? {};
		try {
			const before = p.etag ? (await getInterface(host, p.dev)).data : undefined;
			await putInterface(host, p.dev, doc, { dryRun: true, ...(p.etag ? { ifMatch: p.etag } : {}) });
			const { etag } = await putInterface(host, p.dev, doc, p.etag ? { ifMatch: p.etag } : { key: crypto.randomUUID() });
			close();
			made(before ? `Changed the limit of ${p.dev} of ${host}` : `Divided ${p.dev} of ${host}`, async () => {
				if (before) await putInterface(host, p.dev, before, { ifMatch: etag });
				else await deleteInterface(host, p.dev, { ifMatch: etag });
			}, () => {});
		} catch (why) {
			fill(error, words(why));
		}
	}, "primary"), `Make it so for ${p.dev}`);
	return h("div", {}, h("h3", {}, p.dev),
		table(`Limits of ${p.dev}`, [
			{ name: "Direction", cell: (r) => r.d },
			{ name: "Now", cell: (r) => r.of.before ?? "–", number: true },
			{ name: "Proposed", cell: (r) => h("strong", {}, r.of.limit ?? "–"), number: true },
			{ name: "Because", cell: (r) => r.of.cannot_tell ?? because(r.of.measure, r.of.from, r.of.to, r.of.measured?.value) },
		], rows),
		(p.changes ?? []).length > 0 && table(`Guarantees on ${p.dev} that would be others`, [
			{ name: "Group", cell: (c) => `${c.direction} ${c.group}` },
			{ name: "Now", cell: (c) => (c.before ? showRate(rate(c.before)) : "–"), number: true },
			{ name: "Then", cell: (c) => h("strong", {}, showRate(rate(c.after))), number: true },
		], p.changes ?? []), error, make);
}

function because(measure?: string, from?: string, to?: string, v?: number): string {
	return `${measure ?? "a measurement"} from ${from ?? "?"} to ${to ?? "?"}${v === undefined ? "" : `: ${showRate(v)}`}`;
}

route("/probes/:/:", ([from, to]) => `${from} to ${to}`, async (on, args, signal) => {
	const [from, to] = args as [string, string];
	const measure = (new URLSearchParams(location.search).get("measure") ?? "available") as ProbeMeasure;
	const list = (await all((after) => listProbeResults({ from, to, measure, after, limit: 1000 }))).filter((r) => r.at);
	const last = (await listProbeResults({ from, to, measure, newest: true })).data.items[0];
	const name = nameOf(measure);
	const tabs = h("nav", { class: "tabs", "aria-label": "Measures" }, measures.map((m) => h("a", { href: `${path("probes", from, to)}?measure=${m.measure}`, "aria-current": m.measure === measure ? "page" : null }, m.name)));
	const picture = chart(`${name} from ${from} to ${to}`, signal, measure === "path" ? showSeconds : showRate);
	const of = (r: ProbeResult): number | undefined => (measure === "path" ? (r.rtt_ns ?? 0) / 1e9 : value(r));
	fill(on, title(`${from} to ${to}`, h("a", { href: "/probes" }, "Probes"), proposing(from, "primary")), tabs,
		last?.trouble && h("p", { class: "bad" }, `When it was tried last, ${new Date(last.tried).toLocaleString()}: ${last.trouble}.`),
		list.length === 0 ? (last ? empty(`${name} was tried, and not measured.`, "It is tried again by the schedule.") : empty(`${name} was not measured here.`, "Have the schedule measure it, on the page of probes.")) : h("section", {}, h("h2", {}, name), picture.on, table(`${name} from ${from} to ${to}`, [
			{ name: "When", cell: (r) => h("time", { datetime: r.at ?? "" }, new Date(r.at ?? 0).toLocaleString()) },
			{ name: "Found", cell: (r) => [found(r), cannot(r) && h("span", { class: "quiet" }, ` because ${cannot(r).replace(/^cannot tell,? (because )?/, "")}`)] },
			{ name: "Own limit", cell: (r) => (r.own_limit ? showRate(rate(r.own_limit)) : "–"), number: true },
			{ name: "Flaws", cell: (r) => (r.answer?.flaws ?? []).join("; ") || "–", wide: true },
		], list)));
	picture.has([{ name }]);
	for (const r of list.toReversed()) {
		const v = of(r);
		if (v !== undefined) picture.push(Date.parse(r.at ?? "") / 1000, [v]);
	}
	picture.on.hidden = !list.some((r) => of(r) !== undefined);
});
