// Overview page: all hosts with their utilization, and the groups at risk.
import { getOverview, listHosts, type DirectionRates, type GroupAtRisk, type HostRates, type Overview } from "../api.gen";
import { allPages, withQuery } from "../call";
import { fill, h, text } from "../dom";
import { subscribe } from "../live";
import { busiest, utilization } from "../resources/rates";
import { path, route } from "../router";
import { isTenantSession } from "../session";
import { bar, command, empty, table, title } from "../ui";
import { showRate, showShare } from "../units";
import { virtualTable } from "../virtual";

/** utilizationCell shows the utilization of a direction, or its rate if it has no limit. */
export function utilizationCell(d: DirectionRates | undefined): HTMLElement | string {
	if (!d) return "–";
	const part = utilization(d);
	if (part === undefined || !d.limit_bps) return showRate(d.delivered_bps);
	return h("span", { class: "busy" }, bar(part, d.guaranteed_bps / d.limit_bps), h("span", {}, showShare(part)));
}

route("/", () => "Overview", async (on, _, signal) => (isTenantSession() ? tenantOverview(on) : serviceOverview(on, signal)));

/** serviceOverview draws the overview of all hosts. */
async function serviceOverview(on: HTMLElement, signal: AbortSignal): Promise<void> {
	let names = (await getOverview({ names: true })).data.names ?? [];
	const hosts = h("dd"), groups = h("dd"), risk = h("dd"), risks = h("div");
	const filter = h("input", { type: "search", placeholder: "Filter by name", "aria-label": "Filter hosts by name" });
	const known = new Map<string, HostRates>();
	const of = (name: string): HostRates | undefined => known.get(name);
	let subscription: AbortController | undefined;
	const list = virtualTable<string>("Hosts", [
		{ name: "Host", cell: (n) => h("a", { href: path("hosts", n) }, n) },
		{ name: "Agent", cell: (n) => agent(of(n)) },
		{ name: "Busiest direction", cell: (n) => busiestOf(of(n)), wide: true },
		{ name: "Utilization", cell: (n) => utilizationCell(of(n) && busiest(of(n)!)) },
		{ name: "Rate", cell: (n) => rateCell(of(n)), number: true, wide: true },
		{ name: "At risk", cell: (n) => atRiskCell(of(n)), number: true },
	], (n) => n, (visible) => {
		// Only the rows in the window are streamed.
		subscription?.abort();
		subscription = new AbortController();
		subscribe(withQuery("/v1/overview", { host: visible.slice(0, 100) }), (data, status) => {
			if (status === 200) draw(data as Overview);
		}, AbortSignal.any([subscription.signal, signal]));
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
			fill(risks, o.risks.length > 0 ? riskTable(o.risks) : h("p", { class: "quiet" }, "No group is at risk: every group with demand gets its guarantee."));
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
		fill(on, title("Overview"), empty("No hosts.", ["Create a host with ", command("headgate host create NAME"), ", then join its agent with ", command("headgate agent join"), "."]));
		return;
	}
	filter.addEventListener("input", () => list.show(found()));
	fill(on, title("Overview"),
		h("dl", { class: "tiles" },
			h("div", {}, h("dt", {}, "Hosts"), hosts), h("div", {}, h("dt", {}, "Groups"), groups), h("div", {}, h("dt", {}, "Groups at risk"), risk)),
		h("section", {}, h("h2", {}, "Groups at risk"), risks),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Hosts"), filter), list.on));
	list.show(names);
}

/** agent shows the state of a host's agent. */
function agent(host: HostRates | undefined): HTMLElement | string {
	if (!host) return "";
	if (!host.connected) return h("span", { class: "state bad" }, "Disconnected");
	return host.errors ? h("span", { class: "state bad" }, `${host.errors} ${host.errors === 1 ? "problem" : "problems"}`) : h("span", { class: "state good" }, "Connected");
}

function busiestOf(host: HostRates | undefined): string {
	const d = host && busiest(host);
	return d ? `${d.dev} ${d.direction}` : "–";
}

function rateCell(host: HostRates | undefined): string {
	return host?.connected ? showRate(host.directions.reduce((sum, d) => sum + d.delivered_bps, 0)) : "–";
}

function atRiskCell(host: HostRates | undefined): HTMLElement | string {
	const n = host?.directions.reduce((sum, d) => sum + d.at_risk, 0) ?? 0;
	return n === 0 ? "0" : h("strong", { class: "bad" }, n);
}

function riskTable(risks: GroupAtRisk[]): HTMLElement {
	return table("Groups whose guarantee is unmet", [
		{ name: "Group", cell: (r) => h("a", { href: path("hosts", r.host, r.dev) }, `${r.host} ${r.dev} ${r.direction} ${r.group}`) },
		{ name: "Rate", cell: (r) => showRate(r.delivered_bps), number: true },
		{ name: "Guarantee", cell: (r) => showRate(r.guaranteed_bps), number: true },
	], risks);
}

/** tenantOverview lists the hosts on which the tenant has groups. A tenant sees nothing else of a host. */
async function tenantOverview(on: HTMLElement): Promise<void> {
	const hosts = await allPages((after) => listHosts({ after, limit: 1000 }));
	fill(on, title("Overview", "Hosts on which the tenant has groups"),
		hosts.length === 0
			? empty("The tenant has no groups.", "An operator creates groups for a tenant, which may then divide them.")
			: h("ul", { class: "cards" }, hosts.map((host) => h("li", {}, h("a", { href: path("hosts", host.name ?? "") }, host.name)))));
}
