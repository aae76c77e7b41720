package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// codeBlocks returns the blocks of code in one language of a section of a document of docs, or of the whole document.
func codeBlocks(t testing.TB, doc, section, language string) (all []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", doc))
	if err != nil {
		t.Fatal(err)
	}
	within := string(text)
	if section != "" {
		_, within, _ = strings.Cut(within, "\n## "+section+"\n")
		within, _, _ = strings.Cut(within, "\n## ")
	}
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)```").FindAllStringSubmatch(within, -1) {
		all = append(all, m[1])
	}
	if len(all) == 0 {
		t.Fatalf("docs/%s has no block of %s in the section %q", doc, language, section)
	}
	return all
}

// programDir returns a folder for PATH with the program under its name.
func programDir(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "headgate"), fmt.Appendf(nil, "#!/bin/sh\nexport %s=1\nexec %s \"$@\"\n", selfEnv, self), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// The commands of docs/reservations.md, with the addresses of this network in place of the guide's. The program of its last block has a test of its own
// (package test/clients).
//
//	web1 --+           +-- c1 --+           +-- store
//	       +-- s1 -----+        +----- s2 --+
//	near --+    |      +-- c2 --+           +-- far
//	        controller
func TestReservationsGuide(t *testing.T) {
	labtest.NeedRoot(t)
	labtest.Try(t, func(t *labtest.Check) {
		hosts := []string{"web1", "near", "far", "store", "c"}
		l := labtest.Up(t, switched("guide", hosts, []string{"s1", "s2", "c1", "c2"}, [][2]string{{"web1", "s1"}, {"near", "s1"}, {"s1", "c1"}, {"s1", "c2"}, {"c", "s1"}, {"far", "s2"}, {"store", "s2"}, {"c1", "s2"}, {"c2", "s2"}}))
		addr := addressesOf(t, l, hosts...)
		dir := t.TempDir()
		write := func(name, text string) string {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			return file
		}
		s := serve(t, l.Node("c"), dir, "--listen", "0.0.0.0", "--certificate-for", addr["c"].String())
		programs := programDir(t)
		guide := strings.NewReplacer("10.0.0.9", addr["store"].String(), "10.0.0.11", addr["web1"].String(), "10.0.0.13", addr["store"].String(),
			"headgate reserve top", "headgate reserve top --once")
		paste := func(text string) string {
			t.Helper()
			text = guide.Replace(text)
			c := l.Node("c").Command(t.Context(), "bash", "-e", "-c", text)
			c.Dir, c.Env = dir, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"), "XDG_CONFIG_HOME="+dir)
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %v: %s\n%s", text, err, out, s.notes.String())
			}
			return string(out)
		}
		paste("headgate login https://127.0.0.1:8420 --pin " + s.pin + " --token-file controller/operator.token")
		write("network.yaml", fmt.Sprintf(`kind: Network
name: campus
switches: [{id: 1, name: s1}, {id: 2, name: s2}, {id: 3, name: c1}, {id: 4, name: c2}]
listen: [{address: %q, tls: false}]
relays: {agents: [%s, %s]}
`, openFlowAddress(t, l), addr["near"], addr["far"]))
		paste("headgate network apply -f network.yaml")
		for _, pair := range [][2]string{{"web1", "store"}, {"near", "far"}, {"web1", "c"}} {
			s.eventually(pair[0]+" reaches "+pair[1], func() bool { _, err := pingOnce(l.Node(pair[0]), addr[pair[1]]); return err == nil })
		}
		s.join("web1", l.Node("web1"), addr["c"].String())
		s.eventually("the network knows the host web1", func() bool {
			return !strings.Contains(paste(guide.Replace("headgate reserve what-if --from web1 --to 10.0.0.9 --rate 1Mbit --for 1h 2>&1 || true")), "knows no host")
		})
		paste("headgate relay key relay.key && headgate tenant create shop")
		for host, text := range map[string]string{
			"far": fmt.Sprintf("accept: {listen: [\"%[1]s:8424\", \"%[1]s:8425\"], destinations: [%[2]s/32], keep_source: true}\n", addr["far"], addr["store"]),
			"near": fmt.Sprintf("exits:\n  - address: %[1]s:8424\n    destinations: [%[2]s/32]\n    paths: [{name: one, address: \"%[1]s:8424\"}, {name: two, address: \"%[1]s:8425\"}]\ntake: [{dport: 5001-5100}]\n",
				addr["far"], addr["store"]),
		} {
			device, err := l.Node(host).Device(map[string]string{"near": "s1", "far": "s2"}[host])
			if err != nil {
				t.Fatal(err)
			}
			file := write(host+".yaml", fmt.Sprintf("kind: Relay\nname: %s-%d\nkey: %s\nnetwork: %s\n", host, os.Getpid(), filepath.Join(dir, "relay.key"), device)+text)
			c := l.Node(host).Command(t.Context(), filepath.Join(programs, "headgate"), "relay", "run", "-f", file)
			c.Stderr = &s.notes
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { c.Process.Signal(syscall.SIGTERM); c.Wait() })
		}
		s.eventually("the network knows both relay agents", func() bool {
			return strings.Count(paste("headgate network events --kind relay"), "relay agent") >= 2
		})
		s.eventually("the relay agents have streams between them", func() bool {
			return !strings.Contains(paste(guide.Replace("headgate reserve what-if --from web1 --to 10.0.0.9 --protocol tcp --port 5001-5100 --rate 1Mbit --for 1h --carry relay 2>&1 || true")), "no relay agents carry")
		})

		write("reservations.yaml", guide.Replace("kind: Reservation\nname: nightly\nfrom: web1\nto: 10.0.0.9\nrate: 100Mbit\nfor: 1h\n"))
		said := ""
		for _, block := range codeBlocks(t, "reservations.md", "", "sh") {
			if strings.Contains(block, "examples/tenant/") {
				continue
			}
			said += paste(block)
			t.Logf("%s", block)
			if strings.Contains(block, "--carry relay") {
				for _, file := range codeBlocks(t, "reservations.md", "", "yaml") {
					write("copy.yaml", guide.Replace(file))
					said += paste("headgate reserve apply -f copy.yaml")
				}
			}
		}
		for _, want := range []string{"nightly", "UNMET", "cancelled"} {
			if !strings.Contains(said, want) {
				t.Errorf("the commands do not print %q:\n%s", want, said)
			}
		}
	})
}

// The commands of docs/lab.md, with shorter runs, and leave nothing.
func TestLabGuide(t *testing.T) {
	labtest.NeedRoot(t)
	dir := t.TempDir()
	shorter := strings.NewReplacer("at: 10s", "at: 1s", "duration: 20s", "duration: 2s")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, text := range codeBlocks(t, "lab.md", "", "yaml") {
		if name, _, named := strings.Cut(strings.TrimPrefix(text, "# "), ":"); named && strings.HasSuffix(name, ".yaml") {
			write(name, shorter.Replace(text))
		}
	}
	other, err := os.ReadFile(filepath.Join(dir, "lab.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	write("other.yaml", strings.Replace(string(other), "name: first", "name: other", 1))
	blocks := codeBlocks(t, "lab.md", "", "sh")
	if len(blocks) != 2 {
		t.Errorf("docs/lab.md has %d blocks of commands, want 2", len(blocks))
	}
	t.Cleanup(func() { _ = lab.Down("first"); _ = lab.Down("switched") })
	programs := programDir(t)
	labtest.Try(t, func(t *labtest.Check) { // the lab refuses the results of a busy machine
		_, _ = lab.Down("first"), lab.Down("switched")
		for _, block := range blocks {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			c := exec.CommandContext(ctx, "bash", "-e", "-c", block)
			c.Dir, c.WaitDelay, c.Env = dir, 5*time.Second, append(os.Environ(), "PATH="+programs+":"+os.Getenv("PATH"))
			out, err := c.CombinedOutput()
			cancel()
			if err != nil {
				t.Fatalf("%s: %v: %s", block, err, out)
			}
			t.Logf("%s", out)
		}
		var result map[string]any
		text, err := os.ReadFile(filepath.Join(dir, "result.json"))
		if err == nil {
			err = json.Unmarshal(text, &result)
		}
		if err != nil || result["flows"] == nil {
			t.Errorf("result.json: %v: %s", err, text)
		}
		labs, err := lab.Leftovers()
		if err != nil || slices.ContainsFunc(labs, func(l lab.Leftover) bool { return l.Name == "first" || l.Name == "switched" }) {
			t.Errorf("a lab is still there: %+v, %v", labs, err)
		}
	})
}
