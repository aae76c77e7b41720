package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/demo"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/browser"
	"headgate.dev/headgate/internal/browser/browsertest"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/lab/labtest"
)

// picturesEnv is the environment variable with the folder for the dashboard's pictures.
const picturesEnv = "HEADGATE_PICTURES"

// liveDemo is a served demo with additional activity.
type liveDemo struct {
	t      *testing.T
	client *http.Client
	demo.Access
}

func (s *liveDemo) headgate(args ...string) string {
	s.t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), selfEnv+"=1")
	out, err := c.CombinedOutput()
	if err != nil {
		s.t.Fatalf("headgate %s: %v %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// within runs a command in a node of the demo's network.
func (s *liveDemo) within(node string, command ...string) string {
	s.t.Helper()
	return s.headgate(append([]string{"lab", "exec", node, "--lab", s.Network, "--"}, command...)...)
}

// must sends a request as the operator (0) or a tenant.
func (s *liveDemo) must(login int, method, path, body string) []byte {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+s.Logins[login].Token)
	request.Header.Set("Content-Type", map[bool]string{true: "application/merge-patch+json", false: "application/json"}[method == "PATCH"])
	answer, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode >= 300 {
		s.t.Fatalf("%s %s: %s %v %s", method, path, answer.Status, err, text)
	}
	return text
}

// addActivity adds probes through limited links, an assigned connection, and a disconnected host.
func (s *liveDemo) addActivity() {
	// The bucket is smaller than a super-packet, so that the kernel segments super-packets.
	for host, rate := range map[string]string{"host1": "90mbit", "host2": "60mbit", "host3": "25mbit"} {
		s.within("management", "tc", "qdisc", "add", "dev", host, "root", "tbf", "rate", rate, "burst", "15kb", "latency", "50ms")
	}
	s.must(0, "PUT", "/v1/tenants/media", `{"description": "Films and their backups"}`)
	s.must(0, "PUT", "/v1/tenants/shop", `{"description": "The shop, its exports and its calls", "requests_per_second": 100}`)
	s.must(0, "PUT", "/v1/hosts/host4", `{"description": "Comes next week"}`)
	s.must(0, "PUT", "/v1/probe-schedule", `{"measures": [{"measure": "tokenrate", "every": "1m"}, {"measure": "limiter", "every": "1m"}, {"measure": "available", "every": "1m"}],
		"bytes": "10MB", "time": "10s", "budget": "100GB", "hosts": [{"host": "host1"}, {"host": "host2"}, {"host": "host3"}],
		"quiet": [{"days": ["sat", "sun"], "from": "01:00", "to": "01:30"}]}`)
	s.must(2, "PATCH", "/v1/hosts/host1/interfaces/"+scenario.Dev+"/out/groups/shop%2Fexport", `{"guarantee": "25Mbit"}`)
	ends := regexp.MustCompile(`([0-9.]+:9000)\s+([0-9.]+:[0-9]+)`).FindStringSubmatch(s.within("host1", "ss", "-Htn", "sport = :9000"))
	if ends == nil {
		s.t.Fatal("no connection of the download")
	}
	s.must(2, "PUT", "/v1/hosts/host1/interfaces/"+scenario.Dev+"/connections/"+url.PathEscape("tcp "+ends[1]+" "+ends[2]), `{"group": "shop/export"}`)
}

// addConnectionSets creates connection sets on host1.
func (s *liveDemo) addConnectionSets() {
	// All hosts are on one machine, and a set without a cgroup controls all connections that match.
	for name, match := range map[string]string{"storage": "sport: 3260, dst: 10.0.4.0/24", "export": "sport: 443, dst: 10.0.5.0/24"} {
		document, _ := json.Marshal(map[string]string{"document": fmt.Sprintf("kind: Collective\nname: %s\nmatch: [{%s}]\n", name, match)})
		s.must(0, "PUT", "/v1/hosts/host1/collectives/"+name, string(document))
	}
}

// addRelay carries connections from host1 to host2 over two paths: by the management network, and by the uplink.
func (s *liveDemo) addRelay() {
	dir := s.t.TempDir()
	s.headgate("relay", "key", filepath.Join(dir, "key"))
	write := func(name, text string, args ...any) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, fmt.Appendf(nil, text, args...), 0o600); err != nil {
			s.t.Fatal(err)
		}
		return path
	}
	address := func(dev string) string {
		m := regexp.MustCompile(`inet ([0-9.]+)/`).FindStringSubmatch(s.within("host2", "ip", "-4", "-o", "addr", "show", "dev", dev))
		if m == nil {
			s.t.Fatalf("host2 has no address on %s", dev)
		}
		return m[1] + ":8424"
	}
	s.within("host1", "ip", "addr", "add", "10.1.0.5/32", "dev", "lo")
	s.within("host2", "ip", "addr", "add", "10.2.0.5/32", "dev", "lo")
	exit := write("exit.yaml", "kind: Relay\nname: west\nkey: %s/key\naccept: {listen: \"0.0.0.0:8424\", destinations: [10.2.0.0/16]}\n", dir)
	fibre, radio := address("management"), address(scenario.Dev)
	entry := write("entry.yaml", "kind: Relay\nname: east\nkey: %s/key\nexits:\n  - {address: %q, destinations: [10.2.0.0/16], paths: [{name: fibre, address: %[2]q}, {name: radio, address: %q}]}\nforward: [{listen: \"10.1.0.5:8022\", to: \"10.2.0.5:5201\"}]\n",
		dir, fibre, radio)
	run := func(node string, command ...string) {
		c := exec.Command(os.Args[0], append([]string{"lab", "exec", node, "--lab", s.Network, "--"}, command...)...)
		c.Env = append(os.Environ(), selfEnv+"=1")
		if err := c.Start(); err != nil {
			s.t.Fatal(err)
		}
		s.t.Cleanup(func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		})
		time.Sleep(2 * time.Second) // until it listens
	}
	run("host2", "iperf3", "-s", "-p", "5201")
	// All hosts are on one machine: the agent of host1 would show the exit.
	run("host2", "unshare", "-m", "sh", "-c", `mount -t tmpfs none /run/headgate/relay && exec "$@"`, "sh", os.Args[0], "relay", "run", "-f", exit)
	run("host1", os.Args[0], "relay", "run", "-f", entry)
	run("host1", "iperf3", "-c", "10.1.0.5", "-p", "8022", "-P", "3", "-t", "300")
}

// takePictures takes pictures of a page in its full length: light, dark and narrow.
func (p page) takePictures(dir, name string) {
	p.T.Helper()
	for _, look := range browser.Viewports {
		if err := p.SetViewport(look.Width, look.Height, look.Dark); err != nil {
			p.T.Fatal(err)
		}
		time.Sleep(time.Second)
		length := evaluate[float64](p, "document.querySelector('dialog') ? innerHeight : document.documentElement.scrollHeight")
		if err := p.SetViewport(look.Width, min(max(int64(length), look.Height*2/3), 3*look.Height), look.Dark); err != nil {
			p.T.Fatal(err)
		}
		time.Sleep(1500 * time.Millisecond) // until animations have ended
		text, err := p.Screenshot()
		if err != nil {
			p.T.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+"-"+look.Name+".png"), text, 0o644); err != nil {
			p.T.Fatal(err)
		}
	}
	if err := p.SetViewport(1440, 900, false); err != nil {
		p.T.Fatal(err)
	}
}

// TestPictures takes the pictures of docs/pictures, if picturesEnv is set. It takes seven minutes and checks
// nothing: people review the pictures.
func TestPictures(t *testing.T) {
	dir := os.Getenv(picturesEnv)
	if dir == "" {
		return
	}
	labtest.NeedRoot(t)
	served := exec.Command(os.Args[0], "demo", "--serve", "-o", "json")
	served.Env = append(os.Environ(), selfEnv+"=1")
	told, err := served.StdoutPipe()
	if err == nil {
		err = served.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = served.Process.Signal(syscall.SIGTERM)
		_ = served.Wait()
	}()
	s := &liveDemo{t: t}
	if err := json.NewDecoder(told).Decode(&s.Access); err != nil {
		t.Fatal(err)
	}
	s.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{TLSClientConfig: pki.Pinned("127.0.0.1", s.Pin)}}
	s.addActivity()
	p := page{browsertest.Open(t, s.URL)}
	open := func(path string) {
		p.Take("open "+path, chromedp.Navigate(s.URL+path), chromedp.WaitVisible("main h1"))
		p.Until(path+" has loaded", `!document.querySelector("main").innerText.includes("…")`)
	}
	take := func(name, path string, stay time.Duration) {
		open(path)
		time.Sleep(stay)
		p.takePictures(dir, name)
	}
	press := func(words string) {
		p.Take("press "+words, chromedp.Evaluate[chromedp.Void](fmt.Sprintf(`[...document.querySelectorAll("button, a")].findLast((b) => (b.getAttribute("aria-label") ?? b.innerText) === %q).click()`, words)))
	}
	p.Take("open", chromedp.Navigate(s.URL), chromedp.WaitVisible("#token"))
	p.takePictures(dir, "login")
	p.signIn(s.URL, s.Logins[0].Token)
	device := "/hosts/host1/" + scenario.Dev
	take("interface", device+"?direction=out", 70*time.Second)
	press("Edit shop/export")
	p.Take("a form", chromedp.WaitVisible("dialog form"))
	p.Take("another guarantee", chromedp.Evaluate[chromedp.Void](`(() => {
			const set = (label, v) => { [...document.querySelectorAll("dialog label")].find((l) => l.innerText === label).control.value = v; };
			set("Guarantee", "30Mbit"); set("Ceiling", "60Mbit");
		})()`))
	press("Preview changes")
	p.Until("the preview is shown", `document.querySelectorAll("dialog").length === 2`)
	p.takePictures(dir, "group")
	press("Apply")
	p.Until("the change is made", `document.querySelector(".toast") !== null`)
	p.takePictures(dir, "undo")
	take("overview", "/", 2*time.Second)
	take("host", "/hosts/host1", 2*time.Second)
	take("tenants", "/tenants", 0)
	take("tenant", "/tenants/shop", 0)
	s.addConnectionSets()
	take("collectives", "/collectives/host1", 60*time.Second)
	s.addRelay()
	take("relays", "/relays/host1", 60*time.Second)
	take("probes", "/probes", 2*time.Second)
	press("Propose limits for host3")
	p.Take("a plan", chromedp.WaitVisible("dialog table"))
	p.takePictures(dir, "proposal")
	take("probe-history", "/probes/host1/host3?measure=tokenrate", 2*time.Second)
	take("events", "/events", 0)
	take("empty", "/collectives/host4", time.Second)
	take("error", "/hosts/nowhere", time.Second)
	p.press("Sign out")
	p.signIn(s.URL, s.Logins[2].Token)
	take("as-tenant", device+"?direction=out", 20*time.Second)
}
