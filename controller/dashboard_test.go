package controller_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/api/agents"
	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/browser"
)

// signIn logs in with a token, and returns the session cookie.
func (s *service) signIn(token string) (cookie string) {
	s.t.Helper()
	r := s.mustAs("", 200, "POST", "/v1/login", `{"token": "`+token+`"}`, "X-Headgate-Session", "1")
	cookie, about, _ := strings.Cut(r.header.Get("Set-Cookie"), ";")
	for _, has := range []string{"Path=/", "Secure", "HttpOnly", "SameSite=Strict", "Max-Age="} {
		if !strings.Contains(about, has) {
			s.t.Errorf("the cookie has no %s: %s", has, about)
		}
	}
	if !strings.HasPrefix(cookie, "__Host-") || strings.Contains(about, "Domain") {
		s.t.Errorf("the cookie is not restricted to this host: %s", about)
	}
	return cookie
}

// A session has the permissions of its token. Cross-site requests cannot change anything. The session
// ends when its user logs out or when its token is deleted.
func TestSession(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	cookie := s.signIn(a)
	asks := func(want int, method, path, body string, headers ...string) reply {
		t.Helper()
		return s.mustAs("", want, method, path, body, append(headers, "Cookie", cookie)...)
	}
	if r := asks(200, "GET", "/v1/session", ""); !strings.Contains(r.text, `"tenant":"a"`) || strings.Contains(r.text, a) {
		t.Errorf("the session is %s", r.text)
	}
	asks(403, "GET", "/v1/tenants", "")
	asks(404, "GET", group("b"), "")
	asks(403, "PUT", group("a/x"), `{"default": true}`)
	asks(403, "PUT", group("a/x"), `{"default": true}`, "X-Headgate-Session", "1", "Sec-Fetch-Site", "cross-site")
	asks(403, "PUT", group("a/x"), `{"default": true}`, "X-Headgate-Session", "1", "Sec-Fetch-Site", "same-site")
	asks(403, "PUT", group("a/x"), `{"default": true}`, "X-Headgate-Session", "1", "Origin", "https://elsewhere.example")
	s.must(404, "GET", group("a/x"), "")
	asks(200, "PUT", group("a/x"), `{"default": true}`, "X-Headgate-Session", "1", "Sec-Fetch-Site", "same-origin")
	// A request with a bearer token needs no session header: browsers do not add bearer tokens.
	s.mustAs(a, 200, "PUT", group("a/x"), `{"default": true}`, "Cookie", cookie)

	s.mustAs("", 401, "POST", "/v1/login", `{"token": "hg_none"}`, "X-Headgate-Session", "1")
	if r := s.mustAs("", 200, "POST", "/v1/login", `{"token": "`+a+`"}`); r.header.Get("Set-Cookie") != "" {
		t.Error("a login without the session header returns a cookie")
	}
	join := s.token(`{"name": "h1", "role": "agent", "host": "h1"}`)
	s.mustAs("", 403, "POST", "/v1/login", `{"token": "`+join+`"}`, "X-Headgate-Session", "1")
	if r := asks(204, "DELETE", "/v1/session", "", "X-Headgate-Session", "1"); !strings.Contains(r.header.Get("Set-Cookie"), "Max-Age=0") {
		t.Errorf("logging out does not delete the cookie: %q", r.header.Get("Set-Cookie"))
	}
	var list struct{ Items []struct{ ID, Name string } }
	s.must(200, "GET", "/v1/tokens", "").into(t, &list)
	n := slices.IndexFunc(list.Items, func(i struct{ ID, Name string }) bool { return i.Name == "pa" })
	s.must(204, "DELETE", "/v1/tokens/"+list.Items[n].ID, "")
	asks(401, "GET", "/v1/session", "")
}

// seenNow is the latest event of a live stream for a path.
type seenNow struct {
	Path   string
	Status int
	Data   json.RawMessage
}

// look opens a live stream of some paths.
func (s *service) look(token string, paths ...string) (status int, told <-chan seenNow) {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), "GET", s.url+"/v1/live?"+url.Values{"see": paths}.Encode(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	got, err := (&http.Client{Transport: s.client.Transport}).Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { got.Body.Close() })
	out := make(chan seenNow, 1000)
	go func() {
		defer close(out)
		lines := bufio.NewScanner(got.Body)
		lines.Buffer(nil, 1<<20)
		for event := ""; lines.Scan(); {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			data, ok := strings.CutPrefix(lines.Text(), "data: ")
			var one seenNow
			if ok && event == "seen" && json.Unmarshal([]byte(data), &one) == nil {
				out <- one
			}
		}
	}()
	return got.StatusCode, out
}

// onScreen holds the latest event of a live stream by path.
type onScreen map[string]seenNow

// until waits for an event of a path that satisfies a condition.
func (shown onScreen) until(t *testing.T, told <-chan seenNow, path string, is func(seenNow) bool) {
	t.Helper()
	late := time.After(10 * time.Second)
	for !is(shown[path]) {
		select {
		case one, ok := <-told:
			if !ok {
				t.Fatalf("the stream ended; %s was %+v", path, shown[path])
			}
			shown[one.Path] = one
		case <-late:
			t.Fatalf("%s is %+v", path, shown[path])
		}
	}
}

// A live stream sends the answers of its paths with the client's permissions, and again after each
// change. It rejects paths whose answers do not end, and ends with its token.
func TestLive(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, b := s.twoTenants()
	own, others, none := group("a"), group("b"), "/v1/hosts/h9/rates"
	shown := onScreen{}
	status, told := s.look(a, own, others, none)
	if status != 200 {
		t.Fatal(status)
	}
	shown.until(t, told, own, func(n seenNow) bool {
		return n.Status == 200 && strings.Contains(string(n.Data), `"guaranteed_bps":40000000`)
	})
	shown.until(t, told, others, func(n seenNow) bool { return n.Status == 404 })
	s.must(200, "PATCH", group("a"), `{"guarantee": "30%"}`, "Content-Type", "application/merge-patch+json")
	shown.until(t, told, own, func(n seenNow) bool { return strings.Contains(string(n.Data), `"guaranteed_bps":30000000`) })
	for quiet := time.After(1200 * time.Millisecond); quiet != nil; {
		select {
		case one := <-told:
			if one.Path != none {
				t.Errorf("the stream repeats %s without a change: %s", one.Path, one.Data)
			}
		case <-quiet:
			quiet = nil
		}
	}
	for _, path := range []string{"/v1/events", "/v1/live?see=/v1/session", "/v1/none", "/v1/hosts/h1/interfaces/eth0/rollback", "/v1/%zz"} {
		if status, _ := s.look(a, path); status != 422 {
			t.Errorf("a stream of %s: %d, want 422", path, status)
		}
	}
	if status, _ := s.look("", own); status != 401 {
		t.Errorf("without a token: %d", status)
	}
	var made struct{ ID, Token string }
	s.mustAs(b, 201, "POST", "/v1/tokens", `{"name": "child", "role": "viewer"}`).into(t, &made)
	_, child := s.look(made.Token, others)
	onScreen{}.until(t, child, others, func(n seenNow) bool { return n.Status == 200 })
	s.mustAs(b, 204, "DELETE", "/v1/tokens/"+made.ID, "")
	late := time.After(12 * time.Second)
	for open := true; open; {
		select {
		case _, open = <-child:
		case <-late:
			t.Fatal("the stream is open after its token was deleted")
		}
	}
}

// waits makes the host's group b have a backlog and none of its guarantee.
func waits(h *host) {
	var bytes atomic.Uint64
	n := 0
	h.Report = func() *agents.Report {
		d := &agents.DeviceReport{Dev: "eth0", Bytes: []uint64{bytes.Add(100e3), bytes.Load(), 0}, BacklogBytes: []uint64{0, 0, 5000}, Drops: []uint64{0, 0, 0}, Marks: []uint64{0, 0, 0}}
		if n++; n%2 == 1 { // repeated names must not interrupt the rates
			d.Names, d.GuaranteeBps = []string{"out/a", "out/a/rest", "out/b"}, []uint64{40e6, 40e6, 20e6}
		}
		return &agents.Report{AtNs: time.Now().UnixNano(), Devices: []*agents.DeviceReport{d}}
	}
}

// The overview has the data of all controllers, with the groups at risk. The totals of rates include
// only the groups that the client may see.
func TestOverview(t *testing.T) {
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.must(200, "PUT", "/v1/hosts/h0", `{}`)
	h := s.connect(t.TempDir(), waits)
	h.Wait(t)
	type load struct {
		Dev, Direction string
		Limit          int64 `json:"limit_bps"`
		Delivered      int64 `json:"delivered_bps"`
		Guaranteed     int64 `json:"guaranteed_bps"`
		Groups         int
		AtRisk         int `json:"at_risk"`
	}
	type hostRates struct {
		Host       string
		Connected  bool
		Directions []load
	}
	var o struct {
		Hosts, Connected, Groups int
		AtRisk                   int `json:"at_risk"`
		Risks                    []struct {
			Host, Dev, Direction, Group string
			Guaranteed                  int64 `json:"guaranteed_bps"`
		}
		Busiest, Items []hostRates
		Names          []string
	}
	other := s.beside(t)
	for _, controller := range []*service{s, other} {
		for n := 0; ; n++ {
			controller.must(200, "GET", "/v1/overview?names=true&host=h1&host=h0", "").into(t, &o)
			if o.AtRisk > 0 && o.Busiest[0].Directions[0].Delivered != 0 {
				break
			}
			if time.Sleep(50 * time.Millisecond); n > 200 {
				t.Fatalf("the overview is %+v", o)
			}
		}
		if o.Hosts != 2 || o.Connected != 1 || o.Groups != 3 || o.AtRisk != 1 || !slices.Equal(o.Names, []string{"h0", "h1"}) {
			t.Errorf("the overview is %+v", o)
		}
		if r := o.Risks; len(r) != 1 || r[0].Host != "h1" || r[0].Group != "b" || r[0].Guaranteed != 20e6 {
			t.Errorf("the groups at risk are %+v", r)
		}
		if i := o.Items; len(i) != 2 || i[0].Connected || !i[1].Connected || len(i[1].Directions) != 1 || len(o.Busiest) != 1 {
			t.Fatalf("the hosts are %+v", i)
		}
		// The traffic of a/rest is part of that of a.
		if d := o.Items[1].Directions[0]; d.Limit != 100e6 || d.Guaranteed != 60e6 || d.Groups != 3 {
			t.Errorf("the direction is %+v", d)
		}
	}
	s.mustAs(a, 403, "GET", "/v1/overview", "")

	var rates struct {
		Items  []struct{ Group string }
		Totals []load
	}
	s.mustAs(a, 200, "GET", "/v1/hosts/h1/rates?dev=eth0&direction=out&group=a%2Frest", "").into(t, &rates)
	if len(rates.Items) != 1 || rates.Items[0].Group != "a/rest" {
		t.Errorf("the groups are %+v", rates.Items)
	}
	if len(rates.Totals) != 1 || rates.Totals[0].Groups != 2 || rates.Totals[0].Guaranteed != 40e6 || rates.Totals[0].AtRisk != 0 || rates.Totals[0].Limit != 0 {
		t.Errorf("a tenant's totals are %+v", rates.Totals)
	}
	s.must(200, "GET", "/v1/hosts/h1/rates?direction=in", "").into(t, &rates)
	if len(rates.Items) != 0 || len(rates.Totals) != 0 {
		t.Errorf("the direction in has %+v", rates)
	}
}

// The dashboard is served at every path outside the API.
func TestPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, path := range []string{"/", "/hosts/h1/eth0"} {
		if r := s.mustAs("", 200, "GET", path, ""); !strings.Contains(r.text, "<!doctype html>") || r.header.Get("Content-Security-Policy") == "" {
			t.Errorf("%s returns %.100s", path, r.text)
		}
	}
	if r := s.mustAs("", 404, "GET", "/v1/none", ""); !strings.Contains(r.header.Get("Content-Type"), "problem+json") {
		t.Errorf("an unknown API path returns %s", r.text)
	}
}

// The dashboard shows a device by the name that the agent reports, also if its interface is configured
// by an alternative name, to operators and tenants.
func TestPagesByAnotherName(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser: not with -short")
	}
	t.Parallel()
	s := start(t)
	a, _ := s.twoTenants()
	s.must(204, "DELETE", "/v1/hosts/h1/interfaces/eth0", "")
	s.must(200, "PUT", "/v1/hosts/h1/interfaces/enp0s3", shared)
	s.connect(t.TempDir())
	for n := 0; n < 200 && !strings.Contains(s.do(s.operator, "GET", "/v1/hosts/h1/rates", "").text, `"group":"a"`); n++ {
		time.Sleep(50 * time.Millisecond)
	}
	b, err := browser.Start(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	for _, token := range []string{s.operator, a} {
		shows := func(path, selector string) string {
			t.Helper()
			text := ""
			err := b.Do(chromedp.Navigate(s.url + path))
			for n := 0; n < 200 && err == nil && text == ""; n++ {
				time.Sleep(50 * time.Millisecond)
				text, err = browser.Evaluate[string](b, `[...document.querySelectorAll('main `+selector+`')].map((e) => e.innerText).join("\n")`)
			}
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		if err := b.Do(chromedp.Navigate(s.url), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]")); err != nil {
			t.Fatal(err)
		}
		if got := shows("/hosts/h1", "table a"); got != "eth0 out" {
			t.Errorf("the list of interfaces is %q", got)
		}
		if got := shows("/hosts/h1/eth0?direction=out", "h1"); got != "eth0" {
			t.Errorf("the heading of the page of eth0 is %q", got)
		}
		if _, err := browser.Evaluate[bool](b, `fetch("/v1/session", {method: "DELETE", headers: {"X-Headgate-Session": "1"}}).then((r) => r.ok)`); err != nil {
			t.Fatal(err)
		}
	}
}

// The page of reservations works with the service: an operator's request is refused, a counter-offer is taken, and the reservation
// is cancelled. A tenant gets its own reservations, without the links.
func TestPageOfReservations(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser: not with -short")
	}
	t.Parallel()
	s, _ := reservationsOf(t)
	a, _ := s.twoTenants()
	s.must(200, "PUT", "/v1/tenants/a", `{"reservations": {"rate": "50Mbit", "duration": "2h", "ahead": "24h"}}`)
	s.must(201, "POST", "/v1/reservations", `{"name": "secret", "rate": "700Mbit", `+ends+`}`)
	s.must(201, "POST", "/v1/reservations", `{"name": "second", "rate": "700Mbit", `+ends+`}`)
	b, err := browser.Start(t.Context(), s.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	signIn := func(token string) {
		t.Helper()
		if err := b.Do(chromedp.Navigate(s.url+"/reservations"), chromedp.WaitVisible("#token"), chromedp.SendKeys("#token", token+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]")); err != nil {
			t.Fatal(err)
		}
	}
	until := func(what, script string) {
		t.Helper()
		for n := 0; ; n++ {
			is, err := browser.Evaluate[bool](b, script)
			if err != nil {
				t.Fatal(err)
			}
			if is {
				return
			}
			if n > 400 {
				text, _ := browser.Evaluate[string](b, "document.body.innerText")
				t.Fatalf("%s: not shown\n%s", what, text)
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	has := func(text string) {
		t.Helper()
		until(text, fmt.Sprintf(`document.body.innerText.includes(%q)`, text))
	}
	press := func(name string) {
		t.Helper()
		until(name, fmt.Sprintf(`((b) => (b?.click(), b !== undefined))([...document.querySelectorAll("button")].findLast((b) => (b.getAttribute("aria-label") ?? b.innerText) === %q))`, name))
	}
	fillIn := func(fields ...string) {
		t.Helper()
		for n := 0; n < len(fields); n += 2 {
			until(fields[n], fmt.Sprintf(`((i) => i ? (i.value = %q, i.dispatchEvent(new Event("input", {bubbles: true})), true) : false)([...document.querySelectorAll("form label")].find((l) => l.innerText === %q)?.control)`, fields[n+1], fields[n]))
		}
	}
	signIn(s.operator)
	has("2 active")
	has("fits on this link if it starts")
	fillIn("Name", "third", "From", "10.0.0.1", "To", "10.0.0.2", "Rate", "500Mbit", "Duration", "1h")
	press("Ask what fits")
	has("has 300Mbit of 500Mbit")
	has("The earliest start: 500 Mbit/s for 1 h")
	press("Reserve 300 Mbit/s for 1 h, from now")
	has("3 active")
	var made api.Reservation
	s.must(200, "GET", "/v1/reservations/-/third", "").into(t, &made)
	if made.RateBps != 300e6 {
		t.Errorf("reserved %+v", made)
	}
	press("third")
	press("Cancel the reservation")
	until("the question", `document.querySelectorAll("dialog").length === 2`)
	press("Cancel the reservation")
	has("Cancelled third")
	has("2 active")
	s.must(404, "GET", "/v1/reservations/-/third", "")

	if _, err := browser.Evaluate[bool](b, `fetch("/v1/session", {method: "DELETE", headers: {"X-Headgate-Session": "1"}}).then((r) => r.ok)`); err != nil {
		t.Fatal(err)
	}
	signIn(a)
	has("No reservations.")
	fillIn("Name", "own", "From", "10.0.0.1", "To", "10.0.0.2", "Rate", "60Mbit", "Duration", "1h")
	press("Ask what fits")
	until("the refusal", `document.querySelector(".answer .error")?.innerText.includes("50Mbit") ?? false`)
	fillIn("Rate", "20Mbit")
	press("Ask what fits")
	has("This would be granted.")
	press("Reserve own")
	has("1 active")
	if text, err := browser.Evaluate[string](b, "document.body.innerText"); err != nil || strings.Contains(text, "secret") || strings.Contains(text, "Availability of a link") {
		t.Errorf("%v: a tenant sees\n%s", err, text)
	}
	s.must(200, "GET", "/v1/reservations/a/own", "")
}
