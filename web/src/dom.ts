// Creation of DOM elements. Text is never parsed as HTML, so names of hosts and tenants cannot inject markup.

export type Child = Node | string | number | null | undefined | false | Child[];
type Props = Record<string, string | number | boolean | null | undefined | ((e: never) => void)>;

/** h creates an HTML element with attributes, on… listeners and children. */
export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
	const out = document.createElement(tag);
	set(out, props);
	put(out, children);
	return out;
}

/** svg creates an SVG element. */
export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
	const out = document.createElementNS("http://www.w3.org/2000/svg", tag);
	set(out, props);
	put(out, children);
	return out;
}

/** set sets or removes attributes of an element, and adds its listeners. */
export function set(on: Element, props: Props): void {
	for (const [name, value] of Object.entries(props)) {
		if (typeof value === "function") on.addEventListener(name.slice(2), value as (e: Event) => void);
		else if (value === false || value === null || value === undefined) on.removeAttribute(name);
		else on.setAttribute(name, value === true ? "" : String(value));
	}
}

/** put appends children. Null, undefined and false are skipped. */
function put(on: Element, children: Child[]): void {
	for (const c of children) {
		if (Array.isArray(c)) put(on, c);
		else if (c !== null && c !== undefined && c !== false) on.append(c instanceof Node ? c : String(c));
	}
}

/** fill replaces the children of an element. */
export function fill(on: Element, ...children: Child[]): void {
	on.replaceChildren();
	put(on, children);
}

/** text sets the text of an element if it differs. */
export function text(on: Element, words: string): void {
	if (on.textContent !== words) on.textContent = words;
}
