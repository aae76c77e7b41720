// Made from api/openapi.yaml by "go generate ./web". Do not edit.
import { call, type Change } from "./call";
/** A rate, or a share of the parent's such as 40%. */
export type Amount = string;
export type AuditEntry = {
	at: string;
	by: string;
	id: string;
	revision?: number;
	role?: Role;
	status?: number;
	/** The method and path. */
	what: string;
};
export type AuditList = {
	items: (AuditEntry)[];
	next?: string;
};
export type Certificate = {
	/** Where agents speak to controllers. */
	agents: (string)[];
	authority: string;
	certificate: string;
};
export type Clock = string;
export type Collective = {
	/** The document as in a file, kind: Collective. */
	document: string;
	name?: Name;
};
export type CollectiveConnection = {
	/** Bytes, since it began. */
	acked?: number;
	/** Without a queue. */
	base_rtt_ns?: number;
	id: number;
	local: string;
	/** What it was found to need; 0 is not known yet. */
	needs?: Rate;
	/** The cap as a rate; 0 is none. */
	pace?: Rate;
	/** What was acknowledged in the last second. */
	rate?: Rate;
	remote: string;
	/** Packets, since it began. */
	retransmits?: number;
	rtt_ns?: number;
	/** By hand; it counts instead. */
	weight?: number;
	/** The cap as a size, such as 30kB; 0 is none. */
	window?: string;
};
export type CollectiveList = {
	items: (Collective)[];
	next?: string;
};
export type CollectiveState = {
	/** On the host's monotonic clock, as is since_ns. */
	at_ns?: number;
	connections: (CollectiveConnection)[];
	controlling?: boolean;
	/** That of a part of a set that has parts. */
	destination?: string;
	/** The part of segments that were sent again since then. */
	resent?: number;
	resent_before?: number;
	set: Name;
	/** When it was controlled or let go. */
	since_ns?: number;
	/** Why it is not as it is meant. */
	trouble?: string;
	/** Its cgroup or unit is not there. */
	waiting?: boolean;
};
export type CollectiveStateList = {
	/** There are more connections than are told. */
	cut?: boolean;
	items: (CollectiveState)[];
};
export type Connection = {
	connection?: string;
	group: string;
};
export type ConnectionList = {
	items: (Connection)[];
	next?: string;
};
export type Dev = string;
export type Direction = {
	groups: (Group)[];
	/** Bits per second, such as 100Mbit. */
	limit: Rate;
	spare?: "proportional" | "equal" | "priority";
};
export type DirectionProposal = {
	at?: string;
	/** What it is now. */
	before?: Rate;
	/** Why no limit is proposed. */
	cannot_tell?: string;
	/** Of the path that says so, as are to, measure, at and measured. */
	from?: Name;
	/** Bits per second, such as 100Mbit. */
	limit?: Rate;
	measure?: ProbeMeasure;
	measured?: ProbeEstimate;
	notes?: (string)[];
	to?: Name;
};
export type DirectionRates = {
	/** Alternative names of the device. */
	altnames?: (string)[];
	/** Groups that wait and have less than they are guaranteed. */
	at_risk: number;
	/** Bytes. */
	backlog: number;
	/** Bits per second, such as 100Mbit. */
	delivered: Rate;
	dev: string;
	direction: string;
	groups: number;
	/** Bits per second, such as 100Mbit. */
	guaranteed: Rate;
	/** Bits per second, such as 100Mbit. */
	limit?: Rate;
};
/** One group for every client that appears: src or dst and the length of the prefix that is one client, for IPv4, IPv6 or both. The guarantee and the ceiling are then each client's. */
export type Each = string;
/** A packet that has any of these values, of whatever field, is not matched. */
export type Exclusions = {
	cgroup?: string;
	dport?: (string)[];
	/** Code points and ranges, by name or number: cs1, af11-af13, 8-15. */
	dscp?: (string)[];
	dst?: (string)[];
	/** Numbers up to 4294967295, or as text, also with a mask: 0x4000/0xff00. */
	mark?: (NumberOrText)[];
	/** 802.1p priorities of the outermost tag, 0 to 7, and ranges as text: 5-7. */
	pcp?: (NumberOrText)[];
	proto?: (string)[];
	/** Source MAC addresses, also with a mask: aa:bb:cc:00:00:00/ff:ff:ff:00:00:00. */
	smac?: (string)[];
	sport?: (string)[];
	src?: (string)[];
	/** Ids, 1 to 4094, and ranges as text: 100-199. */
	vlan?: (NumberOrText)[];
};
export type Group = {
	/** A rate, or a share of the parent's such as 40%. */
	ceiling?: Amount;
	/** How many clients may be busy at the same time, of a group with each; 2048 if it is not given. */
	clients?: number;
	default?: boolean;
	/** One group for every client that appears: src or dst and the length of the prefix that is one client, for IPv4, IPv6 or both. The guarantee and the ceiling are then each client's. */
	each?: Each;
	groups?: (Group)[];
	/** A rate, or a share of the parent's such as 40%. */
	guarantee?: Amount;
	/** Whose programs may put connections of their own in the group and in those in it, at the agent's socket on the host. */
	join?: Users;
	match?: (Selector)[];
	name?: Name;
	priority?: number;
	/** Whose it is; for operators. The group has match, or is the default, and is in no other tenant's. */
	tenant?: Name;
};
export type GroupAtRisk = {
	/** Bits per second, such as 100Mbit. */
	delivered: Rate;
	dev: string;
	direction: string;
	group: string;
	/** Bits per second, such as 100Mbit. */
	guaranteed: Rate;
	host: string;
};
export type GroupList = {
	items: (GroupState)[];
	next?: string;
};
export type GroupPatch = {
	ceiling?: string | null;
	clients?: number | null;
	default?: boolean | null;
	each?: string | null;
	guarantee?: string | null;
	join?: (User)[] | null;
	match?: (Selector)[] | null;
	priority?: number | null;
	tenant?: string | null;
};
export type GroupRates = {
	/** When its host counted, by that one's clock. */
	at?: string;
	/** It waits and has less than it is guaranteed. */
	at_risk?: boolean;
	/** Bytes. */
	backlog?: number;
	/** Delivered since the group was made. */
	bytes?: number;
	/** Bits per second, such as 100Mbit. */
	delivered: Rate;
	dev: string;
	direction: string;
	/** Packets since then. */
	drops?: number;
	group: string;
	/** Bits per second, such as 100Mbit. */
	guaranteed?: Rate;
	/** Packets since then. */
	marks?: number;
	/** How long the packet that left last had waited; not said if nothing leaves */
	queue_delay_ns?: number;
};
export type GroupState = {
	/** A rate, or a share of the parent's such as 40%. */
	ceiling?: Amount;
	/** How many clients may be busy at the same time, of a group with each; 2048 if it is not given. */
	clients?: number;
	default?: boolean;
	/** One group for every client that appears: src or dst and the length of the prefix that is one client, for IPv4, IPv6 or both. The guarantee and the ceiling are then each client's. */
	each?: Each;
	/** What of its guarantee no group in it has. */
	free?: Rate;
	groups?: (Group)[];
	/** A rate, or a share of the parent's such as 40%. */
	guarantee?: Amount;
	/** Whose programs may put connections of their own in the group and in those in it, at the agent's socket on the host. */
	join?: Users;
	match?: (Selector)[];
	/** What it never gets more than. */
	most?: Rate;
	name?: Name;
	path: string;
	priority?: number;
	/** What it is guaranteed. */
	rate: Rate;
	/** Whose it is; for operators. The group has match, or is the default, and is in no other tenant's. */
	tenant?: Name;
};
export type Health = {
	leader?: string;
	version: string;
	/** Whether changes are taken: the disk may be full. */
	writable: boolean;
};
export type Host = {
	description?: string;
	name?: Name;
	/** Its agent is not spoken to. */
	revoked?: boolean;
};
export type HostDevice = {
	/** Alternative names, by which a document may name it too. */
	altnames?: (string)[];
	/** Traffic control that is not Headgate's. */
	foreign?: (string)[];
	mtu?: number;
	name: string;
	owner?: "controller" | "local" | "nobody";
	/** Bits per second, such as 100Mbit. */
	speed?: Rate;
	/** Why what is wanted is not in force. */
	trouble?: string;
	/** Not there if the host has no such device now: something is wanted of it. */
	up?: boolean;
};
export type HostDevices = (HostDevice)[];
export type HostFeature = {
	found?: string;
	name: string;
	state: "ok" | "limited" | "missing" | "unknown";
};
export type HostList = {
	items: (HostState)[];
	next?: string;
};
export type HostRates = {
	connected: boolean;
	directions: (DirectionRates)[];
	host: string;
	/** Devices that are not as they are meant. */
	troubles?: number;
};
export type HostState = {
	/** Sets of connections that are not as they are meant, and why. */
	collectives?: Record<string, string>;
	connected?: boolean;
	description?: string;
	devices?: HostDevices;
	/** The epoch and revision that its agent has in force. */
	enforced?: string;
	/** What the machine can do, as headgate doctor finds it. */
	features?: (HostFeature)[];
	/** Its release. */
	kernel?: string;
	name?: Name;
	/** Its agent is not spoken to. */
	revoked?: boolean;
	version?: string;
};
export type Interface = {
	dev?: Dev;
	engine?: "htb" | "quantum";
	/** sized (if left out): the device's gso_max_size and gro_max_size are lowered to what takes 0.25 ms at the limit; keep: they stay as they are. */
	gso?: "sized" | "keep";
	in?: Direction;
	out?: Direction;
	/** Of engine quantum: packets inside their group's guarantee pass although the limit is used up, for one quantum at a time. */
	overdraft?: boolean;
	overhead?: Overhead;
	perspective?: "host" | "guest";
	/** Of engine quantum: the time after which bytes are counted anew; 1s if left out. */
	quantum?: string;
	/** Of engine quantum: what a group that leaves as much unused lends at the end of each quantum, in bytes or of the limit; 1.5% if left out. */
	step?: string;
};
export type InterfaceList = {
	items: (Interface)[];
	next?: string;
};
/** A length of time, such as 15m or 6h. */
export type Length = string;
export type Name = string;
export type NewToken = Token & {
	token: string;
};
export type NumberOrText = number | string;
export type Overhead = {
	frame?: string;
	minimum?: string;
};
export type Overview = {
	/** Groups that wait and have less than they are guaranteed. */
	at_risk: number;
	/** Ten hosts, by the direction that has most of its limit. */
	busiest: (HostRates)[];
	connected: number;
	/** Those of connected hosts. */
	groups: number;
	hosts: number;
	items: (HostRates)[];
	names?: (string)[];
	/** The first hundred of them. */
	risks: (GroupAtRisk)[];
};
export type Policy = {
	/** YAML. */
	text: string;
};
export type Principal = {
	expires?: string;
	host?: Name;
	name: string;
	role: Role;
	tenant?: Name;
};
export type Probe = {
	error?: string;
	id: string;
	result?: Record<string, unknown>;
	state: "waiting" | "running" | "done" | "failed";
};
/** What a direction gives, in bit/s and bytes of layer 2. */
export type ProbeAnswer = {
	available?: {
	available?: ProbeEstimate;
	notes?: (string)[];
};
	/** What was sent for it. */
	bytes?: string;
	capacity?: ProbeEstimate;
	flaws?: (string)[];
	limiter?: {
	at?: string;
	bucket?: {
	peak?: ProbeEstimate;
	rate?: ProbeEstimate;
	size?: ProbeEstimate;
};
	cannot_tell?: string;
	/** tbf, xen, vm-scheduling, policer, cpu or none. */
	class?: string;
	confidence?: number;
};
	/** The part of packets that did not come. */
	lost?: number;
	/** The largest IP packet, in bytes. */
	packet?: number;
	seconds?: number;
	token_rate?: {
	bucket?: ProbeEstimate;
	policed?: boolean;
	rate?: ProbeEstimate;
};
};
export type ProbeEstimate = {
	at_least?: boolean;
	/** Why there is no value. */
	cannot_tell?: string;
	high?: number;
	/** With high it holds 90 of 100 measurements. */
	low?: number;
	value?: number;
};
export type ProbeHost = {
	/** Where others find it, such as 10.0.0.2 or 10.0.0.2:5000; where its agent comes from if not said. */
	address?: string;
	host: Name;
	/** Names of what it shares with other hosts that have the same here. */
	links?: (Name)[];
};
export type ProbeMeasure = "path" | "capacity" | "tokenrate" | "limiter" | "available";
export type ProbeQuiet = {
	/** On which it begins; every day if not said. */
	days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
	from: Clock;
	/** If it is not after from, that of the next day. */
	to: Clock;
};
export type ProbeRequest = {
	measure: "path" | "capacity" | "tokenrate" | "limiter" | "available";
	/** Where "headgate probe serve" runs, such as 10.0.0.2:8421. */
	peer: string;
};
export type ProbeResult = {
	/** What a direction gives, in bit/s and bytes of layer 2. */
	answer?: ProbeAnswer;
	/** When; not said if it was only tried. */
	at?: string;
	/** The host that measured. */
	by?: Name;
	from: Name;
	/** What it passed at from. */
	from_devices?: (string)[];
	id?: string;
	measure: ProbeMeasure;
	/** The least that Headgate let through at either end meanwhile; not said if it set no limit. */
	own_limit?: Rate;
	rtt_ns?: number;
	to: Name;
	to_devices?: (string)[];
	/** When it was tried last. */
	tried: string;
	/** Why that was in vain. */
	trouble?: string;
};
export type ProbeResultList = {
	items: (ProbeResult)[];
	next?: string;
};
export type ProbeSchedule = {
	/** What measurements bring through a host in a day at the most, in both directions. */
	budget: string;
	/** What a measurement sends in each direction at the most; 10MB if not said. */
	bytes?: string;
	/** Those that take part; all if not said. */
	hosts?: (ProbeHost)[];
	measures: ({
	/** A length of time, such as 15m or 6h. */
	every: Length;
	measure: ProbeMeasure;
})[];
	/** Those that measure, by their first host, in both directions; each host with each other if not said. */
	pairs?: ((Name)[])[];
	/** In them nothing is measured. */
	quiet?: (ProbeQuiet)[];
	/** How long each direction takes at the most; 30s if not said. */
	time?: Length;
	/** Whose hours and days these are; UTC if not said. */
	zone?: string;
};
export type ProbingState = {
	/** Today, where the schedule says. */
	day?: string;
	/** Nothing begins now, because of the quiet hours. */
	quiet?: boolean;
	running: ({
	began: string;
	from: Name;
	id: string;
	measure: ProbeMeasure;
	to: Name;
})[];
	spent: ({
	/** What measurements have brought through it, and may still bring that are under way. */
	bytes: string;
	host: Name;
})[];
};
export type Problem = {
	detail?: string;
	errors?: ({
	field: string;
	message: string;
})[];
	status: number;
	title: string;
	type: string;
};
export type Proposal = {
	changes?: ({
	/** Bits per second, such as 100Mbit. */
	after: Rate;
	/** What it is guaranteed now. */
	before?: Rate;
	direction: "out" | "in";
	group: string;
})[];
	dev: Dev;
	/** Of the interface as it is; not said if it is not divided yet. */
	etag?: string;
	in?: DirectionProposal;
	/** What it would be; not said if no limit is proposed. */
	interface?: Interface;
	out?: DirectionProposal;
	/** Why it would be refused. */
	problems?: (string)[];
};
export type ProposalList = {
	items: (Proposal)[];
};
/** Bits per second, such as 100Mbit. */
export type Rate = string;
export type RateList = {
	at?: string;
	items: (GroupRates)[];
	/** Of the groups that one may see. */
	totals?: (DirectionRates)[];
};
export type Role = "operator" | "tenant" | "viewer" | "agent";
export type Selector = {
	cgroup?: string;
	dport?: (string)[];
	/** Code points and ranges, by name or number: cs1, af11-af13, 8-15. */
	dscp?: (string)[];
	dst?: (string)[];
	/** Numbers up to 4294967295, or as text, also with a mask: 0x4000/0xff00. */
	mark?: (NumberOrText)[];
	/** A packet that has any of these values, of whatever field, is not matched. */
	not?: Exclusions;
	/** 802.1p priorities of the outermost tag, 0 to 7, and ranges as text: 5-7. */
	pcp?: (NumberOrText)[];
	proto?: (string)[];
	/** Source MAC addresses, also with a mask: aa:bb:cc:00:00:00/ff:ff:ff:00:00:00. */
	smac?: (string)[];
	sport?: (string)[];
	src?: (string)[];
	/** Ids, 1 to 4094, and ranges as text: 100-199. */
	vlan?: (NumberOrText)[];
};
export type Tenant = {
	description?: string;
	name?: Name;
	/** Requests a second that its tokens may make together, of each controller; 50 if not said. */
	requests?: number;
};
export type TenantGroup = {
	dev: string;
	direction: string;
	/** What of its guarantee no group in it has. */
	free?: Rate;
	group: string;
	host: string;
	/** What it never gets more than. */
	most?: Rate;
	/** What it is guaranteed. */
	rate: Rate;
};
export type TenantGroupList = {
	items: (TenantGroup)[];
	next?: string;
};
export type TenantList = {
	items: (Tenant)[];
	next?: string;
};
export type Token = {
	created: string;
	expires: string;
	host?: Name;
	id: string;
	name: Name;
	role: Role;
	tenant?: Name;
};
export type TokenList = {
	items: (Token)[];
	next?: string;
};
export type TokenRequest = {
	/** Of the role agent. */
	host?: Name;
	/** How long it is good for, such as 30d; an agent's is 1h, others 90d if not said. */
	life?: string;
	name: Name;
	role: Role;
	/** Of the roles tenant and viewer. */
	tenant?: Name;
};
export type Usage = {
	/** Delivered beyond the guarantee. */
	borrowed_bytes?: number;
	delivered_bytes?: number;
	dev: string;
	direction: string;
	drops?: number;
	group: string;
	/** What the guarantee is over that time. */
	guaranteed_bytes?: number;
	host: string;
	/** Guaranteed and left to others. */
	lent_bytes?: number;
	marks?: number;
	offered_bytes?: number;
	/** For so many there is a record. */
	seconds: number;
	tenant?: string;
	/** There was demand and the guarantee was not met. */
	unmet_seconds?: number;
};
export type UsageList = {
	items: (Usage)[];
	/** Hosts whose agents did not answer. */
	missing?: (string)[];
};
/** A user of the host, by name or number. */
export type User = string;
/** Whose programs may put connections of their own in the group and in those in it, at the agent's socket on the host. */
export type Users = (User)[];
/** Who changed what, newest first */
export const listAudit = (query: { before?: string | undefined; limit?: number | undefined } = {}) =>
	call<AuditList>("GET", `/v1/audit`, { query });
/** Whether the service is well */
export const getHealth = () =>
	call<Health>("GET", `/v1/health`, {  });
/** All hosts */
export const listHosts = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<HostList>("GET", `/v1/hosts`, { query });
/** Remove a host, whose agent is not spoken to any more */
export const deleteHost = (host: Name, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}`, { change });
/** One host, and what its agent tells of it */
export const getHost = (host: Name) =>
	call<HostState>("GET", `/v1/hosts/${encodeURIComponent(host)}`, {  });
/** Make or change a host */
export const putHost = (host: Name, body: Host, change?: Change) =>
	call<HostState>("PUT", `/v1/hosts/${encodeURIComponent(host)}`, { body, change });
/** An agent's certificate, for a token that is good for it once */
export const signCertificate = (host: Name, body: {
	/** PKCS #10, as PEM */
	request: string;
}) =>
	call<Certificate>("POST", `/v1/hosts/${encodeURIComponent(host)}/certificate`, { body });
/** What a host's sets are doing, and why one does nothing */
export const listCollectiveStates = (host: Name) =>
	call<CollectiveStateList>("GET", `/v1/hosts/${encodeURIComponent(host)}/collective-states`, {  });
/** A host's sets of connections that keep their proportion */
export const listCollectives = (host: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<CollectiveList>("GET", `/v1/hosts/${encodeURIComponent(host)}/collectives`, { query });
/** Remove a set */
export const deleteCollective = (host: Name, collective: Name, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, { change });
/** One set */
export const getCollective = (host: Name, collective: Name) =>
	call<Collective>("GET", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, {  });
/** Make or change a set */
export const putCollective = (host: Name, collective: Name, body: Collective, change?: Change) =>
	call<Collective>("PUT", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, { body, change });
/** A host's interfaces that are divided */
export const listInterfaces = (host: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<InterfaceList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces`, { query });
/** Give an interface back */
export const deleteInterface = (host: Name, dev: Dev, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { change });
/** An interface with all its groups, now or at a revision */
export const getInterface = (host: Name, dev: Dev, query: { revision?: number | undefined } = {}) =>
	call<Interface>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { query });
/** Divide an interface */
export const putInterface = (host: Name, dev: Dev, body: Interface, change?: Change) =>
	call<Interface>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { body, change });
/** Connections that were put in groups */
export const listConnections = (host: Name, dev: Dev, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<ConnectionList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections`, { query });
/** Give a connection back to the rules */
export const deleteConnection = (host: Name, dev: Dev, connection: string, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections/${encodeURIComponent(connection)}`, { change });
/** Put a connection in a group */
export const putConnection = (host: Name, dev: Dev, connection: string, body: Connection, change?: Change) =>
	call<Connection>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections/${encodeURIComponent(connection)}`, { body, change });
/** Who changed an interface, newest first, as far back as is remembered */
export const listHistory = (host: Name, dev: Dev, query: { before?: string | undefined; limit?: number | undefined } = {}) =>
	call<AuditList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/history`, { query });
/** Make an interface what it was at a revision, but for the connections */
export const rollBack = (host: Name, dev: Dev, body: {
	revision: number;
}, change?: Change) =>
	call<Interface>("POST", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/rollback`, { body, change });
/** The groups of a direction that one may see, parents first */
export const listGroups = (host: Name, dev: Dev, direction: "out" | "in", query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<GroupList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups`, { query });
/** Remove a group, with the groups in it */
export const deleteGroup = (host: Name, dev: Dev, direction: "out" | "in", group: string, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { change });
/** A group, and what in it is free */
export const getGroup = (host: Name, dev: Dev, direction: "out" | "in", group: string) =>
	call<GroupState>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, {  });
/** Change some of a group (RFC 7396); what is not said stays */
export const patchGroup = (host: Name, dev: Dev, direction: "out" | "in", group: string, body: GroupPatch, change?: Change) =>
	call<GroupState>("PATCH", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { body, kind: "application/merge-patch+json", change });
/** Make a group, or make it what is said, with the groups in it */
export const putGroup = (host: Name, dev: Dev, direction: "out" | "in", group: string, body: Group, change?: Change) =>
	call<GroupState>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { body, change });
/** All of a host's interfaces and sets, as a configuration file */
export const getPolicy = (host: Name) =>
	call<Policy>("GET", `/v1/hosts/${encodeURIComponent(host)}/policy`, {  });
/** Make a host what a configuration file says, as "headgate apply" does */
export const putPolicy = (host: Name, body: Policy, change?: Change) =>
	call<Policy>("PUT", `/v1/hosts/${encodeURIComponent(host)}/policy`, { body, change });
/** Have a host measure its path to another */
export const startProbe = (host: Name, body: ProbeRequest, change?: Change) =>
	call<Probe>("POST", `/v1/hosts/${encodeURIComponent(host)}/probes`, { body, change });
/** What was measured */
export const getProbe = (host: Name, probe: string) =>
	call<Probe>("GET", `/v1/hosts/${encodeURIComponent(host)}/probes/${encodeURIComponent(probe)}`, {  });
/** Limits for a host's interfaces, from what paths to and from it gave last */
export const listProposals = (host: Name, query: { dev?: Dev | undefined; margin?: string | undefined } = {}) =>
	call<ProposalList>("GET", `/v1/hosts/${encodeURIComponent(host)}/proposals`, { query });
/** What each group that one may see has carried in the last second */
export const getRates = (host: Name, query: { dev?: Dev | undefined; direction?: "out" | "in" | undefined; group?: (string)[] | undefined } = {}) =>
	call<RateList>("GET", `/v1/hosts/${encodeURIComponent(host)}/rates`, { query });
/** Whose a token is */
export const login = (body: {
	token: string;
}, change?: Change) =>
	call<Principal>("POST", `/v1/login`, { body, change });
/** How busy hosts are, and whose guarantees are at risk */
export const getOverview = (query: { host?: (Name)[] | undefined; names?: boolean | undefined } = {}) =>
	call<Overview>("GET", `/v1/overview`, { query });
/** Have nothing measured any more; results stay */
export const deleteProbeSchedule = (change?: Change) =>
	call<void>("DELETE", `/v1/probe-schedule`, { change });
/** Which hosts measure to each other, and when */
export const getProbeSchedule = () =>
	call<ProbeSchedule>("GET", `/v1/probe-schedule`, {  });
/** Have hosts measure to each other */
export const putProbeSchedule = (body: ProbeSchedule, change?: Change) =>
	call<ProbeSchedule>("PUT", `/v1/probe-schedule`, { body, change });
/** What is being measured by the schedule, and what that has brought through hosts today */
export const getProbeState = () =>
	call<ProbingState>("GET", `/v1/probe-state`, {  });
/** What was measured by the schedule, of each direction by itself */
export const listProbeResults = (query: { after?: string | undefined; from?: Name | undefined; limit?: number | undefined; measure?: ProbeMeasure | undefined; newest?: boolean | undefined; since?: string | undefined; to?: Name | undefined } = {}) =>
	call<ProbeResultList>("GET", `/v1/probes`, { query });
/** Have a browser forget its token */
export const deleteSession = () =>
	call<void>("DELETE", `/v1/session`, {  });
/** Who asks */
export const getSession = () =>
	call<Principal>("GET", `/v1/session`, {  });
/** All tenants */
export const listTenants = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TenantList>("GET", `/v1/tenants`, { query });
/** Remove a tenant that has no groups and no tokens */
export const deleteTenant = (tenant: Name, change?: Change) =>
	call<void>("DELETE", `/v1/tenants/${encodeURIComponent(tenant)}`, { change });
/** One tenant */
export const getTenant = (tenant: Name) =>
	call<Tenant>("GET", `/v1/tenants/${encodeURIComponent(tenant)}`, {  });
/** Make or change a tenant */
export const putTenant = (tenant: Name, body: Tenant, change?: Change) =>
	call<Tenant>("PUT", `/v1/tenants/${encodeURIComponent(tenant)}`, { body, change });
/** What a tenant was given, wherever that is */
export const listTenantGroups = (tenant: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TenantGroupList>("GET", `/v1/tenants/${encodeURIComponent(tenant)}/groups`, { query });
/** All tokens, or a tenant's own */
export const listTokens = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TokenList>("GET", `/v1/tokens`, { query });
/** Make a token, which is shown this once */
export const createToken = (body: TokenRequest, change?: Change) =>
	call<NewToken>("POST", `/v1/tokens`, { body, change });
/** Take a token back */
export const deleteToken = (token: string, change?: Change) =>
	call<void>("DELETE", `/v1/tokens/${encodeURIComponent(token)}`, { change });
/** What groups had in a time, and when they did not get what they were guaranteed */
export const getUsage = (query: { host?: Name | undefined; since: string; tenant?: Name | undefined; until?: string | undefined }) =>
	call<UsageList>("GET", `/v1/usage`, { query });
