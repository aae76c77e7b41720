// Times and durations of reservations. Times are in ms since 1970, and are shown in the time zone of the browser.

const second = 1000, minute = 60 * second;
export const hour = 60 * minute, day = 24 * hour;

const units: Record<string, number> = { ms: 1, s: second, m: minute, h: hour };

/** parseLength parses a duration of the API, such as "1h30m", into ms. It returns 0 for text that is none. */
export function parseLength(text: string | undefined): number {
	if (!/^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/.test(text ?? "")) return 0;
	return [...(text ?? "").matchAll(/([0-9.]+)(ms|s|m|h)/g)].reduce((sum, m) => sum + Number(m[1]) * units[m[2]!]!, 0);
}

/** formatLength formats a duration for the API, in whole seconds: "1h30m". */
export function formatLength(ms: number): string {
	const h = Math.floor(ms / hour), m = Math.floor((ms % hour) / minute), s = Math.round((ms % minute) / second);
	return [h > 0 && `${h}h`, m > 0 && `${m}m`, s > 0 && `${s}s`].filter(Boolean).join("") || "0s";
}

/** showLength formats a duration for people, with the two greatest units: "1 d 6 h". */
export function showLength(ms: number): string {
	const parts = [[Math.floor(ms / day), "d"], [Math.floor((ms % day) / hour), "h"], [Math.floor((ms % hour) / minute), "min"], [Math.round((ms % minute) / second), "s"]] as const;
	const first = parts.findIndex(([n]) => n > 0);
	return first < 0 ? "0 s" : parts.slice(first, first + 2).filter(([n]) => n > 0).map(([n, unit]) => `${n} ${unit}`).join(" ");
}

/** showTime formats a time: "Nov 28, 14:05". The year is added if it is not the present one. */
export function showTime(at: number): string {
	const d = new Date(at), other = d.getFullYear() !== new Date().getFullYear();
	return d.toLocaleString("en", { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23", ...(other ? { year: "numeric" } : {}) });
}

/** localInput formats a time for an input of type datetime-local. */
export function localInput(at: number): string {
	return new Date(at - new Date(at).getTimezoneOffset() * minute).toISOString().slice(0, 16);
}

const tickSteps = [5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880]; // minutes

/** ticks returns at most so many round times of the browser's clock between two times, with their text. */
export function ticks(from: number, to: number, most: number): { at: number; name: string }[] {
	const step = tickSteps.find((m) => (to - from) / (m * minute) <= most) ?? tickSteps.at(-1)!;
	const d = new Date(from), out = new Map<number, string>();
	for (let n = 0; ; n++) {
		// The constructor counts minutes of the wall clock, so that midnight stays midnight when the clock changes.
		const t = new Date(d.getFullYear(), d.getMonth(), d.getDate(), 0, n * step);
		if (t.getTime() > to) break;
		const midnight = t.getHours() === 0 && t.getMinutes() === 0;
		if (t.getTime() >= from) {
			out.set(t.getTime(), midnight ? t.toLocaleDateString("en", { month: "short", day: "numeric" }) : t.toLocaleTimeString("en", { hour: "2-digit", minute: "2-digit", hourCycle: "h23" }));
		}
	}
	return [...out].map(([at, name]) => ({ at, name }));
}
