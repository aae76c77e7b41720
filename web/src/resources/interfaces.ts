// Interfaces: which document divides a device.
import { getInterface, listInterfaces, type Interface } from "../api.gen";
import { all, Problem } from "../call";

/** takes tells whether a device is of a name or pattern (path.Match). */
export function takes(pattern: string, dev: string): boolean {
	const like = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
	try {
		return pattern === dev || new RegExp(`^${like}$`).test(dev);
	} catch {
		return false;
	}
}

/** documentOf is what divides a device, as its agent finds it: what names it, or the first pattern that takes it in. */
export async function documentOf(host: string, dev: string): Promise<{ data: Interface; etag: string }> {
	try {
		return await getInterface(host, dev);
	} catch (e) {
		if (!(e instanceof Problem && e.status === 404)) throw e;
		const pattern = (await all((after) => listInterfaces(host, { after, limit: 1000 }))).find((i) => takes(i.dev ?? "", dev));
		if (!pattern?.dev) throw e;
		return getInterface(host, pattern.dev);
	}
}
