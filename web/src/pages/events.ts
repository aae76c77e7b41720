// Events page: the audit log, newest entries first.
import { listAudit, type AuditEntry, type AuditList } from "../api.gen";
import { fill, h } from "../dom";
import { subscribe } from "../live";
import { route } from "../router";
import { button, empty, table, title } from "../ui";

const page = 100;
/** firstFields is how many fields of a change are shown at first. */
const firstFields = 4;

route("/events", () => "Events", async (on, _, signal) => {
	const list = h("div"), filter = h("input", { type: "search", placeholder: "Filter by path or actor", "aria-label": "Filter events" });
	let newest: AuditEntry[] = [], older: AuditEntry[] = [];
	let next: string | undefined;
	const draw = (): void => {
		const words = filter.value.trim().toLowerCase();
		const all = [...newest, ...older.filter((o) => !newest.some((n) => n.id === o.id))];
		const found = all.filter((e) => `${e.request} ${e.principal}`.toLowerCase().includes(words));
		fill(list, found.length === 0
			? empty(all.length === 0 ? "No changes yet." : "No matching events.", "The audit log has all changes made through the service.")
			: table("Changes", [
				{ name: "Time", cell: (e) => [h("time", { datetime: e.at }, new Date(e.at).toLocaleString()), h("span", { class: "narrow quiet" }, ` ${actor(e)}`)] },
				{ name: "Actor", cell: actor, wide: true },
				{ name: "Action", cell: (e) => [h("code", {}, decoded(e.request)), values(e)] },
				{ name: "Status", cell: (e) => h("span", { class: (e.status ?? 0) < 400 ? "state good" : "state bad" }, e.status ?? "–"), number: true },
			], found),
			next && button("Load older events", async () => {
				const { data } = await listAudit({ before: next, limit: page });
				older = [...older, ...data.items];
				next = data.next;
				draw();
			}));
	};
	filter.addEventListener("input", draw);
	fill(on, title("Events", "Audit log: who changed what, and when"), h("section", {}, h("div", { class: "head" }, filter), list));
	subscribe(`/v1/audit?limit=${page}`, (data, status) => {
		if (status !== 200) return;
		const l = data as AuditList;
		// Entries that are no longer among the newest stay in the list.
		if (older.length > 0 || newest.length > 0) older = [...newest.filter((n) => !l.items.some((i) => i.id === n.id)), ...older];
		else next = l.next;
		newest = l.items;
		draw();
	}, signal);
});

/** actor returns the principal of an entry, with the role. */
function actor(e: AuditEntry): string {
	return `${e.principal}${e.role ? `, ${e.role}` : ""}`;
}

/** values returns the fields that a change has changed, with their values. */
function values(e: AuditEntry): HTMLElement | null {
	if (!e.differences) return null;
	const items = e.differences.map((d) => h("li", {}, `${d.field}: `, h("code", {}, d.before ?? "–"), " → ", h("code", {}, d.after ?? "–")));
	const more = e.more_differences ?? 0, rest = items.slice(firstFields);
	if (more > 0) rest.push(h("li", {}, `${more} more fields`));
	return h("div", { class: "values" }, h("ul", {}, items.slice(0, firstFields)),
		rest.length > 0 && h("details", {}, h("summary", {}, `${items.length - firstFields + more} more`), h("ul", {}, rest)));
}

/** decoded returns a request with its path percent-decoded, or unchanged if the encoding is invalid. */
function decoded(request: string): string {
	try {
		return decodeURIComponent(request);
	} catch {
		return request;
	}
}
