// How the API is asked. The session is a cookie that no script sees; a change carries a header
// that another site's form cannot send.

/** Problem is an answer that says what is wrong (RFC 9457). */
export class Problem extends Error {
	constructor(
		readonly status: number,
		detail: string,
		readonly fields: { field: string; message: string }[] = [],
		readonly retryAfter = 0,
	) {
		super(detail);
	}
}

/** Change is how a change is to be made. */
export interface Change {
	ifMatch?: string;
	dryRun?: boolean;
	/** Made once, however often it is asked for. */
	key?: string;
}

/** Answer is what there is, and its ETag. */
export interface Answer<T> {
	data: T;
	etag: string;
}

interface Options {
	body?: unknown;
	/** The body's, JSON if it is not said. */
	kind?: string;
	query?: object;
	change?: Change | undefined;
}

/** signedOut is called when the session has ended. */
let signedOut = (): void => {};
export function onSignedOut(f: () => void): void {
	signedOut = f;
}

const patience = 20_000; // ms

export async function call<T>(method: string, path: string, o: Options = {}): Promise<Answer<T>> {
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
			method, headers, signal: AbortSignal.timeout(patience), ...(o.body === undefined ? {} : { body: JSON.stringify(o.body) }),
		});
	} catch {
		throw new Problem(0, "The controller does not answer. Is it running, and reachable from here?");
	}
	const data: unknown = r.headers.get("Content-Type")?.includes("json") ? await r.json() : undefined;
	if (r.ok) return { data: data as T, etag: r.headers.get("ETag") ?? "" };
	if (r.status === 401 && path !== "/v1/login" && path !== "/v1/session") signedOut();
	const p = (data ?? {}) as { title?: string; detail?: string; errors?: { field: string; message: string }[] };
	throw new Problem(r.status, p.detail ?? p.title ?? `The answer is ${r.status}.`, p.errors, Number(r.headers.get("Retry-After") ?? 0));
}

/** address is a path with a query, as one looks at it. */
export function address(path: string, query: Record<string, string | string[]>): string {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(query)) for (const each of [value].flat()) q.append(name, each);
	return `${path}?${q}`;
}

/** all reads every page of a list. */
export async function all<T>(page: (after?: string) => Promise<Answer<{ items: T[]; next?: string }>>): Promise<T[]> {
	const out: T[] = [];
	for (let after: string | undefined; ; ) {
		const { data } = await page(after);
		out.push(...data.items);
		if (!data.next) return out;
		after = data.next;
	}
}
