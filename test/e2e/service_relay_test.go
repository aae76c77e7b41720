package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/relay/host"
	"headgate.dev/headgate/unit"
)

// relayDocument returns the blocks of docs/relay.md that make a group for a tenant's relay agent: the agent's file,
// and the interface.
func relayDocument(t testing.TB) (file, body string) {
	t.Helper()
	doc, err := os.ReadFile("../../docs/relay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(doc), "\n## Divide and report its bandwidth\n")
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```.*?-d '(.*?)'").FindStringSubmatch(section)
	if !found || blocks == nil {
		t.Fatal("docs/relay.md has no relay agent and interface for a tenant")
	}
	return blocks[1], blocks[2]
}

// The relay agent of a tenant, as documented, carries a connection from the host of a service:
//
//	server (controller, agent, relay agent shop) ── router ──20 Mbit/s── client (relay agent west, iperf3)
//
// The service has its paths, streams and connections, the command prints the same for a host of the service as on the
// host, and the page shows them live and has no accessibility violation. The bytes are the tenant's usage. A relay
// agent that has ended, or was killed, is not shown.
func TestServiceRelay(t *testing.T) {
	t.Parallel() // the test mostly waits
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		l := labtest.Rig(t, lab.RigOptions{Bottleneck: 20 * unit.Mbit, RTT: 10 * time.Millisecond})
		node, client := l.Node("server"), l.Node("client")
		dev, err := node.Device("router")
		if err != nil {
			t.Fatal(err)
		}
		exit, err := client.Addr(false)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		s := serve(t, node, dir)
		s.credentials()
		s.must("PUT", "/v1/tenants/shop", `{}`)
		document, body := relayDocument(t)
		s.must("PUT", "/v1/hosts/h1/interfaces/"+dev, body)

		// usage returns the delivered bytes of the tenant's group, once ok accepts them.
		usage := func(ok func(delivered uint64) bool) uint64 {
			t.Helper()
			for end := time.Now().Add(20 * time.Second); ; time.Sleep(500 * time.Millisecond) {
				text := s.checkOutput(0, "", "report", "--tenant", "shop", "--since", "1h", "-o", "json")
				var got struct {
					Items []struct {
						Group, Tenant string
						Seconds       int
						Delivered     uint64 `json:"delivered_bytes"`
					}
				}
				if err := json.Unmarshal([]byte(text), &got); err != nil {
					t.Fatal(err)
				}
				if len(got.Items) == 1 && got.Items[0].Group == "relay" && got.Items[0].Tenant == "shop" && got.Items[0].Seconds > 0 && ok(got.Items[0].Delivered) {
					return got.Items[0].Delivered
				}
				if time.Now().After(end) {
					t.Fatalf("the usage is %s\n%s", text, s.notes.String())
				}
			}
		}
		usage(func(uint64) bool { return true }) // what is sent before the first record does not count

		// The names of sockets are unique on the machine, and all hosts of the lab are on it.
		name, west := fmt.Sprintf("shop-%d", os.Getpid()), fmt.Sprintf("west-%d", os.Getpid())
		key := filepath.Join(dir, "relay.key")
		s.checkOutput(0, "wrote", "relay", "key", key)
		file := func(name, text string) string {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}
		entry := file("entry.yaml", strings.NewReplacer("name: shop", "name: "+name, "/etc/headgate/relay.key", key, "192.0.2.2:8424", exit.String()+":8424",
			"10.2.0.0/16", "127.0.0.2/32", "10.2.0.5:22", "127.0.0.2:5201").Replace(document))
		accept := file("exit.yaml", fmt.Sprintf("kind: Relay\nname: %s\nkey: %s\naccept: {listen: \"%s:8424\", destinations: [127.0.0.2/32]}\n", west, key, exit))
		run := func(on *lab.Node, command string, args ...string) *lab.Cmd {
			t.Helper()
			c := on.Command(t.Context(), command, args...)
			c.Env, c.Stderr = append(os.Environ(), selfEnv+"=1"), &s.notes
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM); c.Wait() })
			return c
		}
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		run(client, "iperf3", "-s", "-p", "5201")
		run(client, self, "relay", "run", "-f", accept)
		agent := run(node, self, "relay", "run", "-f", entry)

		// until waits until ok accepts the relay agent of the service, nil while it is not there.
		until := func(what string, ok func(*host.Status) bool) host.Status {
			t.Helper()
			var text []byte
			for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
				text = s.must("GET", "/v1/hosts/h1/relays", "")
				var got struct{ Items []host.Status }
				if err := json.Unmarshal(text, &got); err != nil {
					t.Fatal(err)
				}
				var it *host.Status
				if n := slices.IndexFunc(got.Items, func(r host.Status) bool { return r.Agent == name }); n >= 0 {
					it = &got.Items[n]
				}
				if ok(it) {
					if it == nil {
						it = &host.Status{}
					}
					return *it
				}
			}
			t.Fatalf("not within 20 s: %s: %s\n%s", what, text, s.notes.String())
			return host.Status{}
		}
		until("the streams are open", func(r *host.Status) bool { return r != nil && r.Exits[0].Paths[0].Open >= 4 })
		load := run(node, "iperf3", "-c", "127.0.0.1", "-p", "8022", "-t", "300")
		busy := until("the connection is carried", func(r *host.Status) bool { return r != nil && r.Total.Connections == 2 && r.Total.SendRate > 10e6 })
		if p := busy.Exits[0].Paths[0]; p.Name != "fibre" || p.State != host.StreamOpen || p.RTT < 5*time.Millisecond || p.SendRate < 5e6 || len(p.Streams) != p.Open+p.Closed {
			t.Errorf("the path is %+v", p)
		}

		// The command prints the same keys with --server as on the host.
		keys := func(args ...string) (out []string) {
			text := s.checkOutput(0, name, append([]string{"relay", "status", "-o", "json", "--agent", name}, args...)...)
			for _, m := range regexp.MustCompile(`"([a-z_]+)":`).FindAllStringSubmatch(text, -1) {
				if !slices.Contains(out, m[1]) {
					out = append(out, m[1])
				}
			}
			slices.Sort(out)
			return out
		}
		if local, remote := keys(), keys("--server", "default", "--host", "h1"); !slices.Equal(local, remote) {
			t.Errorf("the keys are\n%v, with --server\n%v", local, remote)
		}

		// The page.
		p, origin := s.browse()
		p.signIn(origin, s.token)
		p.press("Relays")
		p.press("h1")
		// Other relay agents of the machine may be on the page.
		p.Until("the relay agent is shown", fmt.Sprintf(`(window.relay = [...document.querySelectorAll("section")].find((s) => s.querySelector("h2").innerText === %q)) !== undefined`, name))
		// Rows outside the window are not in the document.
		scroll := func(to string) string { return fmt.Sprintf("(relay.querySelector(%q).scrollIntoView(), true) && ", to) }
		p.Until("the path and the connection are shown", scroll(".rows")+fmt.Sprintf(`relay.innerText.includes("fibre") && relay.innerText.includes("127.0.0.2:5201") && relay.innerText.includes(%q)`, "exit "+exit.String()+":8424"))
		sending := `relay.querySelector("tr[data-key] td.number").innerText`
		p.Until("the connection with the highest rate is the first", scroll(".rows")+"parseFloat("+sending+") > 5 && "+sending+`.includes("Mbit/s")`)
		first := evaluate[string](p, sending)
		p.Until("its rate changes", scroll(".rows")+fmt.Sprintf("%s !== %q", sending, first))
		p.Take("open the streams", chromedp.Evaluate[chromedp.Void](`relay.querySelector("details").open = true`))
		p.Until("the streams are shown", scroll("details")+`relay.querySelectorAll("details tr[data-key]").length >= 4`)
		p.CheckAppearances("relays", nil)

		// The end of the connection.
		load.Process.Kill()
		load.Wait()
		until("the connections have ended", func(r *host.Status) bool { return r != nil && r.Total.Connections == 0 && r.Total.Ended == 2 })
		p.Take("open the ended connections", chromedp.Evaluate[chromedp.Void](`[...relay.querySelectorAll("details")].at(-1).open = true`))
		p.Until("the ended connections are shown", `[...relay.querySelectorAll("details")].at(-1).innerText.includes("fibre 100 %")`)
		s.checkOutput(0, "fibre 100%", "relay", "status", "--ended", "--agent", name, "--server", "default", "--host", "h1")

		// The tenant's usage. What the other agent has acknowledged has left the device; a part of what was read from
		// the killed application has not.
		sent := until("the relay agent", func(r *host.Status) bool { return r != nil }).Exits[0].Paths[0].Sent
		used := usage(func(delivered uint64) bool { return delivered >= sent })
		if used > sent+sent/4 {
			t.Errorf("the tenant's group has delivered %d bytes, and the relay agent has sent %d: more than a quarter on top", used, sent)
		}

		agent.Process.Signal(syscall.SIGKILL)
		agent.Wait()
		until("a relay agent that was killed is not shown", func(r *host.Status) bool { return r == nil })
		p.Until("the page does not show it", "!relay.isConnected")
		s.checkOutput(1, "relay agent "+name+" is not running on h1", "relay", "status", "--agent", name, "--server", "default", "--host", "h1")
		if wrong := p.Errors(); len(wrong) > 0 {
			t.Errorf("the browser reports:\n%s", strings.Join(wrong, "\n"))
		}
		os.Remove(filepath.Join("/run/headgate/relay", name+".sock"))
	})
}
