// Entry point of the dashboard: sign-in form, page header with navigation, and the current page.
import { onSignedOut } from "./call";
import { fill, h } from "./dom";
import * as live from "./live";
import { onNavigate, show } from "./router";
import { isTenantSession, principal, resume, signIn, signOut } from "./session";
import { button, errorText } from "./ui";
import "./pages/collectives";
import "./pages/events";
import "./pages/host";
import "./pages/interface";
import "./pages/network";
import "./pages/overview";
import "./pages/probes";
import "./pages/relays";
import "./pages/reservations";
import "./pages/tenants";

/** navigation has the entries of the navigation. Sessions of a tenant do not see entries with whole. */
const navigation: { path: string; name: string; whole?: boolean }[] = [
	{ path: "/", name: "Overview" },
	{ path: "/tenants", name: "Tenants" }, // a session of a tenant gets the page of that tenant
	{ path: "/collectives", name: "Collectives", whole: true }, // shows data of whole hosts
	{ path: "/relays", name: "Relays", whole: true },
	{ path: "/network", name: "Network", whole: true },
	{ path: "/reservations", name: "Reservations" }, // a session of a tenant gets its own
	{ path: "/probes", name: "Probes", whole: true },
	{ path: "/events", name: "Events" },
];

/** showError shows the error of a page that cannot be loaded. */
function showError(on: HTMLElement, why: unknown): void {
	fill(on, h("div", { class: "empty", role: "alert" }, h("h1", { tabindex: -1 }, "Cannot load this page"), h("p", {}, errorText(why)),
		h("p", {}, button("Try again", () => void dispatchEvent(new Event("headgate:moved"))), " ", h("a", { href: "/" }, "Overview"))));
}

/** layout shows the page header and the current page to a signed-in user. */
function layout(): void {
	const main = h("main", { id: "main" });
	const nav = h("nav", { "aria-label": "Pages" });
	const state = h("span", { class: "live", role: "status" });
	live.onState((is) => fill(state, { live: "Live", connecting: "Connecting…", stale: "Out of date: no connection to the controller", idle: "" }[is]));
	const { name, role, tenant } = principal();
	fill(document.body,
		h("a", { class: "skip", href: "#main" }, "Skip to content"),
		h("header", { class: "top" }, h("a", { href: "/", class: "brand" }, "Headgate"), nav, state,
			h("span", { class: "who" }, `${name}, ${tenant ? `${role} of ${tenant}` : role}`),
			button("Sign out", async () => {
				await signOut();
				live.stop();
				login();
			}, "plain")),
		main);
	const draw = (): void => {
		fill(nav, h("ul", {}, navigation.filter((p) => !p.whole || !isTenantSession()).map((p) => {
			const here = p.path === "/" ? location.pathname === "/" || location.pathname.startsWith("/hosts") : location.pathname.startsWith(p.path);
			return h("li", {}, h("a", { href: p.path, "aria-current": here ? "page" : null }, p.name));
		})));
		show(main, showError);
		// The focus moves to the heading, so that a screen reader continues on the new page.
		setTimeout(() => main.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true }), 0);
		scrollTo(0, 0);
	};
	redraw = draw;
	live.start();
	draw();
}

/** redraw redraws after the address has changed. It does nothing while the sign-in form is shown. */
let redraw = (): void => {};

/** login shows the sign-in form, with the reason if a session has ended. */
function login(why = ""): void {
	redraw = () => {};
	document.title = "Sign in · Headgate";
	const token = h("input", { id: "token", type: "password", autocomplete: "current-password", spellcheck: "false", required: true, "aria-describedby": "help" });
	const error = h("p", { class: "error", role: "alert" }, why);
	const submit = h("button", { type: "submit", class: "primary" }, "Sign in");
	const form = h("form", { class: "login" }, h("h1", {}, "Headgate"), h("label", { for: "token" }, "Token"), token,
		h("p", { id: "help", class: "help" }, "A bearer token, which begins with hg_. The first operator token is in operator.token in the controller's data directory. Operators create more with ", h("code", {}, "headgate token create"), "."), error, submit);
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		submit.disabled = true;
		fill(error);
		signIn(token.value)
			.then(layout, (e: unknown) => {
				fill(error, errorText(e));
				token.select();
			})
			.finally(() => (submit.disabled = false));
	});
	fill(document.body, h("main", { class: "alone" }, form));
	token.focus();
}

onSignedOut(() => {
	live.stop();
	login("Session expired or token revoked: sign in again.");
});
onNavigate(() => redraw());
resume()
	.then((is) => (is ? layout() : login()))
	.catch((e: unknown) => fill(document.body, h("main", { class: "alone", role: "alert" }, h("h1", {}, "Headgate"), h("p", {}, errorText(e)), button("Try again", () => location.reload()))));

