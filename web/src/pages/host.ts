// Host page: the interfaces with their rates, the devices, and the state that the agent reports.
import { deleteInterface, getHost, listInterfaces, putInterface, type DirectionRates, type HostDevice, type HostState, type Interface, type RateList } from "../api.gen";
import { allPages, withQuery } from "../call";
import { fill, h, type Child } from "../dom";
import { dialog } from "../edit";
import { subscribe } from "../live";
import { documentFor } from "../resources/interfaces";
import { navigate, path, route } from "../router";
import { isOperator, isTenantSession } from "../session";
import { button, empty, errorText, field, notifyUndoable, runAction, table, title } from "../ui";
import { rateText, showRate } from "../units";
import { utilizationCell } from "./overview";

route("/hosts/:", ([host]) => host ?? "", async (on, [host], signal) => {
	const name = host ?? "";
	const interfaces = await allPages((after) => listInterfaces(name, { after, limit: 1000 }));
	const state = isTenantSession() ? undefined : (await getHost(name)).data;
	const rates = h("div", {}, h("p", { class: "quiet", role: "status" }, "Waiting for the agent…"));
	const devices = h("div");
	fill(on, title(name, state && facts(state)), h("section", {}, h("h2", {}, "Interfaces"), rates), devices);
	// No group has the name "-": the response has only the totals.
	subscribe(withQuery(path("v1", "hosts", name, "rates"), { group: "-" }), (data, status) => fill(rates, status === 200 ? interfacesOf(name, interfaces, data as RateList) : interfacesOf(name, interfaces, undefined)), signal);
	if (state) subscribe(path("v1", "hosts", name), (data, status) => {
		if (status === 200) fill(devices, machineState(name, data as HostState, interfaces));
	}, signal);
});

/** facts returns the versions of the agent and the kernel. */
function facts(s: HostState): string {
	if (!s.connected) return "Agent disconnected. The kernel keeps enforcing the applied configuration.";
	return [s.version && `agent ${s.version}`, s.kernel && `Linux ${s.kernel}`].filter(Boolean).join(", ");
}

/** interfacesOf shows the directions of a host's interfaces with their rates. */
function interfacesOf(host: string, interfaces: Interface[], rates: RateList | undefined): HTMLElement {
	if (interfaces.length === 0) {
		return empty("No interface is configured.", isOperator() ? "Configure one of the devices below." : "Operators configure interfaces.");
	}
	// An interface for which the agent has no report, such as a pattern that matches no device, is listed by its name.
	interface Line {
		dev: string;
		load?: DirectionRates;
	}
	const loads = rates?.totals ?? [];
	const configured = loads.map((l) => documentFor(interfaces, { name: l.dev, altnames: l.altnames ?? [] }));
	const unreported = interfaces.map((i) => i.dev ?? "").filter((dev) => !configured.includes(dev));
	const lines: Line[] = [...loads.map((load) => ({ dev: load.dev, load })), ...unreported.map((dev) => ({ dev }))];
	const of = <T extends Child>(f: (l: DirectionRates) => T) => ({ load }: Line): Child => (load ? f(load) : "–");
	return table("Interfaces", [
		{ name: "Interface", cell: ({ dev, load }) => (load ? h("a", { href: `${path("hosts", host, dev)}?direction=${load.direction}` }, `${dev} ${load.direction}`) : h("a", { href: path("hosts", host, dev) }, dev)) },
		{ name: "Utilization", cell: of(utilizationCell) },
		{ name: "Rate", cell: of((l) => showRate(l.delivered_bps)), number: true },
		{ name: "Limit", cell: of((l) => (l.limit_bps ? showRate(l.limit_bps) : "–")), number: true, wide: true },
		{ name: "Groups", cell: of((l) => l.groups), number: true, wide: true },
		{ name: "At risk", cell: of((l) => (l.at_risk > 0 ? h("strong", { class: "bad" }, l.at_risk) : "0")), number: true },
	], lines);
}

/** ownIFB matches the IFB devices that Headgate creates for ingress. */
const ownIFB = /^hgi[0-9]+$/;

/** machineState shows a host's devices, missing features, and connection sets with errors. */
function machineState(host: string, s: HostState, interfaces: Interface[]): HTMLElement[] {
	const out: HTMLElement[] = [];
	const devices = (s.devices ?? []).filter((d) => !ownIFB.test(d.name));
	if (devices.length > 0) out.push(h("section", {}, h("h2", {}, "Devices"), table("Devices", [
		{ name: "Device", cell: (d) => d.name },
		{ name: "Link", cell: (d) => (d.up === undefined ? "–" : d.up ? (d.speed_bps ? showRate(d.speed_bps) : "up") : "down"), wide: true },
		{ name: "Owner", cell: (d) => owner(d) },
		{ name: "State", cell: (d) => (d.error ? h("span", { class: "state bad" }, d.error) : (d.foreign?.length ?? 0) > 0 ? `foreign: ${d.foreign?.join(", ")}` : "–") },
		...(isOperator() ? [{ name: "Actions", cell: (d: HostDevice) => (documentFor(interfaces, d) !== undefined || d.owner === "local" || d.name === "lo" ? "" : configureButton(host, d)) }] : []),
	], devices)));
	const wrong = (s.features ?? []).filter((f) => f.state !== "ok");
	if (wrong.length > 0) out.push(h("section", {}, h("h2", {}, "Missing features"), table("Missing features", [
		{ name: "Feature", cell: (f) => f.name },
		{ name: "State", cell: (f) => f.state },
		{ name: "Detected", cell: (f) => f.detail ?? "–" },
	], wrong)));
	const sets = Object.entries(s.collectives ?? {});
	if (sets.length > 0) out.push(h("section", {}, h("h2", {}, "Connection sets with errors"), table("Connection sets with errors", [
		{ name: "Set", cell: ([name]) => name },
		{ name: "Error", cell: ([, why]) => why },
	], sets)));
	return out;
}

/** owner names who configures a device. */
function owner(d: HostDevice): string {
	return d.owner === "local" ? "local configuration" : (d.owner ?? "none");
}

/** configureButton returns the button that configures a device with a limit and one default group. The proposed limit is the link speed, if known. */
function configureButton(host: string, d: HostDevice): HTMLButtonElement {
	const b = button("Configure", () => {
		const { on, close } = dialog(`Configure ${d.name}`);
		const limit = h("input", { required: true, value: d.speed_bps ? rateText(d.speed_bps) : null, placeholder: "1Gbit", autocomplete: "off" });
		const both = h("input", { type: "checkbox" });
		const error = h("p", { class: "error", role: "alert" });
		const submit = h("button", { type: "submit", class: "primary" }, "Configure");
		const f = h("form", {}, field("Limit", limit, "Queues form at the bottleneck, so shape just below its rate. All traffic starts in one default group."),
			h("div", { class: "check" }, h("label", {}, both, " Also shape ingress (in)")), error, h("div", { class: "actions" }, button("Cancel", close), submit));
		f.addEventListener("submit", (e) => {
			e.preventDefault();
			void runAction(submit, async () => {
				const direction = { limit: limit.value.trim(), groups: [{ name: "rest", default: true }] };
				const doc: Interface = { out: direction, ...(both.checked ? { in: direction } : {}) };
				let etag = "";
				try {
					await putInterface(host, d.name, doc, { dryRun: true });
					etag = (await putInterface(host, d.name, doc, { key: crypto.randomUUID() })).etag;
				} catch (why) {
					fill(error, errorText(why));
					return;
				}
				close();
				notifyUndoable(`Configured ${d.name} on ${host}`, async () => {
					await deleteInterface(host, d.name, { ifMatch: etag });
				}, () => navigate(path("hosts", host)));
				navigate(path("hosts", host, d.name));
			});
		});
		fill(on, f);
		limit.focus();
	}, "plain");
	b.setAttribute("aria-label", `Configure ${d.name}`);
	return b;
}
