package host

import (
	"io"
	"net"
	"testing"
	"time"
)

// A fast connection is read in intervals, a slow one at once.
func TestBatched(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	sender, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer sender.Close()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := &batched{Conn: c}
	p := make([]byte, readBuffer)
	go func() {
		for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end); time.Sleep(100 * time.Microsecond) {
			sender.Write(make([]byte, 32<<10))
		}
		time.Sleep(100 * time.Millisecond)
		for range 20 {
			sender.Write([]byte("x"))
			time.Sleep(10 * time.Millisecond)
		}
		sender.Close()
	}()
	fast, slow := 0, 0
	for {
		n, err := b.Read(p)
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 && !b.fast {
			slow++
		}
		if b.fast {
			fast++
			if b.interval < minBatch || b.interval > maxBatch {
				t.Fatalf("interval %v", b.interval)
			}
		}
	}
	if fast < 5 || slow < 10 {
		t.Errorf("%d reads of the fast sender were followed by a wait, %d of the slow one's 20 by none", fast, slow)
	}
	for _, c := range []struct{ interval, least, most time.Duration }{{minBatch, 0, minBatch}, {maxBatch, 0, maxBatch}} {
		if d := untilBatch(c.interval); d < c.least || d > c.most {
			t.Errorf("untilBatch(%v) = %v", c.interval, d)
		}
	}
}
