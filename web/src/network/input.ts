// Input on the map: pointer, wheel and keyboard.
import type { Point } from "./geometry";
import type { Selection } from "./map";

/** Item is a switch or a cable on the map, with its place on the screen. */
interface Item extends Selection, Point {
	on: SVGElement;
}

/** Handlers are what input does. */
interface Handlers {
	items: () => Item[];
	pan: (x: number, y: number) => void;
	zoom: (by: number, at?: Point) => void;
	whole: () => void;
	select: (s: Selection | undefined) => void;
	/** point tells what the pointer or the focus is at. */
	point: (s: Selection | undefined) => void;
	/** move moves a switch on the screen; done is the end of a movement. */
	move: (id: string, x: number, y: number, done: boolean) => void;
}

const clickDistance = 4; // px that a pointer may move during a click
const keyStep = 20; // px that a key moves a switch
const arrows: Record<string, [number, number]> = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

/** handle calls handlers for input on the map. */
export function handle(on: SVGElement, to: Handlers): void {
	pointers(on, to);
	on.addEventListener("wheel", (e) => {
		e.preventDefault();
		const box = on.getBoundingClientRect();
		to.zoom(Math.exp(-Math.max(-120, Math.min(120, e.deltaMode === 1 ? 30 * e.deltaY : e.deltaY)) / 400), { x: e.clientX - box.x, y: e.clientY - box.y });
	}, { passive: false });
	on.addEventListener("pointerover", (e) => to.point(of(e.target)));
	on.addEventListener("pointerleave", () => to.point(undefined));
	on.addEventListener("focusin", (e) => {
		const item = holder(e.target);
		if (!item) return;
		on.querySelector('[tabindex="0"]')?.setAttribute("tabindex", "-1");
		item.setAttribute("tabindex", "0");
		to.point(of(item));
	});
	on.addEventListener("focusout", () => to.point(undefined));
	on.addEventListener("keydown", (e) => {
		const at = of(e.target), arrow = arrows[e.key];
		if (e.ctrlKey || e.altKey || e.metaKey) return;
		if (e.key === "+" || e.key === "=") to.zoom(1.4);
		else if (e.key === "-") to.zoom(1 / 1.4);
		else if (e.key === "0") to.whole();
		else if (e.key === "Escape") to.select(undefined);
		else if (!at) return;
		else if (e.key === "Enter" || e.key === " ") to.select(at);
		else if (arrow && e.shiftKey && at.kind === "switch") to.move(at.key, keyStep * arrow[0], keyStep * arrow[1], true);
		else if (arrow) nearest(to.items(), at, arrow)?.on.focus();
		else return;
		e.preventDefault();
	});
}

/** pointers handles drags, clicks and pinches. */
function pointers(on: SVGElement, to: Handlers): void {
	const down = new Map<number, Point>();
	let grabbed: Selection | undefined, far = 0;
	on.addEventListener("pointerdown", (e) => {
		if (e.button !== 0) return;
		on.setPointerCapture(e.pointerId);
		if (down.size === 0) [grabbed, far] = [of(e.target), 0];
		down.set(e.pointerId, { x: e.clientX, y: e.clientY });
	});
	on.addEventListener("pointermove", (e) => {
		const last = down.get(e.pointerId);
		if (!last) return;
		const x = e.clientX - last.x, y = e.clientY - last.y;
		const other = [...down].find(([id]) => id !== e.pointerId)?.[1];
		if (other) {
			const box = on.getBoundingClientRect(), before = Math.hypot(last.x - other.x, last.y - other.y);
			to.zoom(Math.hypot(e.clientX - other.x, e.clientY - other.y) / Math.max(before, 1), { x: (e.clientX + other.x) / 2 - box.x, y: (e.clientY + other.y) / 2 - box.y });
			far = Infinity;
		} else {
			far += Math.hypot(x, y);
			if (far < clickDistance) return; // it may be a click: the distance is made up with the next movement
			if (grabbed?.kind === "switch") to.move(grabbed.key, x, y, false);
			else to.pan(x, y);
			on.classList.add("moving");
		}
		down.set(e.pointerId, { x: e.clientX, y: e.clientY });
	});
	const up = (e: PointerEvent): void => {
		if (!down.delete(e.pointerId) || down.size > 0) return;
		on.classList.remove("moving");
		if (far >= clickDistance) {
			if (grabbed?.kind === "switch") to.move(grabbed.key, 0, 0, true);
		} else if (e.type === "pointerup") {
			to.select(grabbed);
		}
	};
	on.addEventListener("pointerup", up);
	on.addEventListener("pointercancel", up);
}

/** nearest returns the item that is nearest in a direction, preferably straight ahead. */
function nearest(items: Item[], at: Selection, [dx, dy]: [number, number]): Item | undefined {
	const from = items.find((i) => i.kind === at.kind && i.key === at.key);
	let best: Item | undefined, least = Infinity;
	for (const i of items) {
		if (!from || i === from) continue;
		const x = i.x - from.x, y = i.y - from.y, ahead = x * dx + y * dy, aside = Math.abs(x * dy) + Math.abs(y * dx);
		const far = ahead + 2 * aside;
		if (ahead > 1 && aside < 2 * ahead && far < least) [best, least] = [i, far];
	}
	return best;
}

/** holder returns the element of the switch or cable that an element is a part of. */
const holder = (target: EventTarget | null): Element | null => (target instanceof Element ? target.closest("[data-switch], [data-cable]") : null);

/** of returns the switch or cable that an element is a part of. */
function of(target: EventTarget | null): Selection | undefined {
	const on = holder(target), id = on?.getAttribute("data-switch"), key = on?.getAttribute("data-cable");
	return id ? { kind: "switch", key: id } : key ? { kind: "cable", key } : undefined;
}
