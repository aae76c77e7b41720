package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The examples of docs/fabric.md are valid, and so are those of examples; none needs a note.
func TestNetworkDocument(t *testing.T) {
	w := newWorld(t)
	page := networkPage(t)
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(page, -1)
	if len(blocks) < 3 {
		t.Fatalf("docs/fabric.md has %d examples", len(blocks))
	}
	files := []string{"../examples/network.yaml", "../examples/routers.yaml"}
	for i, b := range blocks {
		files = append(files, w.write(string(rune('a'+i))+".yaml", b[1]))
	}
	for _, file := range files {
		if r := w.must("check", "--offline", "-f", file); !strings.HasPrefix(r.out, "network ") && !strings.HasPrefix(r.out, "relay agent ") || r.err != "" {
			t.Errorf("%s: %s%s", file, r.out, r.err)
		}
	}
	w.write("network.yaml", blocks[0][1])
	// The others need a service: TestNetworkApply, TestNetworkCertificate.
	commands := regexp.MustCompile("(?m)^headgate (check .*)$").FindAllStringSubmatch(page, -1)
	if len(commands) == 0 {
		t.Error("docs/fabric.md has no command")
	}
	for _, c := range commands {
		w.must(strings.Fields(strings.ReplaceAll(c[1], "network.yaml", w.dir+"/network.yaml"))...)
	}
}

// docs/fabric.md has every key: those that the error of an unknown key lists.
func TestNetworkKeys(t *testing.T) {
	w := newWorld(t)
	page := networkPage(t)
	for _, c := range []struct{ text, at string }{
		{"zzz: 1", ""},
		{"switches: [{zzz: 1}]", "switches[]."},
		{"routers: [{zzz: 1}]", "routers[]."},
		{"links: [{zzz: 1}]", "links[]."},
		{"hosts: [{zzz: 1}]", "hosts[]."},
		{"relays: {zzz: 1}", "relays."},
		{"relays: {redirect: [{zzz: 1}]}", "relays.redirect[]."},
		{"listen: [{zzz: 1}]", "listen[]."},
	} {
		r := w.run("check", "--offline", "-f", w.write("keys.yaml", "kind: Network\nname: n\n"+c.text+"\n"))
		_, keys, found := strings.Cut(r.err, "write one of ")
		keys, _, _ = strings.Cut(keys, "\n")
		if !found {
			t.Errorf("%s: %s", c.text, r.err)
		}
		for _, key := range strings.Split(keys, ", ") {
			if key != "kind" && !strings.Contains(page, "\n| `"+c.at+key+"` |") {
				t.Errorf("docs/fabric.md has no row of `%s%s`", c.at, key)
			}
		}
	}
	for _, key := range []string{"`name`", "`parent`"} { // of a site, in one row
		if !regexp.MustCompile("(?m)^\\| `sites` \\|.*" + key).MatchString(page) {
			t.Errorf("the row of sites has no %s", key)
		}
	}
}

// A command that shapes devices names the command for documents of other kinds.
func TestNoInterface(t *testing.T) {
	w := newWorld(t)
	network := w.write("network.yaml", "kind: Network\nname: n\nswitches: [{id: 1}]\n")
	both := w.write("both.yaml", "kind: Network\nname: n\nswitches: [{id: 1}]\n---\nkind: Servers\nservers: [{name: a, address: 10.0.0.1}, {name: b, address: 10.0.0.2}]\n")
	const none = "no interface is configured: add a document that begins with kind: Interface"
	for args, want := range map[string]string{
		"apply -f " + network:                     none + `; kind: Network is for "headgate network apply"`,
		"plan -f " + network:                      none + `; kind: Network is for "headgate network apply"`,
		"plan -f " + both:                         none + `; kind: Network is for "headgate network apply"; kind: Servers is for "headgate probe mesh"`,
		"explain --busy -f " + network:            none + `; kind: Network is for "headgate network apply"`,
		"collective run -f " + network:            "no connection set is configured: add a document that begins with kind: Collective",
		"relay run -f " + network:                 "no document of kind: Relay is in the configuration",
		"apply --server x --host y -f " + network: `no document for a host: write documents with kind: Interface or kind: Collective; kind: Network is for "headgate network apply"`,
	} {
		if r := w.run(strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d: %s, want %s", args, r.code, r.err, want)
		}
	}
}

// networkPage returns docs/fabric.md.
func networkPage(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/fabric.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
