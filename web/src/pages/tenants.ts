// Tenants: who they are, what they had, and their tokens.
import { createToken, deleteTenant, deleteToken, getTenant, getUsage, listTenants, listTenantGroups, listTokens, putTenant, type Tenant, type TenantGroup, type Token, type Usage, type UsageList } from "../api.gen";
import { all, Problem } from "../call";
import { fill, h } from "../dom";
import { dialog } from "../edit";
import { go, path, route } from "../router";
import { isOperator, isTenants, mayChange, me } from "../session";
import { ask, busy, button, empty, field, made, table, title, words } from "../ui";
import { rate, showBytes, showRate, showSeconds } from "../units";

route("/tenants", () => "Tenants", async (on, _, signal) => {
	const own = me().tenant;
	if (own !== undefined) return tenant(on, own, signal);
	const list = await all((after) => listTenants({ after, limit: 1000 }));
	fill(on, title("Tenants", null, isOperator() && button("Add a tenant", () => form(undefined, ""), "primary")),
		list.length === 0 ? empty("There are no tenants.", "A tenant divides what is in its groups by itself; a group is given to it on its interface's page.")
			: h("section", {}, table("Tenants", [
				{ name: "Tenant", cell: (t) => h("a", { href: path("tenants", t.name ?? "") }, t.name) },
				{ name: "About", cell: (t) => t.description ?? "–" },
				{ name: "Requests a second", cell: (t) => t.requests ?? "50", number: true },
			], list)));
});

route("/tenants/:", ([name]) => name ?? "", (on, [name], signal) => tenant(on, name ?? "", signal));

function form(before: Tenant | undefined, etag: string): void {
	const { on, close } = dialog(before ? `Change ${before.name}` : "Add a tenant");
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off" });
	const about = h("input", { value: before?.description ?? null, maxlength: 1000 });
	const requests = h("input", { type: "number", min: 1, max: 10000, value: before?.requests ?? null });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, before ? "Change" : "Add");
	const f = h("form", {}, !before && field("Name", name), field("About", about), field("Requests a second", requests, "What its tokens may ask together, of each controller; empty is 50."), error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void busy(submit, async () => {
			const doc: Tenant = { ...(about.value ? { description: about.value } : {}), ...(requests.value ? { requests: Number(requests.value) } : {}) };
			const who = before?.name ?? name.value;
			let after = "";
			try {
				after = (await putTenant(who, doc, before ? { ifMatch: etag } : { key: crypto.randomUUID() })).etag;
			} catch (why) {
				fill(error, words(why));
				return;
			}
			close();
			made(before ? `Changed ${who}` : `Added ${who}`, async () => {
				if (before) await putTenant(who, before, { ifMatch: after });
				else await deleteTenant(who, { ifMatch: after });
			}, () => go(before ? path("tenants", who) : "/tenants"));
			go(path("tenants", who));
		});
	});
	fill(on, f);
	(before ? about : name).focus();
}

const spans: { name: string; hours: number }[] = [{ name: "the last hour", hours: 1 }, { name: "the last day", hours: 24 }, { name: "the last week", hours: 168 }];

async function tenant(on: HTMLElement, name: string, signal: AbortSignal): Promise<void> {
	const { data: t, etag } = await getTenant(name);
	const usage = h("div"), tokens = h("div");
	const span = h("select", { "aria-label": "Time" }, spans.map((s) => h("option", { value: s.hours }, s.name)));
	const draw = async (): Promise<void> => {
		fill(usage, h("p", { class: "quiet", role: "status" }, "Asking the hosts…"));
		const since = new Date(Date.now() - Number(span.value) * 3_600_000).toISOString();
		try {
			const { data } = await getUsage({ tenant: name, since });
			if (!signal.aborted) fill(usage, report(name, data));
		} catch (e) {
			fill(usage, h("p", { class: "error", role: "alert" }, words(e)), button("Try again", draw));
		}
	};
	span.addEventListener("change", () => void draw());
	const limits = h("div");
	fill(on, title(name, t.description,
		isOperator() && button("Edit", () => form(t, etag)),
		isOperator() && button("Remove", async () => {
			if (!(await ask(`Remove ${name}?`, h("p", {}, "It is refused while it has groups or tokens."), "Remove", "danger"))) return;
			await deleteTenant(name, { ifMatch: etag });
			made(`Removed ${name}`, async () => void (await putTenant(name, t)), () => go(path("tenants", name)));
			go("/tenants");
		})),
		h("section", {}, h("h2", {}, "What it was given"), limits),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "What it had"), span), usage),
		mayChange() && h("section", {}, h("h2", {}, "Tokens"), tokens));
	void draw();
	given(limits, await all((after) => listTenantGroups(name, { after, limit: 1000 })), t);
	if (mayChange()) await tokensOf(tokens, name);
}

const place = (g: { host: string; dev: string; direction: string; group: string }): HTMLElement =>
	h("a", { href: `${path("hosts", g.host, g.dev)}?direction=${g.direction}` }, `${g.host} ${g.dev} ${g.direction} ${g.group}`);

// The limits of a tenant are those of its groups, and what it may ask of the service.
function given(on: HTMLElement, groups: TenantGroup[], t: Tenant): void {
	fill(on, groups.length === 0 ? empty("It has no groups.", isTenants() ? "An operator gives a tenant its groups." : "Give it one on an interface's page: edit the group, and write the tenant's name.")
		: table("Groups that it was given", [
			{ name: "Group", cell: place },
			{ name: "Guaranteed", cell: (g) => showRate(rate(g.rate)), number: true },
			{ name: "Never more than", cell: (g) => (g.most ? showRate(rate(g.most)) : "–"), number: true },
			{ name: "Not divided yet", cell: (g) => showRate(rate(g.free)), number: true, wide: true },
		], groups),
		h("p", { class: "quiet" }, `It may ask ${t.requests ?? 50} times a second.`));
}

function report(name: string, list: UsageList): HTMLElement[] {
	const out: HTMLElement[] = [];
	if ((list.missing ?? []).length > 0) out.push(h("p", { class: "error", role: "alert" }, `These hosts did not answer, and are left out: ${list.missing?.join(", ")}.`));
	if (list.items.length === 0) return [...out, empty("Its groups have no record of that time.", "A record begins with the minute in which a group becomes its own.")];
	const unmet = list.items.reduce((sum, u) => sum + (u.unmet_seconds ?? 0), 0);
	out.push(h("p", {}, unmet === 0 ? "All guarantees were met." : h("strong", { class: "bad" }, `Guarantees were not met for ${showSeconds(unmet)} in all.`)));
	const bytes = (n: number | undefined): string => showBytes(n ?? 0);
	out.push(table("Usage", [
		{ name: "Group", cell: place },
		{ name: "Delivered", cell: (u) => bytes(u.delivered_bytes), number: true },
		{ name: "Guaranteed", cell: (u) => bytes(u.guaranteed_bytes), number: true, wide: true },
		{ name: "Borrowed", cell: (u) => bytes(u.borrowed_bytes), number: true, wide: true },
		{ name: "Lent", cell: (u) => bytes(u.lent_bytes), number: true, wide: true },
		{ name: "Drops", cell: (u) => u.drops ?? 0, number: true, wide: true },
		{ name: "Not met", cell: (u) => ((u.unmet_seconds ?? 0) > 0 ? h("strong", { class: "bad" }, showSeconds(u.unmet_seconds ?? 0)) : "–"), number: true },
	], list.items));
	const save = h("a", { class: "button", download: `${name}.csv`, href: URL.createObjectURL(new Blob([csv(list.items)], { type: "text/csv" })) }, "Save as CSV");
	return [...out, h("p", {}, save)];
}

const columns = ["host", "dev", "direction", "group", "tenant", "seconds", "offered_bytes", "delivered_bytes", "guaranteed_bytes", "borrowed_bytes", "lent_bytes", "drops", "marks", "unmet_seconds"] as const;

/** csv is RFC 4180; what a spreadsheet would take for a formula is text. */
export function csv(rows: Usage[]): string {
	const cell = (v: unknown): string => {
		const text = String(v ?? "");
		const plain = typeof v === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
		return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
	};
	return [columns.join(","), ...rows.map((r) => columns.map((c) => cell(r[c])).join(","))].join("\r\n") + "\r\n";
}

async function tokensOf(on: HTMLElement, tenant: string): Promise<void> {
	const draw = async (): Promise<void> => {
		const list = (await all((after) => listTokens({ after, limit: 1000 }))).filter((t) => t.tenant === tenant);
		fill(on, list.length === 0 ? h("p", { class: "quiet" }, "None.") : table(`Tokens of ${tenant}`, [
			{ name: "Name", cell: (t) => t.name },
			{ name: "May", cell: (t) => (t.role === "viewer" ? "see" : "change") },
			{ name: "Good until", cell: (t) => h("time", { datetime: t.expires }, new Date(t.expires).toLocaleString()) },
			{ name: "Change", cell: (t: Token) => button("Take back", async () => {
				if (!(await ask(`Take ${t.name} back?`, h("p", {}, "Whoever uses it is out within seconds."), "Take back", "danger"))) return;
				await deleteToken(t.id);
				await draw();
			}, "plain") },
		], list), button("Make a token", () => make(tenant, draw)));
	};
	await draw();
}

function make(tenant: string, done: () => Promise<void>): void {
	const { on, close } = dialog(`A token of ${tenant}`);
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off" });
	const role = h("select", {}, h("option", { value: "tenant" }, "change what is in its groups"), h("option", { value: "viewer" }, "see"));
	const life = h("input", { value: "90d", pattern: "[1-9][0-9]{0,4}[mhd]", required: true });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, "Make it");
	const f = h("form", {}, field("Name", name), field("It may", role), field("Good for", life, "Such as 12h or 90d."), error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void busy(submit, async () => {
			try {
				const { data } = await createToken({ name: name.value, role: role.value as "tenant" | "viewer", life: life.value, ...(isTenants() ? {} : { tenant }) }, { key: crypto.randomUUID() });
				const secret = h("input", { readonly: true, value: data.token, "aria-label": "Token" });
				fill(on, h("p", {}, "It is shown once. Keep it where nobody else reads."), secret, h("div", { class: "actions" }, button("Close", close, "primary")));
				secret.select();
				await done();
			} catch (why) {
				fill(error, why instanceof Problem ? words(why) : String(why));
			}
		});
	});
	fill(on, f);
	name.focus();
}
