// Routing: the address determines the page, so that back, reload and shared links work.

/** Page draws into an element until the signal is aborted. */
export type Page = (on: HTMLElement, args: string[], signal: AbortSignal) => void | Promise<void>;

interface Route {
	pattern: RegExp;
	page: Page;
	title: (args: string[]) => string;
}

const routes: Route[] = [];

/** route registers a page for a path such as /hosts/:/:. The page gets the segments at the colons as args. */
export function route(path: string, title: (args: string[]) => string, page: Page): void {
	routes.push({ pattern: new RegExp(`^${path.replaceAll(":", "([^/]+)")}/?$`), page, title });
}

let shown: AbortController | undefined;

/** show draws the page of the current address, and calls failed if the page cannot be loaded. */
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
	failed(on, new Error(`page not found: ${location.pathname}`));
}

/** navigate opens a page of the dashboard. */
export function navigate(path: string): void {
	history.pushState(null, "", path);
	dispatchEvent(new Event("headgate:moved"));
}

/** onNavigate calls f on navigation, and opens links within the dashboard without a reload. */
export function onNavigate(f: () => void): void {
	addEventListener("popstate", f);
	addEventListener("headgate:moved", f);
	document.addEventListener("click", (e) => {
		const a = (e.target as Element).closest("a");
		if (!a || e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || a.target || a.origin !== location.origin || a.hasAttribute("download")) return;
		e.preventDefault();
		navigate(a.pathname + a.search);
	});
}

/** path returns an address with each part percent-encoded. */
export function path(...parts: string[]): string {
	return `/${parts.map(encodeURIComponent).join("/")}`;
}
