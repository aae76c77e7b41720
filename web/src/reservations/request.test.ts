import type { Reservation } from "../api.gen";
import { check, equal, test } from "../testing/test";
import { describe, describeRequest, endText, parseEnd, pathText } from "./request";

const idOf = (name: string): string => (name === "s1" ? "0000000000000001" : name);

test("request: an end is read as the command reads it", () => {
	for (const [text, want] of [
		["h1", { host: "h1" }], ["10.0.0.1", { host: "10.0.0.1" }], ["10.1.0.0/16", { prefix: "10.1.0.0/16" }], ["site:north", { site: "north" }], ["vlan:7", { vlan: 7 }],
		["10.1.0.0/16@s1/3", { prefix: "10.1.0.0/16", at: { switch: "0000000000000001", port: 3 } }],
	] as const) {
		equal(parseEnd(text, idOf), want, text);
		equal(endText(parseEnd(text, idOf)), text.replace(/@.*/, ""), text);
	}
	for (const text of ["h1@s1", "h1@s1/0", "vlan:x"]) {
		let failed = "";
		try {
			parseEnd(text, idOf);
		} catch (e) {
			failed = String(e);
		}
		check(failed.includes("write"), `${text}: ${failed}`);
	}
});

test("request: texts have the rates, the times and the paths", () => {
	const r: Reservation = {
		owner: "shop", name: "backup", state: "degraded", degraded: "link s1/1 is down", request: { from: { host: "h1" }, to: { host: "h2" }, class: 2 }, start: "2026-05-01T12:00:00Z", end: "2026-05-01T14:00:00Z",
		rate_bps: 2e8, back_bps: 1e7, reserved_bps: 0, reserved_back_bps: 0, paths: [], generation: 1, created: "", changed: "",
	};
	const text = describe(r);
	for (const part of ["shop/backup: degraded, class 2, 200 Mbit/s, 10 Mbit/s back from h1 to h2", "link s1/1 is down"]) check(text.includes(part), text);
	equal(describeRequest({ from: {}, to: {}, rate: "120Mbit", duration: "90m" }), "120 Mbit/s for 1 h 30 min, from now");
	const links = [{ from: { switch: "1", port: 2 }, to: { switch: "2", port: 1 } }, { from: { switch: "2", port: 3 }, to: { switch: "3", port: 1 } }];
	equal(pathText({ links, rate_bps: 1, back_bps: 0, spare: false }, (id) => `s${id}`), "s1/2 s2/3 s3");
});
