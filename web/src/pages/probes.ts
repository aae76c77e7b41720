// Probes pages: measured paths between hosts, the probe schedule, and limits proposed from the measurements.
import {
	deleteInterface, deleteProbeSchedule, getInterface, getProbeSchedule, listProbeResults, listProposals, putInterface, putProbeSchedule,
	type ProbeEstimate, type ProbeMeasure, type ProbeResult, type ProbeSchedule, type ProbingState, type Proposal,
} from "../api.gen";
import { allPages } from "../call";
import { chart } from "../chart";
import { fill, h, text } from "../dom";
import { dialog } from "../edit";
import { subscribe } from "../live";
import { navigate, path, route } from "../router";
import { isOperator } from "../session";
import { button, command, confirmDialog, empty, errorText, field, notify, notifyUndoable, runAction, table, title } from "../ui";
import { bytes, rateText, showBytes, showRate, showSeconds } from "../units";

const measures: { measure: ProbeMeasure; name: string }[] = [
	{ measure: "available", name: "Available bandwidth" }, { measure: "tokenrate", name: "Token rate" }, { measure: "capacity", name: "Capacity" },
	{ measure: "limiter", name: "Limiter" }, { measure: "path", name: "Path" }, { measure: "credits", name: "Burst credits" },
];

/** nameOf returns the label of a measure. */
const nameOf = (measure: string): string => measures.find((m) => m.measure === measure)?.name ?? measure;

/** estimate returns the estimated rate of a measurement, in bit/s. */
function estimate(r: ProbeResult): ProbeEstimate | undefined {
	const a = r.answer;
	return r.measure === "capacity" ? a?.capacity : r.measure === "tokenrate" || r.measure === "credits" ? a?.token_rate?.rate
		: r.measure === "available" ? a?.available?.available : r.measure === "limiter" ? a?.limiter?.bucket?.rate : undefined;
}

/** unknownReason returns the reason why a completed measurement has no value. */
function unknownReason(r: ProbeResult): string {
	return (r.measure === "limiter" ? r.answer?.limiter?.cannot_tell : estimate(r)?.cannot_tell ?? estimate(r)?.because) ?? "";
}

/** value returns the estimated rate in bit/s, undefined if the measurement cannot tell. */
function value(r: ProbeResult): number | undefined {
	return estimate(r)?.value;
}

/** formatResult formats the result of a measurement. */
function formatResult(r: ProbeResult): string {
	if (!r.at) return r.error ? "failed" : "pending";
	if (r.measure === "path") return r.rtt_ns ? showSeconds(r.rtt_ns / 1e9) : "–";
	const v = value(r), size = r.answer?.limiter?.bucket?.size?.value ?? r.answer?.token_rate?.bucket?.value;
	const what = r.measure === "limiter" ? (r.answer?.limiter?.class ?? "") : "";
	return [what, v === undefined ? "" : (estimate(r)?.at_least ? "at least " : "") + showRate(v), size === undefined ? "" : `bucket ${showBytes(size)}`].filter(Boolean).join(", ") || "no estimate";
}

route("/probes", () => "Probes", async (on, _, signal) => {
	const which = h("select", { "aria-label": "Measure" }, measures.map((m) => h("option", { value: m.measure }, m.name)));
	const matrix = h("div"), schedule = h("div"), limits = h("div");
	let newest: ProbeResult[] = [];
	const draw = (): void => {
		const list = newest.filter((r) => r.measure === which.value);
		fill(matrix, list.length === 0 ? empty(`No results for ${nameOf(which.value)}.`, newest.length === 0 ? "Set a probe schedule, and wait for the first results." : "Add this measure to the schedule, or select another measure.") : matrixOf(list));
	};
	let chosen = false; // whether the user has selected a measure; until then a measure with results is selected
	which.addEventListener("change", () => {
		chosen = true;
		draw();
	});
	fill(on, title("Probes", "Measured bandwidth of the paths between hosts"), h("section", {}, h("h2", {}, "Schedule"), schedule),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Results"), which), matrix), h("section", {}, h("h2", {}, "Limits by host"), limits));
	const again = async (): Promise<void> => {
		newest = await allPages((after) => listProbeResults({ newest: true, after, limit: 1000 }));
		if (signal.aborted) return;
		if (!chosen) {
			const has = (told: (r: ProbeResult) => boolean) => measures.find((m) => newest.some((r) => r.measure === m.measure && told(r)))?.measure;
			which.value = has((r) => value(r) !== undefined) ?? has(() => true) ?? which.value;
		}
		draw();
		const hosts = [...new Set(newest.flatMap((r) => [r.from, r.to]))].sort();
		fill(limits, hosts.length === 0 ? h("p", { class: "quiet" }, "No results yet.") : table("Measured hosts and their limiters", [
			{ name: "Host", cell: (host) => h("a", { href: path("hosts", host) }, host) },
			{ name: "Out", cell: (host) => limiter(newest.filter((r) => r.from === host)) },
			{ name: "In", cell: (host) => limiter(newest.filter((r) => r.to === host)) },
			{ name: "Limits", cell: (host) => proposeButton(host) },
		], hosts));
	};
	scheduleOf(schedule, () => void again().catch((e: unknown) => notify(errorText(e), "bad")), signal);
	await again();
});

/** proposeButton returns the button that proposes limits for a host from its measurements. */
function proposeButton(host: string, kind = "plain"): HTMLButtonElement {
	return labelled(button("Propose limits", () => propose(host), kind), `Propose limits for ${host}`);
}

/** limiter describes the limiter of a host in one direction. Of several paths it uses the fastest, because a slower path has its bottleneck elsewhere. */
function limiter(all: ProbeResult[]): HTMLElement | string {
	const rateOf = (r: ProbeResult): number => { // what trains carried is not the rate of a limiter
		const measured = r.answer?.token_rate?.rate;
		return (measured?.because ? undefined : measured?.value) ?? r.answer?.limiter?.bucket?.rate?.value ?? 0;
	};
	const known = all.filter((r) => rateOf(r) > 0).sort((a, b) => rateOf(b) - rateOf(a));
	const best = known.find((r) => r.measure === "limiter") ?? known[0];
	if (!best || !known[0]) return all.some((r) => r.answer?.limiter?.class === "none") ? "none detected" : "–";
	const kind = all.find((r) => r.measure === "limiter" && r.from === best.from && r.to === best.to && r.answer?.limiter?.class !== "none")?.answer?.limiter?.class;
	const size = best.answer?.limiter?.bucket?.size?.value ?? best.answer?.token_rate?.bucket?.value;
	return h("a", { href: `${path("probes", best.from, best.to)}?measure=${best.measure}` }, [kind, showRate(rateOf(known[0])), size ? `bucket ${showBytes(size)}` : ""].filter(Boolean).join(", "));
}

/** labelled sets the accessible name of a button. */
function labelled(b: HTMLButtonElement, label: string): HTMLButtonElement {
	b.setAttribute("aria-label", label);
	return b;
}

/** matrixOf shows results by source and destination host. */
function matrixOf(list: ProbeResult[]): HTMLElement {
	const hosts = [...new Set(list.flatMap((r) => [r.from, r.to]))].sort();
	const of = (from: string, to: string): ProbeResult | undefined => list.find((r) => r.from === from && r.to === to);
	return table("Newest results, from each host to each other host", [
		{ name: "From / to", cell: (from) => h("strong", {}, from) },
		...hosts.map((to) => ({
			name: to,
			cell: (from: string) => {
				const r = of(from, to);
				return r ? h("a", { href: `${path("probes", from, to)}?measure=${r.measure}`, class: r.error ? "bad" : null }, formatResult(r)) : "–";
			},
		})),
	], hosts);
}

// scheduleOf gets the schedule from the event stream, because there a missing schedule is no error on the console.
function scheduleOf(on: HTMLElement, measured: () => void, signal: AbortSignal): void {
	let shown: AbortController | undefined;
	subscribe("/v1/probe-schedule", (data, status) => {
		shown?.abort();
		shown = new AbortController();
		drawSchedule(on, status === 200 ? (data as ProbeSchedule) : undefined, measured, AbortSignal.any([shown.signal, signal]));
	}, signal);
}

/** drawSchedule shows the schedule, running measurements and used budgets. */
function drawSchedule(on: HTMLElement, now: ProbeSchedule | undefined, measured: () => void, signal: AbortSignal): void {
	if (!now) {
		fill(on, empty("No probe schedule.", "With a schedule, hosts measure the paths between them: one measurement at a time per host and link, within a daily budget."),
			isOperator() && h("p", {}, button("Set a schedule", () => form(undefined, ""), "primary")));
		return;
	}
	const state = h("p", { role: "status" }), spent = h("div");
	const quiet = (now.quiet ?? []).map((q) => `${q.from} to ${q.to}${q.days ? ` (${q.days.join(", ")})` : ""}`).join("; ");
	fill(on, h("p", {}, now.measures.map((m) => `${nameOf(m.measure)} every ${m.every}`).join(", "), `; budget ${now.budget} per host and day`, quiet ? `; quiet hours ${quiet} ${now.zone ?? "UTC"}` : "", "."),
		state, spent, isOperator() && h("div", { class: "actions" }, button("Edit", async () => {
			const { data, etag } = await getProbeSchedule();
			form(data, etag);
		}), button("Remove", async () => {
			if (!(await confirmDialog("Remove the schedule?", h("p", {}, "Stored results are kept."), "Remove", "danger"))) return;
			await deleteProbeSchedule();
			notifyUndoable("Removed the schedule", async () => void (await putProbeSchedule(now)), () => navigate("/probes"));
			navigate("/probes");
		})));
	let running = 0;
	subscribe("/v1/probe-state", (data, status) => {
		if (status !== 200) return;
		const s = data as ProbingState;
		if (s.running.length < running) measured();
		running = s.running.length;
		text(state, s.running.length > 0 ? `Measuring now: ${s.running.map((r) => `${nameOf(r.measure)} between ${r.from} and ${r.to}`).join(", ")}.` : s.quiet ? "Quiet hours: no measurement starts." : "No measurement is running.");
		fill(spent, s.spent.length > 0 && table("Budget used today", [
			{ name: "Host", cell: (b) => b.host },
			{ name: "Used today", cell: (b) => `${showBytes(b.used_bytes)} of ${showBytes(bytes(now.budget))}`, number: true },
		], s.spent));
	}, signal);
}

/** form opens the form of the schedule. */
function form(before: ProbeSchedule | undefined, etag: string): void {
	const { on, close } = dialog(before ? "Edit the schedule" : "Set a schedule");
	const every = measures.map((m) => ({ ...m, input: h("input", { value: before?.measures.find((b) => b.measure === m.measure)?.every ?? null, placeholder: "never", autocomplete: "off" }) }));
	const budget = h("input", { required: true, value: before?.budget ?? "1GB", autocomplete: "off" });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, before ? "Save" : "Set");
	const f = h("form", {}, h("p", {}, "Interval of each measure for each pair of hosts, such as 30m or 6h. Empty: never."), every.map((e) => field(e.name, e.input)),
		field("Daily budget", budget, "The maximum that measurements transfer through a host per day, such as 1GB."), h("p", { class: "help" }, "To set hosts, pairs, shared links and quiet hours, use ", command("headgate probe schedule"), "."),
		error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void runAction(submit, async () => {
			const doc: ProbeSchedule = { ...before, measures: every.filter((m) => m.input.value.trim() !== "").map((m) => ({ ...before?.measures.find((b) => b.measure === m.measure), measure: m.measure, every: m.input.value.trim() })), budget: budget.value.trim() };
			let after = "";
			try {
				after = (await putProbeSchedule(doc, before ? { ifMatch: etag } : {})).etag;
			} catch (why) {
				fill(error, errorText(why));
				return;
			}
			close();
			notifyUndoable(before ? "Changed the schedule" : "Set a schedule", async () => {
				if (before) await putProbeSchedule(before, { ifMatch: after });
				else await deleteProbeSchedule({ ifMatch: after });
			}, () => navigate("/probes"));
			navigate("/probes");
		});
	});
	fill(on, f);
	every[0]?.input.focus();
}

/** propose shows the limits proposed for a host, as a plan that the user can apply. */
async function propose(host: string): Promise<void> {
	const { items } = (await listProposals(host)).data;
	const { on, close } = dialog(`Limits for ${host}`);
	fill(on, items.length === 0 ? empty("No device of this host has measurements.", "Measure the paths of the host first.") : items.map((p) => proposal(host, p, close)), h("div", { class: "actions" }, button("Close", close)));
}

/** proposal shows the proposed limits of one device, with the guarantees that change. */
function proposal(host: string, p: Proposal, close: () => void): HTMLElement {
	const rows = (["out", "in"] as const).flatMap((d) => (p[d] ? [{ d, of: p[d] }] : []));
	const error = h("p", { class: "error", role: "alert" }, (p.problems ?? []).join("; "));
	const make = p.interface && isOperator() && (p.problems ?? []).length === 0 && labelled(button("Apply", async () => {
		const doc = p.interface ?? {};
		try {
			const before = p.etag ? (await getInterface(host, p.dev)).data : undefined;
			await putInterface(host, p.dev, doc, { dryRun: true, ...(p.etag ? { ifMatch: p.etag } : {}) });
			const { etag } = await putInterface(host, p.dev, doc, p.etag ? { ifMatch: p.etag } : { key: crypto.randomUUID() });
			close();
			notifyUndoable(before ? `Changed the limit of ${p.dev} on ${host}` : `Configured ${p.dev} on ${host}`, async () => {
				if (before) await putInterface(host, p.dev, before, { ifMatch: etag });
				else await deleteInterface(host, p.dev, { ifMatch: etag });
			}, () => {});
		} catch (why) {
			fill(error, errorText(why));
		}
	}, "primary"), `Apply to ${p.dev}`);
	return h("div", {}, h("h3", {}, p.dev),
		table(`Limits of ${p.dev}`, [
			{ name: "Direction", cell: (r) => r.d },
			{ name: "Current", cell: (r) => r.of.before_bps ? rateText(r.of.before_bps) : "–", number: true },
			{ name: "Proposed", cell: (r) => h("strong", {}, r.of.limit_bps ? rateText(r.of.limit_bps) : "–"), number: true },
			{ name: "Reason", cell: (r) => r.of.cannot_tell ?? limitReason(r.of.measure, r.of.from, r.of.to, r.of.measured?.value) },
		], rows),
		(p.changes ?? []).length > 0 && table(`Guarantees on ${p.dev} that change`, [
			{ name: "Group", cell: (c) => `${c.direction} ${c.group}` },
			{ name: "Current", cell: (c) => (c.before_bps === undefined ? "–" : showRate(c.before_bps)), number: true },
			{ name: "New", cell: (c) => h("strong", {}, showRate(c.after_bps)), number: true },
		], p.changes ?? []), error, make);
}

/** limitReason names the measurement on which a limit is based. */
function limitReason(measure?: string, from?: string, to?: string, v?: number): string {
	return `${measure ?? "a measurement"} from ${from ?? "?"} to ${to ?? "?"}${v === undefined ? "" : `: ${showRate(v)}`}`;
}

route("/probes/:/:", ([from, to]) => `${from} to ${to}`, async (on, args, signal) => {
	const [from, to] = args as [string, string];
	const measure = (new URLSearchParams(location.search).get("measure") ?? "available") as ProbeMeasure;
	const list = (await allPages((after) => listProbeResults({ from, to, measure, after, limit: 1000 }))).filter((r) => r.at);
	const last = (await listProbeResults({ from, to, measure, newest: true })).data.items[0];
	const name = nameOf(measure);
	const tabs = h("nav", { class: "tabs", "aria-label": "Measures" }, measures.map((m) => h("a", { href: `${path("probes", from, to)}?measure=${m.measure}`, "aria-current": m.measure === measure ? "page" : null }, m.name)));
	const picture = chart(`${name} from ${from} to ${to}`, signal, measure === "path" ? showSeconds : showRate);
	const of = (r: ProbeResult): number | undefined => (measure === "path" ? (r.rtt_ns ?? 0) / 1e9 : value(r));
	fill(on, title(`${from} to ${to}`, h("a", { href: "/probes" }, "Probes"), proposeButton(from, "primary")), tabs,
		last?.error && h("p", { class: "bad" }, `Last attempt failed (${new Date(last.attempted).toLocaleString()}): ${last.error}.`),
		list.length === 0 ? (last ? empty(`No results for ${name}: all attempts failed.`, "The schedule retries the measurement.") : empty(`No results for ${name} on this path.`, "Add this measure to the schedule on the Probes page.")) : h("section", {}, h("h2", {}, name), picture.on, table(`${name} from ${from} to ${to}`, [
			{ name: "Time", cell: (r) => h("time", { datetime: r.at ?? "" }, new Date(r.at ?? 0).toLocaleString()) },
			{ name: "Result", cell: (r) => [formatResult(r), unknownReason(r) && h("span", { class: "quiet" }, ` (${unknownReason(r).replace(/^cannot estimate(: |, because )?/, "")})`)] },
			{ name: "Headgate limit", cell: (r) => (r.own_limit_bps ? showRate(r.own_limit_bps) : "–"), number: true },
			{ name: "Warnings", cell: (r) => (r.answer?.flaws ?? []).join("; ") || "–", wide: true },
		], list)));
	const bound = (r: ProbeResult): boolean => measure !== "path" && (estimate(r)?.at_least ?? false);
	const bounded = list.some(bound);
	picture.setLines([{ name, sparse: true }, ...(bounded ? [{ name: "at least", dotted: true, sparse: true }] : [])]);
	for (const r of list.toReversed()) {
		const v = of(r);
		if (v !== undefined) picture.push(Date.parse(r.at ?? "") / 1000, bound(r) ? [null, v] : bounded ? [v, null] : [v]);
	}
	picture.on.hidden = !list.some((r) => of(r) !== undefined);
});
