// The map: switches, cables, hosts and sites as SVG. Labels and lines keep their size at every zoom, so that only places are
// scaled. What is there has an element each, of which an update changes what differs.
import type { Network, NetworkFault, NetworkHost, NetworkSwitch } from "../api.gen";
import { fill, h, set, svg, text } from "../dom";
import { button } from "../ui";
import { showShare } from "../units";
import { localFaults, type Cable, type Gone } from "./cables";
import { arrow, corners, fit, freeAngle, hull, line, middle, outline, Space, spanOf, zoomedAt, type Box, type Point, type View } from "./geometry";
import { handle } from "./input";
import type { Place } from "./layout";
import { countBy, counted, hostName, problemOf, type Names } from "./names";
import { stepOf, steps, unknownWidth, utilizationOf } from "./scale";

/** Scene is what the map shows. */
export interface Scene {
	network: Network;
	names: Names;
	cables: Cable[];
	gone: Gone[];
	places: Map<string, Place>;
}

/** Selection is a switch by its datapath id, or a cable by its key. */
export interface Selection {
	kind: "switch" | "cable";
	key: string;
}

/** Actions are what a person does on the map. */
export interface Actions {
	select: (s: Selection | undefined) => void;
	/** A switch was moved. */
	move: (id: string, to: Place) => void;
	arrange: () => void;
}

/** NetworkMap is a map in the document. */
export interface NetworkMap {
	on: HTMLElement;
	show: (s: Scene) => void;
	/** select marks a selection; center also brings it to the middle. */
	select: (s: Selection | undefined, center?: boolean) => void;
	/** fit shows the whole network. */
	fit: () => void;
}

const labelHeight = 11, labelPadding = 9; // px; half of the height of a label
const leastDot = 2.5, mostDot = 5; // px; the radius of a switch without a label
const mostLetters = 16; // of a label
const mostHosts = 6; // at a switch, that are drawn; of more the number is
const mostHostsInAll = 150;
const mostZoom = 5, leastZoom = 0.05, fitZoom = 1.7;

/** SwitchShape has the elements of a switch, and where it is on the screen. */
interface SwitchShape {
	on: SVGElement;
	label: Box;
	box: Box;
}

/** CableShape has the elements of a cable. */
interface CableShape {
	on: SVGElement;
	hit: SVGElement;
	ab: SVGElement;
	ba: SVGElement;
	center: Point;
}

/** networkMap returns a map. */
export function networkMap(actions: Actions, signal: AbortSignal): NetworkMap {
	const layer = (name: string): SVGElement => svg("g", { class: name, "aria-hidden": true });
	const sites = layer("sites"), lines = svg("g"), hosts = layer("hosts"), nodes = svg("g"), names = layer("names"), words = layer("words");
	const layers = svg("g", {}, sites, lines, hosts, nodes, names, words);
	const picture = svg("svg", { class: "map", role: "group", tabindex: -1, "aria-label": "Map of the network. Arrow keys move between switches and cables, Enter shows details, Shift with an arrow key moves a switch." }, layers);
	const state = h("p", { class: "state", "aria-hidden": true });
	const tools = h("div", { class: "tools" },
		button("+", () => zoomBy(1.4)), button("−", () => zoomBy(1 / 1.4)), button("Fit", () => whole()), button("Arrange again", actions.arrange));
	["Zoom in", "Zoom out", "Show the whole network"].forEach((name, i) => set(tools.children[i]!, { "aria-label": name, title: name }));
	const on = h("div", { class: "mapbox" }, picture, tools, state);

	const switches = new Map<string, SwitchShape>(), cables = new Map<string, CableShape>();
	let scene: Scene | undefined;
	let view: View = { zoom: 1, x: 0, y: 0 }, touched = false;
	let size = { width: 0, height: 0 };
	let selected: Selection | undefined, pointed: Selection | undefined;
	const widthScale = (): number => Math.min(1, Math.max(0.35, view.zoom)); // lines are thinner in a network of which much is shown

	/** sync makes an element for each switch and cable, and sets what does not depend on the zoom. */
	const sync = (s: Scene): void => {
		const perSwitch = countBy(s.network.hosts.map((host) => host.at.switch)), cablesAt = countBy(s.cables.flatMap((c) => (c.removed === undefined ? [c.a.switch, c.b.switch] : [])));
		const faults = localFaults(s.network);
		const present = new Map(s.network.switches.map((one) => [one.id, one]));
		const ids = [...s.network.switches.map((one) => one.id), ...s.gone.map((g) => g.id)].filter((id) => s.places.has(id));
		keepOnly(switches, ids);
		for (const id of ids) {
			const one = present.get(id), name = s.names.of(id), problem = problemWords(one, faults.get(id) ?? []);
			let shape = switches.get(id);
			if (!shape) {
				shape = { on: svg("g", { class: "switch", role: "button", tabindex: -1, "data-switch": id }, svg("rect"), svg("text"), svg("g", { class: "mark" }, svg("circle", { r: 7 }), svg("text", {}, "!"))), label: { x: 0, y: 0, w: 0, h: 0 }, box: { x: 0, y: 0, w: 0, h: 0 } };
				switches.set(id, shape);
				nodes.append(shape.on);
			}
			const label = name.length > mostLetters ? `${name.slice(0, mostLetters - 1)}…` : name;
			text(shape.on.children[1]!, label);
			shape.label = { x: 0, y: 0, w: widthOf(label) / 2 + labelPadding, h: labelHeight };
			const kind = !one ? "gone" : one.error || faults.has(id) ? "problem" : one.current ? "" : "changing";
			set(shape.on, {
				"data-state": kind,
				"aria-label": [`Switch ${name}`, counted(cablesAt.get(id) ?? 0, "cable"), counted(perSwitch.get(id) ?? 0, "host"), one ? problem : "not connected"].filter(Boolean).join(", "),
			});
		}
		keepOnly(cables, s.cables.filter((c) => switches.has(c.a.switch) && switches.has(c.b.switch)).map((c) => c.key));
		for (const c of s.cables) {
			if (!switches.has(c.a.switch) || !switches.has(c.b.switch)) continue;
			let shape = cables.get(c.key);
			if (!shape) {
				const hit = svg("path", { class: "hit" }), ab = svg("path"), ba = svg("path");
				shape = { on: svg("g", { class: "cable", role: "button", tabindex: -1, "data-cable": c.key }, hit, ab, ba), hit, ab, ba, center: { x: 0, y: 0 } };
				cables.set(c.key, shape);
				lines.append(shape.on);
			}
			set(shape.on, {
				"data-state": c.removed !== undefined ? "gone" : c.fault || !c.ab || !c.ba ? "problem" : "",
				"aria-label": `Cable ${s.names.cable(c)}: ${s.names.cableState(c, Date.parse(s.network.at))}`,
			});
			set(shape.ab, { class: `load${loadClass(utilizationOf(c.ab))}` });
			set(shape.ba, { class: `load${loadClass(utilizationOf(c.ba))}` });
		}
		// One element of the map is reached by the Tab key, and the others from it by arrow keys.
		if (!picture.querySelector('[tabindex="0"]')) nodes.firstElementChild?.setAttribute("tabindex", "0");
	};

	/** draw places all elements at the zoom. */
	const draw = (): void => {
		const s = scene;
		if (!s || size.width === 0) return;
		const dots = new Map<string, Box>(), dotRadius = Math.min(mostDot, Math.max(leastDot, 12 * view.zoom));
		for (const [id, shape] of switches) {
			const p = s.places.get(id)!;
			shape.label.x = p.x * view.zoom;
			shape.label.y = p.y * view.zoom;
			dots.set(id, { ...shape.label, w: dotRadius, h: dotRadius });
		}
		// A label that would hide another switch is beside its dot if there is space: first those of what is selected, has a problem, or
		// has most cables.
		const space = new Space(), beside: SVGElement[] = [], sited = new Set(s.network.switches.filter((one) => one.site !== undefined).map((one) => one.id));
		for (const dot of dots.values()) space.take(dot);
		const weight = countBy(s.cables.flatMap((c) => [c.a.switch, c.b.switch]));
		const rank = (id: string, shape: SwitchShape): number => (isOn("switch", id) ? 1e6 : 0) + (shape.on.getAttribute("data-state") ? 1e4 : 0) + (weight.get(id) ?? 0);
		const order = [...switches].sort(([x, a], [y, b]) => rank(y, b) - rank(x, a) || (x < y ? -1 : 1));
		for (const [id, shape] of order) {
			const dot = dots.get(id)!, l = shape.label, labelled = space.first([{ ...l, w: l.w + 4, h: l.h + 4 }], dot) !== undefined;
			shape.box = labelled ? l : dot;
			const { x, y, w, h: half } = shape.box;
			set(shape.on, { transform: `translate(${x.toFixed(1)} ${y.toFixed(1)})`, class: classes("switch", !labelled && "dot", isOn("switch", id) && "on") });
			set(shape.on.children[0]!, { x: -w, y: -half, width: 2 * w, height: 2 * half, rx: labelled ? 6 : half });
			set(shape.on.children[2]!, { transform: `translate(${w} ${-half})` });
		}
		drawCables(s);
		const around = drawHosts(s, space, sited);
		const titles = drawSites(s, space, around);
		for (const [id, shape] of order) {
			if (shape.box === shape.label) continue;
			const dot = dots.get(id)!, w = shape.label.w - labelPadding, side = dotRadius + 4 + w;
			const at = space.first([{ ...dot, x: dot.x + side, w, h: 7 }, { ...dot, x: dot.x - side, w, h: 7 }, { ...dot, y: dot.y - 14, w, h: 7 }, { ...dot, y: dot.y + 14, w, h: 7 }], dot);
			if (at) beside.push(svg("text", { class: sited.has(id) ? "sited" : null, x: at.x.toFixed(1), y: (at.y + 4).toFixed(1) }, shape.on.children[1]!.textContent));
		}
		fill(names, beside, titles);
		drawWords(s);
	};

	const drawCables = (s: Scene): void => {
		const scale = widthScale();
		for (const c of s.cables) {
			const shape = cables.get(c.key);
			if (!shape) continue;
			const span = spanOf(switches.get(c.a.switch)!.box, switches.get(c.b.switch)!.box, c.lane, scale);
			const whole = line(span), dashed = shape.on.getAttribute("data-state") !== "";
			shape.center = middle(span);
			set(shape.hit, { d: whole });
			set(shape.on, { class: classes("cable", isOn("cable", c.key) && "on") });
			set(shape.ab, { d: dashed ? whole : arrow(span, false, widthOfLoad(utilizationOf(c.ab)), scale) });
			set(shape.ba, { d: dashed ? null : arrow(span, true, widthOfLoad(utilizationOf(c.ba)), scale) });
		}
	};

	/** drawHosts draws the hosts of each switch as dots, where it has no cables, or their number. It returns their boxes by switch. */
	const drawHosts = (s: Scene, space: Space, sited: Set<string>): Map<string, Box[]> => {
		const at = new Map<string, NetworkHost[]>(), directions = new Map<string, number[]>();
		for (const host of s.network.hosts) at.set(host.at.switch, [...(at.get(host.at.switch) ?? []), host]);
		for (const c of s.cables) {
			const a = switches.get(c.a.switch)?.box, b = switches.get(c.b.switch)?.box;
			if (!a || !b) continue;
			directions.set(c.a.switch, [...(directions.get(c.a.switch) ?? []), Math.atan2(b.y - a.y, b.x - a.x)]);
			directions.set(c.b.switch, [...(directions.get(c.b.switch) ?? []), Math.atan2(a.y - b.y, a.x - b.x)]);
		}
		const out: SVGElement[] = [], marks = new Map<string, Box[]>(), named: { box: Box; name: string; of: string }[] = [];
		const mark = (of: string, b: Box): void => {
			space.take(b);
			marks.set(of, [...(marks.get(of) ?? []), b]);
		};
		for (const [id, all] of at) {
			const shape = switches.get(id);
			if (!shape || shape.on.classList.contains("dot")) continue;
			const free = freeAngle(directions.get(id) ?? []), { x, y, w, h: half } = shape.box;
			const shown = all.length <= mostHosts && s.network.hosts.length <= mostHostsInAll ? all : [undefined];
			const between = Math.min(0.62, free.width / (shown.length + 1));
			shown.forEach((host, i) => {
				const turn = free.at + (i - (shown.length - 1) / 2) * between, cos = Math.cos(turn), sin = Math.sin(turn);
				const reach = host ? 1 : 0.9, p = { x: x + cos * (w + 20 * reach), y: y + sin * (half + 26 * reach) };
				out.push(svg("line", { x1: x, y1: y, x2: p.x.toFixed(1), y2: p.y.toFixed(1) }));
				if (!host) {
					const number = String(all.length), wide = widthOf(number) / 2 + 5;
					out.push(svg("g", { class: "count", transform: `translate(${p.x.toFixed(1)} ${p.y.toFixed(1)})` }, svg("rect", { x: -wide, y: -8, width: 2 * wide, height: 16, rx: 8 }), svg("text", {}, number)));
					mark(id, { ...p, w: wide, h: 9 });
					return;
				}
				out.push(svg("circle", { cx: p.x.toFixed(1), cy: p.y.toFixed(1), r: 3.5 }));
				mark(id, { ...p, w: 5, h: 5 });
				const name = hostName(host).slice(0, 24), wide = widthOf(name) * 0.85, side = cos >= -0.3 ? 1 : -1;
				const beside: Box = Math.abs(cos) < 0.3 && shown.length === 1 ? { x: p.x, y: p.y + Math.sign(sin) * 13, w: wide / 2, h: 7 } : { x: p.x + side * (8 + wide / 2), y: p.y, w: wide / 2, h: 7 };
				named.push({ box: beside, name, of: id });
			});
		}
		for (const n of named) {
			if (!space.free(n.box)) continue;
			mark(n.of, n.box);
			out.push(svg("text", { class: sited.has(n.of) ? "sited" : null, x: n.box.x.toFixed(1), y: (n.box.y + 4).toFixed(1) }, n.name));
		}
		fill(hosts, out);
		return marks;
	};

	/** drawSites draws an outline around the switches of each site, and returns their names. */
	const drawSites = (s: Scene, space: Space, around: Map<string, Box[]>): SVGElement[] => {
		const parents = new Map((s.network.sites ?? []).map((site) => [site.name, site.parent]));
		const depthOf = (name: string | undefined): number => (name === undefined ? 0 : 1 + depthOf(parents.get(name)));
		const within = (name: string | undefined, site: string): boolean => name !== undefined && (name === site || within(parents.get(name), site));
		const deepest = Math.max(0, ...[...parents.keys()].map(depthOf));
		const out: Element[] = [], titles: SVGElement[] = [];
		for (const site of [...parents.keys()].sort((a, b) => depthOf(a) - depthOf(b))) {
			const members = s.network.switches.flatMap((one) => (within(one.site, site) && switches.has(one.id) ? [switches.get(one.id)!.box, ...(around.get(one.id) ?? [])] : []));
			if (members.length === 0) continue;
			const margin = 24 * (deepest - depthOf(site)), w = widthOf(site) / 2 + 3;
			const d = outline(hull(members.flatMap((b) => corners(b, margin))));
			out.push(svg("g", { class: `site depth${Math.min(depthOf(site), 3)}` }, svg("path", { d, class: "edge" }), svg("path", { d })));
			// The name is within the outline, above or below one of its switches.
			const places = [-1, 1].flatMap((side) => members.toSorted((a, b) => side * (b.y + side * b.h - a.y - side * a.h)).map((b): Box => ({ x: b.x, y: b.y + side * (b.h + margin + 9), w, h: 7 })));
			const at = space.first(places);
			if (at) titles.push(svg("text", { class: "title sited", x: at.x.toFixed(1), y: (at.y + 4).toFixed(1) }, site));
		}
		fill(sites, out);
		return titles;
	};

	/** drawWords writes the utilization at the directions of what is pointed at, has the focus or is selected. */
	const drawWords = (s: Scene): void => {
		const out: SVGElement[] = [];
		for (const c of s.cables) {
			const shape = cables.get(c.key);
			if (!shape || c.removed !== undefined) continue;
			if (!isOn("cable", c.key) && !(pointed?.kind === "switch" && (c.a.switch === pointed.key || c.b.switch === pointed.key))) continue;
			const span = spanOf(switches.get(c.a.switch)!.box, switches.get(c.b.switch)!.box, c.lane, widthScale()), m = middle(span);
			for (const [l, end] of [[c.ab, span.from], [c.ba, span.to]] as const) {
				const part = utilizationOf(l);
				if (part !== undefined) out.push(svg("text", { x: ((end.x + m.x) / 2).toFixed(1), y: ((end.y + m.y) / 2 + 4).toFixed(1) }, showShare(part)));
			}
		}
		fill(words, out);
		const of = pointed ?? selected, shape = of && (of.kind === "switch" ? switches : cables).get(of.key);
		text(state, shape?.on.getAttribute("aria-label") ?? "");
		state.hidden = state.textContent === "";
	};

	const isOn = (kind: Selection["kind"], key: string): boolean => [selected, pointed].some((one) => one?.kind === kind && one.key === key);
	let pendingFrame = 0, stale = false;
	const later = (redraw = true): void => {
		stale ||= redraw;
		pendingFrame ||= requestAnimationFrame(() => {
			pendingFrame = 0;
			if (signal.aborted) return;
			set(layers, { transform: `translate(${view.x.toFixed(1)} ${view.y.toFixed(1)})` });
			if (stale) draw();
			stale = false;
		});
	};
	const look = (to: View): void => {
		const zoomed = to.zoom !== view.zoom;
		view = to;
		touched = true;
		later(zoomed);
	};
	const zoomBy = (by: number, at: Point = { x: size.width / 2, y: size.height / 2 }): void => look(zoomedAt(view, by, at, leastZoom, mostZoom));
	const whole = (): void => {
		touched = false;
		if (scene) view = fit([...switches.keys()].map((id) => scene!.places.get(id)!), size.width, size.height, { x: Math.min(150, size.width / 6), y: 95 }, fitZoom);
		later();
	};
	const resized = new ResizeObserver(() => {
		size = { width: picture.clientWidth, height: picture.clientHeight };
		if (!touched) whole();
	});
	resized.observe(on);
	signal.addEventListener("abort", () => resized.disconnect());
	handle(picture, {
		items: () => [...[...switches].map(([key, shape]) => ({ kind: "switch" as const, key, on: shape.on, ...point(shape.box) })), ...[...cables].map(([key, shape]) => ({ kind: "cable" as const, key, on: shape.on, ...shape.center }))],
		pan: (x, y) => look({ ...view, x: view.x + x, y: view.y + y }),
		zoom: zoomBy, whole, select: actions.select,
		point: (s) => {
			pointed = s;
			later();
		},
		move: (id, x, y, done) => {
			const p = scene?.places.get(id);
			if (!p) return;
			touched = true; // or the view would follow the switch
			const round = (n: number): number => (done ? Math.round(n) : n);
			const to: Place = { x: round(p.x + x / view.zoom), y: round(p.y + y / view.zoom), pinned: true };
			scene!.places.set(id, to);
			if (done) actions.move(id, to);
			later();
		},
	});
	return {
		on, fit: whole,
		show: (s) => {
			const more = !touched && (scene === undefined || [...s.places].some(([id, p]) => scene!.places.get(id)?.x !== p.x || scene!.places.get(id)?.y !== p.y));
			scene = s;
			sync(s);
			if (more) whole();
			else later();
		},
		select: (s, center = false) => {
			selected = s;
			const at = s && (s.kind === "switch" ? switches.get(s.key)?.box : cables.get(s.key)?.center);
			if (center && at) look({ ...view, x: size.width / 2 - at.x, y: size.height / 2 - at.y });
			later();
		},
	};
}

/** problemWords describes what is wrong with a switch, "" if nothing is. */
function problemWords(s: NetworkSwitch | undefined, faults: NetworkFault[]): string {
	return [s ? problemOf(s) : "", ...faults.map((f) => f.message)].filter(Boolean).join(", ");
}

const loadClass = (part: number | undefined): string => (part === undefined ? "none" : String(stepOf(part)));
const widthOfLoad = (part: number | undefined): number => (part === undefined ? unknownWidth : steps[stepOf(part)]!.width);
const classes = (...names: (string | false)[]): string => names.filter(Boolean).join(" ");
const point = ({ x, y }: Point): Point => ({ x, y });

/** keepOnly removes shapes whose keys are no longer there. */
function keepOnly(shapes: Map<string, { on: SVGElement }>, keys: string[]): void {
	const keep = new Set(keys);
	for (const [key, shape] of shapes) {
		if (keep.has(key)) continue;
		shape.on.remove();
		shapes.delete(key);
	}
}

/** widthOf returns the width of the text of a label, in px. */
function widthOf(words: string): number {
	let width = widths.get(words);
	if (width === undefined) {
		ruler ??= document.createElement("canvas").getContext("2d");
		if (ruler) ruler.font = "600 12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Noto Sans', sans-serif";
		widths.set(words, (width = ruler?.measureText(words).width ?? 7 * words.length));
	}
	return width;
}
const widths = new Map<string, number>();
let ruler: CanvasRenderingContext2D | null | undefined;
