// One host: its devices, what each carries, and what its agent says of it.
import { deleteInterface, getHost, listInterfaces, putInterface, type DirectionRates, type HostDevice, type HostState, type Interface, type RateList } from "../api.gen";
import { address, all } from "../call";
import { fill, h, type Child } from "../dom";
import { dialog } from "../edit";
import { look } from "../live";
import { dividing } from "../resources/interfaces";
import { go, path, route } from "../router";
import { isOperator, isTenants } from "../session";
import { button, busy as once, empty, field, made, table, title, words } from "../ui";
import { rate, showRate } from "../units";
import { busy } from "./overview";

route("/hosts/:", ([host]) => host ?? "", async (on, [host], signal) => {
	const name = host ?? "";
	const interfaces = await all((after) => listInterfaces(name, { after, limit: 1000 }));
	const state = isTenants() ? undefined : (await getHost(name)).data;
	const rates = h("div", {}, h("p", { class: "quiet", role: "status" }, "Waiting for the agent…"));
	const devices = h("div");
	fill(on, title(name, state && facts(state)), h("section", {}, h("h2", {}, "Interfaces"), rates), devices);
	// No group is called so: the totals alone are asked for.
	look(address(path("v1", "hosts", name, "rates"), { group: "-" }), (data, status) => fill(rates, status === 200 ? interfacesOf(name, interfaces, data as RateList) : interfacesOf(name, interfaces, undefined)), signal);
	if (state) look(path("v1", "hosts", name), (data, status) => {
		if (status === 200) fill(devices, machine(name, data as HostState, interfaces));
	}, signal);
});

function facts(s: HostState): string {
	if (!s.connected) return "Its agent is not connected: what is in force goes on without it.";
	return [s.version && `agent ${s.version}`, s.kernel && `Linux ${s.kernel}`].filter(Boolean).join(", ");
}

function interfacesOf(host: string, interfaces: Interface[], rates: RateList | undefined): HTMLElement {
	if (interfaces.length === 0) {
		return empty("No interface is divided.", isOperator() ? "Divide one of the devices below." : "An operator divides interfaces.");
	}
	// An interface of which the agent tells nothing, such as a pattern that takes in no device, is there by its name.
	interface Line {
		dev: string;
		load?: DirectionRates;
	}
	const loads = rates?.totals ?? [];
	const divided = loads.map((l) => dividing(interfaces, { name: l.dev, altnames: l.altnames ?? [] }));
	const silent = interfaces.map((i) => i.dev ?? "").filter((dev) => !divided.includes(dev));
	const lines: Line[] = [...loads.map((load) => ({ dev: load.dev, load })), ...silent.map((dev) => ({ dev }))];
	const of = <T extends Child>(f: (l: DirectionRates) => T) => ({ load }: Line): Child => (load ? f(load) : "–");
	return table("Interfaces", [
		{ name: "Interface", cell: ({ dev, load }) => (load ? h("a", { href: `${path("hosts", host, dev)}?direction=${load.direction}` }, `${dev} ${load.direction}`) : h("a", { href: path("hosts", host, dev) }, dev)) },
		{ name: "Of its limit", cell: of(busy) },
		{ name: "Carries", cell: of((l) => showRate(rate(l.delivered))), number: true },
		{ name: "Limit", cell: of((l) => (l.limit ? showRate(rate(l.limit)) : "–")), number: true, wide: true },
		{ name: "Groups", cell: of((l) => l.groups), number: true, wide: true },
		{ name: "At risk", cell: of((l) => (l.at_risk > 0 ? h("strong", { class: "bad" }, l.at_risk) : "0")), number: true },
	], lines);
}

// What a device takes in passes one of these that Headgate makes for it.
const own = /^hgi[0-9]+$/;

function machine(host: string, s: HostState, interfaces: Interface[]): HTMLElement[] {
	const out: HTMLElement[] = [];
	const devices = (s.devices ?? []).filter((d) => !own.test(d.name));
	if (devices.length > 0) out.push(h("section", {}, h("h2", {}, "Devices"), table("Devices", [
		{ name: "Device", cell: (d) => d.name },
		{ name: "Link", cell: (d) => (d.up === undefined ? "–" : d.up ? (d.speed ? showRate(rate(d.speed)) : "up") : "down"), wide: true },
		{ name: "Divided by", cell: (d) => owner(d) },
		{ name: "State", cell: (d) => (d.trouble ? h("span", { class: "state bad" }, d.trouble) : (d.foreign?.length ?? 0) > 0 ? `not Headgate's: ${d.foreign?.join(", ")}` : "–") },
		...(isOperator() ? [{ name: "Change", cell: (d: HostDevice) => (dividing(interfaces, d) !== undefined || d.owner === "local" || d.name === "lo" ? "" : divide(host, d)) }] : []),
	], devices)));
	const wrong = (s.features ?? []).filter((f) => f.state !== "ok");
	if (wrong.length > 0) out.push(h("section", {}, h("h2", {}, "What this machine lacks"), table("What this machine lacks", [
		{ name: "Feature", cell: (f) => f.name },
		{ name: "State", cell: (f) => f.state },
		{ name: "Found", cell: (f) => f.found ?? "–" },
	], wrong)));
	const sets = Object.entries(s.collectives ?? {});
	if (sets.length > 0) out.push(h("section", {}, h("h2", {}, "Sets in trouble"), table("Sets of connections in trouble", [
		{ name: "Set", cell: ([name]) => name },
		{ name: "Why", cell: ([, why]) => why },
	], sets)));
	return out;
}

function owner(d: HostDevice): string {
	return d.owner === "controller" ? "the service" : d.owner === "local" ? "the host itself" : "nobody";
}

// A first division is one group that takes everything, below the speed of the link if that is known.
function divide(host: string, d: HostDevice): HTMLButtonElement {
	const b = button("Divide", () => {
		const { on, close } = dialog(`Divide ${d.name}`);
		const limit = h("input", { required: true, value: d.speed ?? null, placeholder: "1Gbit", autocomplete: "off" });
		const both = h("input", { type: "checkbox" });
		const error = h("p", { class: "error", role: "alert" });
		const submit = h("button", { type: "submit", class: "primary" }, "Divide");
		const f = h("form", {}, field("Limit", limit, "What the link gives, or a little less: the queue is then here, where it is shared out. Everything is in one group at first."),
			h("div", { class: "check" }, h("label", {}, both, " What comes in as well")), error, h("div", { class: "actions" }, button("Cancel", close), submit));
		f.addEventListener("submit", (e) => {
			e.preventDefault();
			void once(submit, async () => {
				const direction = { limit: limit.value.trim(), groups: [{ name: "rest", default: true }] };
				const doc: Interface = { out: direction, ...(both.checked ? { in: direction } : {}) };
				let etag = "";
				try {
					await putInterface(host, d.name, doc, { dryRun: true });
					etag = (await putInterface(host, d.name, doc, { key: crypto.randomUUID() })).etag;
				} catch (why) {
					fill(error, words(why));
					return;
				}
				close();
				made(`Divided ${d.name} of ${host}`, async () => {
					await deleteInterface(host, d.name, { ifMatch: etag });
				}, () => go(path("hosts", host)));
				go(path("hosts", host, d.name));
			});
		});
		fill(on, f);
		limit.focus();
	}, "plain");
	b.setAttribute("aria-label", `Divide ${d.name}`);
	return b;
}
