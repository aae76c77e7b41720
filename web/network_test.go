package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"headgate.dev/headgate/internal/browser/browsertest"
)

// page is a browser with the page of the network of a service.
type page struct {
	browsertest.Page
	*service
}

// openNetwork opens the page of the network, signed in.
func openNetwork(t *testing.T, s *service) page {
	t.Helper()
	return openPage(t, s, "/network")
}

// openPage opens a page, signed in.
func openPage(t *testing.T, s *service, path string) page {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a browser: not with -short")
	}
	p := page{browsertest.Open(t, s.URL), s}
	p.Take("sign in", chromedp.Navigate(s.URL+path), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", "hg_test\r"), chromedp.WaitVisible("main h1"))
	return p
}

// value returns the value of a script.
func value[T any](p page, script string) T { return browsertest.Value[T](p.Page, script) }

// has waits until the page has a text.
func (p page) has(text string) {
	p.T.Helper()
	p.Until(text, fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, text))
}

// press clicks a button by its name.
func (p page) press(name string) {
	p.T.Helper()
	p.Until(name, fmt.Sprintf(`(() => {
		const b = [...document.querySelectorAll("button")].find((b) => (b.getAttribute("aria-label") ?? b.innerText) === %q);
		b?.click();
		return b !== undefined;
	})()`, name))
}

// point is a point of the window.
type point struct{ X, Y float64 }

// center returns the middle of an element.
func (p page) center(selector string) point {
	p.T.Helper()
	return value[point](p, fmt.Sprintf(`(() => {
		const r = document.querySelector(%q).getBoundingClientRect();
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2};
	})()`, selector))
}

// mouse sends an event of the mouse's left button.
func (p page) mouse(kind input.DispatchMouseEventType, at point) {
	p.T.Helper()
	_, err := chromedp.Call(p.Context(), input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: at.X, Y: at.Y, Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
	if err != nil {
		p.T.Fatal(err)
	}
}

// drawn waits until what has changed is drawn.
const drawn = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))`

// places returns where the switches are in the window's map, by datapath id, with the whole network in view.
func (p page) places() map[string]string {
	p.T.Helper()
	p.press("Show the whole network")
	value[bool](p, drawn)
	return value[map[string]string](p, `Object.fromEntries([...document.querySelectorAll(".switch")].map((s) => [s.dataset.switch, s.getAttribute("transform") + s.closest("svg > g").getAttribute("transform")]))`)
}

// id returns a datapath id.
func id(n int) string { return fmt.Sprintf("%016x", n) }

// cable returns the selector of a cable of two ports, the lesser first.
func cable(a int, port int, b int, other int) string {
	return fmt.Sprintf(`.cable[data-cable="%s/%d %s/%d"]`, id(a), port, id(b), other)
}

// The map shows each switch and cable, with the load of each direction. A switch that was dragged stays there after a reload, and
// "Arrange again" moves it back. Selecting a cable shows the history of both directions.
func TestNetworkPage(t *testing.T) {
	t.Parallel()
	s, n := serve(t), ring()
	s.set("/v1/network", 200, n)
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{{At: now.Add(-time.Hour), Kind: "link-added", Link: map[string]any{"from": n.Links[0].From, "to": n.Links[0].To}, Message: "the first cable was found"}}})
	for _, l := range n.Links[:2] {
		items := []map[string]any{}
		for i := range 120 {
			items = append(items, map[string]any{"at": now.Add(time.Duration(i-120) * time.Second), "rate_bps": 5e8, "drops_per_s": 0, "errors_per_s": 0})
		}
		s.set(fmt.Sprintf("/v1/network/links/%s/%d/history", l.From.Switch, l.From.Port), 200, map[string]any{"from": l.From, "items": items})
	}
	p := openNetwork(t, s)
	p.has("campus, 6 switches, 6 cables, 6 hosts")
	p.Until("the map", `document.querySelectorAll(".switch").length === 6 && document.querySelectorAll(".cable").length === 6 && document.querySelectorAll(".hosts circle").length === 6`)
	for _, c := range []struct{ selector, want string }{
		{cable(1, 1, 2, 1), "load3 load1"}, // 62 % there and 11 % back
		{cable(4, 2, 5, 1), "load4 load1"},
		{cable(2, 2, 3, 1), "load0 load0"},
		{cable(1, 2, 6, 2), "loadnone loadnone"},
	} {
		if got := value[string](p, fmt.Sprintf(`[...document.querySelectorAll('%s path:not(.hit)')].map((e) => e.getAttribute("class")).join(" ")`, c.selector)); got != c.want {
			t.Errorf("%s is drawn as %q, want %q", c.selector, got, c.want)
		}
	}

	first := p.places()
	from := p.center(`.switch[data-switch="` + id(1) + `"] rect`)
	to := point{from.X + 90, from.Y - 70}
	p.mouse(chromedp.MousePressed, from)
	p.mouse(chromedp.MouseMoved, point{from.X + 30, from.Y - 10})
	p.mouse(chromedp.MouseMoved, to)
	p.mouse(chromedp.MouseReleased, to)
	if at := p.center(`.switch[data-switch="` + id(1) + `"] rect`); at != to {
		value[bool](p, drawn)
		if at = p.center(`.switch[data-switch="` + id(1) + `"] rect`); max(at.X-to.X, to.X-at.X, at.Y-to.Y, to.Y-at.Y) > 1 {
			t.Errorf("after the drag the switch is at %v, want %v", at, to)
		}
	}
	if value[bool](p, `document.querySelector(".detail").checkVisibility()`) {
		t.Error("the drag has selected the switch")
	}
	second := p.places()
	if second[id(1)] == first[id(1)] {
		t.Error("the drag has no effect")
	}
	p.Take("reload", chromedp.Reload(), chromedp.WaitVisible(".switch"))
	if third := p.places(); fmt.Sprint(third) != fmt.Sprint(second) {
		t.Errorf("after a reload the switches are at\n%v, want\n%v", third, second)
	}
	added := n.add("s7", "south")
	n.cable(added, 4, 1e9, 0.1, 0.1)
	before := value[string](p, `localStorage.getItem("headgate-network-map campus")`)
	s.set("/v1/network", 200, n)
	p.Until("the new switch", `document.querySelectorAll(".switch").length === 7`)
	if after := value[string](p, `localStorage.getItem("headgate-network-map campus")`); !strings.HasPrefix(after, strings.TrimSuffix(before, "}")) || after == before {
		t.Errorf("with a new switch the places are\n%s, they were\n%s", after, before)
	}
	n.Switches, n.Links = n.Switches[:6], n.Links[:12]
	n.Switches[3].Ports = n.Switches[3].Ports[:3]
	s.set("/v1/network", 200, n)
	p.Until("the switch is removed", `document.querySelectorAll(".switch").length === 6`)
	p.press("Arrange again")
	if again := p.places(); fmt.Sprint(again) != fmt.Sprint(first) {
		t.Errorf("arranged again, the switches are at\n%v, want\n%v", again, first)
	}

	at := p.center(cable(1, 1, 2, 1) + " .hit")
	p.mouse(chromedp.MousePressed, at)
	p.mouse(chromedp.MouseReleased, at)
	p.has("s1/eth1 to s2/eth1")
	p.has("620 Mbit/s, 62 %")
	p.has("the first cable was found")
	p.Until("two charts of the history", `document.querySelectorAll(".detail canvas").length === 2`)
	p.Until("the address has the cable", `location.search.includes("cable=")`)
	p.Take("reload", chromedp.Reload(), chromedp.WaitVisible(".detail canvas"))
	p.has("s1/eth1 to s2/eth1")
	if found := value[[]string](p, `[...document.querySelectorAll(".words text")].map((e) => e.textContent)`); fmt.Sprint(found) != "[62 % 11 %]" {
		t.Errorf("at the selected cable is written %q", found)
	}
	p.checkAppearances()
	if wrong := p.Errors(); len(wrong) > 0 {
		t.Errorf("the browser reports:\n%s", strings.Join(wrong, "\n"))
	}
}

// checkAppearances checks the page in several windows, each also as narrow as a telephone, and that the map has the colors of each.
func (p page) checkAppearances() {
	p.T.Helper()
	grounds := map[string]bool{}
	p.CheckAppearances("the map", func() {
		ground := value[string](p, `getComputedStyle(document.querySelector(".map")).backgroundColor`)
		grounds[ground] = true
		if err := p.SetViewport(390, 900, value[bool](p, `matchMedia("(prefers-color-scheme: dark)").matches`)); err != nil {
			p.T.Fatal(err)
		}
		value[bool](p, drawn)
		p.CheckWidth("390 px wide, " + ground)
	})
	if len(grounds) != 2 {
		p.T.Errorf("the map is %v in light and dark", grounds)
	}
}

// With the keyboard only, a user goes over the map, opens a cable, and moves a switch. The tables have the same data, in the order
// that a user chooses.
func TestNetworkPageByKeyboard(t *testing.T) {
	t.Parallel()
	s, n := serve(t), ring()
	s.set("/v1/network", 200, n)
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{}})
	p := openNetwork(t, s)
	p.Until("the map", `document.querySelectorAll(".switch").length === 6`)
	focus := func() string { return value[string](p, `document.activeElement.getAttribute("aria-label") ?? ""`) }
	for n := 0; !strings.HasPrefix(focus(), "Switch "); n++ {
		if n > 50 {
			t.Fatal("the Tab key does not reach the map")
		}
		p.Take("Tab", chromedp.KeyEvent(kb.Tab))
	}
	seen := map[string]bool{}
	for range 4 { // around the map, over cables
		for _, key := range []string{kb.ArrowRight, kb.ArrowUp, kb.ArrowLeft, kb.ArrowDown} {
			for range 6 {
				p.Take("a key", chromedp.KeyEvent(key))
				seen[focus()] = true
			}
		}
	}
	switches, cables := 0, 0
	for name := range seen {
		switch {
		case strings.HasPrefix(name, "Switch "):
			switches++
		case strings.HasPrefix(name, "Cable "):
			cables++
		}
	}
	if switches < 4 || cables < 4 {
		t.Errorf("arrow keys reach %d switches and %d cables: %v", switches, cables, seen)
	}
	for n := 0; !strings.HasPrefix(focus(), "Cable "); n++ {
		p.Take("a key", chromedp.KeyEvent([]string{kb.ArrowRight, kb.ArrowUp, kb.ArrowLeft, kb.ArrowDown}[n%4]))
	}
	p.Take("a key", chromedp.KeyEvent(kb.Enter))
	p.has("Capacity\n1 Gbit/s, reported")
	p.Take("a key", chromedp.KeyEvent(kb.Escape))
	p.Until("the panel is closed", `!document.querySelector(".detail").checkVisibility()`)

	p.press("Links (12)")
	p.press("Utilization")
	first := `document.querySelector(".rows tbody tr:not(.spacer)").innerText`
	p.Until("the busiest link is first", first+`.startsWith("s4/eth2")`)
	p.press("Utilization")
	p.Until("the idlest link is first", first+`.includes("0.30 %") || `+first+`.includes("0.3 %")`)
	if got := value[string](p, `document.querySelector("th[aria-sort]").innerText + document.querySelector("th[aria-sort]").getAttribute("aria-sort")`); got != "Utilizationascending" {
		t.Errorf("the table is sorted by %q", got)
	}
	p.press("Hosts (6)")
	p.has("02:00:00:00:00:06")
	p.press("Switches (6)")
	p.press("s3")
	p.has("headgate network flows s3")
}

// Failures are on the map with their messages, also cables that were removed, and a page without a network says what to do.
func TestNetworkPageInTrouble(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("/v1/network", 503, map[string]any{"title": "Service Unavailable", "detail": "no controller leads"})
	s.set("/v1/network/events", 503, map[string]any{})
	p := openNetwork(t, s)
	p.has("No controller leads the network.")
	none := &network{At: now, Listen: []listener{}, Switches: []*networkSwitch{}, Links: []link{}, Hosts: []host{}, Faults: []fault{}}
	s.set("/v1/network", 200, none)
	p.has("headgate network apply -f network.yaml")
	none.Listen = []listener{{Address: "10.9.0.1:6653", Error: "address already in use"}}
	s.set("/v1/network", 200, none)
	p.has("address already in use")
	none.Listen = []listener{{Address: "10.9.0.1:6653"}}
	s.set("/v1/network", 200, none)
	p.has("headgate network connect BRIDGE --controller tcp:10.9.0.1:6653")
	none.Listen = []listener{{Address: "[::]:6653", TLS: true}}
	s.set("/v1/network", 200, none)
	p.has("headgate network connect BRIDGE --controller ssl:127.0.0.1:6653 --ca ca.pem")

	n := ring()
	peer := n.port(5, "faulty")
	n.Faults = append(n.Faults, fault{"one-way", n.port(2, "faulty"), &peer, "frames pass in one direction only"}, fault{"shared", n.port(4, "faulty"), nil, "several switches are at this port"})
	n.Switches[2].Current, n.Switches[2].Error = false, "it has no space for groups"
	n.Switches[5].Current = false
	gone, last := portID{id(9), 1}, portID{id(6), 7}
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{
		{At: now.Add(-2 * time.Minute), Kind: "switch-removed", Switch: gone.Switch, Message: "switch s9 was removed"},
		{At: now.Add(-2 * time.Minute), Kind: "link-removed", Link: map[string]any{"from": gone, "to": last}, Message: "its link was removed"},
	}})
	s.set("/v1/network", 200, n)
	p.has("1 switch with a problem, 2 faults")
	p.has("Links (12)") // without those of the cable that was removed, and of that with a fault
	p.has("switch s9 was removed")
	for selector, want := range map[string]string{
		cable(2, 4, 5, 4):                      "problem Cable s2/eth4 – s5/eth4: one-way: frames pass in one direction only",
		cable(6, 7, 9, 1):                      "gone Cable s6/7 – …0009/1: removed 2 min ago",
		`.switch[data-switch="` + id(3) + `"]`: "problem Switch s3, 2 cables, 1 host, it has no space for groups",
		`.switch[data-switch="` + id(4) + `"]`: "problem Switch s4, 2 cables, 1 host, several switches are at this port",
		`.switch[data-switch="` + id(6) + `"]`: "changing Switch s6, 2 cables, 1 host, its flows are being changed",
		`.switch[data-switch="` + id(9) + `"]`: "gone Switch …0009, 0 cables, 0 hosts, not connected",
	} {
		p.Until(selector, fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
		if got := value[string](p, fmt.Sprintf(`(({dataset, ariaLabel}) => dataset.state + " " + ariaLabel)(document.querySelector(%q))`, selector)); got != want {
			t.Errorf("%s is %q, want %q", selector, got, want)
		}
	}
	if got := value[string](p, fmt.Sprintf(`getComputedStyle(document.querySelector(%q)).strokeDasharray`, cable(2, 4, 5, 4)+" path:not(.hit)")); got == "none" {
		t.Error("a cable with a fault is not dashed")
	}
	s.set("/v1/network", 503, map[string]any{"title": "Service Unavailable", "detail": "no controller leads"})
	p.has("Not updated at this moment: no controller leads")
	p.Until("the last state stays", `document.querySelectorAll(".switch").length === 7`)

	s.set("/v1/session", 200, map[string]string{"name": "shop", "role": "tenant", "tenant": "shop"})
	p.Take("reload", chromedp.Reload(), chromedp.WaitVisible("nav[aria-label=Pages]"))
	if value[bool](p, `document.querySelector('nav a[href="/network"]') !== null`) {
		t.Error("a tenant is offered the page")
	}
}

// A map of 200 switches has all of them, and no name on it hides another or a switch.
func TestNetworkPageOfManySwitches(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{}})
	s.set("/v1/network", 200, campus())
	p := openNetwork(t, s)
	for _, c := range []struct {
		name   string
		n      *network
		cables int
	}{{"campus", campus(), 388}, {"mesh", mesh(), 800}} {
		s.set("/v1/network", 200, c.n)
		p.Until(c.name, fmt.Sprintf(`document.querySelectorAll(".switch").length === 200 && document.querySelectorAll(".cable").length === %d`, c.cables))
		for _, zoom := range []string{"Show the whole network", "Zoom in", "Zoom in", "Zoom in"} {
			p.press(zoom)
			value[bool](p, drawn)
			found := value[[]string](p, `(() => {
				const all = [...document.querySelectorAll(".switch rect, .names text")].map((e) => ({of: e.parentElement.dataset.switch ?? e.textContent, r: e.getBoundingClientRect()}));
				return all.flatMap((a, i) => all.slice(i + 1).filter((b) => a.r.left + 1 < b.r.right && b.r.left + 1 < a.r.right && a.r.top + 2 < b.r.bottom && b.r.top + 2 < a.r.bottom).map((b) => a.of + " and " + b.of));
			})()`)
			if len(found) > 0 {
				t.Errorf("%s, %s: %d overlap: %.300q", c.name, zoom, len(found), found)
			}
			if n := value[int](p, `document.querySelectorAll(".switch:not(.dot), .names text:not(.title)").length`); n < 40 {
				t.Errorf("%s, %s: %d switches have a name on the map", c.name, zoom, n)
			}
		}
	}
	if wrong := p.Errors(); len(wrong) > 0 {
		t.Errorf("the browser reports:\n%s", strings.Join(wrong, "\n"))
	}
}
