// Made from api/openapi.yaml by "go generate ./web". Do not edit.
import { call, type Change } from "./call";
/** A rate, or a share of the parent group such as 40%. */
export type Amount = string;
export type AuditEntry = {
	at: string;
	/** The first fields that the change has changed, with their values. Absent for documents that are larger than 512 KiB, and for those with secrets. */
	differences?: (Difference)[];
	id: string;
	/** How many more fields the change has changed. */
	more_differences?: number;
	principal: string;
	/** The method and path of the request, or what the controller has done by itself. */
	request: string;
	revision?: number;
	role?: Role;
	status?: number;
};
export type AuditList = {
	items: (AuditEntry)[];
	next?: string;
};
export type Certificate = {
	/** Addresses of the controllers for agents. */
	agents: (string)[];
	authority: string;
	certificate: string;
};
export type Clock = string;
export type Collective = {
	/** The document as in a configuration file, kind: Collective. */
	document: string;
	name?: Name;
};
export type CollectiveConnection = {
	/** Acknowledged bytes since the connection started. */
	acked?: number;
	/** The round-trip time without queueing. */
	base_rtt_ns?: number;
	id: number;
	/** The rate measured before congestion, from which the learned proportion follows. 0 while it is not known. */
	learned_bps?: number;
	local: string;
	/** The pacing cap; 0 if there is none. */
	pacing_cap_bps?: number;
	/** The rate of acknowledged bytes in the last second. */
	rate_bps?: number;
	remote: string;
	/** Retransmitted packets since the connection started. */
	retransmits?: number;
	rtt_ns?: number;
	/** The configured weight, which replaces the learned proportion. */
	weight?: number;
	/** The window cap; 0 if there is none. */
	window_cap_bytes?: number;
};
export type CollectiveList = {
	items: (Collective)[];
	next?: string;
};
export type CollectiveState = {
	/** Time of the state, on the host's monotonic clock, as is since_ns. */
	at_ns?: number;
	/** A number of the bottleneck of this part, if the set is divided by bottleneck. */
	bottleneck?: number;
	/** The cgroup or unit of the set does not exist. */
	cgroup_missing?: boolean;
	connections: (CollectiveConnection)[];
	controlling?: boolean;
	/** The destination of this part, if the set is divided by destination. */
	destination?: string;
	/** Why the desired state is not in force. */
	error?: string;
	/** What the user of the set should know: why it was suspended, or that nothing can be held. */
	notice?: string;
	/** The fraction of segments that were retransmitted since since_ns. */
	retransmitted?: number;
	/** The same fraction in the period before since_ns. */
	retransmitted_before?: number;
	set: Name;
	/** When control of the set started or ended. */
	since_ns?: number;
};
export type CollectiveStateList = {
	/** The agent of the host is connected. */
	connected?: boolean;
	items: (CollectiveState)[];
	/** The list of connections is truncated. */
	truncated?: boolean;
};
export type Connection = {
	connection?: string;
	group: string;
};
export type ConnectionList = {
	items: (Connection)[];
	next?: string;
};
/** The datapath id of a switch: 16 hexadecimal digits. */
export type DatapathID = string;
export type Dev = string;
export type Difference = {
	/** The value after the change, as JSON. Absent if the field was removed. */
	after?: string;
	/** The value before the change, as JSON. Absent if there was no such field. Of a long value there are the first 100 bytes and a hash. */
	before?: string;
	/** A field of the document. An element of a list is named by its name: out.groups.web.guarantee. */
	field: string;
};
export type Direction = {
	groups: (Group)[];
	/** Bits per second, such as 100Mbit. */
	limit: Rate;
	spare?: "proportional" | "equal" | "priority";
};
export type DirectionName = "out" | "in";
export type DirectionProposal = {
	at?: string;
	/** The current limit. Absent if there is none. */
	before_bps?: number;
	/** Why no limit is proposed. */
	cannot_tell?: string;
	/** The start of the measured path from which the limit follows; to, measure, at and measured are of the same measurement. */
	from?: Name;
	/** The proposed limit. Absent if none is proposed. */
	limit_bps?: number;
	measure?: ProbeMeasure;
	measured?: ProbeEstimate;
	notes?: (string)[];
	to?: Name;
};
export type DirectionRates = {
	/** Alternative names of the device. */
	altnames?: (string)[];
	/** The number of groups whose guarantee is unmet. */
	at_risk: number;
	/** Bytes in the queue. */
	backlog_bytes: number;
	/** Bytes of control traffic, which belongs to no group, since the direction was created. */
	control_bytes?: number;
	delivered_bps: number;
	dev: string;
	direction: string;
	groups: number;
	guaranteed_bps: number;
	/** The limit in bit/s; absent if the direction is not limited. */
	limit_bps?: number;
};
export type DocumentState = {
	kind: "interface" | "collective";
	/** The device or the pattern of an interface, or the name of a connection set. */
	name: string;
	reason?: string;
	/** The revision of its last change. */
	revision: number;
	/** enforced: it is in force. applying: the agent has not reported this revision yet. waiting: the host has no such device. overridden: a file on the host, or another document, configures the device. refused: the agent cannot enforce it. disconnected: the agent is not connected, so this is unknown; it enforces what it last received. */
	state: "enforced" | "applying" | "waiting" | "overridden" | "refused" | "disconnected";
};
/** One group for each client: src or dst, and the prefix length that makes one client, for IPv4, IPv6 or both. The guarantee and the ceiling then apply to each client. */
export type Each = string;
/** A packet that has any of these values in any of the fields does not match. */
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
	/** A rate, or a share of the parent group such as 40%. */
	ceiling?: Amount;
	/** The maximum number of concurrently active clients of a group with each. Default 2048. */
	clients?: number;
	default?: boolean;
	/** One group for each client: src or dst, and the prefix length that makes one client, for IPv4, IPv6 or both. The guarantee and the ceiling then apply to each client. */
	each?: Each;
	groups?: (Group)[];
	/** A rate, or a share of the parent group such as 40%. */
	guarantee?: Amount;
	/** Users whose programs may assign their own connections to the group and the groups in it, at the agent's socket on the host. */
	join?: Users;
	match?: (Selector)[];
	name?: Name;
	priority?: number;
	/** The tenant that owns the group; only for operators. The group must have match or be the default group, and must not be in a group of another tenant. */
	tenant?: Name;
};
export type GroupAtRisk = {
	delivered_bps: number;
	dev: string;
	direction: string;
	group: string;
	guaranteed_bps: number;
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
	/** When the host read the counters, on the host's clock. */
	at?: string;
	/** The guarantee is unmet. */
	at_risk?: boolean;
	/** Bytes in the queue. */
	backlog_bytes?: number;
	/** What was delivered beyond the guarantee. */
	borrowed_bps: number;
	/** What left the queue between the last two readings, in bit/s, as are the next three. */
	delivered_bps: number;
	/** Bytes delivered since the group was created. */
	delivered_bytes?: number;
	dev: string;
	direction: string;
	/** Packets dropped since the group was created. */
	drops?: number;
	group: string;
	/** The guarantee, in bit/s. */
	guaranteed_bps: number;
	/** The unused part of the guarantee that other groups borrowed. */
	lent_bps: number;
	/** Packets marked since the group was created. */
	marks?: number;
	/** The sojourn time of the packet that left the queue last. Absent if no packet leaves, or if the delay is not measured. */
	queue_delay_ns?: number;
	/** The unused part of the guarantee, lent or not. */
	unused_bps: number;
};
export type GroupState = {
	/** A rate, or a share of the parent group such as 40%. */
	ceiling?: Amount;
	/** The ceiling. */
	ceiling_bps?: number;
	/** The maximum number of concurrently active clients of a group with each. Default 2048. */
	clients?: number;
	default?: boolean;
	/** One group for each client: src or dst, and the prefix length that makes one client, for IPv4, IPv6 or both. The guarantee and the ceiling then apply to each client. */
	each?: Each;
	groups?: (Group)[];
	/** A rate, or a share of the parent group such as 40%. */
	guarantee?: Amount;
	/** The guarantee. */
	guaranteed_bps: number;
	/** Users whose programs may assign their own connections to the group and the groups in it, at the agent's socket on the host. */
	join?: Users;
	match?: (Selector)[];
	name?: Name;
	/** What created the group: a configuration of the operator (file) or a request of a tenant. reservation and relay are reserved for later versions. */
	origin?: "file" | "tenant" | "reservation" | "relay";
	path: string;
	priority?: number;
	/** The tenant that owns the group; only for operators. The group must have match or be the default group, and must not be in a group of another tenant. */
	tenant?: Name;
	/** The unallocated part of the guarantee. */
	unallocated_bps?: number;
};
export type Health = {
	leader?: string;
	version: string;
	/** Whether changes are accepted: false if the disk or the store is full. */
	writable: boolean;
};
export type Host = {
	description?: string;
	name?: Name;
	/** The host's agent is rejected. */
	revoked?: boolean;
};
export type HostDevice = {
	/** Alternative names of the device. A document may use any of them. */
	altnames?: (string)[];
	/** Why the desired state is not in force. */
	error?: string;
	/** Traffic control that Headgate did not create. */
	foreign?: (string)[];
	mtu?: number;
	name: string;
	owner?: "controller" | "local" | "none";
	/** The speed of the link. Absent if it has none, or if it is not known. */
	speed_bps?: number;
	/** Absent if the host does not have this device now although the device is configured. */
	up?: boolean;
};
export type HostDevices = (HostDevice)[];
export type HostFeature = {
	detail?: string;
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
	/** The number of devices whose desired state is not in force. */
	errors?: number;
	host: string;
};
export type HostState = {
	/** The epoch and revision that the agent has, if they are later than those of the service, so that the agent refuses the service's desired state. */
	ahead?: string;
	/** The epoch and revision that the agent has in force. */
	applied?: string;
	/** Connection sets whose desired state is not in force, with the reason. */
	collectives?: Record<string, string>;
	connected?: boolean;
	description?: string;
	devices?: HostDevices;
	/** The documents of the host, and whether they are in force. */
	documents?: (DocumentState)[];
	/** The results of feature detection, as in headgate doctor. */
	features?: (HostFeature)[];
	/** The release of the kernel. */
	kernel?: string;
	name?: Name;
	/** The host's agent is rejected. */
	revoked?: boolean;
	version?: string;
};
export type Interface = {
	dev?: Dev;
	engine?: "htb" | "quantum";
	/** sized (the default): gso_max_size and gro_max_size of the device are lowered to what takes 0.25 ms at the limit. keep: both stay unchanged. */
	gso?: "sized" | "keep";
	in?: Direction;
	out?: Direction;
	/** For engine quantum: packets within the guarantee of their group pass although the limit is used up, for one quantum at a time. */
	overdraft?: boolean;
	overhead?: Overhead;
	perspective?: "host" | "guest";
	/** For engine quantum: the period after which the byte counters start again. Default 1s. */
	quantum?: string;
	/** For engine quantum: the amount that a group with that much unused guarantee lends at the end of each quantum, in bytes or as a share of the limit. Default 1.5%. */
	step?: string;
};
export type InterfaceList = {
	items: (Interface)[];
	next?: string;
};
/** A duration, such as 15m or 6h. */
export type Length = string;
export type Name = string;
export type Network = {
	at: string;
	/** Counters since the leader's term began. */
	counters: NetworkCounters;
	faults: (NetworkFault)[];
	hosts: (NetworkHost)[];
	/** The directions of links: a cable that passes frames both ways is two. */
	links: (NetworkLink)[];
	/** Where the leader accepts switches. */
	listen: (NetworkListener)[];
	/** The name of the network. Absent if it has none. */
	name?: string;
	/** Connections that are redirected to relay agents, and what the leader has decided since its term began. Absent if no redirection is configured. */
	redirection?: NetworkRedirection;
	/** The relay agents that have announced themselves, if there are any. */
	relays?: (NetworkRelay)[];
	/** Every switch has what it should. */
	settled: boolean;
	/** The sites of the network, if it has any. */
	sites?: (NetworkSite)[];
	/** The switches that are connected. */
	switches: (NetworkSwitch)[];
};
export type NetworkConfig = {
	/** One document of kind: Network, as YAML. */
	text: string;
};
/** Counters since the leader's term began. */
export type NetworkCounters = {
	/** Questions for an address that the controller has answered. */
	answered: number;
	/** Packets of them that came faster than the controller looks at those of one port. */
	dropped: number;
	/** Frames that it has sent to all ports of hosts. */
	flooded: number;
	/** Discovery frames that no controller of the network has made. */
	forged: number;
	/** Packets that switches have sent to the controller. */
	packet_ins: number;
	/** How often it has computed what the switches should have. */
	plans: number;
};
export type NetworkEvent = {
	at: string;
	/** How often it has happened. Absent for once. */
	count?: number;
	/** The MAC of a host, and its VLAN if there is one. */
	host?: string;
	kind: string;
	/** When it happened last. Absent if it happened once, at `at`. */
	last?: string;
	link?: NetworkLinkEnds;
	message: string;
	port?: NetworkPortID;
	/** The datapath id of a switch: 16 hexadecimal digits. */
	switch?: DatapathID;
};
export type NetworkEventList = {
	items: (NetworkEvent)[];
	/** When this controller began to lead, or the time of the oldest event if there were more than are kept since. Events before are of earlier terms of this controller: those of another leader are not kept. */
	since: string;
};
export type NetworkFault = {
	/** The port, with the number 0 if the fault is of the switch, or of a port that is known by name only. */
	at: NetworkPortID;
	kind: "one-way" | "looped" | "shared" | "miswired" | "duplicate-id" | "missing-port" | "weak-link" | "missing-relay";
	message: string;
	/** The port of which frames come. */
	peer?: NetworkPortID;
};
export type NetworkHop = {
	/** Absent where the path begins at a switch. */
	in_port?: number;
	/** Absent where the path ends at a switch. */
	out_port?: number;
	/** The datapath id of a switch: 16 hexadecimal digits. */
	switch: DatapathID;
};
export type NetworkHost = {
	addresses: (string)[];
	at: NetworkPortID;
	/** How the host was found. */
	learned: "packet" | "arp" | "ndp" | "dhcp" | "configured";
	mac: string;
	name?: string;
	/** Absent for frames without a VLAN tag. */
	vlan?: number;
};
export type NetworkLink = {
	capacity_bps: number;
	/** Where the capacity is from: the configuration, a measurement, the speed of the ports, or nothing is known. */
	capacity_source: "configured" | "measured" | "reported" | "assumed";
	/** The configured cost, or 1. The costs of a path are added, and the lowest is best. */
	cost?: number;
	/** Frames that its ports drop in a second. Absent until there are two readings, and if no port counts them. */
	drops_per_s?: number;
	/** Frames that its ports cannot send, or receive damaged, in a second. Absent until there are two readings, and if no port counts them. */
	errors_per_s?: number;
	from: NetworkPortID;
	/** The rate of layer 2 that it carries, without preamble and frame check sequence. Absent until there are two readings of the counters of its ports. */
	rate_bps?: number;
	to: NetworkPortID;
};
export type NetworkLinkEnds = {
	from: NetworkPortID;
	to: NetworkPortID;
};
export type NetworkLinkHistory = {
	from: NetworkPortID;
	/** The time between two items, of which the older are means of 30 s. */
	interval_ns?: number;
	/** The oldest first. */
	items: (NetworkLinkReading)[];
	/** The other end. Absent if the port has no link now. */
	to?: NetworkPortID;
};
export type NetworkLinkReading = {
	at: string;
	/** 0 if no port counts them. */
	drops_per_s: number;
	/** 0 if no port counts them. */
	errors_per_s: number;
	rate_bps: number;
};
export type NetworkListener = {
	address: string;
	/** Why the address cannot be used. It is tried again. */
	error?: string;
	/** Switches need a certificate. */
	tls: boolean;
};
export type NetworkPath = {
	/** The least capacity of the links. Absent if there is none. */
	capacity_bps?: number;
	/** The switches from the first to the last. */
	hops: (NetworkHop)[];
};
export type NetworkPort = {
	name?: string;
	number: number;
	/** The rate that the port receives. Absent until there are two readings of its counters. */
	rx_bps?: number;
	/** The speed that the switch reports, if it does. */
	speed_bps?: number;
	state: "up" | "down" | "blocked";
	/** The rate that the port sends. Absent until there are two readings of its counters. */
	tx_bps?: number;
	/** What is at a port. hosts: hosts may be connected. link: another switch is. undecided: that is being found out. faulty: a fault is listed. none: the port is down. */
	use: NetworkPortUse;
};
export type NetworkPortID = {
	port: number;
	/** The datapath id of a switch: 16 hexadecimal digits. */
	switch: DatapathID;
};
/** What is at a port. hosts: hosts may be connected. link: another switch is. undecided: that is being found out. faulty: a fault is listed. none: the port is down. */
export type NetworkPortUse = "none" | "undecided" | "hosts" | "link" | "faulty";
/** Connections that are redirected to relay agents, and what the leader has decided since its term began. Absent if no redirection is configured. */
export type NetworkRedirection = {
	/** First segments of connections that switches have sent to the leader. */
	asked: number;
	/** How often the connections of a port went direct because it began too many. */
	bypassed: number;
	/** Connections that agents carry. */
	connections: number;
	/** Those that went on to their destination. */
	direct: number;
	/** Those of them for which a switch did not take the flows in time. */
	failed: number;
	/** Those that went to a relay agent. */
	redirected: number;
};
export type NetworkRelay = {
	at: NetworkPortID;
	/** It connects to servers with the address and port of the client. */
	connects: boolean;
	/** The agents to which it has streams. */
	exits: (NetworkRelayExit)[];
	/** The host on which it runs. */
	mac: string;
	/** The name of the agent. */
	name: string;
	/** It takes connections that the network sends to it. */
	takes: boolean;
};
export type NetworkRelayExit = {
	address: string;
	/** The prefixes of which it is the exit. */
	destinations: (string)[];
	/** The ports to which streams go, each by a path of its own. */
	ports?: (number)[];
};
export type NetworkSite = {
	name: string;
	/** The site around it. Absent if there is none. */
	parent?: string;
};
export type NetworkSwitch = {
	/** The address from which it is connected. */
	address: string;
	/** What the switch can do, as it has answered. */
	capabilities: SwitchCapabilities;
	/** The switch has the flows and groups that it should. */
	current: boolean;
	/** What an operator has written in the switch, such as its name. */
	description?: string;
	/** Why the switch does not have what it should. */
	error?: string;
	hardware?: string;
	/** The datapath id of a switch: 16 hexadecimal digits. */
	id: DatapathID;
	/** What the network lacks at this switch because of what the switch cannot do: sentences. Empty if it can do everything. */
	limits: (string)[];
	manufacturer?: string;
	/** The configured name. Absent if it has none. */
	name?: string;
	ports: (NetworkPort)[];
	serial_number?: string;
	/** The site where it is. Absent if it is at none. */
	site?: string;
	software?: string;
};
export type NetworkTrace = {
	/** Which bound has ended the trace. Absent if all of it is listed. */
	cut?: string;
	/** Passages of switches. The first is where the frame enters, and each other one is the next of a step before it. */
	hops: (NetworkTraceHop)[];
};
export type NetworkTraceHop = {
	/** Why the switch did not list what it has, and then there are no steps; or that not all of them are listed. */
	error?: string;
	/** The frame as it arrives. */
	frame: string;
	in_port: number;
	/** The label that the frame has between switches. Absent if there is none. */
	label?: number;
	/** The name of the switch in the file of the network. */
	name?: string;
	/** The label says that the frame took a backup. */
	rerouted?: boolean;
	steps: (NetworkTraceStep)[];
	/** The datapath id of a switch: 16 hexadecimal digits. */
	switch: DatapathID;
	/** The hop in a line for people. */
	text: string;
	/** The frame's VLAN, without the label. Absent for frames without a tag. */
	vlan?: number;
};
export type NetworkTraceStep = {
	/** The bucket's number, from 1. */
	bucket?: number;
	cookie?: string;
	/** Where the step leads. again: to a hop that another copy of the frame has made. loop: to a hop that has led here. no-host: out of a port at which no host is known that takes the frame. unknown: only the switch knows it. limit: to a hop that is not listed, because the trace is cut. Absent: to the next step. */
	end?: "switch" | "again" | "loop" | "delivered" | "no-host" | "local" | "controller" | "dropped" | "unknown" | "limit";
	/** The flow is of another program. */
	foreign?: boolean;
	group?: number;
	/** The MACs of the hosts that get the frame. */
	hosts?: (string)[];
	/** How far the text is indented: 1 for a table, 2 for what its flow does, and more for what groups do. */
	indent: number;
	/** As ovs-ofctl prints them. */
	instructions?: string;
	/** table: a lookup. bucket: a bucket of a group processes the frame. skipped: an action without effect. */
	kind: "table" | "meter" | "bucket" | "output" | "controller" | "skipped" | "dropped";
	/** As ovs-ofctl prints it. Absent if it is every frame. */
	match?: string;
	meter?: number;
	/** The index of the hop to which the step leads. */
	next?: number;
	/** The port at which the frame leaves. */
	port?: number;
	/** Absent if no flow matches. */
	priority?: number;
	/** What the kind of rule matches and does, for flows of Headgate. */
	rule?: string;
	table?: number;
	/** The name of the table in the pipeline of Headgate. */
	table_name?: string;
	/** The step in a line for people. */
	text: string;
};
export type NewReservation = {
	/** Links that the paths do not use. */
	avoid?: (NetworkLinkEnds)[];
	/** The rate of the other direction. Absent: it has none. */
	back?: Rate;
	/** relay: the network sends the TCP connections of the traffic to two relay agents, and their streams have what is reserved. Absent: the traffic itself has it. */
	carry?: ReservationCarry;
	/** 1 is served first where bandwidth is lent, and rerouted first. */
	class?: number;
	/** What the paths do not have in common. */
	disjoint?: ReservationDisjoint;
	/** How long the reservation lasts. Required without volume. */
	duration?: Length;
	/** The traffic that has the reservation. Absent: all between the ends. */
	flows?: (ReservationFlow)[];
	/** One end of a reservation. One of host, site, prefix and vlan must be set. */
	from: ReservationEnd;
	name: Name;
	/** Program the switches of the path when the first packet comes, and not before. Traffic is without the reservation until then, a second at most. */
	on_demand?: boolean;
	/** Default: the tenant of the caller, or the operator. Only an operator can reserve for a tenant. */
	owner?: ReservationOwner;
	/** The number of disjoint paths among which the rates are divided. */
	paths?: number;
	/** Reserve a disjoint spare path, to which traffic changes when a path fails. */
	protected?: boolean;
	/** The rate of layer 2 from the first end to the second. Required without volume. */
	rate?: Rate;
	/** When the reservation begins, or with until the earliest time. Default now. */
	start?: string;
	/** One end of a reservation. One of host, site, prefix and vlan must be set. */
	to: ReservationEnd;
	/** The reservation ends by then, and has the earliest start that fits. Absent: it begins at start. */
	until?: string;
	/** Bytes of layer 2 to be moved by until: the rate and the duration follow. */
	volume?: string;
};
export type NewToken = Token & {
	token: string;
};
export type NumberOrText = number | string;
export type Overhead = {
	frame?: string;
	minimum?: string;
};
export type Overview = {
	/** The number of groups whose guarantee is unmet. */
	at_risk: number;
	/** The ten busiest hosts, by the direction that uses the largest part of its limit. */
	busiest: (HostRates)[];
	connected: number;
	/** The number of groups of connected hosts. */
	groups: number;
	hosts: number;
	items: (HostRates)[];
	names?: (string)[];
	/** The first hundred groups at risk. */
	risks: (GroupAtRisk)[];
};
export type Policy = {
	/** The configuration file as YAML. */
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
	/** The result of a measurement on demand. */
	result?: ProbeReport;
	state: "waiting" | "running" | "done" | "failed";
};
/** The result of one direction, in bit/s and bytes of layer 2. */
export type ProbeAnswer = {
	available?: {
	available?: ProbeEstimate;
	notes?: (string)[];
};
	capacity?: ProbeEstimate;
	/** Burst credits: a limiter whose bucket takes seconds or minutes to empty. Its baseline and bucket are also those of token_rate. */
	credits?: {
	/** The rate without tokens, at which they are added. */
	baseline?: ProbeEstimate;
	/** The bytes that pass above the baseline. A lower bound until two measurements found the same. */
	bucket?: ProbeEstimate;
	/** The rate while the bucket has tokens. */
	burst?: ProbeEstimate;
	/** What the bucket held each time that it was emptied, oldest first. */
	found?: ({
	at?: string;
	baseline_bps: number;
	burst_bps: number;
	bytes: number;
})[];
	held_bytes?: number;
	held_seconds?: number;
	/** What passed without a limit, if none was found. */
	passed_bytes?: number;
	passed_seconds?: number;
};
	flaws?: (string)[];
	limiter?: {
	at?: string;
	bucket?: {
	peak?: ProbeEstimate;
	rate?: ProbeEstimate;
	size?: ProbeEstimate;
};
	cannot_tell?: string;
	/** The limiter type: tbf, xen, vm-scheduling, policer, cpu or none. */
	class?: string;
	confidence?: number;
};
	/** The fraction of packets that were lost. */
	lost?: number;
	/** The largest IP packet, in bytes. */
	packet?: number;
	seconds?: number;
	/** The amount that was sent, in layer 2. */
	sent_bytes?: number;
	token_rate?: {
	bucket?: ProbeEstimate;
	policed?: boolean;
	rate?: ProbeEstimate;
};
};
export type ProbeEstimate = {
	at_least?: boolean;
	/** Why there is only a bound. */
	because?: string;
	/** Why there is no estimate. */
	cannot_tell?: string;
	high?: number;
	/** The lower end of the interval from low to high, which contains 90 of 100 measurements. */
	low?: number;
	value?: number;
};
export type ProbeHost = {
	/** The address for the other hosts, such as 10.0.0.2 or 10.0.0.2:5000. Default: the source address of the agent's connection. */
	address?: string;
	host: Name;
	/** Names of links that the host shares with the other hosts that have the same name here. */
	links?: (Name)[];
};
export type ProbeMeasure = "path" | "capacity" | "tokenrate" | "limiter" | "available" | "credits";
export type ProbeQuiet = {
	/** The days on which the quiet hours begin. Default every day. */
	days?: ("mon" | "tue" | "wed" | "thu" | "fri" | "sat" | "sun")[];
	from: Clock;
	/** A time that is not after from is on the next day. */
	to: Clock;
};
/** The result of a measurement on demand. */
export type ProbeReport = Record<string, unknown>;
export type ProbeRequest = {
	measure: ProbeMeasure;
	/** Address of "headgate probe serve", such as 10.0.0.2:8421. */
	peer: string;
};
export type ProbeResult = {
	/** The result of one direction, in bit/s and bytes of layer 2. */
	answer?: ProbeAnswer;
	/** When the measurement was completed. Absent if every attempt failed. */
	at?: string;
	/** When the last attempt was made. */
	attempted: string;
	/** The host that ran the measurement. */
	by?: Name;
	/** Why the last attempt failed. */
	error?: string;
	from: Name;
	/** The devices that the path passes at from. */
	from_devices?: (string)[];
	id?: string;
	measure: ProbeMeasure;
	/** The lowest limit that Headgate had at either end during the measurement. Absent if there was none. */
	own_limit_bps?: number;
	rtt_ns?: number;
	to: Name;
	/** The devices that the path passes at to. */
	to_devices?: (string)[];
};
export type ProbeResultList = {
	items: (ProbeResult)[];
	next?: string;
};
export type ProbeSchedule = {
	/** The maximum amount that measurements send through a host per day, in both directions together. */
	budget: string;
	/** The maximum amount that a measurement sends in each direction. Default 10MB. */
	bytes?: string;
	/** The hosts that take part. Default all hosts. */
	hosts?: (ProbeHost)[];
	measures: ({
	/** The maximum amount in each direction for this measure, instead of that of the schedule. Default for credits, which need more than the bucket holds, 90MB. */
	bytes?: string;
	/** A duration, such as 15m or 6h. */
	every: Length;
	measure: ProbeMeasure;
	/** The maximum duration of each direction for this measure, instead of that of the schedule. Default for credits 50s. */
	time?: Length;
})[];
	/** The pairs of hosts to measure in both directions, started by the first host. Default all pairs. */
	pairs?: ((Name)[])[];
	/** Quiet hours in which no measurement starts. */
	quiet?: (ProbeQuiet)[];
	/** The maximum duration of each direction. Default 30s. */
	time?: Length;
	/** The time zone of the quiet hours and of the day of the budget. Default UTC. */
	zone?: string;
};
export type ProbingState = {
	/** The current day in the time zone of the schedule. */
	day?: string;
	/** No measurement starts now, because of the quiet hours. */
	quiet?: boolean;
	running: ({
	began: string;
	from: Name;
	id: string;
	measure: ProbeMeasure;
	to: Name;
})[];
	spent: ({
	host: Name;
	/** The budget used by measurements today, including what running measurements may still send. */
	used_bytes: number;
})[];
};
export type Problem = {
	detail?: string;
	errors?: ({
	field: string;
	message: string;
})[];
	/** Why a request does not fit, and what would be granted at once instead. */
	refusal?: ReservationRefusal;
	status: number;
	title: string;
	type: string;
};
export type Proposal = {
	changes?: ({
	/** The guarantee with the proposed limit. */
	after_bps: number;
	/** The current guarantee. Absent if there is none. */
	before_bps?: number;
	direction: DirectionName;
	group: string;
})[];
	dev: Dev;
	/** The ETag of the current interface. Absent if the interface is not configured yet. */
	etag?: string;
	in?: DirectionProposal;
	/** The interface with the proposed limits. Absent if no limit is proposed. */
	interface?: Interface;
	out?: DirectionProposal;
	/** Why the controller would refuse the interface. */
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
	/** Sums of the groups that the caller may see. */
	totals?: (DirectionRates)[];
};
/** The state of a relay agent. Directions are those of this agent: sent are bytes that it took from applications for the other agent. */
export type Relay = {
	agent: Name;
	at: string;
	/** When the agent was started. */
	began: string;
	/** The connections of applications, the oldest first. */
	connections: (RelayConnection)[];
	/** The agents from which it accepted streams. */
	entries: (RelayPeer)[];
	/** The agents to which it carries connections. */
	exits: (RelayPeer)[];
	/** Numbers of connections and entries with lower rates, and of streams, that the lists leave out. Totals and paths include them. */
	omitted?: {
	connections?: number;
	entries?: number;
	streams?: number;
};
	total: RelayTotal;
};
export type RelayConnection = {
	/** The time since then, until the end of the connection. */
	age_ns: number;
	began: string;
	client: string;
	destination: string;
	/** The estimated rate of one direct TCP connection, in the direction in which this agent sends. Absent if it is not known: the connection has received more than it has sent, or is short, or the application often had nothing to send. */
	direct_rate_bps?: number;
	/** The address of the entry, at an exit. */
	entry?: string;
	/** Why the connection failed. */
	error?: string;
	/** The address of the exit, at an entry. */
	exit?: string;
	/** The average rate of what the connection has sent divided by direct_rate_bps. */
	gain?: number;
	/** The bytes that each path has carried. */
	paths: (RelayPathBytes)[];
	receive_rate_bps: number;
	received_bytes: number;
	/** Bytes that wait for earlier bytes: the reorder queue. */
	reordering_bytes: number;
	/** The rate of the last second, as receive_rate_bps. */
	send_rate_bps: number;
	sent_bytes: number;
	state: "opening" | "open" | "closing" | "ended" | "failed";
	/** Bytes that a stream has taken and the other agent has not acknowledged. */
	unacknowledged_bytes: number;
	/** Bytes that arrived in order and that the application has not taken. */
	unread_bytes: number;
	/** Bytes that no stream has taken yet. */
	waiting_bytes: number;
};
export type RelayEndedList = {
	items: (RelayConnection)[];
};
export type RelayList = {
	/** The agent of the host is connected. */
	connected?: boolean;
	/** Why relay agents of the host are missing. */
	error?: string;
	items: (Relay)[];
};
export type RelayPath = {
	closed_streams: number;
	/** Why a closed stream is not open. */
	error?: string;
	/** The configured name, or at an exit the address from which the streams of the path came. */
	name: string;
	open_streams: number;
	receive_rate_bps: number;
	received_bytes: number;
	/** The longest round-trip time of the streams, 0 if none is open. */
	rtt_ns: number;
	/** What selects the path. */
	selection?: string;
	send_rate_bps: number;
	/** Bytes of connections since the session began, as received_bytes. */
	sent_bytes: number;
	/** open: it carries data. suspect: it makes no progress. retired: it is not needed, and ends. closed: it is not open, and is tried again. */
	state: RelayStreamState;
	streams: (RelayStream)[];
	/** Open streams that make no progress. */
	suspect_streams: number;
};
export type RelayPathBytes = {
	path: string;
	received_bytes: number;
	sent_bytes: number;
};
export type RelayPeer = {
	/** The address of an exit, or the one from which the newest stream of an entry came. */
	address: string;
	/** The prefixes of an exit. */
	destinations?: (string)[];
	paths: (RelayPath)[];
};
export type RelayStream = {
	/** Why the stream is closed. */
	error?: string;
	/** The rate at which the stream can send. */
	estimated_rate_bps: number;
	/** The number of an open stream. */
	number?: number;
	receive_rate_bps: number;
	received_bytes: number;
	rtt_ns: number;
	/** The rate of connections' bytes in the last second, as receive_rate_bps. */
	send_rate_bps: number;
	sent_bytes: number;
	/** open: it carries data. suspect: it makes no progress. retired: it is not needed, and ends. closed: it is not open, and is tried again. */
	state: RelayStreamState;
	unacknowledged_bytes: number;
	unsent_bytes: number;
};
/** open: it carries data. suspect: it makes no progress. retired: it is not needed, and ends. closed: it is not open, and is tried again. */
export type RelayStreamState = "open" | "suspect" | "retired" | "closed";
export type RelayTotal = {
	/** Open connections. */
	connections: number;
	/** Connections that have ended since the agent was started. */
	ended: number;
	/** Connections of them that ended with an error. */
	failed: number;
	receive_rate_bps: number;
	received_bytes: number;
	reordering_bytes: number;
	send_rate_bps: number;
	sent_bytes: number;
	/** Open streams. */
	streams: number;
	unread_bytes: number;
	waiting_bytes: number;
};
export type Reservation = {
	/** What was granted in the other direction. */
	back_bps: number;
	changed: string;
	created: string;
	/** Why less is reserved than was granted. Absent if nothing is lacking. */
	degraded?: string;
	end: string;
	/** 1 at first, and greater after each change. */
	generation: number;
	name: Name;
	/** A tenant, or - for the operator. */
	owner: ReservationOwner;
	paths: (ReservationPath)[];
	/** What was granted from the first end to the second. */
	rate_bps: number;
	/** The relay agents that carry the traffic, between which the paths lead. Absent without carry. */
	relays?: ReservationRelays;
	request: ReservationRequest;
	reserved_back_bps: number;
	/** What the paths have now, or will have: less than rate_bps if the reservation is degraded. */
	reserved_bps: number;
	start: string;
	state: "scheduled" | "active" | "degraded" | "ended";
};
/** What the tenant may reserve. Absent, it may reserve nothing. */
export type ReservationBounds = {
	/** How far in the future a reservation may begin. */
	ahead: Length;
	/** The highest class: the lowest number. */
	class?: number;
	/** How long a reservation may last. */
	duration: Length;
	/** Names of hosts and sites, addresses and prefixes. Each end of a reservation must be one of them, or in one. Absent: every end of the network, also hosts of others. */
	ends?: (string)[];
	/** The highest total of the tenant's reservations at every moment: both directions of each, and spare paths. */
	rate: Rate;
};
export type ReservationCalendar = {
	/** What can be reserved at every moment. Absent for a port of which no speed is known: it has no limit. */
	limit_bps?: number;
	steps: (ReservationStep)[];
};
/** relay: the network sends the TCP connections of the traffic to two relay agents, and their streams have what is reserved. Absent: the traffic itself has it. */
export type ReservationCarry = "relay";
/** What the paths do not have in common. */
export type ReservationDisjoint = "link" | "switch";
/** One end of a reservation. One of host, site, prefix and vlan must be set. */
export type ReservationEnd = {
	/** The port at which the traffic enters and leaves the network. Needed if the hosts of the end are at several ports, or if none is known. */
	at?: NetworkPortID;
	/** The name, an address or the MAC of a host of the network. */
	host?: string;
	/** A prefix of addresses, such as 10.1.0.0/16. */
	prefix?: string;
	/** A site with one port that has hosts. */
	site?: string;
	vlan?: number;
};
/** A part of the traffic between the two ends. */
export type ReservationFlow = {
	destination_ports?: string;
	/** tcp, udp, dccp, sctp, icmp, or the number of a protocol. Absent: every protocol. */
	protocol?: string;
	/** A port, or the first and the last. */
	source_ports?: string;
};
export type ReservationList = {
	items: (Reservation)[];
	next?: string;
};
/** A tenant, or - for the operator. */
export type ReservationOwner = string;
export type ReservationPath = {
	back_bps: number;
	/** From the first end to the second. Empty if both are at one switch. */
	links: (NetworkLinkEnds)[];
	rate_bps: number;
	/** Traffic takes the path only when another one fails. */
	spare: boolean;
};
/** Why a request does not fit, and what would be granted at once instead. */
export type ReservationRefusal = {
	/** A moment at which it has not enough. */
	at?: string;
	/** The earliest start of what was asked for. */
	earliest?: ReservationRequest;
	/** What it has at that moment. */
	free_bps?: number;
	/** Where the bottleneck begins. Absent for the line from the hosts of a port, and if no links form a path. */
	from?: NetworkPortID;
	/** The most that fits in the time asked for. */
	most?: ReservationRequest;
	needed_bps?: number;
	reason: "no bandwidth" | "no path" | "too late";
	/** Where the bottleneck ends. Absent for the line to the hosts of a port. */
	to?: NetworkPortID;
	/** The shortest window in which there is a start, or for a volume the earliest deadline. */
	window?: ReservationRequest;
};
export type ReservationRelays = {
	/** The name of the agent that connects to the servers. */
	far: string;
	/** The name of the agent to which the connections are sent. */
	near: string;
};
export type ReservationRequest = {
	/** Links that the paths do not use. */
	avoid?: (NetworkLinkEnds)[];
	/** The rate of the other direction. Absent: it has none. */
	back?: Rate;
	/** relay: the network sends the TCP connections of the traffic to two relay agents, and their streams have what is reserved. Absent: the traffic itself has it. */
	carry?: ReservationCarry;
	/** 1 is served first where bandwidth is lent, and rerouted first. */
	class?: number;
	/** What the paths do not have in common. */
	disjoint?: ReservationDisjoint;
	/** How long the reservation lasts. Required without volume. */
	duration?: Length;
	/** The traffic that has the reservation. Absent: all between the ends. */
	flows?: (ReservationFlow)[];
	/** One end of a reservation. One of host, site, prefix and vlan must be set. */
	from: ReservationEnd;
	/** Program the switches of the path when the first packet comes, and not before. Traffic is without the reservation until then, a second at most. */
	on_demand?: boolean;
	/** The number of disjoint paths among which the rates are divided. */
	paths?: number;
	/** Reserve a disjoint spare path, to which traffic changes when a path fails. */
	protected?: boolean;
	/** The rate of layer 2 from the first end to the second. Required without volume. */
	rate?: Rate;
	/** When the reservation begins, or with until the earliest time. Default now. */
	start?: string;
	/** One end of a reservation. One of host, site, prefix and vlan must be set. */
	to: ReservationEnd;
	/** The reservation ends by then, and has the earliest start that fits. Absent: it begins at start. */
	until?: string;
	/** Bytes of layer 2 to be moved by until: the rate and the duration follow. */
	volume?: string;
};
export type ReservationStep = {
	at: string;
	/** The rate that is reserved from then on, until the next step. */
	reserved_bps: number;
};
/** One direction of a reservation. Rates are those of the latest second. Bytes and seconds are totals since the time in since. All are in layer 2. */
export type ReservationUsage = {
	/** What was delivered beyond what is reserved. */
	borrowed_bytes: number;
	class: number;
	/** What passed the limit. */
	delivered_bps: number;
	delivered_bytes: number;
	/** forward is from the first end to the second. */
	direction: "forward" | "back";
	/** The latest time at which all that is reserved was offered. Absent if it never was. */
	full?: string;
	/** What limits the packets. Nowhere: nothing on the path can, and nothing is measured. */
	held_by: "nowhere" | "host" | "router" | "switch";
	/** What was left unused and others used. */
	lent_bytes: number;
	/** What may pass now: what is reserved and borrowed, or less where a part is lent. Absent without a limit. */
	limit_bps?: number;
	name: Name;
	/** What arrived at the limit. */
	offered_bps: number;
	offered_bytes: number;
	/** A tenant, or - for the operator. */
	owner: ReservationOwner;
	/** The highest offered rate between two readings. */
	peak_bps: number;
	/** Why an agent does not limit or guarantee it as it should. Absent if nothing is lacking. */
	problem?: string;
	reserved_bps: number;
	reserved_bytes: number;
	/** The time that was measured. */
	seconds: number;
	/** When the totals begin: with the reservation, or later with the term of the controller that leads. */
	since: string;
	/** The time in which at least the reserved rate was offered, and less than 99 % of it was delivered. */
	unmet_seconds: number;
	/** In at least an hour that was measured, the reservation has never offered half of what it holds. */
	unused: boolean;
};
export type ReservationUsageList = {
	items: (ReservationUsage)[];
};
export type Restore = {
	/** When the controller first started with the restored data. */
	at: string;
	/** The hosts of the backup whose agents are accepted again once it is confirmed. */
	hosts: (Host)[];
	/** The tokens of the backup that are valid again once it is confirmed. */
	tokens: (Token)[];
};
export type RestoreConfirmation = {
	/** Hosts to revoke. */
	revoke_hosts?: (Name)[];
	/** Ids of tokens to revoke. */
	revoke_tokens?: (string)[];
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
	/** A packet that has any of these values in any of the fields does not match. */
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
/** What the switch can do, as it has answered. */
export type SwitchCapabilities = {
	/** The greatest number of groups that send to all their ports. */
	all_groups: number;
	/** Several changes can be made as one. */
	bundles: boolean;
	/** The greatest number of groups that change to another port without the controller. */
	fast_failover_groups: number;
	/** The number of flows for which the smallest of them has space, if the switch reports it. */
	flows_per_table?: number;
	/** The greatest number of meters that drop frames. */
	meters: number;
	/** The greatest number of groups that divide frames. */
	select_groups: number;
	/** Flow tables that can have the rules. */
	tables: number;
};
export type SwitchCertificate = {
	/** The certificate of the authority that signed it, and which controllers' certificates are signed by, as PEM. */
	authority: string;
	/** The certificate, as PEM. */
	certificate: string;
	expires: string;
	switches: (DatapathID)[];
};
export type SwitchFlow = {
	age_ns: number;
	bytes: number;
	/** As ovs-ofctl prints them. */
	instructions: string;
	/** As ovs-ofctl prints it. */
	match: string;
	packets: number;
	priority: number;
	/** What the kind of rule matches and does, for flows of Headgate. */
	rule?: string;
	table: number;
	/** The name of the table in the pipeline of Headgate, for its flows. */
	table_name?: string;
};
export type SwitchFlowList = {
	items: (SwitchFlow)[];
};
export type Tenant = {
	description?: string;
	name?: Name;
	/** Rate limit of all tokens of the tenant together, in requests per second to each controller. Default 50. */
	requests_per_second?: number;
	/** What the tenant may reserve. Absent, it may reserve nothing. */
	reservations?: ReservationBounds;
};
export type TenantGroup = {
	/** The ceiling. */
	ceiling_bps?: number;
	dev: string;
	direction: string;
	group: string;
	/** The guarantee. */
	guaranteed_bps: number;
	host: string;
	/** The unallocated part of the guarantee. */
	unallocated_bps?: number;
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
	/** For the role agent (required). */
	host?: Name;
	/** The former name of lifetime. */
	life?: string;
	/** Lifetime of the token, such as 30d. Default 1h for the role agent, 90d for others. */
	lifetime?: string;
	name: Name;
	role: Role;
	/** For the roles tenant (required) and viewer. */
	tenant?: Name;
};
export type Usage = {
	/** Bytes delivered above the guarantee. */
	borrowed_bytes?: number;
	delivered_bytes?: number;
	dev: string;
	direction: string;
	drops?: number;
	group: string;
	/** The guarantee multiplied by that time. */
	guaranteed_bytes?: number;
	host: string;
	/** Unused guarantee that other groups borrowed. */
	lent_bytes?: number;
	marks?: number;
	offered_bytes?: number;
	/** The number of seconds for which there are usage records. */
	seconds: number;
	tenant?: string;
	/** Time in which the group had demand and got less than its guarantee. */
	unmet_seconds?: number;
};
export type UsageList = {
	items: (Usage)[];
	/** Hosts whose agents did not answer. */
	missing?: (string)[];
};
/** A user of the host, by name or number. */
export type User = string;
/** Users whose programs may assign their own connections to the group and the groups in it, at the agent's socket on the host. */
export type Users = (User)[];
/** List the audit log, newest first */
export const listAudit = (query: { before?: string | undefined; limit?: number | undefined } = {}) =>
	call<AuditList>("GET", `/v1/audit`, { query });
/** Begin a new epoch, so that agents that are ahead of the service accept its desired state */
export const takeBack = (change?: Change) =>
	call<{
	epoch: number;
}>("POST", `/v1/epoch`, { change });
/** Health of the service */
export const getHealth = () =>
	call<Health>("GET", `/v1/health`, {  });
/** List hosts */
export const listHosts = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<HostList>("GET", `/v1/hosts`, { query });
/** Delete a host, whose agent is then rejected */
export const deleteHost = (host: Name, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}`, { change });
/** Get a host, with the state that its agent reports */
export const getHost = (host: Name) =>
	call<HostState>("GET", `/v1/hosts/${encodeURIComponent(host)}`, {  });
/** Create or replace a host */
export const putHost = (host: Name, body: Host, change?: Change) =>
	call<HostState>("PUT", `/v1/hosts/${encodeURIComponent(host)}`, { body, change });
/** Sign the certificate of an agent that joins, with a token that can be used once */
export const signCertificate = (host: Name, body: {
	/** A certificate request, PKCS #10 as PEM. */
	request: string;
}) =>
	call<Certificate>("POST", `/v1/hosts/${encodeURIComponent(host)}/certificate`, { body });
/** List the states of a host's connection sets, with their problems */
export const listCollectiveStates = (host: Name) =>
	call<CollectiveStateList>("GET", `/v1/hosts/${encodeURIComponent(host)}/collective-states`, {  });
/** List the connection sets of a host */
export const listCollectives = (host: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<CollectiveList>("GET", `/v1/hosts/${encodeURIComponent(host)}/collectives`, { query });
/** Delete a connection set */
export const deleteCollective = (host: Name, collective: Name, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, { change });
/** Get a connection set */
export const getCollective = (host: Name, collective: Name) =>
	call<Collective>("GET", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, {  });
/** Create or replace a connection set */
export const putCollective = (host: Name, collective: Name, body: Collective, change?: Change) =>
	call<Collective>("PUT", `/v1/hosts/${encodeURIComponent(host)}/collectives/${encodeURIComponent(collective)}`, { body, change });
/** List the configured interfaces of a host */
export const listInterfaces = (host: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<InterfaceList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces`, { query });
/** Delete the configuration of an interface */
export const deleteInterface = (host: Name, dev: Dev, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { change });
/** Get an interface with all its groups, now or at a revision */
export const getInterface = (host: Name, dev: Dev, query: { revision?: number | undefined } = {}) =>
	call<Interface>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { query });
/** Create or replace the configuration of an interface */
export const putInterface = (host: Name, dev: Dev, body: Interface, change?: Change) =>
	call<Interface>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}`, { body, change });
/** List assigned connections */
export const listConnections = (host: Name, dev: Dev, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<ConnectionList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections`, { query });
/** Unassign a connection */
export const deleteConnection = (host: Name, dev: Dev, connection: string, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections/${encodeURIComponent(connection)}`, { change });
/** Assign a connection to a group */
export const putConnection = (host: Name, dev: Dev, connection: string, body: Connection, change?: Change) =>
	call<Connection>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/connections/${encodeURIComponent(connection)}`, { body, change });
/** List the changes of an interface, newest first, as far back as the store keeps them */
export const listHistory = (host: Name, dev: Dev, query: { before?: string | undefined; limit?: number | undefined } = {}) =>
	call<AuditList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/history`, { query });
/** Restore an interface to a revision, except for the assigned connections */
export const rollBack = (host: Name, dev: Dev, body: {
	revision: number;
}, change?: Change) =>
	call<Interface>("POST", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/rollback`, { body, change });
/** List the groups of a direction that the caller may see, parents first */
export const listGroups = (host: Name, dev: Dev, direction: DirectionName, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<GroupList>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups`, { query });
/** Delete a group, with the groups in it */
export const deleteGroup = (host: Name, dev: Dev, direction: DirectionName, group: string, change?: Change) =>
	call<void>("DELETE", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { change });
/** Get a group, with its unallocated guarantee */
export const getGroup = (host: Name, dev: Dev, direction: DirectionName, group: string) =>
	call<GroupState>("GET", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, {  });
/** Change some fields of a group (RFC 7396) */
export const patchGroup = (host: Name, dev: Dev, direction: DirectionName, group: string, body: GroupPatch, change?: Change) =>
	call<GroupState>("PATCH", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { body, kind: "application/merge-patch+json", change });
/** Create or replace a group, with the groups in it */
export const putGroup = (host: Name, dev: Dev, direction: DirectionName, group: string, body: Group, change?: Change) =>
	call<GroupState>("PUT", `/v1/hosts/${encodeURIComponent(host)}/interfaces/${encodeURIComponent(dev)}/${encodeURIComponent(direction)}/groups/${encodeURIComponent(group)}`, { body, change });
/** Get all interfaces and connection sets of a host, as a configuration file */
export const getPolicy = (host: Name) =>
	call<Policy>("GET", `/v1/hosts/${encodeURIComponent(host)}/policy`, {  });
/** Apply a configuration file to a host, as "headgate apply" does */
export const putPolicy = (host: Name, body: Policy, change?: Change) =>
	call<Policy>("PUT", `/v1/hosts/${encodeURIComponent(host)}/policy`, { body, change });
/** Start a measurement of the path from a host to a peer */
export const startProbe = (host: Name, body: ProbeRequest, change?: Change) =>
	call<Probe>("POST", `/v1/hosts/${encodeURIComponent(host)}/probes`, { body, change });
/** Get the state and result of a measurement */
export const getProbe = (host: Name, probe: string) =>
	call<Probe>("GET", `/v1/hosts/${encodeURIComponent(host)}/probes/${encodeURIComponent(probe)}`, {  });
/** Propose limits for a host's interfaces, from the newest measurements to and from the host */
export const listProposals = (host: Name, query: { dev?: Dev | undefined; margin?: string | undefined } = {}) =>
	call<ProposalList>("GET", `/v1/hosts/${encodeURIComponent(host)}/proposals`, { query });
/** Get the rates of a host's groups in the last second */
export const getRates = (host: Name, query: { dev?: Dev | undefined; direction?: DirectionName | undefined; group?: (string)[] | undefined } = {}) =>
	call<RateList>("GET", `/v1/hosts/${encodeURIComponent(host)}/rates`, { query });
/** List the relay agents that run on a host, with their paths, streams and connections */
export const listRelays = (host: Name) =>
	call<RelayList>("GET", `/v1/hosts/${encodeURIComponent(host)}/relays`, {  });
/** List the last connections of a relay agent that have ended, the oldest first */
export const listRelayEnded = (host: Name, relay: Name) =>
	call<RelayEndedList>("GET", `/v1/hosts/${encodeURIComponent(host)}/relays/${encodeURIComponent(relay)}/ended`, {  });
/** Show the principal of a token, and start a session */
export const login = (body: {
	token: string;
}, change?: Change) =>
	call<Principal>("POST", `/v1/login`, { body, change });
/** Get the switches, links and hosts of the network as they are now */
export const getNetwork = () =>
	call<Network>("GET", `/v1/network`, {  });
/** Sign the certificate with which switches connect to listeners with TLS */
export const signSwitchCertificate = (body: {
	/** How many days the certificate is valid. */
	days?: number;
	/** A certificate request, PKCS #10 as PEM, with an ECDSA key. Its subject is ignored. */
	request: string;
	/** The switches, by their datapath ids or by their names in the configuration of the network. */
	switches: (string)[];
}, change?: Change) =>
	call<SwitchCertificate>("POST", `/v1/network/certificates`, { body, change });
/** Delete the configuration of the network */
export const deleteNetworkConfig = (change?: Change) =>
	call<void>("DELETE", `/v1/network/config`, { change });
/** Get the configuration of the network */
export const getNetworkConfig = () =>
	call<NetworkConfig>("GET", `/v1/network/config`, {  });
/** Create or replace the configuration of the network */
export const putNetworkConfig = (body: NetworkConfig, change?: Change) =>
	call<NetworkConfig>("PUT", `/v1/network/config`, { body, change });
/** List the last events of the network, the oldest first */
export const listNetworkEvents = (query: { kind?: string | undefined; since?: string | undefined; switch?: DatapathID | undefined } = {}) =>
	call<NetworkEventList>("GET", `/v1/network/events`, { query });
/** Get what a port has sent in the last hour */
export const getNetworkLinkHistory = (dpid: DatapathID, port: number) =>
	call<NetworkLinkHistory>("GET", `/v1/network/links/${encodeURIComponent(dpid)}/${encodeURIComponent(port)}/history`, {  });
/** Get the shortest path between two hosts or switches */
export const getNetworkPath = (query: { from: string; to: string }) =>
	call<NetworkPath>("GET", `/v1/network/path`, { query });
/** List the flows that a switch has, as the switch reports them */
export const listSwitchFlows = (dpid: DatapathID) =>
	call<SwitchFlowList>("GET", `/v1/network/switches/${encodeURIComponent(dpid)}/flows`, {  });
/** Follow a frame through the tables of the switches, as they are now */
export const getNetworkTrace = (query: { from: string; packet: string }) =>
	call<NetworkTrace>("GET", `/v1/network/trace`, { query });
/** Get the load of the hosts and the groups at risk */
export const getOverview = (query: { host?: (Name)[] | undefined; names?: boolean | undefined } = {}) =>
	call<Overview>("GET", `/v1/overview`, { query });
/** Delete the probe schedule; the results stay */
export const deleteProbeSchedule = (change?: Change) =>
	call<void>("DELETE", `/v1/probe-schedule`, { change });
/** Get the probe schedule */
export const getProbeSchedule = () =>
	call<ProbeSchedule>("GET", `/v1/probe-schedule`, {  });
/** Create or replace the probe schedule */
export const putProbeSchedule = (body: ProbeSchedule, change?: Change) =>
	call<ProbeSchedule>("PUT", `/v1/probe-schedule`, { body, change });
/** Get the running measurements of the schedule, and the budget that each host has used today */
export const getProbeState = () =>
	call<ProbingState>("GET", `/v1/probe-state`, {  });
/** List the results of the probe schedule, one per direction */
export const listProbeResults = (query: { after?: string | undefined; from?: Name | undefined; limit?: number | undefined; measure?: ProbeMeasure | undefined; newest?: boolean | undefined; since?: string | undefined; to?: Name | undefined } = {}) =>
	call<ProbeResultList>("GET", `/v1/probes`, { query });
/** List reservations */
export const listReservations = (query: { after?: string | undefined; limit?: number | undefined; owner?: ReservationOwner | undefined } = {}) =>
	call<ReservationList>("GET", `/v1/reservations`, { query });
/** Reserve bandwidth, or with dry_run ask what would be granted */
export const createReservation = (body: NewReservation, change?: Change) =>
	call<Reservation>("POST", `/v1/reservations`, { body, change });
/** Get the rate that is reserved on a link over time */
export const getReservationCalendar = (query: { arriving?: boolean | undefined; from?: string | undefined; link: string; to?: string | undefined }) =>
	call<ReservationCalendar>("GET", `/v1/reservations/calendar`, { query });
/** Get what reservations use, lend and lack */
export const listReservationUsage = (query: { owner?: ReservationOwner | undefined; reservation?: Name | undefined } = {}) =>
	call<ReservationUsageList>("GET", `/v1/reservations/usage`, { query });
/** Cancel a reservation */
export const deleteReservation = (owner: ReservationOwner, reservation: Name, change?: Change) =>
	call<void>("DELETE", `/v1/reservations/${encodeURIComponent(owner)}/${encodeURIComponent(reservation)}`, { change });
/** Get a reservation */
export const getReservation = (owner: ReservationOwner, reservation: Name) =>
	call<Reservation>("GET", `/v1/reservations/${encodeURIComponent(owner)}/${encodeURIComponent(reservation)}`, {  });
/** Create or change a reservation */
export const putReservation = (owner: ReservationOwner, reservation: Name, body: ReservationRequest, query: { move?: boolean | undefined } = {}, change?: Change) =>
	call<Reservation>("PUT", `/v1/reservations/${encodeURIComponent(owner)}/${encodeURIComponent(reservation)}`, { body, query, change });
/** Get the restore that waits for a confirmation, with the tokens and hosts of the backup */
export const getRestore = () =>
	call<Restore>("GET", `/v1/restore`, {  });
/** Revoke some tokens and hosts of the backup, and permit all others again */
export const confirmRestore = (body: RestoreConfirmation, change?: Change) =>
	call<void>("POST", `/v1/restore/confirmation`, { body, change });
/** End a session */
export const deleteSession = () =>
	call<void>("DELETE", `/v1/session`, {  });
/** Show the principal of the caller */
export const getSession = () =>
	call<Principal>("GET", `/v1/session`, {  });
/** List tenants */
export const listTenants = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TenantList>("GET", `/v1/tenants`, { query });
/** Delete a tenant that has no groups, no valid tokens and no reservations */
export const deleteTenant = (tenant: Name, change?: Change) =>
	call<void>("DELETE", `/v1/tenants/${encodeURIComponent(tenant)}`, { change });
/** Get a tenant */
export const getTenant = (tenant: Name) =>
	call<Tenant>("GET", `/v1/tenants/${encodeURIComponent(tenant)}`, {  });
/** Create or replace a tenant */
export const putTenant = (tenant: Name, body: Tenant, change?: Change) =>
	call<Tenant>("PUT", `/v1/tenants/${encodeURIComponent(tenant)}`, { body, change });
/** List the groups of a tenant on all hosts */
export const listTenantGroups = (tenant: Name, query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TenantGroupList>("GET", `/v1/tenants/${encodeURIComponent(tenant)}/groups`, { query });
/** List all tokens, or the caller's tenant's own */
export const listTokens = (query: { after?: string | undefined; limit?: number | undefined } = {}) =>
	call<TokenList>("GET", `/v1/tokens`, { query });
/** Create a token, which is shown only once */
export const createToken = (body: TokenRequest, change?: Change) =>
	call<NewToken>("POST", `/v1/tokens`, { body, change });
/** Revoke a token */
export const deleteToken = (token: string, change?: Change) =>
	call<void>("DELETE", `/v1/tokens/${encodeURIComponent(token)}`, { change });
/** Get the usage records of groups in a period, with the time of unmet guarantees */
export const getUsage = (query: { host?: Name | undefined; since: string; tenant?: Name | undefined; until?: string | undefined }) =>
	call<UsageList>("GET", `/v1/usage`, { query });
