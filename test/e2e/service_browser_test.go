package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"headgate.dev/headgate/internal/browser"
	"headgate.dev/headgate/internal/browser/browsertest"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// page is a browser page, with helpers for keyboard use.
type page struct{ browsertest.Page }

// browse starts a browser that reaches the service.
func (s *serviceTest) browse() (p page, origin string) {
	s.t.Helper()
	address, err := browser.Forward(s.t.Context(), func(ctx context.Context) (net.Conn, error) { return s.dial(ctx, "tcp", "127.0.0.1:8420") })
	if err != nil {
		s.t.Fatal(err)
	}
	origin = "https://" + address
	return page{browsertest.Open(s.t, origin)}, origin
}

// evaluate returns the value of a script.
func evaluate[T any](p page, script string) T { return browsertest.Value[T](p.Page, script) }

// reach moves the focus to the element with this name, with the keyboard only.
func (p page) reach(name string) {
	p.T.Helper()
	for range 200 {
		p.Take("tab", chromedp.KeyEvent(kb.Tab))
		if name == evaluate[string](p, `(() => {
			const a = document.activeElement;
			return (a.labels?.[0]?.innerText || a.getAttribute("aria-label") || a.innerText || "").trim();
		})()`) {
			return
		}
	}
	p.T.Fatalf("the Tab key does not reach %q:\n%s", name, p.Text())
}

func (p page) press(name string) {
	p.T.Helper()
	p.reach(name)
	p.Take("press "+name, chromedp.KeyEvent(kb.Enter))
}

func (p page) fill(label, text string) {
	p.T.Helper()
	p.reach(label)
	p.Take("fill "+label, chromedp.KeyEvent(text))
}

func (p page) signIn(origin, token string) {
	p.T.Helper()
	p.Take("sign in", chromedp.Navigate(origin), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]"))
}

// With the keyboard only, a user signs in, watches rates, previews a new group, creates the group, which the kernel then enforces, and
// undoes the change. A tenant sees only its own groups. Another origin is rejected. The browser reports no errors.
func TestDashboard(t *testing.T) {
	t.Parallel() // the test mostly waits
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
		// greedy returns the rate of one more greedy connection, in Mbit/s.
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

		p, origin := s.browse()
		p.Take("open", chromedp.Navigate(origin), chromedp.WaitVisible("#token"))
		p.CheckAppearances("login", nil)
		p.signIn(origin, s.token)
		p.Until("the host is connected", `document.querySelector('tr[data-key="h1"]')?.innerText.includes("Connected") ?? false`)
		p.CheckAppearances("overview", nil)
		p.press("h1")
		p.Until("the device is shown", fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, dev+" out"))
		p.CheckAppearances("host", nil)
		p.press(dev + " out")
		has := `document.querySelector('tr[data-key^="web "] .busy')?.innerText ?? ""`
		p.Until("web exceeds 15 Mbit/s", "("+has+`).includes("Mbit/s") && parseFloat(`+has+`) > 15`)
		first := evaluate[string](p, has)
		p.Until("rates change", fmt.Sprintf(`(%s) !== %q`, has, first))

		before := greedy()
		p.press("Add a group")
		p.fill("Name", "bulk")
		p.fill("Guarantee", "10%")
		p.fill("Ceiling", "8Mbit")
		p.fill("Rules", "dport=5003")
		p.press("Preview changes")
		p.Until("the preview is shown", `[...document.querySelectorAll("dialog")].at(-1).innerText.includes("4 Mbit/s")`)
		p.CheckAppearances("group", nil)
		if status, _ := s.do("GET", in+"/out/groups/bulk", ""); status != http.StatusNotFound {
			t.Errorf("the preview created the group: %d", status)
		}
		p.press("Add")
		p.Until("the group is created, with an undo", `document.querySelector(".toast")?.innerText.includes("Added bulk") ?? false`)
		p.Until("the group is in the list", `document.querySelector('tr[data-key^="bulk "]') !== null`)
		p.CheckAppearances("interface", nil)
		within := greedy()
		p.press("Undo")
		p.Until("the group is removed", `document.querySelector('tr[data-key^="bulk "]') === null`)
		if status, _ := s.do("GET", in+"/out/groups/bulk", ""); status != http.StatusNotFound {
			t.Errorf("the group exists after undo: %d", status)
		}
		time.Sleep(time.Second) // until the agent has the change
		if after := greedy(); before < 12 || within > 8 || within < 6.5 || after < 12 {
			t.Errorf("a connection gets %.1f Mbit/s, %.1f in the group with a ceiling of 8, and %.1f after undo", before, within, after)
		}
		p.fill("Connection", "tcp 192.0.2.1:40000 192.0.2.2:5003")
		p.press("Assign")
		p.Until("the connection is assigned, with an undo", `[...document.querySelectorAll(".toast")].at(-1)?.innerText.includes("192.0.2.2:5003 to web") ?? false`)
		if all := string(s.must("GET", in+"/connections", "")); !strings.Contains(all, `"group":"web"`) {
			t.Errorf("the connection is not in the group: %s", all)
		}
		p.press("Undo")
		p.Until("the connection is unassigned", `document.querySelector("main").innerText.includes("No assigned connections")`)
		if all := string(s.must("GET", in+"/connections", "")); strings.Contains(all, "5003") {
			t.Errorf("the connection is still in the group: %s", all)
		}
		for name, path := range map[string]string{"tenants": "/tenants", "tenant": "/tenants/shop", "collectives": "/collectives/h1", "network": "/network", "reservations": "/reservations", "probes": "/probes", "events": "/events"} {
			p.Take("open "+path, chromedp.Navigate(origin+path), chromedp.WaitVisible("main h1"))
			p.Until(path+" has loaded", `!document.querySelector("main").innerText.includes("…")`)
			p.CheckAppearances(name, nil)
		}
		refusedElsewhere(t, s, origin)

		p.press("Sign out")
		p.signIn(origin, shop.Token)
		p.press("h1")
		p.press(dev + " out")
		p.Until("the tenant sees its group", `document.querySelector('tr[data-key^="web "]') !== null`)
		p.CheckAppearances("as-tenant", nil)
		if text := p.Text(); strings.Contains(text, "rest") || strings.Contains(text, "quietly") || strings.Contains(text, "40 Mbit/s") {
			t.Errorf("the tenant sees groups that it does not own:\n%s", text)
		}
		if wrong := p.Errors(); len(wrong) > 0 {
			t.Errorf("the browser reports:\n%s", strings.Join(wrong, "\n"))
		}
	})
}

// refusedElsewhere loads a page of another origin, in a signed-in browser, that sends requests to the service.
func refusedElsewhere(t *labtest.Check, s *serviceTest, origin string) {
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
	p := page{browsertest.Open(t, elsewhere.URL)}
	p.signIn(origin, s.token)
	p.Take("open", chromedp.Navigate(elsewhere.URL))
	p.Until("all requests are done", "told.length === 3")
	told := evaluate[[]string](p, "told.sort()")
	if strings.Join(told, ", ") != "change refused, read refused, write opaque 0" {
		t.Errorf("the results at another origin are %q", told)
	}
	if tokens := string(s.must("GET", "/v1/tokens", "")); strings.Contains(tokens, "evil") {
		t.Errorf("another origin created a token: %s", tokens)
	}
	framed := false
	for _, w := range p.Errors() {
		framed = framed || strings.Contains(w, "frame-ancestors") || strings.Contains(w, "Framing")
	}
	if !framed {
		t.Errorf("another origin can frame the dashboard: %q", p.Errors())
	}
}
