// Groups of a direction of an interface: read, and changed so that it can be taken back.
import { deleteGroup, getGroup, listGroups, patchGroup, putGroup, type Group, type GroupPatch, type GroupState, type Selector } from "../api.gen";
import { all, type Change } from "../call";

export type Direction = "out" | "in";

/** At is where groups are. */
export interface At {
	host: string;
	dev: string;
	direction: Direction;
}

export const listed = (at: At): Promise<GroupState[]> => all((after) => listGroups(at.host, at.dev, at.direction, { after, limit: 1000 }));

/** Edit is a change that is tried, made and taken back. */
export interface Edit {
	/** What it does, as the words of a button that has done it. */
	done: string;
	path: string;
	before: GroupState | undefined;
	/** tried is what there would be, undefined if it is gone. */
	tried: () => Promise<GroupState | undefined>;
	make: () => Promise<void>;
	undo: () => Promise<void>;
}

/** add makes a group, or one in another. */
export function add(at: At, path: string, group: Group): Edit {
	let etag = "";
	const put = (change: Change) => putGroup(at.host, at.dev, at.direction, path, group, change);
	return {
		done: `Added ${path}`, path, before: undefined,
		tried: async () => (await put({ dryRun: true })).data,
		make: async () => {
			etag = (await put({ key: crypto.randomUUID() })).etag;
		},
		undo: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { ifMatch: etag });
		},
	};
}

/** edit changes what is given of a group. Nobody's change in between is lost: it is refused then. */
export function edit(at: At, before: GroupState, etag: string, patch: GroupPatch): Edit {
	const of = (p: GroupPatch, change: Change) => patchGroup(at.host, at.dev, at.direction, before.path, p, change);
	const back = Object.fromEntries(Object.keys(patch).map((name) => [name, before[name as keyof GroupState] ?? null])) as GroupPatch;
	return {
		done: `Changed ${before.path}`, path: before.path, before,
		tried: async () => (await of(patch, { dryRun: true, ifMatch: etag })).data,
		make: async () => {
			etag = (await of(patch, { ifMatch: etag })).etag;
		},
		undo: async () => {
			await of(back, { ifMatch: etag });
		},
	};
}

/** remove takes a group away, with those in it. */
export async function remove(at: At, path: string): Promise<Edit> {
	const { data: before, etag } = await getGroup(at.host, at.dev, at.direction, path);
	return {
		done: `Removed ${path}`, path, before,
		tried: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { dryRun: true, ifMatch: etag });
			return undefined;
		},
		make: async () => {
			await deleteGroup(at.host, at.dev, at.direction, path, { ifMatch: etag });
		},
		undo: async () => {
			const { path: _path, rate: _rate, most: _most, free: _free, ...group } = before;
			await putGroup(at.host, at.dev, at.direction, path, group);
		},
	};
}

const lists = ["proto", "src", "dst", "sport", "dport", "dscp", "vlan", "pcp", "mark", "smac"];
const fields = [...lists, "cgroup"];

/** showMatch is a rule a line: "proto=tcp dport=80,443 not.dst=10.0.0.0/8". */
export function showMatch(match: Selector[] | undefined): string {
	const words = (fields: object, before: string) => Object.entries(fields).map(([name, values]) => `${before}${name}=${[values].flat().join(",")}`);
	return (match ?? []).map(({ not, ...s }) => [...words(s, ""), ...words(not ?? {}, "not.")].join(" ")).join("\n");
}

/** readMatch reads what showMatch shows, and throws a sentence. */
export function readMatch(text: string): Selector[] {
	return text.split("\n").filter((line) => line.trim() !== "").map((line, n) => {
		const out: Record<string, unknown> = {}, not: Record<string, unknown> = {};
		for (const word of line.trim().split(/\s+/)) {
			const [, without, name, values] = /^(not\.)?(\w+)=(.+)$/.exec(word) ?? [];
			if (!name || !values || !fields.includes(name)) {
				throw new Error(`Line ${n + 1} of the rules: "${word}" is not ${fields.join(", ")} with = and values, or one of these behind "not.".`);
			}
			(without ? not : out)[name] = name === "cgroup" ? values : values.split(",");
		}
		return (Object.keys(not).length > 0 ? { ...out, not } : out) as Selector;
	});
}
