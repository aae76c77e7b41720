// Live updates over one event stream. Pages subscribe to API paths. The controller reads these paths with
// the rights of this session, and sends each response that changed.

import { checkSession } from "./call";

/** Callback gets the newest response to a path, and its status. */
type Callback = (data: unknown, status: number) => void;

/** Update is one event of the stream. */
interface Update {
	path: string;
	status: number;
	data?: unknown;
}

/** subscriptions has the callbacks by path. */
const subscriptions = new Map<string, Set<Callback>>();
/** last has the newest update of each path. */
const last = new Map<string, Update>();
/** State is the state of the stream; idle means that the page has no subscriptions, stale that what it shows may be out of date. */
export type State = "live" | "connecting" | "stale" | "idle";

/** silence is how long the stream may be silent, in ms. The controller sends an event every second. */
const silence = 3500;

const states = new Set<(state: State) => void>();

let stream: EventSource | undefined;
let currentAddress = "";
let now: State = "idle";
let pending: ReturnType<typeof setTimeout> | undefined;
let watchdog: ReturnType<typeof setTimeout> | undefined;
let started = false;

/** subscribe calls f with the response to a path, now and after each change, until the signal is aborted. */
export function subscribe(path: string, f: Callback, signal: AbortSignal): void {
	if (signal.aborted) return;
	const all = subscriptions.get(path) ?? new Set();
	subscriptions.set(path, all.add(f));
	const known = last.get(path);
	if (known) f(known.data, known.status);
	signal.addEventListener("abort", () => {
		all.delete(f);
		if (all.size === 0) subscriptions.delete(path);
		reopen();
	});
	reopen();
}

/** onState calls f with the state of the stream, now and after each change. */
export function onState(f: (state: State) => void): void {
	states.add(f);
	f(now);
}

/** start opens the stream, and reopens it as subscriptions change. */
export function start(): void {
	started = true;
	open();
}

/** stop closes the stream and drops all subscriptions. */
export function stop(): void {
	started = false;
	clearTimeout(pending);
	clearTimeout(watchdog);
	stream?.close();
	stream = undefined;
	currentAddress = "";
	last.clear();
	subscriptions.clear();
	states.clear();
}

/** reopen opens the stream after 20 ms, so that navigation from one page to the next reopens the stream once. */
function reopen(): void {
	clearTimeout(pending);
	pending = setTimeout(open, 20);
}

/** open opens a stream for the subscribed paths, unless the present stream has the same paths. */
function open(): void {
	if (!started) return;
	const paths = [...subscriptions.keys()].sort();
	const address = `/v1/live?${new URLSearchParams(paths.map((p) => ["see", p]))}`;
	if (stream && currentAddress === address) return;
	stream?.close();
	stream = undefined;
	currentAddress = address;
	for (const path of last.keys()) if (!subscriptions.has(path)) last.delete(path);
	clearTimeout(watchdog);
	if (paths.length === 0) {
		state("idle");
		return;
	}
	if (now !== "stale") state("connecting");
	watch();
	stream = new EventSource(address);
	stream.onopen = () => heard();
	stream.onerror = () => {
		state("connecting");
		// EventSource does not reconnect after a response that is no event stream: open a new one after 2 s. The session may be over.
		if (stream?.readyState === EventSource.CLOSED) {
			stream = undefined;
			currentAddress = "";
			void checkSession();
			pending = setTimeout(open, 2000);
		}
	};
	stream.addEventListener("quiet", heard);
	stream.addEventListener("seen", (e) => {
		heard();
		const u = JSON.parse((e as MessageEvent<string>).data) as Update;
		last.set(u.path, u);
		for (const f of subscriptions.get(u.path) ?? []) f(u.data, u.status);
	});
}

/** heard notes that the stream is there. */
function heard(): void {
	state("live");
	watch();
}

/** watch takes what is shown for stale after a silence, and opens the stream again: packets may be lost without a word. */
function watch(): void {
	clearTimeout(watchdog);
	watchdog = setTimeout(() => {
		state("stale");
		stream?.close();
		stream = undefined;
		currentAddress = "";
		open();
	}, silence);
}

// A page in the background has no stream.
document.addEventListener("visibilitychange", () => {
	if (!started) return;
	if (document.hidden) {
		clearTimeout(watchdog);
		stream?.close();
		stream = undefined;
		currentAddress = "";
		return;
	}
	open();
});

/** state stores the state of the stream, and reports it if it changed. */
function state(is: State): void {
	if (is === now) return;
	now = is;
	for (const f of states) f(now);
}
