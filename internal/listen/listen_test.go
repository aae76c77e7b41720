package listen

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The remedy follows from the cause.
func TestRemedy(t *testing.T) {
	used, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	for address, want := range map[string]string{
		used.Addr().String(): `bind: address already in use: stop the program that listens there ("ss -lnp" lists programs), or set --at to another address or port`,
		"192.0.2.1:0":        `bind: cannot assign requested address: set --at to an address of this host ("ip address" lists them)`,
		"9423":               "missing port in address: set --at to an address and a port, such as 127.0.0.1:9000",
	} {
		_, err := net.Listen("tcp", address)
		if got := Remedy(err, "--at"); !strings.HasSuffix(got.Error(), want) || !errors.Is(got, err) {
			t.Errorf("%s: %v", address, got)
		}
	}
	denied := &net.OpError{Op: "listen", Err: os.NewSyscallError("bind", syscall.EACCES)}
	if got := Remedy(denied, "--at").Error(); got != "listen: bind: permission denied: run as root, or set --at to a port from 1024 on" {
		t.Error(got)
	}
	if got := Remedy(denied, "").Error(); got != "listen: bind: permission denied: run as root" {
		t.Error(got)
	}
	if other := errors.New("other"); Remedy(other, "--at") != other {
		t.Error("another error has a remedy")
	}
}
