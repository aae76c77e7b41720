// Requests to the API. The session is an HttpOnly cookie. Every request that may change something has
// the header X-Headgate-Session, which a form on another site cannot send.
import type { ReservationRefusal } from "./api.gen";

/** Problem is an error response of the API (RFC 9457), or status 0 if there was no response. */
export class Problem extends Error {
	constructor(
		readonly status: number,
		detail: string,
		readonly fields: { field: string; message: string }[] = [],
		readonly retryAfter = 0,
		/** Why a reservation does not fit, and what would. */
		readonly refusal: ReservationRefusal | undefined = undefined,
	) {
		super(detail);
	}
}

/** Change has the options of a request that changes something. */
export interface Change {
	ifMatch?: string;
	dryRun?: boolean;
	/** Idempotency key: repeats with the same key have one effect. */
	key?: string;
}

/** ApiResponse is the body of a response, and its ETag. */
export interface ApiResponse<T> {
	data: T;
	etag: string;
}

interface Options {
	body?: unknown;
	/** Media type of the body; application/json by default. */
	kind?: string;
	query?: object;
	change?: Change | undefined;
}

/** signedOut is called when a response has status 401. */
let signedOut = (): void => {};
export function onSignedOut(f: () => void): void {
	signedOut = f;
}

const requestTimeout = 20_000; // ms until a request times out

/** call sends a request, and throws a Problem unless the response has a 2xx status. */
export async function call<T>(method: string, path: string, o: Options = {}): Promise<ApiResponse<T>> {
	const query = new URLSearchParams();
	for (const [name, value] of Object.entries(o.query ?? {})) {
		for (const each of Array.isArray(value) ? value : [value]) if (each !== undefined) query.append(name, String(each));
	}
	if (o.change?.dryRun) query.set("dry_run", "true");
	const headers: Record<string, string> = {};
	if (method !== "GET") headers["X-Headgate-Session"] = "1";
	if (o.body !== undefined) headers["Content-Type"] = o.kind ?? "application/json";
	if (o.change?.ifMatch) headers["If-Match"] = o.change.ifMatch;
	if (o.change?.key) headers["Idempotency-Key"] = o.change.key;
	let r: Response;
	try {
		r = await fetch(path + (query.size > 0 ? `?${query}` : ""), {
			method, headers, signal: AbortSignal.timeout(requestTimeout), ...(o.body === undefined ? {} : { body: JSON.stringify(o.body) }),
		});
	} catch {
		throw new Problem(0, "no response from the controller: check that it is running and reachable from this browser");
	}
	const data: unknown = r.headers.get("Content-Type")?.includes("json") ? await r.json() : undefined;
	if (r.ok) return { data: data as T, etag: r.headers.get("ETag") ?? "" };
	if (r.status === 401 && path !== "/v1/login" && path !== "/v1/session") signedOut();
	const p = (data ?? {}) as { title?: string; detail?: string; errors?: { field: string; message: string }[]; refusal?: ReservationRefusal };
	throw new Problem(r.status, p.detail ?? p.title ?? `request failed: status ${r.status}`, p.errors, Number(r.headers.get("Retry-After") ?? 0), p.refusal);
}

/** checkSession calls what onSignedOut has set if the session is over. */
export async function checkSession(): Promise<void> {
	const r = await fetch("/v1/session", { signal: AbortSignal.timeout(requestTimeout) }).catch(() => undefined);
	if (r?.status === 401) signedOut();
}

/** withQuery returns a path with its query string. */
export function withQuery(path: string, query: Record<string, string | string[]>): string {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) q.append(name, each);
	return `${path}?${q}`;
}

/** allPages reads all pages of a list. */
export async function allPages<T>(page: (after?: string) => Promise<ApiResponse<{ items: T[]; next?: string }>>): Promise<T[]> {
	const out: T[] = [];
	for (let after: string | undefined; ; ) {
		const { data } = await page(after);
		out.push(...data.items);
		if (!data.next) return out;
		after = data.next;
	}
}
