package host

import (
	"io"
	"net"
	"testing"
)

// BenchmarkCarry carries bytes between two applications over loopback: through one splitting proxy that copies, and
// through two agents with four streams, unencrypted and encrypted. The aim is half of the proxy's throughput, because
// the bytes pass two agents.
func BenchmarkCarry(b *testing.B) {
	b.Run("proxy", func(b *testing.B) {
		sink := sinkServer(b)
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			to, err := net.Dial("tcp", sink)
			if err != nil {
				return
			}
			defer to.Close()
			buffer := make([]byte, 64<<10)
			io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{c}, buffer)
		}()
		app, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		pour(b, app)
	})
	for _, c := range []struct {
		name    string
		encrypt bool
	}{{"unencrypted", false}, {"encrypted", true}} {
		b.Run(c.name, func(b *testing.B) {
			p := newSecurePair(b, 4, c.encrypt)
			pour(b, p.open(sinkServer(b)))
		})
	}
}

// sinkServer is a server that reads everything, and answers the end of the direction with its own.
func sinkServer(t testing.TB) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				io.Copy(struct{ io.Writer }{io.Discard}, c)
			}()
		}
	}()
	return l.Addr().String()
}

// pour writes 256 KiB in each iteration, and waits until all have arrived.
func pour(b *testing.B, app net.Conn) {
	defer app.Close()
	block := make([]byte, 256<<10)
	b.SetBytes(int64(len(block)))
	for b.Loop() {
		if _, err := app.Write(block); err != nil {
			b.Fatal(err)
		}
	}
	app.(*net.TCPConn).CloseWrite()
	if _, err := io.ReadAll(app); err != nil {
		b.Fatal(err)
	}
}
