// Which page is shown: the address is, so that back, reload and a link that is sent work.

/** Page shows itself in an element until the signal ends. */
export type Page = (on: HTMLElement, args: string[], signal: AbortSignal) => void | Promise<void>;

interface Route {
	pattern: RegExp;
	page: Page;
	title: (args: string[]) => string;
}

const routes: Route[] = [];

/** route shows a page at a path such as /hosts/:/:, whose parts it is given. */
export function route(path: string, title: (args: string[]) => string, page: Page): void {
	routes.push({ pattern: new RegExp(`^${path.replaceAll(":", "([^/]+)")}/?$`), page, title });
}

let shown: AbortController | undefined;

/** show draws the page of the present address. */
export function show(on: HTMLElement, failed: (on: HTMLElement, why: unknown) => void): void {
	shown?.abort();
	shown = new AbortController();
	const { signal } = shown;
	for (const r of routes) {
		const m = r.pattern.exec(location.pathname);
		if (!m) continue;
		const args = m.slice(1).map(decodeURIComponent);
		document.title = `${r.title(args)} · Headgate`;
		on.replaceChildren();
		Promise.resolve()
			.then(() => r.page(on, args, signal))
			.catch((why: unknown) => {
				if (!signal.aborted) failed(on, why);
			});
		return;
	}
	failed(on, new Error(`There is no page at ${location.pathname}.`));
}

/** go opens a page. */
export function go(path: string): void {
	history.pushState(null, "", path);
	dispatchEvent(new Event("headgate:moved"));
}

/** follow makes links within the dashboard open without a reload. */
export function follow(moved: () => void): void {
	addEventListener("popstate", moved);
	addEventListener("headgate:moved", moved);
	document.addEventListener("click", (e) => {
		const a = (e.target as Element).closest("a");
		if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.origin !== location.origin || a.hasAttribute("download")) return;
		e.preventDefault();
		go(a.pathname + a.search);
	});
}

/** path is an address of parts that may have any characters. */
export function path(...parts: string[]): string {
	return `/${parts.map(encodeURIComponent).join("/")}`;
}
