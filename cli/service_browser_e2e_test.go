package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"headgate/internal/browser"
	"headgate/lab"
	"headgate/lab/labtest"
	"headgate/unit"
)

// page is a browser's, as somebody uses it.
type page struct {
	t testing.TB
	*browser.Browser
	axe string
}

func (p page) do(what string, steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- p.Do(steps...) }()
	select {
	case err := <-done:
		if err == nil {
			return
		}
		p.t.Fatalf("%s: %v\n%s", what, err, p.text())
	case <-time.After(20 * time.Second):
		p.t.Fatalf("%s: not within 20 s\n%s", what, p.text())
	}
}

// text is all that is on it.
func (p page) text() string { return scripted[string](p, "document.body.innerText") }

// scripted is what a script gives.
func scripted[T any](p page, script string) T {
	p.t.Helper()
	v, err := browser.Evaluate[T](p.Browser, script)
	if err != nil {
		p.t.Fatalf("%s: %v", script, err)
	}
	return v
}

// until waits for what a script says.
func (p page) until(what, script string) {
	p.t.Helper()
	for end := time.Now().Add(20 * time.Second); !scripted[bool](p, script); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("%s: not within 20 s\n%s\n%v", what, p.text(), p.Wrong())
		}
	}
}

// reach goes to what is called so by the keyboard alone.
func (p page) reach(name string) {
	p.t.Helper()
	for range 200 {
		p.do("tab", chromedp.KeyEvent(kb.Tab))
		if name == scripted[string](p, `(() => {
			const a = document.activeElement;
			return (a.labels?.[0]?.innerText || a.getAttribute("aria-label") || a.innerText || "").trim();
		})()`) {
			return
		}
	}
	p.t.Fatalf("no key leads to %q:\n%s", name, p.text())
}

func (p page) press(name string) {
	p.t.Helper()
	p.reach(name)
	p.do("press "+name, chromedp.KeyEvent(kb.Enter))
}

func (p page) fill(label, text string) {
	p.t.Helper()
	p.reach(label)
	p.do("fill "+label, chromedp.KeyEvent(text))
}

func (p page) signIn(origin, token string) {
	p.t.Helper()
	p.do("sign in", chromedp.Navigate(origin), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]"))
}

// look has nothing on a page keep people out, light, dark or narrow, nor wider than it.
func (p page) look(name string) {
	p.t.Helper()
	for _, look := range browser.Looks {
		if err := p.Look(look.Width, look.Height, look.Dark); err != nil {
			p.t.Fatal(err)
		}
		found, err := p.Violations(p.axe)
		if err != nil || len(found) > 0 {
			p.t.Errorf("%s, %s: %v %s", name, look.Name, err, strings.Join(found, "\n"))
		}
		if over := scripted[float64](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			p.t.Errorf("%s, %s: %v px do not fit", name, look.Name, over)
		}
	}
}

// By the keyboard alone a person signs in, sees rates move, tries a group, makes it, has the kernel enforce it, and takes it back; a
// tenant sees its own and nothing else; another origin is refused, and nothing goes wrong in the browser.
func TestDashboard(t *testing.T) {
	t.Parallel() // it waits for most of its time
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: unit.Gbit, RTT: time.Millisecond})
		node, client := l.Node("server"), l.Node("client")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		to, err := client.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		sink := to.String()
		s := serve(t, node, t.TempDir())
		s.must("PUT", "/v1/tenants/shop", `{}`)
		in := "/v1/hosts/h1/interfaces/" + dev
		s.must("PUT", in, `{"out": {"limit": "40Mbit", "groups": [
			{"name": "web", "guarantee": "50%", "ceiling": "60%", "tenant": "shop", "match": [{"dport": ["5001"]}]},
			{"name": "quietly", "guarantee": "5%", "match": [{"dport": ["5009"]}]},
			{"name": "rest", "default": true}]}}`)
		var shop struct{ Token string }
		if err := json.Unmarshal(s.must("POST", "/v1/tokens", `{"name": "shop", "role": "tenant", "tenant": "shop"}`), &shop); err != nil {
			t.Fatal(err)
		}
		for _, port := range []string{"5001", "5003"} {
			c := client.Command(t.Context(), "iperf3", "-s", "-p", port)
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Kill(); c.Wait() })
		}
		for n := 0; strings.Count(labtest.Run(t, client, "ss", "-Hltn", "( sport = :5001 or sport = :5003 )"), "LISTEN") < 2; n++ {
			if time.Sleep(50 * time.Millisecond); n > 200 {
				t.Fatal("iperf3 does not listen")
			}
		}
		load := node.Command(t.Context(), "iperf3", "-c", sink, "-p", "5001", "-t", "120")
		if err := load.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { load.Process.Kill(); load.Wait() })
		// greedy is what one more connection gets, in Mbit/s.
		greedy := func() float64 {
			t.Helper()
			out, err := node.Command(t.Context(), "iperf3", "-c", sink, "-p", "5003", "-t", "3", "-O", "1", "-J").Output()
			var r struct {
				End struct {
					Received struct {
						Bits float64 `json:"bits_per_second"`
					} `json:"sum_received"`
				}
			}
			if err == nil {
				err = json.Unmarshal(out, &r)
			}
			if err != nil {
				t.Fatalf("iperf3: %v %s", err, out)
			}
			return r.End.Received.Bits / 1e6
		}

		address, err := browser.Door(t.Context(), func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, "tcp", "127.0.0.1:8420") })
		if err != nil {
			t.Fatal(err)
		}
		origin := "https://" + address
		b, err := browser.Start(t.Context(), origin)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(b.Close)
		axe, err := exec.Command("../scripts/axe").Output()
		if err != nil {
			t.Fatal(err)
		}
		p := page{t, b, strings.TrimSpace(string(axe))}
		p.do("open", chromedp.Navigate(origin), chromedp.WaitVisible("#token"))
		p.look("login")
		p.signIn(origin, s.token)
		p.until("the host is connected", `document.querySelector('tr[data-key="h1"]')?.innerText.includes("Connected") ?? false`)
		p.look("overview")
		p.press("h1")
		p.until("the device is there", fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, dev+" out"))
		p.look("host")
		p.press(dev + " out")
		has := `document.querySelector('tr[data-key^="web "] .busy')?.innerText ?? ""`
		p.until("web has more than its half", "("+has+`).includes("Mbit/s") && parseFloat(`+has+`) > 15`)
		first := scripted[string](p, has)
		p.until("rates move", fmt.Sprintf(`(%s) !== %q`, has, first))

		before := greedy()
		p.press("Add a group")
		p.fill("Name", "bulk")
		p.fill("Guarantee", "10%")
		p.fill("Ceiling", "8Mbit")
		p.fill("Rules", "dport=5003")
		p.press("Show what would change")
		p.until("what would be is shown", `[...document.querySelectorAll("dialog")].at(-1).innerText.includes("4 Mbit/s")`)
		p.look("group")
		if status, _ := s.do("GET", in+"/out/groups/bulk", ""); status != http.StatusNotFound {
			t.Errorf("what is tried is made: %d", status)
		}
		p.press("Add")
		p.until("it is made, and can be undone", `document.querySelector(".toast")?.innerText.includes("Added bulk") ?? false`)
		p.until("it is in the list", `document.querySelector('tr[data-key^="bulk "]') !== null`)
		p.look("interface")
		within := greedy()
		p.press("Undo")
		p.until("it is taken back", `document.querySelector('tr[data-key^="bulk "]') === null`)
		if status, _ := s.do("GET", in+"/out/groups/bulk", ""); status != http.StatusNotFound {
			t.Errorf("what is taken back is there: %d", status)
		}
		time.Sleep(time.Second) // until the agent has it
		if after := greedy(); before < 12 || within > 8 || within < 6.5 || after < 12 {
			t.Errorf("a connection gets %.1f Mbit/s, %.1f in the group of 8, and %.1f after", before, within, after)
		}
		p.fill("Connection", "tcp 192.0.2.1:40000 192.0.2.2:5003")
		p.press("Put it in the group")
		p.until("it is in a group, and can be taken back", `[...document.querySelectorAll(".toast")].at(-1)?.innerText.includes("192.0.2.2:5003 is in web") ?? false`)
		if all := string(s.must("GET", in+"/connections", "")); !strings.Contains(all, `"group":"web"`) {
			t.Errorf("the connection is not in the group: %s", all)
		}
		p.press("Undo")
		p.until("it is taken back", `document.querySelector("main").innerText.includes("None: the groups' rules")`)
		if all := string(s.must("GET", in+"/connections", "")); strings.Contains(all, "5003") {
			t.Errorf("the connection is still in the group: %s", all)
		}
		for name, path := range map[string]string{"tenants": "/tenants", "tenant": "/tenants/shop", "collectives": "/collectives/h1", "probes": "/probes", "events": "/events"} {
			p.do("open "+path, chromedp.Navigate(origin+path), chromedp.WaitVisible("main h1"))
			p.until(path+" has loaded", `!document.querySelector("main").innerText.includes("…")`)
			p.look(name)
		}
		refusedElsewhere(t, s, origin)

		p.press("Sign out")
		p.signIn(origin, shop.Token)
		p.press("h1")
		p.press(dev + " out")
		p.until("it sees its own", `document.querySelector('tr[data-key^="web "]') !== null`)
		p.look("as-tenant")
		if text := p.text(); strings.Contains(text, "rest") || strings.Contains(text, "quietly") || strings.Contains(text, "40 Mbit/s") {
			t.Errorf("a tenant sees what is another's:\n%s", text)
		}
		if wrong := p.Wrong(); len(wrong) > 0 {
			t.Errorf("in the browser:\n%s", strings.Join(wrong, "\n"))
		}
	})
}

// refusedElsewhere has a page of another origin, in a browser that is signed in, reach for the service.
func refusedElsewhere(t *labtest.Check, s *serving, origin string) {
	t.Helper()
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><iframe src=%q></iframe><script>
			window.told = [];
			const reach = (name, path, init) => fetch(%q + path, {credentials: "include", ...init}).then((r) => told.push(name + " " + r.type + " " + r.status), (e) => told.push(name + " refused"));
			reach("read", "/v1/hosts", {});
			reach("write", "/v1/tokens", {method: "POST", mode: "no-cors", headers: {"Content-Type": "text/plain"}, body: '{"name": "evil", "role": "operator"}'});
			reach("change", "/v1/tokens", {method: "POST", headers: {"Content-Type": "application/json", "X-Headgate-Session": "1"}, body: '{"name": "evil", "role": "operator"}'});
		</script>`, origin, origin)
	}))
	defer elsewhere.Close()
	b, err := browser.Start(t.Context(), elsewhere.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	p := page{t: t, Browser: b}
	p.signIn(origin, s.token)
	p.do("open", chromedp.Navigate(elsewhere.URL))
	p.until("it has tried", "told.length === 3")
	told := scripted[[]string](p, "told.sort()")
	if strings.Join(told, ", ") != "change refused, read refused, write opaque 0" {
		t.Errorf("another origin is told %q", told)
	}
	if tokens := string(s.must("GET", "/v1/tokens", "")); strings.Contains(tokens, "evil") {
		t.Errorf("another origin has changed something: %s", tokens)
	}
	framed := false
	for _, w := range p.Wrong() {
		framed = framed || strings.Contains(w, "frame-ancestors") || strings.Contains(w, "Framing")
	}
	if !framed {
		t.Errorf("another origin has the dashboard in a frame: %q", p.Wrong())
	}
}
