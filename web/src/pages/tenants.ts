// Tenants page, and the page of one tenant: its groups, usage and tokens.
import { createToken, deleteTenant, deleteToken, getTenant, getUsage, listTenants, listTenantGroups, listTokens, putTenant, type Tenant, type TenantGroup, type Token, type Usage, type UsageList } from "../api.gen";
import { allPages, Problem } from "../call";
import { fill, h } from "../dom";
import { dialog } from "../edit";
import { navigate, path, route } from "../router";
import { isOperator, isTenantSession, mayChange, principal } from "../session";
import { button, confirmDialog, empty, errorText, field, notifyUndoable, runAction, table, title } from "../ui";
import { showBytes, showRate, showSeconds } from "../units";

route("/tenants", () => "Tenants", async (on, _, signal) => {
	const own = principal().tenant;
	if (own !== undefined) return tenant(on, own, signal);
	const list = await allPages((after) => listTenants({ after, limit: 1000 }));
	fill(on, title("Tenants", null, isOperator() && button("Add a tenant", () => form(undefined, ""), "primary")),
		list.length === 0 ? empty("No tenants.", "A tenant divides its own groups. To give a group to a tenant, edit the group on the interface page.")
			: h("section", {}, table("Tenants", [
				{ name: "Tenant", cell: (t) => h("a", { href: path("tenants", t.name ?? "") }, t.name) },
				{ name: "Description", cell: (t) => t.description ?? "–" },
				{ name: "Requests per second", cell: (t) => t.requests_per_second ?? "50", number: true },
			], list)));
});

route("/tenants/:", ([name]) => name ?? "", (on, [name], signal) => tenant(on, name ?? "", signal));

/** form opens the form that adds or edits a tenant. */
function form(before: Tenant | undefined, etag: string): void {
	const { on, close } = dialog(before ? `Edit ${before.name}` : "Add a tenant");
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off" });
	const about = h("input", { value: before?.description ?? null, maxlength: 1000 });
	const requests = h("input", { type: "number", min: 1, max: 10000, value: before?.requests_per_second ?? null });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, before ? "Save" : "Add");
	const f = h("form", {}, !before && field("Name", name), field("Description", about), field("Requests per second", requests, "Rate limit for all tokens of the tenant together, at each controller. Empty: 50."), error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void runAction(submit, async () => {
			const doc: Tenant = { ...(about.value ? { description: about.value } : {}), ...(requests.value ? { requests_per_second: Number(requests.value) } : {}) };
			const who = before?.name ?? name.value;
			let after = "";
			try {
				after = (await putTenant(who, doc, before ? { ifMatch: etag } : { key: crypto.randomUUID() })).etag;
			} catch (why) {
				fill(error, errorText(why));
				return;
			}
			close();
			notifyUndoable(before ? `Changed ${who}` : `Added ${who}`, async () => {
				if (before) await putTenant(who, before, { ifMatch: after });
				else await deleteTenant(who, { ifMatch: after });
			}, () => navigate(before ? path("tenants", who) : "/tenants"));
			navigate(path("tenants", who));
		});
	});
	fill(on, f);
	(before ? about : name).focus();
}

/** spans are the periods of the usage table. */
const spans: { name: string; hours: number }[] = [{ name: "Last hour", hours: 1 }, { name: "Last day", hours: 24 }, { name: "Last week", hours: 168 }];

/** tenant draws the page of one tenant. */
async function tenant(on: HTMLElement, name: string, signal: AbortSignal): Promise<void> {
	const { data: t, etag } = await getTenant(name);
	const usage = h("div"), tokens = h("div");
	const span = h("select", { "aria-label": "Period" }, spans.map((s) => h("option", { value: s.hours }, s.name)));
	const draw = async (): Promise<void> => {
		fill(usage, h("p", { class: "quiet", role: "status" }, "Loading usage from the hosts…"));
		const since = new Date(Date.now() - Number(span.value) * 3_600_000).toISOString();
		try {
			const { data } = await getUsage({ tenant: name, since });
			if (!signal.aborted) fill(usage, report(name, data));
		} catch (e) {
			fill(usage, h("p", { class: "error", role: "alert" }, errorText(e)), button("Try again", draw));
		}
	};
	span.addEventListener("change", () => void draw());
	const limits = h("div");
	fill(on, title(name, t.description,
		isOperator() && button("Edit", () => form(t, etag)),
		isOperator() && button("Remove", async () => {
			if (!(await confirmDialog(`Remove ${name}?`, h("p", {}, "A tenant that has groups or tokens cannot be removed."), "Remove", "danger"))) return;
			await deleteTenant(name, { ifMatch: etag });
			notifyUndoable(`Removed ${name}`, async () => void (await putTenant(name, t)), () => navigate(path("tenants", name)));
			navigate("/tenants");
		})),
		h("section", {}, h("h2", {}, "Groups"), limits),
		h("section", {}, h("div", { class: "head" }, h("h2", {}, "Usage"), span), usage),
		mayChange() && h("section", {}, h("h2", {}, "Tokens"), tokens));
	void draw();
	tenantLimits(limits, await allPages((after) => listTenantGroups(name, { after, limit: 1000 })), t);
	if (mayChange()) await tokensOf(tokens, name);
}

/** groupLink links to the group of a table row. */
const groupLink = (g: { host: string; dev: string; direction: string; group: string }): HTMLElement =>
	h("a", { href: `${path("hosts", g.host, g.dev)}?direction=${g.direction}` }, `${g.host} ${g.dev} ${g.direction} ${g.group}`);

/** tenantLimits shows the limits of a tenant: its groups, and its rate limit for requests. */
function tenantLimits(on: HTMLElement, groups: TenantGroup[], t: Tenant): void {
	fill(on, groups.length === 0 ? empty("No groups.", isTenantSession() ? "An operator creates groups for a tenant." : "Edit a group on an interface page, and set its tenant.")
		: table("Groups of the tenant", [
			{ name: "Group", cell: groupLink },
			{ name: "Guarantee", cell: (g) => showRate(g.guaranteed_bps), number: true },
			{ name: "Ceiling", cell: (g) => (g.ceiling_bps ? showRate(g.ceiling_bps) : "–"), number: true },
			{ name: "Unallocated", cell: (g) => showRate(g.unallocated_bps ?? 0), number: true, wide: true },
		], groups),
		h("p", { class: "quiet" }, `Rate limit: ${t.requests_per_second ?? 50} requests per second.`));
}

/** report shows the usage records of a tenant. */
function report(name: string, list: UsageList): HTMLElement[] {
	const out: HTMLElement[] = [];
	if ((list.missing ?? []).length > 0) out.push(h("p", { class: "error", role: "alert" }, `Usage is incomplete: no response from ${list.missing?.join(", ")}.`));
	if (list.items.length === 0) return [...out, empty("No usage records for this period.", "Records start with the minute in which the tenant gets a group.")];
	const unmet = list.items.reduce((sum, u) => sum + (u.unmet_seconds ?? 0), 0);
	out.push(h("p", {}, unmet === 0 ? "All guarantees were met." : h("strong", { class: "bad" }, `Guarantees were unmet for ${showSeconds(unmet)} in total.`)));
	const bytes = (n: number | undefined): string => showBytes(n ?? 0);
	out.push(table("Usage", [
		{ name: "Group", cell: groupLink },
		{ name: "Delivered", cell: (u) => bytes(u.delivered_bytes), number: true },
		{ name: "Guaranteed", cell: (u) => bytes(u.guaranteed_bytes), number: true, wide: true },
		{ name: "Borrowed", cell: (u) => bytes(u.borrowed_bytes), number: true, wide: true },
		{ name: "Lent", cell: (u) => bytes(u.lent_bytes), number: true, wide: true },
		{ name: "Drops", cell: (u) => u.drops ?? 0, number: true, wide: true },
		{ name: "Unmet", cell: (u) => ((u.unmet_seconds ?? 0) > 0 ? h("strong", { class: "bad" }, showSeconds(u.unmet_seconds ?? 0)) : "–"), number: true },
	], list.items));
	const save = h("a", { class: "button", download: `${name}.csv`, href: URL.createObjectURL(new Blob([csv(list.items)], { type: "text/csv" })) }, "Download CSV");
	return [...out, h("p", {}, save)];
}

const columns = ["host", "dev", "direction", "group", "tenant", "seconds", "offered_bytes", "delivered_bytes", "guaranteed_bytes", "borrowed_bytes", "lent_bytes", "drops", "marks", "unmet_seconds"] as const;

/** csv formats usage records by RFC 4180. Text that a spreadsheet would evaluate as a formula is escaped. */
export function csv(rows: Usage[]): string {
	const cell = (v: unknown): string => {
		const text = String(v ?? "");
		const plain = typeof v === "string" && /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
		return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
	};
	return [columns.join(","), ...rows.map((r) => columns.map((c) => cell(r[c])).join(","))].join("\r\n") + "\r\n";
}

/** tokensOf shows the tokens of a tenant. */
async function tokensOf(on: HTMLElement, tenant: string): Promise<void> {
	const draw = async (): Promise<void> => {
		const list = (await allPages((after) => listTokens({ after, limit: 1000 }))).filter((t) => t.tenant === tenant);
		fill(on, list.length === 0 ? h("p", { class: "quiet" }, "No tokens.") : table(`Tokens of ${tenant}`, [
			{ name: "Name", cell: (t) => t.name },
			{ name: "Role", cell: (t) => (t.role === "viewer" ? "viewer (read only)" : "tenant (read and write)") },
			{ name: "Expires", cell: (t) => h("time", { datetime: t.expires }, new Date(t.expires).toLocaleString()) },
			{ name: "Actions", cell: (t: Token) => button("Revoke", async () => {
				if (!(await confirmDialog(`Revoke ${t.name}?`, h("p", {}, "Clients that use the token lose access within seconds. This cannot be undone."), "Revoke", "danger"))) return;
				await deleteToken(t.id);
				await draw();
			}, "plain") },
		], list), button("Create a token", () => createTokenForm(tenant, draw)));
	};
	await draw();
}

/** createTokenForm opens the form that creates a token. */
function createTokenForm(tenant: string, done: () => Promise<void>): void {
	const { on, close } = dialog(`Create a token for ${tenant}`);
	const name = h("input", { required: true, pattern: "[A-Za-z0-9][A-Za-z0-9._\\-]{0,62}", autocomplete: "off" });
	const role = h("select", {}, h("option", { value: "tenant" }, "tenant (read and write)"), h("option", { value: "viewer" }, "viewer (read only)"));
	const lifetime = h("input", { value: "90d", pattern: "[1-9][0-9]{0,4}[mhd]", required: true });
	const error = h("p", { class: "error", role: "alert" }), submit = h("button", { type: "submit", class: "primary" }, "Create");
	const f = h("form", {}, field("Name", name), field("Role", role), field("Lifetime", lifetime, "Such as 12h or 90d."), error, h("div", { class: "actions" }, button("Cancel", close), submit));
	f.addEventListener("submit", (e) => {
		e.preventDefault();
		void runAction(submit, async () => {
			try {
				const { data } = await createToken({ name: name.value, role: role.value as "tenant" | "viewer", lifetime: lifetime.value, ...(isTenantSession() ? {} : { tenant }) }, { key: crypto.randomUUID() });
				const secret = h("input", { readonly: true, value: data.token, "aria-label": "Token" });
				fill(on, h("p", {}, "The token is shown only once. Store it securely."), secret, h("div", { class: "actions" }, button("Close", close, "primary")));
				secret.select();
				await done();
			} catch (why) {
				fill(error, why instanceof Problem ? errorText(why) : String(why));
			}
		});
	});
	fill(on, f);
	name.focus();
}
