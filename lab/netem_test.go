package lab_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
)

// Options that netem would accept, but not implement, are rejected before anything is created.
func TestNetemRefuses(t *testing.T) {
	for want, o := range map[string]lab.NetemOptions{
		"a probability of loss of 1.5 is not between 0 and 1":                     {Loss: 1.5},
		"a probability of loss of NaN is not between 0 and 1":                     {Loss: math.NaN()},
		"a probability of change to the bad state of -0.1 is not":                 {Bursts: &lab.GilbertElliott{ToBad: -0.1}},
		"a delay of 11s is not between 0 and 10s":                                 {Delay: 11 * time.Second},
		"a jitter of 2ms is not between 0 and the delay, 1ms":                     {Delay: time.Millisecond, Jitter: 2 * time.Millisecond},
		"a jitter of 3s exceeds netem's maximum of 2s":                            {Delay: 4 * time.Second, Jitter: 3 * time.Second},
		"reordering needs jitter":                                                 {Delay: time.Second, Reorder: true},
		"a loss of 0.1 and a model of bursts exclude each other":                  {Loss: 0.1, Bursts: &lab.GilbertElliott{}},
		"ECN needs a loss, because netem marks instead of losing: set a loss, or": {ECN: true},
	} {
		if err := lab.AddNetem(nil, o); !errors.Is(err, lab.ErrConfig) || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// The check for netem changes nothing, and its result is correct:
//
//	client ── router ── server
func TestKernelHasNetem(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{})
	client := l.Node("client")
	before := labtest.Run(t, client, "tc", "qdisc", "show")
	var has bool
	if err := client.Do(func() error { has = lab.KernelHasNetem(); return nil }); err != nil {
		t.Fatal(err)
	}
	if after := labtest.Run(t, client, "tc", "qdisc", "show"); after != before {
		t.Errorf("before:\n%s\nasked:\n%s", before, after)
	}
	_, link, err := client.Link("router")
	if err != nil {
		t.Fatal(err)
	}
	err = client.Do(func() error { return lab.AddNetem(link, lab.NetemOptions{Delay: time.Millisecond}) })
	switch {
	case has && err != nil:
		t.Error(err)
	case !has && (err == nil || err.Error() != "cannot add netem: this kernel has none (CONFIG_NET_SCH_NETEM)"):
		t.Errorf("on a kernel that was detected to have no netem: %v", err)
	}
}
