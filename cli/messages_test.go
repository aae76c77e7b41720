package cli

import (
	"net"
	"strings"
	"testing"
)

// A command that needs one document of a kind says how many there are, and where.
func TestOneDocument(t *testing.T) {
	w := newWorld(t)
	const relay = "kind: Relay\nname: NAME\nkey: /etc/headgate/relay.key\naccept: {listen: \"127.0.0.1:8424\", destinations: [10.2.0.0/16]}\n"
	east, two := w.write("east.yaml", strings.Replace(relay, "NAME", "east", 1)), ""
	for _, name := range []string{"west", "north"} {
		two += "---\n" + strings.Replace(relay, "NAME", name, 1)
	}
	two = w.write("two.yaml", two)
	for args, want := range map[string]string{
		"relay run -f " + two:                 "two.yaml:7: this is the second of 2 documents of kind: Relay, the first is two.yaml:2: keep one",
		"relay run -f " + east + " -f " + two: "two.yaml:2: this is the second of 3 documents of kind: Relay, the first is east.yaml:1: keep one",
		"controller -f " + east:               "east.yaml: no document of kind: Controllers is in the configuration: add one, or set -f to a file that has one",
		"probe mesh -f " + east:               "east.yaml: no document of kind: Servers is in the configuration: add one, or set -f to a file that has one",
	} {
		if r := w.run(strings.Fields(args)...); r.code != exitUsage || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d: %s, want %s", args, r.code, r.err, want)
		}
	}
}

// A command whose address is in use says which flag or key has it.
func TestAddressInUse(t *testing.T) {
	w := newWorld(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	used, key := l.Addr().String(), w.dir+"/relay.key"
	w.must("relay", "key", key)
	relay := func(name, text string) string {
		return w.write(name+".yaml", "kind: Relay\nname: "+name+"\nkey: "+key+"\nexits: [{address: \"127.0.0.1:1\", destinations: [10.2.0.0/16]}]\n"+text)
	}
	if r := w.run("relay", "forward", used, "10.2.0.5:22", "--exit", "127.0.0.1:1", "--key-file", key); r.code != exitFailed || !strings.Contains(r.err, "or set listen in forward to another") {
		t.Errorf("relay forward: %+v", r)
	}
	for args, want := range map[string]string{
		"relay run -f " + relay("socks", "socks: {listen: \""+used+"\"}\n"):                                "or set listen in socks to another",
		"relay run -f " + relay("http", "http_proxy: {listen: \""+used+"\"}\n"):                            "or set listen in http_proxy to another",
		"relay run -f " + relay("accept", "accept: {listen: \""+used+"\", destinations: [10.3.0.0/16]}\n"): "or set listen in accept to another",
		"relay run -f " + relay("metrics", "socks: {listen: \"127.0.0.1:1\"}\n") + " --metrics " + used:    "or set --metrics to another",
		"relay run -f " + relay("portless", "socks: {listen: \"127.0.0.1:1\"}\n") + " --metrics 9423":      "set --metrics to an address and a port",
		"probe serve --open --listen " + used:                                                              "or set --listen to another",
		"controller --data " + w.dir + "/controller --metrics " + used:                                     "or set --metrics to another",
	} {
		if r := w.run(strings.Fields(args)...); r.code != exitFailed || !strings.Contains(r.err, want) {
			t.Errorf("%s: exit %d: %s, want %s", args, r.code, r.err, want)
		}
	}
}
