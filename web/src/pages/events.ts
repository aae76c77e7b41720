// Who changed what, the newest first.
import { listAudit, type AuditEntry, type AuditList } from "../api.gen";
import { fill, h } from "../dom";
import { look } from "../live";
import { route } from "../router";
import { button, empty, table, title } from "../ui";

const page = 100;

route("/events", () => "Events", async (on, _, signal) => {
	const list = h("div"), filter = h("input", { type: "search", placeholder: "Name, path or person", "aria-label": "Show events that have" });
	let newest: AuditEntry[] = [], older: AuditEntry[] = [];
	let next: string | undefined;
	const draw = (): void => {
		const words = filter.value.trim().toLowerCase();
		const all = [...newest, ...older.filter((o) => !newest.some((n) => n.id === o.id))];
		const found = all.filter((e) => `${e.what} ${e.by}`.toLowerCase().includes(words));
		fill(list, found.length === 0
			? empty(all.length === 0 ? "Nobody has changed anything yet." : "None of these has that.", "Every change that is made through the service is here, whoever makes it.")
			: table("Changes", [
				{ name: "When", cell: (e) => [h("time", { datetime: e.at }, new Date(e.at).toLocaleString()), h("span", { class: "narrow quiet" }, ` ${who(e)}`)] },
				{ name: "Who", cell: who, wide: true },
				{ name: "What", cell: (e) => h("code", {}, decoded(e.what)) },
				{ name: "Answer", cell: (e) => h("span", { class: (e.status ?? 0) < 400 ? "state good" : "state bad" }, e.status ?? "–"), number: true },
			], found),
			next && button("Older", async () => {
				const { data } = await listAudit({ before: next, limit: page });
				older = [...older, ...data.items];
				next = data.next;
				draw();
			}));
	};
	filter.addEventListener("input", draw);
	fill(on, title("Events", "Changes, and who made them"), h("section", {}, h("div", { class: "head" }, filter), list));
	look(`/v1/audit?limit=${page}`, (data, status) => {
		if (status !== 200) return;
		const l = data as AuditList;
		// What is not among the newest any more is still shown.
		if (older.length > 0 || newest.length > 0) older = [...newest.filter((n) => !l.items.some((i) => i.id === n.id)), ...older];
		else next = l.next;
		newest = l.items;
		draw();
	}, signal);
});

function who(e: AuditEntry): string {
	return `${e.by}${e.role ? `, ${e.role}` : ""}`;
}

function decoded(what: string): string {
	try {
		return decodeURIComponent(what);
	} catch {
		return what;
	}
}
