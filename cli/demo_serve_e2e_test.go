package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/demo"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/unit"
)

// TestDemoServe: with the address and tokens that demo --serve prints, clients on this machine read
// changing rates, and demo --end removes everything.
func TestDemoServe(t *testing.T) {
	labtest.NeedRoot(t)
	before := trace(t)
	served := exec.Command(os.Args[0], "demo", "--serve", "--fast", "-o", "json")
	served.Env = append(os.Environ(), selfEnv+"=1")
	var story bytes.Buffer
	served.Stderr = &story
	told, err := served.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := served.Start(); err != nil {
		t.Fatal(err)
	}
	name := demoName(served.Process.Pid)
	t.Cleanup(func() { _ = served.Process.Kill() })
	var r demo.Access
	if err := json.NewDecoder(told).Decode(&r); err != nil {
		_ = served.Wait()
		t.Fatalf("demo --serve printed no addresses: %v\n%s", err, story.String())
	}
	if r.Network != name || len(r.Logins) != 1+len(scenario.Tenants) || !strings.HasPrefix(r.URL, "https://127.0.0.1:") {
		t.Fatalf("demo --serve: %+v", r)
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: pki.Pinned("127.0.0.1", r.Pin), ForceAttemptHTTP2: true}}
	page, err := client.Get(r.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	page.Body.Close()
	if kind := page.Header.Get("Content-Type"); page.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("the address serves no HTML page: %s, %s", page.Status, kind)
	}
	rates := func(l demo.Login, host string) (list api.RateList) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.URL+"/v1/hosts/"+host+"/rates", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+l.Token)
		answer, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil || answer.StatusCode != http.StatusOK || json.Unmarshal(text, &list) != nil {
			t.Fatalf("rates of %s: %s, %v, %s", host, answer.Status, err, text)
		}
		return list
	}
	// In the quiet phase the rate of storage is 8 Mbit/s, in the next its guarantee.
	storage := func() unit.Rate {
		for _, g := range rates(r.Logins[0], scenario.Hosts[0]).Items {
			if g.Direction == "out" && g.Group == "media/storage" {
				return unit.Rate(g.DeliveredBps)
			}
		}
		return 0
	}
	var seen []unit.Rate
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(300 * time.Millisecond) {
		seen = append(seen, storage())
		if most := slices.Max(seen); most > 30*unit.Mbit && slices.Min(seen) < most/2 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("rates of storage: %v\n%s", seen, story.String())
		}
	}
	for _, l := range r.Logins[1:] {
		for _, host := range scenario.Hosts {
			for _, g := range rates(l, host).Items {
				if g.Group != l.Tenant && !strings.HasPrefix(g.Group, l.Tenant+"/") {
					t.Errorf("%s sees the group %s", l.Tenant, g.Group)
				}
			}
		}
	}
	var invited strings.Builder
	if err := r.Write(&invited); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"  " + r.URL + "/\n", "operator      " + r.Logins[0].Token, "tenant media  " + r.Logins[1].Token, "headgate demo --end"} {
		if !strings.Contains(invited.String(), want) {
			t.Errorf("the text output lacks %q:\n%s", want, invited.String())
		}
	}
	var out, errs bytes.Buffer
	if code := Run([]string{"demo", "--end"}, strings.NewReader(""), &out, &errs); code != exitOK || !strings.Contains(out.String(), "Stopped the served demo "+name) {
		t.Errorf("demo --end: exit %d: %s%s", code, out.String(), errs.String())
	}
	if err := served.Wait(); err != nil {
		t.Errorf("demo --serve: %v: %s", err, story.String())
	}
	if !strings.Contains(story.String(), "Cleaned up") {
		t.Errorf("demo --serve does not report that it cleaned up:\n%s", story.String())
	}
	checkDemoRemoved(t, before, name)
}
