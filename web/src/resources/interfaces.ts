// Interfaces: which document divides a device.
import { getInterface, getRates, listInterfaces, type Interface } from "../api.gen";
import { all, Problem } from "../call";

/** Names are a device's: the kernel's, and alternative ones. */
export interface Names {
	name: string;
	altnames?: string[];
}

/** takes tells whether a device is of a name or pattern (path.Match). */
function takes(pattern: string, d: Names): boolean {
	const like = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
	try {
		const all = new RegExp(`^${like}$`);
		return [d.name, ...(d.altnames ?? [])].some((name) => pattern === name || all.test(name));
	} catch {
		return false;
	}
}

/** dividing is what divides a device, as its agent finds it: what names it, or the first pattern that takes it in. */
export function dividing(interfaces: Interface[], d: Names): string | undefined {
	const devs = interfaces.map((i) => i.dev ?? "");
	return devs.find((dev) => dev === d.name) ?? devs.find((dev) => d.altnames?.includes(dev)) ?? devs.find((dev) => takes(dev, d));
}

/** documentOf is what divides a device, which is called so by its agent or by the service. */
export async function documentOf(host: string, dev: string): Promise<{ data: Interface; etag: string }> {
	try {
		return await getInterface(host, dev);
	} catch (e) {
		if (!(e instanceof Problem && e.status === 404)) throw e;
		const carries = await getRates(host, { dev, group: ["-"] }).then(({ data }) => data.totals?.find((l) => l.dev === dev), () => undefined);
		const found = dividing(await all((after) => listInterfaces(host, { after, limit: 1000 })), { name: dev, altnames: carries?.altnames ?? [] });
		if (!found) throw e;
		return getInterface(host, found);
	}
}
