// Groups of one direction of an interface, and edits of groups that can be previewed and undone.
import { deleteGroup, getGroup, listGroups, patchGroup, putGroup, type Group, type GroupPatch, type GroupState, type Selector } from "../api.gen";
import { allPages, type Change } from "../call";

/** Direction of traffic: out of or into the interface. */
export type Direction = "out" | "in";

/** DirectionRef identifies one direction of one interface. */
export interface DirectionRef {
	host: string;
	dev: string;
	direction: Direction;
}

/** listAllGroups returns all groups of a direction. */
export const listAllGroups = (at: DirectionRef): Promise<GroupState[]> => allPages((after) => listGroups(at.host, at.dev, at.direction, { after, limit: 1000 }));

/** Edit is a change of one group with its dry run and its undo. */
export interface Edit {
	/** Text of the notification after the change. */
	notification: string;
	path: string;
	before: GroupState | undefined;
	/** dryRun makes a dry run and returns the resulting group, undefined after a removal. */
	dryRun: () => Promise<GroupState | undefined>;
	apply: () => Promise<void>;
	undo: () => Promise<void>;
}

/** add returns the edit that creates a group at a path. */
export function add(at: DirectionRef, path: string, group: Group): Edit {
	let etag = "";
	const put = (change: Change) => putGroup(at.host, at.dev, at.direction, path, group, change);
	return {
		notification: `Added ${path}`, path, before: undefined,
		dryRun: async () => (await put({ dryRun: true })).data,
		apply: async () => {
			etag = (await put({ key: crypto.randomUUID() })).etag;
		},
		undo: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { ifMatch: etag });
		},
	};
}

/** edit returns the edit that changes fields of a group. The ETag prevents lost updates: the API rejects the edit if the group has changed. */
export function edit(at: DirectionRef, before: GroupState, etag: string, patch: GroupPatch): Edit {
	const of = (p: GroupPatch, change: Change) => patchGroup(at.host, at.dev, at.direction, before.path, p, change);
	const back = Object.fromEntries(Object.keys(patch).map((name) => [name, before[name as keyof GroupState] ?? null])) as GroupPatch;
	return {
		notification: `Changed ${before.path}`, path: before.path, before,
		dryRun: async () => (await of(patch, { dryRun: true, ifMatch: etag })).data,
		apply: async () => {
			etag = (await of(patch, { ifMatch: etag })).etag;
		},
		undo: async () => {
			await of(back, { ifMatch: etag });
		},
	};
}

/** remove returns the edit that removes a group and all groups below it. */
export async function remove(at: DirectionRef, path: string): Promise<Edit> {
	const { data: before, etag } = await getGroup(at.host, at.dev, at.direction, path);
	return {
		notification: `Removed ${path}`, path, before,
		dryRun: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { dryRun: true, ifMatch: etag });
			return undefined;
		},
		apply: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { ifMatch: etag });
		},
		undo: async () => {
			const { path: _path, guaranteed_bps: _guaranteed, ceiling_bps: _ceiling, unallocated_bps: _unallocated, origin: _origin, ...group } = before;
			await putGroup(at.host, at.dev, at.direction, path, group);
		},
	};
}

const lists = ["proto", "src", "dst", "sport", "dport", "dscp", "vlan", "pcp", "mark", "smac"];
const fields = [...lists, "cgroup"];

/** formatRules formats rules, one per line: "proto=tcp dport=80,443 not.dst=10.0.0.0/8". */
export function formatRules(match: Selector[] | undefined): string {
	const words = (fields: object, before: string) => Object.entries(fields).map(([name, values]) => `${before}${name}=${[values].flat().join(",")}`);
	return (match ?? []).map(({ not, ...s }) => [...words(s, ""), ...words(not ?? {}, "not.")].join(" ")).join("\n");
}

/** parseRules parses the format of formatRules, and throws an Error with the line of an invalid rule. */
export function parseRules(text: string): Selector[] {
	return text.split("\n").filter((line) => line.trim() !== "").map((line, n) => {
		const out: Record<string, unknown> = {}, not: Record<string, unknown> = {};
		for (const word of line.trim().split(/\s+/)) {
			const [, without, name, values] = /^(not\.)?(\w+)=(.+)$/.exec(word) ?? [];
			if (!name || !values || !fields.includes(name)) {
				throw new Error(`rules, line ${n + 1}: "${word}" is invalid: write FIELD=VALUE,VALUE or not.FIELD=VALUE,VALUE with one of the fields ${fields.join(", ")}`);
			}
			(without ? not : out)[name] = name === "cgroup" ? values : values.split(",");
		}
		return (Object.keys(not).length > 0 ? { ...out, not } : out) as Selector;
	});
}
