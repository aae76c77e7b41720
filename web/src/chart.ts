// Charts of rates and other values over time.
import uPlot from "uplot";
import { h } from "./dom";
import { showRate } from "./units";

/** Line describes one series of a chart. */
export interface Line {
	name: string;
	/** Stack the series on the stacked series before it, filled; else draw a separate line. */
	stacked?: boolean;
	dashed?: boolean;
	dotted?: boolean;
	/** Mark each value, and draw the line across times without one: for a few values with long times in between. */
	sparse?: boolean;
}

/** Chart is a chart in the document. */
export interface Chart {
	on: HTMLElement;
	/** setLines replaces the series. A series with the name of a former one keeps its values. */
	setLines: (lines: Line[]) => void;
	/** push appends one value to each series, or null, at a time in seconds. */
	push: (at: number, values: (number | null)[]) => void;
}

const maxPoints = 600; // points per series: five minutes at two per second

/** isBound reports whether a series is a bound, such as a limit or a guarantee. */
const isBound = (l: Line): boolean => Boolean(l.dashed || l.dotted);

/** colour returns the color of the series with the index n. */
function colour(n: number): string {
	return getComputedStyle(document.documentElement).getPropertyValue(`--line${n % 9}`).trim();
}

/** labels leaves out repeated labels: the ticks of a chart whose values are all 0 differ by less than is shown. */
const labels = (all: string[]): string[] => all.map((l, n) => (l === all[n - 1] ? "" : l));

/** chart returns a chart that is drawn until the signal is aborted. show formats its values. A height of 0 is that of its width. */
export function chart(about: string, signal: AbortSignal, show: (v: number) => string = showRate, height = 0): Chart {
	const on = h("div", { class: "chart", role: "img", "aria-label": about });
	const keys = h("ul", { class: "keys", "aria-hidden": true });
	const plot = h("div");
	on.append(plot, keys);
	// A group may have the name of a bound, such as "limit".
	const key = (l: Line): string => `${isBound(l)} ${l.name}`;
	let lines: Line[] = [];
	let data: (number | null)[][] = [[]];
	let drawn: uPlot | undefined;

	const build = (): void => {
		drawn?.destroy();
		const style = getComputedStyle(document.documentElement);
		const ink = style.getPropertyValue("--quiet").trim(), grid = style.getPropertyValue("--line").trim();
		const axis: uPlot.Axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, font: "12px system-ui, sans-serif" };
		const stacked = lines.flatMap((l, n) => (l.stacked ? [n + 1] : []));
		drawn = new uPlot({
			width: Math.max(plot.clientWidth, 200), height: height || (plot.clientWidth < 500 ? 220 : 320),
			padding: [null, 28, null, null], legend: { show: false }, cursor: { drag: { x: false, y: false } },
			// The time axis spans at least one minute, also while there are only a few seconds of data. It ends at the last value: for a
			// single one uPlot takes a maximum of years later.
			scales: { x: { range: (u, min, max) => { const last = u.data[0].at(-1) ?? max; return [Math.min(min, last - 60), last]; } }, y: { range: (_u, _min, max) => [0, Math.max(max * 1.05, 1e-9)] } },
			axes: [{ ...axis, space: 75, values: (_u, ticks) => ticks.map((t) => new Date(t * 1000).toLocaleTimeString([], { hour12: false })) }, { ...axis, size: 84, values: (_u, ticks) => labels(ticks.map(show)) }],
			series: [{}, ...lines.map((l, n): uPlot.Series => ({
				label: l.name, stroke: isBound(l) ? ink : colour(n), width: isBound(l) ? 1.5 : 1, points: { show: () => l.sparse || data[0]!.length === 1 }, spanGaps: l.sparse ?? false,
				...(isBound(l) ? { dash: l.dotted ? [2, 4] : [6, 4] } : {}),
				...(l.stacked && n + 1 === stacked[0] ? { fill: `${colour(n)}b3` } : {}),
			}))],
			bands: stacked.slice(1).map((s, n) => ({ series: [s, stacked[n]!] as [number, number], fill: `${colour(s - 1)}b3` })),
		}, summed() as uPlot.AlignedData, plot);
	};
	const summed = (): (number | null)[][] => {
		let below: number[] | undefined;
		return data.map((values, n) => {
			if (n === 0 || !lines[n - 1]?.stacked) return values;
			below = values.map((v, i) => (v ?? 0) + (below?.[i] ?? 0));
			return below;
		});
	};
	let pendingFrame = 0;
	const draw = (): void => {
		pendingFrame ||= requestAnimationFrame(() => {
			pendingFrame = 0;
			if (signal.aborted) return;
			if (drawn) drawn.setData(summed() as uPlot.AlignedData);
			else build();
		});
	};
	const rebuild = (): void => {
		drawn?.destroy();
		drawn = undefined;
		draw();
	};
	let width = 0;
	const resized = new ResizeObserver(() => {
		if (on.clientWidth === width) return;
		width = on.clientWidth;
		rebuild();
	});
	resized.observe(on);
	matchMedia("(prefers-color-scheme: dark)").addEventListener("change", rebuild, { signal });
	signal.addEventListener("abort", () => {
		resized.disconnect();
		drawn?.destroy();
	});
	return {
		on,
		setLines: (now) => {
			const had = new Map(lines.map((l, n) => [key(l), data[n + 1]!]));
			const times = now.some((l) => had.has(key(l))) ? data[0]! : [];
			lines = now;
			data = [times, ...now.map((l) => (times.length > 0 && had.get(key(l))) || times.map(() => null))];
			keys.replaceChildren(...now.map((l, n) => {
				const mark = h("i", { class: l.dotted ? "dashed dotted" : l.dashed ? "dashed" : null });
				mark.style.setProperty("--key", isBound(l) ? "var(--quiet)" : `var(--line${n % 9})`);
				return h("li", {}, mark, l.name);
			}));
			rebuild();
		},
		push: (at, values) => {
			data[0]!.push(at);
			values.forEach((v, n) => data[n + 1]!.push(v));
			if (data[0]!.length > maxPoints) for (const each of data) each.shift();
			on.setAttribute("aria-label", `${about}. Now: ${lines.flatMap((l, n) => values[n] === null ? [] : `${l.name} ${show(values[n] ?? 0)}`).join(", ")}`);
			draw();
		},
	};
}
