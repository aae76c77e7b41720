package host

import (
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/relay"
)

// documented returns the commands in the blocks of a section of docs/relay.md.
func documented(t *testing.T, section string) (blocks [][][]string) {
	t.Helper()
	text, err := os.ReadFile("../../docs/relay.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/relay.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	for _, b := range strings.Split(rest, "```sh\n")[1:] {
		b, _, _ = strings.Cut(b, "```")
		var lines [][]string
		for line := range strings.Lines(b) {
			line, _, _ = strings.Cut(line, "#")
			lines = append(lines, strings.Fields(line))
		}
		blocks = append(blocks, lines)
	}
	return blocks
}

// The documented commands print what a killed agent leaves in the kernel, and remove it. Meanwhile
// connections go direct.
//
//	client == router == server
func TestDocumentedState(t *testing.T) {
	labtest.NeedRoot(t)
	l := labtest.Rig(t, lab.RigOptions{})
	router, server := l.Node("router"), l.Node("server")
	at, err := server.Addr(false)
	if err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	do(t, server, func() (err error) { listener, err = net.Listen("tcp", netip.AddrPortFrom(at, 7).String()); return err })
	defer listener.Close()
	arrives := func() bool {
		err := l.Node("client").Do(func() error {
			c, err := net.DialTimeout("tcp", listener.Addr().String(), time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
		return err == nil
	}
	if !arrives() {
		t.Fatal("no connection without an agent")
	}
	do(t, router, interception{port: transparentPort, rules: []takeRule{{Rule: relay.Rule{Ports: []relay.Ports{{From: 7, To: 7}}}, destinations: prefixes("0.0.0.0/0", "::/0")}}}.apply)
	if !arrives() {
		t.Error("a connection does not go direct after the agent was killed")
	}
	blocks := documented(t, "State in the kernel")
	if len(blocks) != 2 {
		t.Fatalf("%d blocks of commands, want 2", len(blocks))
	}
	for _, command := range blocks[0] {
		if text := labtest.Run(t, router, command[0], command[1:]...); text == "" {
			t.Errorf("%q prints nothing", command)
		}
	}
	for _, command := range blocks[1] {
		labtest.Run(t, router, command[0], command[1:]...)
	}
	for _, family := range []string{"-4", "-6"} {
		if left := labtest.Run(t, router, "nft", "list", "ruleset") + labtest.Run(t, router, "ip", family, "rule", "show") + labtest.Run(t, router, "ip", family, "route", "show", "table", "all"); strings.Contains(left, "headgate") || strings.Contains(left, "8424") {
			t.Errorf("%s is left", left)
		}
	}
	if !arrives() {
		t.Error("no connection after the commands")
	}
}

// The documented rules send a path over its link.
func TestDocumentedPaths(t *testing.T) {
	labtest.NeedRoot(t)
	node := labtest.Rig(t, lab.RigOptions{}).Node("client")
	for _, line := range []string{
		"link add eth0 type veth peer name far0", "link add eth1 type veth peer name far1", "link set far0 up", "link set far1 up", "link set eth0 up", "link set eth1 up",
		"address add 192.0.2.1/24 dev eth0", "address add 198.51.100.1/24 dev eth1",
	} {
		labtest.Run(t, node, "ip", strings.Fields(line)...)
	}
	routes := 0
	for _, block := range documented(t, "Route the paths") {
		for _, command := range block {
			text := labtest.Run(t, node, command[0], command[1:]...)
			if strings.HasPrefix(strings.Join(command, " "), "ip route get") {
				routes++
				if !strings.Contains(text, "via 198.51.100.254 dev eth1") || !strings.Contains(text, "198.51.100.1") {
					t.Errorf("%q prints %s", command, text)
				}
			}
		}
	}
	if routes != 2 {
		t.Errorf("%d routes are shown, want 2", routes)
	}
}
