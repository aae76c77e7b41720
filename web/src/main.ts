// The dashboard: who is signed in, what there is, and the page that is shown.
import { onSignedOut } from "./call";
import { fill, h } from "./dom";
import * as live from "./live";
import { follow, show } from "./router";
import { isTenants, me, resume, signIn, signOut } from "./session";
import { button, words } from "./ui";
import "./pages/collectives";
import "./pages/events";
import "./pages/host";
import "./pages/interface";
import "./pages/overview";
import "./pages/probes";
import "./pages/tenants";

const places: { path: string; name: string; whole?: boolean }[] = [
	{ path: "/", name: "Overview" },
	{ path: "/tenants", name: "Tenants" }, // to a tenant itself
	{ path: "/collectives", name: "Collectives", whole: true }, // of whole hosts
	{ path: "/probes", name: "Probes", whole: true },
	{ path: "/events", name: "Events" },
];

function failed(on: HTMLElement, why: unknown): void {
	fill(on, h("div", { class: "empty", role: "alert" }, h("h1", { tabindex: -1 }, "This page cannot be shown"), h("p", {}, words(why)),
		h("p", {}, button("Try again", () => void dispatchEvent(new Event("headgate:moved"))), " ", h("a", { href: "/" }, "Overview"))));
}

function shell(): void {
	const main = h("main", { id: "main" });
	const nav = h("nav", { "aria-label": "Pages" });
	const state = h("span", { class: "live", role: "status" });
	live.onState((is) => fill(state, { live: "Live", connecting: "Connecting…", still: "" }[is]));
	const { name, role, tenant } = me();
	fill(document.body,
		h("a", { class: "skip", href: "#main" }, "Skip to the page"),
		h("header", { class: "top" }, h("a", { href: "/", class: "brand" }, "Headgate"), nav, state,
			h("span", { class: "who" }, `${name}, ${tenant ? `${role} of ${tenant}` : role}`),
			button("Sign out", async () => {
				await signOut();
				live.stop();
				login();
			}, "plain")),
		main);
	const draw = (): void => {
		fill(nav, h("ul", {}, places.filter((p) => !p.whole || !isTenants()).map((p) => {
			const here = p.path === "/" ? location.pathname === "/" || location.pathname.startsWith("/hosts") : location.pathname.startsWith(p.path);
			return h("li", {}, h("a", { href: p.path, "aria-current": here ? "page" : null }, p.name));
		})));
		show(main, failed);
		// A screen reader goes on with the new page.
		setTimeout(() => main.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true }), 0);
		scrollTo(0, 0);
	};
	moved = draw;
	live.start();
	draw();
}

let moved = (): void => {};

function login(why = ""): void {
	moved = () => {};
	document.title = "Sign in · Headgate";
	const token = h("input", { id: "token", type: "password", autocomplete: "current-password", spellcheck: "false", required: true, "aria-describedby": "help" });
	const error = h("p", { class: "error", role: "alert" }, why);
	const submit = h("button", { type: "submit", class: "primary" }, "Sign in");
	const form = h("form", { class: "login" }, h("h1", {}, "Headgate"), h("label", { for: "token" }, "Token"), token,
		h("p", { id: "help", class: "help" }, "Begins with hg_. The first operator's is in operator.token in the controller's folder; operators make others with ", h("code", {}, "headgate token create"), "."), error, submit);
	form.addEventListener("submit", (e) => {
		e.preventDefault();
		submit.disabled = true;
		fill(error);
		signIn(token.value)
			.then(shell, (e: unknown) => {
				fill(error, words(e));
				token.select();
			})
			.finally(() => (submit.disabled = false));
	});
	fill(document.body, h("main", { class: "alone" }, form));
	token.focus();
}

onSignedOut(() => {
	live.stop();
	login("The session has ended: sign in again.");
});
follow(() => moved());
resume()
	.then((is) => (is ? shell() : login()))
	.catch((e: unknown) => fill(document.body, h("main", { class: "alone", role: "alert" }, h("h1", {}, "Headgate"), h("p", {}, words(e)), button("Try again", () => location.reload()))));

