package lab_test

import (
	"testing"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// The examples with switches come up, with the port numbers that they describe.
func TestSwitchExamples(t *testing.T) {
	for _, c := range []struct {
		name, at, towards string
		number            uint32
		ping              string // from h1, if the switches forward without a controller
	}{
		{"reservations", "s2", "s5", 3, "h6"},
		{"relay", "indigo1", "hp1", 4, ""},
	} {
		topology, err := lab.Load("../examples/lab/" + c.name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		topology.Name = lab.UniqueName(c.name)
		l := labtest.Up(t, topology)
		if p, err := l.Switch(c.at).Port(c.towards); err != nil || p.Number != c.number || len(topology.Switches) != 6 {
			t.Errorf("%s: %d switches, port of %s towards %s is %+v (%v), want number %d", c.name, len(topology.Switches), c.at, c.towards, p, err, c.number)
		}
		if c.ping != "" {
			labtest.Run(t, l.Node("h1"), "ping", "-q", "-c", "1", "-W", "2", addr(t, l, c.ping, false))
		}
	}
}
