// What moves, by one stream: each page says what it looks at, and is told when that is another.
// The controller asks itself for those paths as this session, and sends what has changed.

type Seen = (data: unknown, status: number) => void;

interface Update {
	path: string;
	status: number;
	data?: unknown;
}

/** most paths are looked at at once: what the API takes. */
export const most = 16;

const looking = new Map<string, Set<Seen>>();
const last = new Map<string, Update>();
/** State is how live what is shown is; still has nothing that moves. */
export type State = "live" | "connecting" | "still";

const states = new Set<(state: State) => void>();

let stream: EventSource | undefined;
let asked = "";
let now: State = "still";
let pending: ReturnType<typeof setTimeout> | undefined;
let following = false;

/** look calls back with what a path answers, now and whenever it is another, until the signal ends. */
export function look(path: string, seen: Seen, signal: AbortSignal): void {
	if (signal.aborted) return;
	const all = looking.get(path) ?? new Set();
	looking.set(path, all.add(seen));
	const known = last.get(path);
	if (known) seen(known.data, known.status);
	signal.addEventListener("abort", () => {
		all.delete(seen);
		if (all.size === 0) looking.delete(path);
		reopen();
	});
	reopen();
}

/** onState calls back with how live what is shown is. */
export function onState(f: (state: State) => void): void {
	states.add(f);
	f(now);
}

/** start follows what pages look at. */
export function start(): void {
	following = true;
	open();
}

export function stop(): void {
	following = false;
	clearTimeout(pending);
	stream?.close();
	stream = undefined;
	asked = "";
	last.clear();
	looking.clear();
	states.clear();
}

// A page that goes and one that comes are one change of what is asked.
function reopen(): void {
	clearTimeout(pending);
	pending = setTimeout(open, 20);
}

function open(): void {
	if (!following) return;
	const paths = [...looking.keys()].sort();
	const address = `/v1/live?${new URLSearchParams(paths.map((p) => ["see", p]))}`;
	if (stream && asked === address) return;
	stream?.close();
	stream = undefined;
	asked = address;
	for (const path of last.keys()) if (!looking.has(path)) last.delete(path);
	state(paths.length === 0 ? "still" : "connecting");
	if (paths.length === 0) return;
	stream = new EventSource(address);
	stream.onopen = () => state("live");
	stream.onerror = () => {
		state("connecting");
		// An answer that is no stream ends it for good: it is tried again.
		if (stream?.readyState === EventSource.CLOSED) {
			stream = undefined;
			pending = setTimeout(open, 2000);
		}
	};
	stream.addEventListener("seen", (e) => {
		const u = JSON.parse((e as MessageEvent<string>).data) as Update;
		last.set(u.path, u);
		for (const f of looking.get(u.path) ?? []) f(u.data, u.status);
	});
}

// Nobody draws what nobody sees: a page in the background asks for nothing.
document.addEventListener("visibilitychange", () => {
	if (!following) return;
	if (document.hidden) {
		stream?.close();
		stream = undefined;
		asked = "";
		return;
	}
	open();
});

function state(is: State): void {
	if (is === now) return;
	now = is;
	for (const f of states) f(now);
}
