package ovsdb

import (
	"net"
	"path/filepath"
	"testing"
)

func TestAddress(t *testing.T) {
	for address, want := range map[string]string{
		"":                   "is not the address of an OVSDB server: write unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT",
		"unix:":              "is not the address",
		"/var/run/db.sock":   "is not the address",
		"ptcp:6640":          "is not the address",
		"tcp:::1":            "an IPv6 address needs brackets: write tcp:[::1]:6640",
		"ssl:127.0.0.1":      "TLS needs a certificate",
		"tcp:127.0.0.1:none": "unknown port",
		"unix:" + filepath.Join(t.TempDir(), "none"): "no such file",
	} {
		_, err := Dial(testContext(t), address, nil)
		wantError(t, err, "cannot connect to the OVSDB server "+address+": ", want)
	}
}

// An address with a host and no port has the port of RFC 7047, and IPv6 works.
func TestAddressIPv6(t *testing.T) {
	l, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skipf("needs IPv6: %v", err)
	}
	defer l.Close()
	conn, err := connect(testContext(t), "tcp:"+l.Addr().String(), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	l.Close()
	if l, err = net.Listen("tcp", "[::1]:"+defaultPort); err != nil {
		return // a server of this machine has it
	}
	defer l.Close()
	conn, err = connect(testContext(t), "tcp:[::1]", nil)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
