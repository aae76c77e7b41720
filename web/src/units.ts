// Quantities. In the API, configured quantities are text with a unit, and those that the service computes are numbers.
// The dashboard computes with numbers: rates in bit/s, sizes in bytes.

const steps: [string, number][] = [["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]];

/** rate parses a rate such as "1.5Gbit" into bit/s. It returns 0 for undefined and for invalid text. */
export function rate(s: string | undefined): number {
	const m = /^([0-9.]+)([TGMk]?)bit$/.exec(s ?? "");
	if (!m) return 0;
	return Number(m[1]) * (steps.find(([p]) => p === m[2])?.[1] ?? 1);
}

/** bytes parses a size such as "112.5kB" or "64KiB" into bytes. It returns 0 for undefined and for invalid text. */
export function bytes(s: string | undefined): number {
	const m = /^([0-9.]+)([TGMk]?)(i?)B$/i.exec(s ?? "");
	if (!m) return 0;
	const by = steps.findIndex(([p]) => p.toLowerCase() === m[2]?.toLowerCase());
	return Number(m[1]) * (by < 0 ? 1 : m[3] ? 1024 ** (steps.length - by) : steps[by]![1]);
}

/** rateText formats a rate in bit/s exactly, as in a configuration: "2.5Gbit". */
export function rateText(bps: number): string {
	const [prefix, by] = steps.find(([, by]) => bps >= by && bps % (by / 1000) === 0) ?? ["", 1];
	return `${bps / by}${prefix}bit`;
}

/** showRate formats a rate in bit/s with three digits: "1.25 Gbit/s". */
export function showRate(bps: number): string {
	const [prefix, by] = steps.find(([, by]) => bps >= by * 0.9995) ?? ["", 1];
	return `${digits(bps / by)} ${prefix}bit/s`;
}

/** showBytes formats a size in bytes, in powers of 1,000. */
export function showBytes(n: number): string {
	const [prefix, by] = steps.find(([, by]) => n >= by * 0.9995) ?? ["", 1];
	return `${digits(n / by)} ${prefix}B`;
}

/** showSeconds formats a duration in seconds as s, ms or µs. */
export function showSeconds(s: number): string {
	if (s >= 1) return `${digits(s)} s`;
	return s >= 1e-3 ? `${digits(s * 1e3)} ms` : `${digits(s * 1e6)} µs`;
}

/** showShare formats a fraction as a percentage. */
export function showShare(part: number): string {
	return `${digits(100 * part)} %`;
}

/** digits formats a number with three significant digits, and at most two decimals. */
export function digits(n: number): string {
	if (!Number.isFinite(n)) return "–";
	return n.toFixed(n >= 99.95 || n === 0 ? 0 : n >= 9.995 ? 1 : 2).replace(/\.0+$/, "");
}
