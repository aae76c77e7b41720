// Calls every operation of the API with the generated client, and prints a line for each call: the operation and
// the status of the response, then the fault if the client could not parse it. The environment has the service.
import { readFileSync } from "node:fs";
import { env, exit, stdout } from "node:process";
import { createClient, createConfig, type Client } from "./headgate/client/index.ts";
import * as api from "./headgate/index.ts";

const variable = (name: string): string => {
	const value = env[name];
	if (value === undefined) {
		throw new Error(`the environment has no ${name}`);
	}
	return value;
};
const baseUrl = variable("HEADGATE_URL");
const secret = variable("HEADGATE_TOKEN"); // an operator's
const host = variable("HEADGATE_HOST"); // whose agent is connected; its device eth0 is not configured
const request = readFileSync(variable("HEADGATE_REQUEST"), "utf8"); // the certificate request of an agent of the host new

const as = (token: string): Client => createClient(createConfig({ baseUrl, auth: token }));
const operator = as(secret);

const print = (operation: { name: string }, status: number | undefined, fault?: unknown): void => {
	const text = fault instanceof Error ? fault.message : JSON.stringify(fault);
	stdout.write(`${operation.name} ${status ?? 0}${fault === undefined ? "" : ` ${text.replace(/\s+/g, " ")}`}\n`);
};

interface Answer<T> {
	data?: T;
	error?: unknown;
	response?: Response;
}

type Operation = (options: any) => Promise<unknown>;
type Options<O extends Operation> = Omit<NonNullable<Parameters<O>[0]>, "client">;
type Data<O extends Operation> = Awaited<ReturnType<O>> extends infer A ? A extends { data: infer D } ? Exclude<D, undefined> : never : never;

// call returns the data of the response, which the client has checked against the schema.
async function call<O extends Operation>(by: Client, operation: O, options: Options<O>): Promise<Data<O>> {
	const { data, error, response } = await operation({ ...options, client: by }) as Answer<Data<O>>;
	print(operation, response?.status, error);
	if (data === undefined) {
		return exit(1); // the calls that follow need it
	}
	return data;
}

// refused calls an operation that the service must reject with a status, and returns the problem.
async function refused<O extends Operation>(by: Client, status: number, operation: O, options: Options<O>): Promise<api.Problem> {
	const { error, response } = await operation({ ...options, client: by }) as Answer<Data<O>>;
	if (response?.status !== status) {
		throw new Error(`${operation.name}: ${response?.status}, want ${status}`);
	}
	return error as api.Problem;
}

// until calls an operation until the data of the response are those of a condition, for ten seconds.
async function until<O extends Operation>(holds: (data: Data<O>) => boolean, by: Client, operation: O, options: Options<O>): Promise<Data<O>> {
	for (let tries = 1; ; tries++) {
		const data = await call(by, operation, options);
		if (holds(data) || tries === 100) {
			return data;
		}
		await new Promise((resolve) => setTimeout(resolve, 100));
	}
}

// first opens a stream, and closes it after the first event.
async function first<O extends Operation>(operation: O, options: Options<O>): Promise<unknown> {
	const open = new AbortController();
	let status = 0;
	let fault: unknown = new Error("the stream has no event");
	const { stream } = await operation({
		...options, client: operator, signal: open.signal, sseMaxRetryAttempts: 1,
		fetch: async (...request: Parameters<typeof fetch>) => {
			const response = await fetch(...request);
			status = response.status;
			return response;
		},
		onSseError: (error: unknown) => { fault = error; },
	}) as { stream: AsyncGenerator<unknown> };
	for await (const event of stream) {
		open.abort();
		print(operation, status);
		return event;
	}
	print(operation, status, fault);
	return exit(1);
}

const equal = (what: string, has: unknown, want: unknown): void => {
	if (JSON.stringify(has) !== JSON.stringify(want)) {
		throw new Error(`${what}: ${JSON.stringify(has)}, want ${JSON.stringify(want)}`);
	}
};

// Service and access.
await call(createClient(createConfig({ baseUrl })), api.getHealth, {});
await call(createClient(createConfig({ baseUrl })), api.login, { body: { token: secret } });
equal("the role", (await call(operator, api.getSession, {})).role, "operator");
await call(operator, api.putTenant, { path: { tenant: "shop" }, query: { dry_run: true }, body: {} });
await refused(operator, 404, api.getTenant, { path: { tenant: "shop" } });
await call(operator, api.putTenant, { path: { tenant: "shop" }, body: { description: "the web shop", requests_per_second: 500 } });
await call(operator, api.getTenant, { path: { tenant: "shop" } });
await call(operator, api.listTenants, { query: { limit: 10 } });
const token = await call(operator, api.createToken, { body: { name: "program", role: "tenant", tenant: "shop", lifetime: "1h" } });
await call(operator, api.listTokens, {});
equal("tokens of the backup", (await call(operator, api.getRestore, {})).tokens, []);
await call(operator, api.confirmRestore, { body: {} });
await call(operator, api.takeBack, {});
const shop = as(token.token);

// Hosts.
await call(operator, api.putHost, { path: { host: "new" }, body: { description: "in rack 4" } });
const join = await call(operator, api.createToken, { body: { name: "join", role: "agent", host: "new" } });
await call(as(join.token), api.signCertificate, { path: { host: "new" }, body: { request } });
equal("connected", (await call(operator, api.getHost, { path: { host } })).connected, true);
equal("hosts", (await call(operator, api.listHosts, {})).items.map((h) => h.name).includes(host), true);

// Interfaces, groups and connections.
const eth0 = { host, dev: "eth0" };
const out = { ...eth0, direction: "out" } as const;
await call(operator, api.putInterface, {
	path: eth0,
	body: {
		out: {
			limit: "100Mbit",
			groups: [
				{ name: "shop", guarantee: "40%", tenant: "shop", match: [{ dst: ["10.1.0.0/16"], vlan: [7, "100-199"], not: { dport: ["22"] } }, { dst: ["10.2.0.0/16"] }] },
				{ name: "rest", guarantee: "10%", default: true },
			],
		},
	},
});
await call(operator, api.getInterface, { path: eth0 });
await call(operator, api.listInterfaces, { path: { host } });
equal("the tenant's groups", (await call(shop, api.listTenantGroups, { path: { tenant: "shop" } })).items.map((g) => g.group), ["shop"]);
await call(shop, api.putGroup, { path: { ...out, group: "shop/rest" }, body: { default: true } });
await call(shop, api.putGroup, { path: { ...out, group: "shop/backup" }, body: { guarantee: "10Mbit", ceiling: "30Mbit", match: [{ dport: ["873"] }] } });
equal("the groups", (await call(shop, api.listGroups, { path: out })).items.map((g) => g.path), ["shop", "shop/rest", "shop/backup"]);
await call(shop, api.getGroup, { path: { ...out, group: "shop/backup" } });
const changed = await call(shop, api.patchGroup, { path: { ...out, group: "shop/backup" }, headers: { "If-Match": "*", "Idempotency-Key": "once" }, body: { guarantee: "20Mbit", ceiling: null } });
equal("the guarantee and the ceiling", [changed.guaranteed_bps, changed.ceiling], [20_000_000, undefined]);
const problem = await refused(shop, 412, api.patchGroup, { path: { ...out, group: "shop/backup" }, headers: { "If-Match": '"former"' }, body: { guarantee: "30Mbit" } });
equal("the problem", problem.status, 412);
const connection = "tcp 10.0.0.1:55000 10.2.0.2:873";
await call(shop, api.putConnection, { path: { ...eth0, connection }, body: { group: "shop/backup" } });
equal("the connections", (await call(shop, api.listConnections, { path: eth0 })).items.map((c) => c.group), ["shop/backup"]);
await call(shop, api.deleteConnection, { path: { ...eth0, connection } });
await call(shop, api.deleteGroup, { path: { ...out, group: "shop/backup" } });

// Files.
const policy = await call(operator, api.getPolicy, { path: { host } });
await call(operator, api.putPolicy, { path: { host }, body: policy });

// Connection sets.
const collective = { host, collective: "database" };
await call(operator, api.putCollective, { path: collective, body: { document: "kind: Collective\nname: database\nmatch: [{dport: 5432}]\n" } });
await call(operator, api.getCollective, { path: collective });
await call(operator, api.listCollectives, { path: { host } });
equal("the connections of the set", (await call(operator, api.listCollectiveStates, { path: { host } })).items.map((s) => s.connections.length), [1]);
await call(operator, api.deleteCollective, { path: collective });

// Relay agents.
equal("the streams of the relay agent", (await call(operator, api.listRelays, { path: { host } })).items.map((r) => r.exits[0]!.paths[0]!.open_streams), [1]);
equal("the ended connections", (await call(operator, api.listRelayEnded, { path: { host, relay: "east" } })).items.map((c) => c.state), ["ended"]);

// The network of switches.
const network = await call(operator, api.getNetwork, {});
equal("the uses of ports", network.switches.map((s) => s.ports.map((p) => p.use)), [["link", "faulty", "faulty"], ["link", "hosts", "none"]]);
equal("the addresses of the host", network.hosts[0]!.addresses, ["10.9.0.1"]);
const walk = await call(operator, api.getNetworkPath, { query: { from: "10.9.0.1", to: network.switches[0]!.id } });
equal("the path", walk.hops.map((h) => [h.switch, h.in_port]), [["0000000000000002", 2], ["0000000000000001", 1]]);
const trace = await call(operator, api.getNetworkTrace, { query: { packet: "broadcast", from: "10.9.0.1" } });
equal("the hops of the trace", trace.hops.map((h) => h.switch), ["0000000000000002", "0000000000000001"]);
equal("the first flow", (await call(operator, api.listSwitchFlows, { path: { dpid: "0000000000000001" } })).items[0]!.table_name, "port");
equal("the other end of the link", (await call(operator, api.getNetworkLinkHistory, { path: { dpid: "0000000000000001", port: 1 } })).to, network.links[0]!.to);
equal("the first event", (await call(operator, api.listNetworkEvents, {})).items[0]!.kind, "switch-added");
const document = "kind: Network\nname: campus\nunknown_switches: accept\nswitches: [{id: 1, name: one}]\nlisten: [{address: \"127.0.0.1:16653\", tls: false}]\n";
const stored = await call(operator, api.putNetworkConfig, { body: { text: document } });
equal("the configuration of the network", (await call(operator, api.getNetworkConfig, {})).text, stored.text);
const signed = await call(operator, api.signSwitchCertificate, { body: { switches: ["one"], request, days: 30 } });
equal("the switches of the certificate", signed.switches, ["0000000000000001"]);
await call(operator, api.deleteNetworkConfig, {});

// Reservations.
const ends = { from: { host: "10.9.0.1" }, to: { prefix: "10.8.0.0/16", at: { switch: "0000000000000001", port: 2 } } };
const made = await call(operator, api.createReservation, { body: { name: "backup", rate: "600Mbit", duration: "1h", ...ends } });
equal("the rate", [made.rate_bps, made.state, made.paths.map((p) => p.links.length)], [600_000_000, "active", [1]]);
const refusal = (await refused(operator, 409, api.createReservation, { body: { name: "more", rate: "600Mbit", duration: "1h", ...ends } })).refusal;
equal("the most that fits", [refusal?.reason, refusal?.most?.rate], ["no bandwidth", "400Mbit"]);
const backup = { owner: "-", reservation: "backup" };
const longer = await call(operator, api.putReservation, { path: backup, body: { rate: "700Mbit", duration: "2h", ...ends } });
equal("the changed reservation", [longer.rate_bps, longer.generation], [700_000_000, 2]);
equal("the reservation", (await call(operator, api.getReservation, { path: backup })).request.rate, "700Mbit");
equal("the reservations", (await call(operator, api.listReservations, { query: { owner: "-" } })).items.map((r) => r.name), ["backup"]);
const begin = made.paths[0]!.links[0]!.from;
equal("the first step", (await call(operator, api.getReservationCalendar, { query: { link: `${begin.switch}/${begin.port}` } })).steps[0]!.reserved_bps, 700_000_000);
equal("the usage of others", (await call(operator, api.listReservationUsage, { query: { owner: "-", reservation: "none" } })).items.map((u) => u.name), []);
await call(operator, api.deleteReservation, { path: backup });

// Measurements.
const started = await call(operator, api.startProbe, { path: { host }, body: { measure: "path", peer: "10.0.0.9:8421" } });
const probe = await until((p) => p.state === "done", operator, api.getProbe, { path: { host, probe: started.id } });
equal("the result", probe.result, { peer: "10.0.0.9:8421" });
await call(operator, api.putProbeSchedule, {
	body: {
		measures: [{ measure: "tokenrate", every: "6h" }], budget: "1GB", pairs: [[host, "new"]],
		hosts: [{ host, links: ["uplink"] }, { host: "new", address: "10.0.0.2" }], quiet: [{ days: ["mon"], from: "08:30", to: "18:00" }],
	},
});
await call(operator, api.getProbeSchedule, {});
await call(operator, api.getProbeState, {});
equal("the results", (await call(operator, api.listProbeResults, { query: { from: host, since: "2026-01-01T00:00:00Z", newest: false } })).items.map((r) => r.answer?.token_rate?.rate?.value), [1e8]);
equal("the proposals", (await call(operator, api.listProposals, { path: { host }, query: { dev: "eth0", margin: "2%" } })).items.map((p) => p.out?.before_bps), [100_000_000]);
await call(operator, api.deleteProbeSchedule, {});

// What was recorded.
const rates = await until((r) => r.items.length > 0, shop, api.getRates, { path: { host }, query: { dev: "eth0", direction: "out", group: ["shop", "shop/rest"] } });
equal("the groups with rates", rates.items.map((g) => g.group), ["shop"]);
equal("the overview", (await call(operator, api.getOverview, { query: { names: true, host: [host, "new"] } })).items.map((h) => h.host), ["new", host]);
equal("the usage", (await call(operator, api.getUsage, { query: { since: "2026-01-01T00:00:00Z", host } })).items.map((u) => u.delivered_bytes), [7]);
equal("an event", Object.keys((await first(api.watchEvents, {})) as object), ["revision"]);
await first(api.watchLive, { query: { see: ["/v1/session", `/v1/hosts/${host}/rates?dev=eth0`] } });
await call(operator, api.listAudit, { query: { limit: 5 } });
const history = await call(operator, api.listHistory, { path: eth0 });
const revision = history.items.at(-1)?.revision ?? 0;
await call(operator, api.getInterface, { path: eth0, query: { revision } });
await call(operator, api.rollBack, { path: eth0, body: { revision } });

// Deletion.
await call(operator, api.deleteInterface, { path: eth0 });
await call(operator, api.deleteHost, { path: { host: "new" } });
await call(operator, api.deleteToken, { path: { token: token.id } });
await call(operator, api.deleteTenant, { path: { tenant: "shop" } });
await call(operator, api.deleteSession, {});
