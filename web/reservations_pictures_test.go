package web

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/internal/browser"
)

// TestReservationsPictures takes the pictures of the page of reservations, if picturesEnv is set. It checks nothing: people review the
// pictures.
func TestReservationsPictures(t *testing.T) {
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		return
	}
	s := serveReservations(t, booked())
	s.set("/v1/reservations/calendar", 200, linkCalendar())
	offer := reservationRequest{From: end{Host: "h1"}, To: end{Host: "h2"}, Class: 2, Rate: "100Mbit", Duration: "2h"}
	later := offer
	later.Rate, later.Start = "400Mbit", time.Now().Add(3*time.Hour).UTC().Truncate(time.Minute).Format(time.RFC3339)
	s.set("POST /v1/reservations?dry_run=true", 409, map[string]any{"title": "Conflict", "status": 409,
		"detail":  "the link s1/eth1 to s2/eth1 has 100 Mbit/s free at this time, and the reservation needs 400 Mbit/s",
		"refusal": map[string]any{"reason": "no bandwidth", "most": offer, "earliest": later}})
	p := openPage(t, s, "/reservations")
	picture := func(name string, also func()) {
		t.Helper()
		for _, look := range browser.Viewports {
			if err := p.SetViewport(look.Width, look.Height, look.Dark); err != nil {
				t.Fatal(err)
			}
			p.Take("open "+name, chromedp.Navigate(s.URL+"/reservations"), chromedp.WaitVisible(".lane button"), chromedp.WaitVisible(".free svg"))
			also()
			time.Sleep(500 * time.Millisecond) // until all is drawn
			text, err := p.Screenshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+look.Name+".png"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	picture("reservations", func() {})
	picture("availability", func() {
		value[bool](p, `(document.querySelector(".free").closest("section").scrollIntoView({block: "end"}), true)`)
	})
	picture("what-if", func() {
		for label, text := range map[string]string{"Name": "copy", "From": "h1", "To": "h2", "Rate": "400Mbit", "Class": "2"} {
			p.fillIn(label, text)
		}
		p.press("Ask what fits")
		p.has("The earliest start")
		value[bool](p, `(document.querySelector("form").closest("section").scrollIntoView({block: "start"}), true)`)
	})
}
