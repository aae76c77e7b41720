package web

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/internal/browser"
)

// picturesEnv names the folder of the documentation's pictures.
const picturesEnv = "HEADGATE_PICTURES"

// TestNetworkPictures takes the pictures of the page of the network, if picturesEnv is set. It checks nothing: people review the
// pictures.
func TestNetworkPictures(t *testing.T) {
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		return
	}
	s := serve(t)
	s.set("/v1/network", 200, campus())
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{}})
	p := openNetwork(t, s)
	picture := func(name, path string) {
		t.Helper()
		for _, look := range browser.Viewports {
			if err := p.SetViewport(look.Width, look.Height, look.Dark); err != nil {
				t.Fatal(err)
			}
			p.Take("open "+name, chromedp.Navigate(s.URL+path), chromedp.WaitVisible(".switch"))
			time.Sleep(time.Second) // until charts are drawn
			text, err := p.Screenshot()
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+look.Name+".png"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	picture("network-large", "/network")

	n := ring()
	for i, l := range n.Links {
		items := []map[string]any{}
		for back := range 300 {
			rate := int64(1e6)
			if l.Rate != nil {
				rate = *l.Rate * int64(70+(back*back*(i+3))%60) / 100
			}
			items = append(items, map[string]any{"at": now.Add(time.Duration(back-300) * time.Second), "rate_bps": min(rate, l.Capacity), "drops_per_s": 0, "errors_per_s": 0})
		}
		s.set(fmt.Sprintf("/v1/network/links/%s/%d/history", l.From.Switch, l.From.Port), 200, map[string]any{"from": l.From, "items": items})
	}
	s.set("/v1/network", 200, n)
	picture("network-link", "/network?cable="+url.QueryEscape(id(1)+"/1 "+id(2)+"/1"))

	peer := n.port(5, "faulty")
	n.Faults = append(n.Faults, fault{"one-way", n.port(2, "faulty"), &peer, "frames of s5/eth4 arrive at s2/eth4, but none of s2/eth4 arrive at s5/eth4"})
	n.Switches[2].Current, n.Switches[2].Error = false, "cannot add group 7: the switch has no space for groups"
	from, to := portID{id(4), 8}, portID{id(1), 8}
	s.set("/v1/network/events", 200, map[string]any{"items": []networkEvent{
		{At: now.Add(-9 * time.Minute), Kind: "host-added", Message: "host h6 was found at s6/eth3"},
		{At: now.Add(-4 * time.Minute), Kind: "link-faulty", Message: "s2/eth4 is one-way"},
		{At: now.Add(-time.Minute), Kind: "link-removed", Link: map[string]any{"from": from, "to": to}, Message: "link s4/8 to s1/8 was removed"},
	}})
	s.set("/v1/network", 200, n)
	picture("network", "/network")
}
