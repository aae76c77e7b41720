// Interfaces: which document configures a device.
import { getInterface, getRates, listInterfaces, type Interface } from "../api.gen";
import { allPages, Problem } from "../call";

/** Names has the names of a device: the kernel's name and the alternative names. */
export interface Names {
	name: string;
	altnames?: string[];
}

/** matches reports whether a name or pattern (Go's path.Match) matches one of a device's names. */
function matches(pattern: string, d: Names): boolean {
	const like = pattern.replace(/[.+^${}()|\\]/g, "\\$&").replaceAll("*", ".*").replaceAll("?", ".");
	try {
		const all = new RegExp(`^${like}$`);
		return [d.name, ...(d.altnames ?? [])].some((name) => pattern === name || all.test(name));
	} catch {
		return false;
	}
}

/** documentFor returns the name of the document that configures a device, by the agent's rules: the document with the device's name, then one with an alternative name, then the first with a matching pattern. */
export function documentFor(interfaces: Interface[], d: Names): string | undefined {
	const devs = interfaces.map((i) => i.dev ?? "");
	return devs.find((dev) => dev === d.name) ?? devs.find((dev) => d.altnames?.includes(dev)) ?? devs.find((dev) => matches(dev, d));
}

/** getDocument returns the document that configures a device. dev is the name of the document, or a name that the agent reports. */
export async function getDocument(host: string, dev: string): Promise<{ data: Interface; etag: string }> {
	try {
		return await getInterface(host, dev);
	} catch (e) {
		if (!(e instanceof Problem && e.status === 404)) throw e;
		const total = await getRates(host, { dev, group: ["-"] }).then(({ data }) => data.totals?.find((l) => l.dev === dev), () => undefined);
		const found = documentFor(await allPages((after) => listInterfaces(host, { after, limit: 1000 })), { name: dev, altnames: total?.altnames ?? [] });
		if (!found) throw e;
		return getInterface(host, found);
	}
}
