package traffic

import (
	"bytes"
	"testing"

	"golang.org/x/sys/unix"
)

// A client that sends invalid sizes, as a port scanner in the lab may, is disconnected.
func TestAnswererHangsUp(t *testing.T) {
	a, err := newApps()
	if err != nil {
		t.Fatal(err)
	}
	defer a.close()
	for name, head := range map[string][]byte{
		"all ones":    bytes.Repeat([]byte{0xff}, MinRequest),
		"all zeros":   make([]byte, MinRequest),
		"an HTTP GET": []byte("GET / HTTP/1.1\r\n"),
		"no answer":   {7: MinRequest, 15: 0},
	} {
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		f := &flow{Flow: Flow{Requests: &Requests{}}}
		c, err := a.watch(f, pair[0], unix.EPOLLIN)
		if err != nil {
			t.Fatal(err)
		}
		w := &answerer{r: &requester{a: a, f: f}, c: c}
		if _, err := unix.Write(pair[1], head); err != nil {
			t.Fatal(err)
		}
		w.ready(unix.EPOLLIN)
		if n, err := unix.Read(pair[1], make([]byte, 100)); c.fd != -1 || n != 0 || err != nil {
			t.Errorf("%s: %d bytes came, %v; fd %d", name, n, err, c.fd)
		}
		unix.Close(pair[1])
	}
}
