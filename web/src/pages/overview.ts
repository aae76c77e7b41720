// All hosts: how busy they are, and whose guarantees are at risk.
import { getOverview, listHosts, type DirectionRates, type GroupAtRisk, type HostRates, type Overview } from "../api.gen";
import { address, all } from "../call";
import { fill, h, text } from "../dom";
import { look } from "../live";
import { busiest, use } from "../resources/rates";
import { path, route } from "../router";
import { isTenants } from "../session";
import { bar, command, empty, table, title } from "../ui";
import { rate, showRate, showShare } from "../units";
import { rows } from "../virtual";

/** busy shows how much of its limit a direction has. */
export function busy(d: DirectionRates | undefined): HTMLElement | string {
	if (!d) return "–";
	const part = use(d);
	if (part === undefined) return showRate(rate(d.delivered));
	return h("span", { class: "busy" }, bar(part, rate(d.guaranteed) / rate(d.limit)), h("span", {}, showShare(part)));
}

route("/", () => "Overview", async (on, _, signal) => (isTenants() ? ofTenant(on) : ofAll(on, signal)));

async function ofAll(on: HTMLElement, signal: AbortSignal): Promise<void> {
	let names = (await getOverview({ names: true })).data.names ?? [];
	const hosts = h("dd"), groups = h("dd"), risk = h("dd"), risks = h("div");
	const filter = h("input", { type: "search", placeholder: "Name of a host", "aria-label": "Show hosts whose name has" });
	const known = new Map<string, HostRates>();
	const of = (name: string): HostRates | undefined => known.get(name);
	let seeing: AbortController | undefined;
	const list = rows<string>("Hosts", [
		{ name: "Host", cell: (n) => h("a", { href: path("hosts", n) }, n) },
		{ name: "Agent", cell: (n) => agent(of(n)) },
		{ name: "Busiest direction", cell: (n) => busiestOf(of(n)), wide: true },
		{ name: "Of its limit", cell: (n) => busy(of(n) && busiest(of(n)!)) },
		{ name: "Carries", cell: (n) => carries(of(n)), number: true, wide: true },
		{ name: "At risk", cell: (n) => atRisk(of(n)), number: true },
	], (n) => n, (inSight) => {
		// What is not seen is not streamed.
		seeing?.abort();
		seeing = new AbortController();
		look(address("/v1/overview", { host: inSight.slice(0, 100) }), (data, status) => {
			if (status === 200) draw(data as Overview);
		}, AbortSignal.any([seeing.signal, signal]));
	}, signal);
	const found = (): string[] => names.filter((n) => n.toLowerCase().includes(filter.value.trim().toLowerCase()));
	const draw = (o: Overview): void => {
		text(hosts, o.connected === o.hosts ? String(o.hosts) : `${o.connected} of ${o.hosts} connected`);
		text(groups, String(o.groups));
		text(risk, String(o.at_risk));
		risk.classList.toggle("bad", o.at_risk > 0);
		const shown = JSON.stringify(o.risks);
		if (risks.dataset["shown"] !== shown) {
			risks.dataset["shown"] = shown;
			fill(risks, o.risks.length > 0 ? riskTable(o.risks) : h("p", { class: "quiet" }, "Every group that waits has what it is guaranteed."));
		}
		for (const i of o.items) known.set(i.host, i);
		list.draw();
		if (o.hosts !== names.length) {
			void getOverview({ names: true }).then(({ data }) => {
				names = data.names ?? [];
				list.show(found());
			});
		}
	};
	if (names.length === 0) {
		fill(on, title("Overview"), empty("There are no hosts yet.", ["Make one with ", command("headgate host create NAME"), ", and have its agent join with ", command("headgate agent join"), "."]));
		return;
	}
	filter.addEventListener("input", () => list.show(found()));
	fill(on, title("Overview"),
		h("dl", { class: "tiles" },
			h("div", {}, h("dt", {}, "Hosts"), hosts), h("div", {}, h("dt", {}, "Groups"), groups), h("div", {}, h("dt", {}, "Guarantees at risk"), risk)),
		h("section", {}, h("h2", {}, "Guarantees at risk now"), risks),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Hosts"), filter), list.on));
	list.show(names);
}

function agent(host: HostRates | undefined): HTMLElement | string {
	if (!host) return "";
	if (!host.connected) return h("span", { class: "state bad" }, "Not connected");
	return host.troubles ? h("span", { class: "state bad" }, `${host.troubles} in trouble`) : h("span", { class: "state good" }, "Connected");
}

function busiestOf(host: HostRates | undefined): string {
	const d = host && busiest(host);
	return d ? `${d.dev} ${d.direction}` : "–";
}

function carries(host: HostRates | undefined): string {
	return host?.connected ? showRate(host.directions.reduce((sum, d) => sum + rate(d.delivered), 0)) : "–";
}

function atRisk(host: HostRates | undefined): HTMLElement | string {
	const n = host?.directions.reduce((sum, d) => sum + d.at_risk, 0) ?? 0;
	return n === 0 ? "0" : h("strong", { class: "bad" }, n);
}

function riskTable(risks: GroupAtRisk[]): HTMLElement {
	return table("Groups that wait and have less than they are guaranteed", [
		{ name: "Group", cell: (r) => h("a", { href: path("hosts", r.host, r.dev) }, `${r.host} ${r.dev} ${r.direction} ${r.group}`) },
		{ name: "Has", cell: (r) => showRate(rate(r.delivered)), number: true },
		{ name: "Guaranteed", cell: (r) => showRate(rate(r.guaranteed)), number: true },
	], risks);
}

// A tenant is told on which hosts it has something, and no more of them.
async function ofTenant(on: HTMLElement): Promise<void> {
	const hosts = await all((after) => listHosts({ after, limit: 1000 }));
	fill(on, title("Overview", "Hosts on which you have groups"),
		hosts.length === 0
			? empty("You have no groups yet.", "An operator gives you some; what is in them is yours to divide.")
			: h("ul", { class: "cards" }, hosts.map((host) => h("li", {}, h("a", { href: path("hosts", host.name ?? "") }, host.name)))));
}
