package measure

import (
	"testing"
	"time"

	"headgate.dev/headgate/probe/session"
	"headgate.dev/headgate/unit"
)

// The server's limits bound a client's request.
func TestRequest(t *testing.T) {
	caps := session.Caps{Bytes: 1_000_000, Rate: unit.Gbit, Time: 20 * time.Second}
	for _, c := range []struct {
		r     Request
		bytes unit.Bytes
		limit time.Duration
	}{
		{Request{Measure: "tokenrate"}, 900_000, 10 * time.Second},
		{Request{Measure: "path", Bytes: 1 << 40, Time: time.Hour}, 900_000, 10 * time.Second},
		{Request{Measure: "capacity", Bytes: 1000, Time: time.Second}, 1000, time.Second},
		{Request{Measure: "path", Time: -1}, 900_000, 10 * time.Second},
	} {
		j, err := c.r.Job(caps)
		if err != nil || j.Method.Budget != c.bytes || j.Time != c.limit {
			t.Errorf("%+v gets %v and %v, %v", c.r, j.Method.Budget, j.Time, err)
		}
	}
	if _, err := (Request{Measure: "flood"}).Job(caps); err == nil {
		t.Error("an unknown measurement is accepted")
	}
}
