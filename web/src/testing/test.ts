// Tests of modules, which web_test.go bundles and runs in a browser: each file *.test.ts registers its tests here.

const all: { name: string; run: () => void }[] = [];

/** test registers a test, which fails if it throws. */
export function test(name: string, run: () => void): void {
	all.push({ name, run });
}

/** equal throws unless two values have the same JSON. */
export function equal(got: unknown, want: unknown, what = ""): void {
	const [a, b] = [got, want].map((v) => JSON.stringify(v) ?? "undefined");
	if (a !== b) throw new Error(`${what && `${what}: `}got ${a}, want ${b}`);
}

/** check throws unless a condition is true. */
export function check(is: boolean, what: string): void {
	if (!is) throw new Error(what);
}

/** random returns a source of the same numbers from 0 to 1 in each run, for a seed. */
export function random(seed: number): () => number {
	let n = seed;
	return () => (n = (Math.imul(n, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}

/** results runs all tests, and returns their names with what failed, "" if nothing did. */
export function results(): { name: string; failure: string }[] {
	return all.map(({ name, run }) => {
		try {
			run();
			return { name, failure: "" };
		} catch (e) {
			return { name, failure: e instanceof Error ? (e.stack ?? e.message) : String(e) };
		}
	});
}
