package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Objects of the API, as far as the page of reservations shows them.
type (
	end struct {
		Host string `json:"host,omitempty"`
		Site string `json:"site,omitempty"`
	}
	reservationRequest struct {
		From      end    `json:"from"`
		To        end    `json:"to"`
		Class     int    `json:"class,omitempty"`
		Rate      string `json:"rate,omitempty"`
		Start     string `json:"start,omitempty"`
		Until     string `json:"until,omitempty"`
		Duration  string `json:"duration,omitempty"`
		Protected bool   `json:"protected,omitempty"`
	}
	reservation struct {
		Owner      string             `json:"owner"`
		Name       string             `json:"name"`
		State      string             `json:"state"`
		Degraded   string             `json:"degraded,omitempty"`
		Request    reservationRequest `json:"request"`
		Start      time.Time          `json:"start"`
		End        time.Time          `json:"end"`
		Rate       int64              `json:"rate_bps"`
		Back       int64              `json:"back_bps"`
		Reserved   int64              `json:"reserved_bps"`
		Paths      []reservationPath  `json:"paths"`
		Generation int                `json:"generation"`
		Relays     *reservationRelays `json:"relays,omitempty"`
	}
	reservationRelays struct {
		Near string `json:"near"`
		Far  string `json:"far"`
	}
	reservationPath struct {
		Links []map[string]portID `json:"links"`
		Rate  int64               `json:"rate_bps"`
		Spare bool                `json:"spare"`
	}
)

// reserved returns a reservation of the ring's first link, which begins and ends so long after the present.
func reserved(owner, name, state string, class int, rate int64, start, length time.Duration) *reservation {
	at := time.Now().UTC().Truncate(time.Minute).Add(start)
	return &reservation{
		Owner: owner, Name: name, State: state, Request: reservationRequest{From: end{Host: "h1"}, To: end{Host: "h2"}, Class: class, Rate: fmt.Sprint(rate/1e6, "Mbit"), Duration: length.String()},
		Start: at, End: at.Add(length), Rate: rate, Reserved: rate, Generation: 1,
		Paths: []reservationPath{{Links: []map[string]portID{{"from": {id(1), 1}, "to": {id(2), 1}}}, Rate: rate}},
	}
}

// booked are reservations of every class and state.
func booked() []*reservation {
	out := []*reservation{
		reserved("-", "backup", "active", 3, 200e6, -20*time.Minute, 2*time.Hour),
		reserved("-", "nightly", "scheduled", 4, 500e6, 9*time.Hour, 4*time.Hour),
		reserved("-", "sensor", "ended", 1, 5e6, -90*time.Minute, time.Hour),
		reserved("shop", "archive", "scheduled", 4, 100e6, 70*time.Hour, 24*time.Hour),
		reserved("shop", "video", "degraded", 2, 120e6, -time.Hour, 6*time.Hour),
		reserved("shop", "voice", "scheduled", 1, 20e6, 3*time.Hour, 8*time.Hour),
	}
	out[4].Degraded, out[4].Reserved = "the link s2/eth2 to s3/eth1 is down", 40e6
	out[0].Back = 20e6
	return out
}

// serveReservations serves the ring with reservations.
func serveReservations(t *testing.T, all []*reservation) *service {
	s := serve(t)
	s.set("/v1/network", 200, ring())
	s.set("/v1/reservations", 200, map[string]any{"items": all})
	s.set("/v1/reservations/usage", 200, map[string]any{"items": []any{map[string]any{
		"owner": "shop", "name": "video", "direction": "forward", "class": 2, "held_by": "switch", "reserved_bps": 120e6, "limit_bps": 90e6, "offered_bps": 130e6, "delivered_bps": 90e6,
		"unmet_seconds": 12,
	}}})
	return s
}

// bar returns the selector of the bar of a reservation in the calendar.
func bar(name string) string { return fmt.Sprintf(`.lane [aria-label^="%s:"]`, name) }

// notified waits until a notification has a text.
func (p page) notified(text string) {
	p.T.Helper()
	p.Until(text, fmt.Sprintf(`document.querySelector(".toasts")?.innerText.includes(%q) ?? false`, text))
}

// The list has each reservation, and the calendar those of the time that it shows: as wide as they last, colored by class and drawn
// by state, with both in words for screen readers. Zoom and the arrow keys change the time.
func TestReservationsPage(t *testing.T) {
	t.Parallel()
	s := serveReservations(t, booked())
	p := openPage(t, s, "/reservations")
	p.has("1 active, 1 degraded, 3 scheduled, 1 ended")
	p.Until("the list", `document.querySelectorAll(".rows tbody tr").length === 6`)
	p.Until("a day of the calendar", `document.querySelectorAll(".lane button").length === 5`)
	p.has("1 reservation is at other times.")
	for name, want := range map[string]string{
		"backup":     "span class3 active active, class 3, 200 Mbit/s, 20 Mbit/s back from h1 to h2",
		"sensor":     "span class1 ended ended, class 1, 5 Mbit/s from h1 to h2",
		"nightly":    "span class4 scheduled scheduled, class 4, 500 Mbit/s from h1 to h2",
		"shop/video": "span class2 degraded degraded, class 2, 120 Mbit/s from h1 to h2",
	} {
		got := value[string](p, fmt.Sprintf(`((b) => b.className + " " + b.dataset.state + b.ariaLabel.slice(b.ariaLabel.indexOf(":") + 1))(document.querySelector(%q))`, bar(name)))
		if !strings.HasPrefix(got, want+", ") {
			t.Errorf("%s is drawn as %q, want %q", name, got, want)
		}
	}
	part := func(name string) float64 {
		return value[float64](p, fmt.Sprintf(`((b) => b.getBoundingClientRect().width / b.parentElement.getBoundingClientRect().width)(document.querySelector(%q))`, bar(name)))
	}
	if got := part("nightly"); got < 4./24-0.005 || got > 4./24+0.005 {
		t.Errorf("four hours take %.3f of a day", got)
	}
	p.press("Week")
	p.Until("a week of the calendar", `document.querySelectorAll(".lane button").length === 6`)
	if got := part("shop/archive"); got < 1./7-0.005 || got > 1./7+0.005 {
		t.Errorf("a day takes %.3f of a week", got)
	}
	p.Take("focus the calendar", chromedp.Focus(".calendar"))
	p.Take("zoom in", chromedp.KeyEvent("+"), chromedp.KeyEvent("+"), chromedp.KeyEvent("+"))
	p.Until("an hour of the calendar", `document.querySelectorAll(".lane button").length === 2`)
	for range 4 * 4 {
		p.Take("later", chromedp.KeyEvent(kb.ArrowRight))
	}
	p.Until("four hours later", `[...document.querySelectorAll(".lane button")].map((b) => b.ariaLabel.split(":")[0]).join() === "shop/video,shop/voice"`)
	p.Take("back to now", chromedp.KeyEvent("0"))
	p.Until("the present hour", `[...document.querySelectorAll(".lane button")].map((b) => b.ariaLabel.split(":")[0]).join() === "shop/video,backup"`)
	p.press("Day")

	for _, opener := range []string{bar("shop/video"), `[data-key="shop/video"] button`} {
		p.Take("open it", chromedp.Focus(opener), chromedp.KeyEvent(kb.Enter))
		p.Until("the dialog", `(({innerText}) => innerText.includes("Degraded: the link s2/eth2 to s3/eth1 is down") && innerText.includes("s1/1 s2"))(document.querySelector("dialog") ?? {innerText: ""})`)
		p.Until("its rates", `(({innerText}) => innerText.includes("Forward: limited by a switch, 90 Mbit/s of 130 Mbit/s offered; unmet for 12 s."))(document.querySelector("dialog") ?? {innerText: ""})`)
		p.Until("its chart", `document.querySelector("dialog .chart canvas") !== null && [...document.querySelectorAll("dialog .keys li")].map((l) => l.innerText).join() === "offered,delivered,limit,reserved"`)
		p.Take("close it", chromedp.KeyEvent(kb.Escape))
		p.Until("the focus returns", fmt.Sprintf(`document.activeElement === document.querySelector(%q)`, opener))
	}
	p.CheckAppearances("reservations", nil)
	if wrong := p.Errors(); len(wrong) > 0 {
		t.Errorf("the browser reports:\n%s", strings.Join(wrong, "\n"))
	}
}

// A reservation is cancelled after a confirmation, in the version that was confirmed. What the service refuses is shown in its words.
func TestReservationsPageCancels(t *testing.T) {
	t.Parallel()
	all := booked()
	s := serveReservations(t, all)
	s.set("/v1/reservations/-/backup", 200, all[0])
	p := openPage(t, s, "/reservations")
	const cancel = "DELETE /v1/reservations/-/backup"
	s.set(cancel, 409, map[string]any{"title": "Conflict", "status": 409, "detail": "backup is being changed by another controller"})
	steps := func(last string) {
		p.press("backup")
		p.press("Cancel the reservation")
		p.Until("the question", `document.querySelector("dialog[aria-label='Cancel backup?']")?.innerText.includes("200 Mbit/s, 20 Mbit/s back from h1 to h2") ?? false`)
		p.Until(last, fmt.Sprintf(`(() => {
			const b = [...document.querySelectorAll("dialog[aria-label='Cancel backup?'] button")].find((b) => b.innerText === %q);
			b?.click();
			return b !== undefined;
		})()`, last))
		p.Until("the question is closed", `document.querySelectorAll("dialog").length < 2`)
	}
	steps("Keep it")
	if n := len(s.requests(cancel)); n != 0 {
		t.Errorf("%d reservations were cancelled without confirmation", n)
	}
	p.press("Close")
	steps("Cancel the reservation")
	p.notified("backup is being changed by another controller")
	p.press("Close")
	s.set(cancel, 204, nil)
	steps("Cancel the reservation")
	p.notified("Cancelled backup")
	if sent := s.requests(cancel); len(sent) != 2 || sent[1].ifMatch != etag || sent[1].key == "" || sent[1].key == sent[0].key {
		t.Errorf("it sends %+v", sent)
	}
	s.set("/v1/reservations", 200, map[string]any{"items": all[1:]})
	p.Until("it is gone", `document.querySelectorAll(".rows tbody tr").length === 5`)
}

// A page without reservations says how to make one, and keeps what it shows while no answer comes.
func TestReservationsPageWithoutAny(t *testing.T) {
	t.Parallel()
	s := serveReservations(t, []*reservation{})
	p := openPage(t, s, "/reservations")
	p.has("headgate reserve create NAME")
	s.set("/v1/reservations", 200, map[string]any{"items": booked()})
	p.Until("the list", `document.querySelectorAll(".rows tbody tr").length === 6`)
	s.set("/v1/reservations", 503, map[string]any{"title": "Service Unavailable", "detail": "the store does not answer"})
	p.has("Not updated at this moment: the store does not answer")
	p.Until("the list stays", `document.querySelectorAll(".rows tbody tr").length === 6`)
}

// linkCalendar is the calendar of a link of 1 Gbit/s: 900 Mbit/s are reserved for three hours, then 300 for a day, then nothing.
func linkCalendar() map[string]any {
	at := time.Now().UTC()
	step := func(after time.Duration, bps int64) map[string]any {
		return map[string]any{"at": at.Add(after), "reserved_bps": bps}
	}
	return map[string]any{"limit_bps": int64(1e9), "steps": []any{step(0, 900e6), step(3*time.Hour, 300e6), step(27*time.Hour, 0)}}
}

// slide sets a slider by its label.
func (p page) slide(label string, to int) {
	p.T.Helper()
	p.Until(label, fmt.Sprintf(`(() => {
		const label = [...document.querySelectorAll("label")].find((l) => l.innerText === %q && l.control.type === "range");
		if (!label) return false;
		label.control.value = "%d";
		label.control.dispatchEvent(new Event("input", {bubbles: true}));
		return true;
	})()`, label, to))
}

// The sliders of rate and duration show when such a request fits on a link. Links are those of the network, and the lines of hosts.
func TestReservationsPageAvailability(t *testing.T) {
	t.Parallel()
	s := serveReservations(t, booked())
	s.set("/v1/reservations/calendar", 200, linkCalendar())
	p := openPage(t, s, "/reservations")
	p.Until("the links", `document.querySelectorAll("main option[value*='/']").length === 12 + 2 * 6`)
	p.has("200 Mbit/s for 2 h fits on this link if it starts from ")
	answer := func(what, script string) {
		t.Helper()
		p.Until(what, fmt.Sprintf(`((text, bands) => %s)(document.querySelector(".free").ariaLabel, [...document.querySelectorAll(".bands b")].map((b) => Math.round(parseFloat(b.style.left) * 1.68)))`, script))
	}
	answer("after three hours", `!text.includes("from now") && bands.join() === "3"`) // hours from now, of 168
	p.slide("Rate", 8)
	answer("now", `text.includes("80 Mbit/s for 2 h fits on this link if it starts from now until") && bands.join() === "0"`)
	p.slide("Rate", 90)
	answer("after a day", `text.includes("900 Mbit/s for 2 h") && bands.join() === "27"`)
	p.slide("Duration", 13)
	answer("five days", `text.includes("900 Mbit/s for 5 d fits") && bands.join() === "27"`)
	p.Take("open the steps", chromedp.Click("details summary"))
	p.Until("the steps", `document.querySelectorAll("details tbody tr").length === 3 && document.querySelector("details").innerText.includes("700 Mbit/s")`)
	s.set("/v1/reservations/calendar", 200, map[string]any{"limit_bps": int64(1e9), "steps": []any{map[string]any{"at": time.Now(), "reserved_bps": int64(950e6)}}})
	answer("never", `text.includes("900 Mbit/s for 5 d fits at no time of the next week on this link.") && bands.length === 0`)
	s.set("/v1/reservations/calendar", 200, map[string]any{"steps": []any{map[string]any{"at": time.Now(), "reserved_bps": int64(950e6)}}})
	answer("no limit", `text.includes("9 Gbit/s for 5 d fits on this link if it starts from now") && bands.join() === "0"`)
	s.set("/v1/reservations/calendar", 404, map[string]any{"title": "Not Found", "detail": "s1/1 is no link of the network"})
	p.has("s1/1 is no link of the network")
	s.set("/v1/reservations/calendar", 200, linkCalendar())
	p.CheckAppearances("reservations with the availability of a link", nil)
}

// fillIn writes in a field of the form by its label.
func (p page) fillIn(label, text string) {
	p.T.Helper()
	p.Until(label, fmt.Sprintf(`(() => {
		const control = [...document.querySelectorAll("form label")].find((l) => l.innerText === %q)?.control;
		if (!control) return false;
		control.value = %q;
		control.dispatchEvent(new Event("input", {bubbles: true}));
		control.dispatchEvent(new Event("change", {bubbles: true}));
		return true;
	})()`, label, text))
}

// What-if shows what would be granted, and reserves it. A refusal has its reason in the words of the service, and counter-offers, of
// which one is taken: once, also if the answer to the first attempt is lost.
func TestReservationsPageWhatIf(t *testing.T) {
	t.Parallel()
	s := serveReservations(t, booked())
	s.set("/v1/reservations/calendar", 200, linkCalendar())
	p := openPage(t, s, "/reservations")
	const ask, create = "POST /v1/reservations?dry_run=true", "POST /v1/reservations"
	p.has("Availability of a link")
	p.Until("the ends", `[...document.querySelectorAll("datalist option")].map((o) => o.value).join() === "h1,h2,h3,h4,h5,h6,site:north,site:south"`)

	// The sliders fill in the form.
	p.has("200 Mbit/s for 2 h fits on this link")
	p.press("Use in what-if")
	p.Until("the form", `(() => {
		const of = (name) => [...document.querySelectorAll("form label")].find((l) => l.innerText === name).control.value;
		return of("Rate") === "200Mbit" && of("Duration") === "2h" && of("When") === "start" && Math.abs(new Date(of("Start")) - Date.now() - 3 * 3600e3) < 180e3;
	})()`)
	p.fillIn("When", "now")

	p.fillIn("Name", "copy")
	p.fillIn("From", "h1")
	p.fillIn("To", "site:south")
	p.fillIn("Class", "2")
	p.Take("protected", chromedp.Click("form .check:nth-of-type(2) input"))
	granted := reserved("-", "copy", "scheduled", 2, 200e6, 0, 2*time.Hour)
	granted.Paths = append(granted.Paths, reservationPath{Links: []map[string]portID{{"from": {id(1), 2}, "to": {id(6), 2}}}, Rate: 200e6, Spare: true})
	granted.Relays = &reservationRelays{"west", "east"}
	s.set(ask, 201, granted)
	p.press("Ask what fits")
	p.has("This would be granted.")
	p.has("relay agents west and east")
	p.has("Spare path s1/2 s6")
	const body = `{"name":"copy","from":{"host":"h1"},"to":{"site":"south"},"rate":"200Mbit","duration":"2h","class":2,"protected":true}`
	if sent := s.requests(ask); len(sent) != 1 || sent[0].body != body {
		t.Errorf("it asks %+v, want %s", sent, body)
	}
	if n := len(s.requests(create)); n > 0 {
		t.Errorf("%d reservations were made without the button", n)
	}
	s.set(create, 201, granted)
	p.press("Reserve copy")
	p.has("Reserved copy: scheduled, class 2, 200 Mbit/s from h1 to h2")
	if sent := s.requests(create); len(sent) != 1 || sent[0].body != body || sent[0].key == "" {
		t.Errorf("it reserves %+v", sent)
	}

	// A volume has no rate and no duration.
	for _, f := range [][2]string{{"What", "volume"}, {"Volume", "2TB"}, {"Start", ""}, {"End by", "2099-05-02T10:00"}, {"Traffic", "tcp"}, {"Destination ports", "5000-5010"}, {"Paths", "2"}} {
		p.fillIn(f[0], f[1])
	}
	p.Take("carried", chromedp.Click("form .check:nth-of-type(3) input"))
	p.CheckAppearances("reservations with a volume", nil)
	p.press("Ask what fits")
	p.has("This would be granted.")
	const volume = `{"name":"copy","from":{"host":"h1"},"to":{"site":"south"},"volume":"2TB","flows":[{"protocol":"tcp","destination_ports":"5000-5010"}],"class":2,"paths":2,"protected":true,"carry":"relay","until":"2099-05-0`
	if sent := s.requests(ask); len(sent) != 2 || !strings.HasPrefix(sent[1].body, volume) {
		t.Errorf("it asks %+v, want %s...", sent, volume)
	}
	for _, f := range [][2]string{{"What", "rate"}, {"Destination ports", "x"}, {"Traffic", ""}, {"Paths", "1"}} { // what is hidden then is not asked
		p.fillIn(f[0], f[1])
	}

	// A refusal, and an offer that is taken.
	const why = "link s1/1 to s2/1 has 100 Mbit/s free, and 200 Mbit/s are needed"
	offer := reservationRequest{From: end{Host: "h1"}, To: end{Site: "south"}, Class: 2, Rate: "100Mbit", Duration: "2h"}
	later, window := offer, offer
	later.Rate, later.Start = "200Mbit", "2099-05-01T12:00:00Z"
	window.Rate, window.Start, window.Until = "200Mbit", "2099-05-01T11:00:00Z", "2099-05-01T14:00:00Z"
	refused := map[string]any{"title": "Conflict", "status": 409, "detail": why, "refusal": map[string]any{"reason": "no bandwidth", "most": offer, "earliest": later, "window": window}}
	s.set(ask, 409, refused)
	p.press("Ask what fits")
	p.has(why)
	p.has("The most that fits: 100 Mbit/s for 2 h, from now")
	p.Until("three offers", `[...document.querySelectorAll(".offers li")].map((l) => l.innerText.split(":")[0]).join() === "The most that fits,The earliest start,The shortest window"`)
	p.CheckAppearances("reservations with counter-offers", nil)
	s.set(create, 502, map[string]any{"title": "Bad Gateway", "status": 502, "detail": "the leader does not answer"})
	p.press("Reserve 100 Mbit/s for 2 h, from now")
	p.notified("the leader does not answer")
	offered := reserved("-", "copy", "active", 2, 100e6, 0, 2*time.Hour)
	s.set(create, 201, offered)
	p.press("Reserve 100 Mbit/s for 2 h, from now")
	p.has("Reserved copy: active, class 2, 100 Mbit/s")
	sent := s.requests(create)[1:]
	if want := `{"from":{"host":"h1"},"to":{"site":"south"},"class":2,"rate":"100Mbit","duration":"2h","name":"copy"}`; len(sent) != 2 || sent[0].body != want || sent[1] != sent[0] || sent[0].key == "" {
		t.Errorf("it takes the offer with\n%+v\nwant twice, with one key,\n%s", sent, want)
	}

	// A change of the form removes an answer that is not to it, and mistakes are shown.
	s.set(ask, 422, map[string]any{"title": "Unprocessable Content", "status": 422, "detail": "the request is invalid", "errors": []any{map[string]any{"field": "rate", "message": "10Tbit is beyond every link"}}})
	p.fillIn("Rate", "10Tbit")
	p.Until("no answer", `document.querySelector(".answer").innerText === ""`)
	p.press("Ask what fits")
	p.has("the request is invalid: rate: 10Tbit is beyond every link")
	p.fillIn("To", "vlan:x")
	p.press("Ask what fits")
	p.has(`"vlan:x" is not a VLAN: write vlan: and a number from 1 to 4094`)
}

// A tenant has its own reservations and the form, without what is the operator's to see; a viewer only looks.
func TestReservationsPageOfOthers(t *testing.T) {
	t.Parallel()
	s := serveReservations(t, booked()[3:])
	for _, path := range []string{"/v1/session", "/v1/login"} {
		s.set(path, 200, map[string]string{"name": "ops@shop", "role": "tenant", "tenant": "shop"})
	}
	s.set("/v1/network", 403, map[string]any{"title": "Forbidden", "status": 403})
	p := openPage(t, s, "/reservations")
	p.has("1 degraded, 2 scheduled")
	p.has("What if")
	if text := p.Text(); strings.Contains(text, "Availability of a link") || strings.Contains(text, "\nTenant\n") || !strings.Contains(text, "Reservations\n") {
		t.Errorf("a tenant sees\n%s", text)
	}
	s.set("POST /v1/reservations?dry_run=true", 422, map[string]any{"title": "Unprocessable Content", "status": 422, "detail": "tenant shop may not reserve more than 50 Mbit/s"})
	for label, text := range map[string]string{"Name": "x", "From": "h1", "To": "h2", "Rate": "60Mbit"} {
		p.fillIn(label, text)
	}
	p.press("Ask what fits")
	p.has("tenant shop may not reserve more than 50 Mbit/s")

	s.set("/v1/session", 200, map[string]string{"name": "guest", "role": "viewer"})
	s.set("/v1/reservations/calendar", 200, linkCalendar())
	s.set("/v1/network", 200, ring())
	p.Take("reload", chromedp.Reload(), chromedp.WaitVisible(".lane button"))
	p.has("Availability of a link")
	p.press("shop/video")
	p.Until("the dialog", `document.querySelector("dialog") !== null`)
	if text := p.Text(); strings.Contains(text, "Cancel the reservation") || strings.Contains(text, "Ask what fits") || strings.Contains(text, "Use in what-if") {
		t.Errorf("a viewer sees\n%s", text)
	}
}
