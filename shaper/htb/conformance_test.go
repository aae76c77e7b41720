package htb_test

import (
	"testing"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
	"headgate.dev/headgate/shaper/shapertest"
)

func engine() shaper.Shaper { return htb.New() }

func TestMain(m *testing.M) { shapertest.Main(m, engine) }

func TestConformance(t *testing.T) {
	shapertest.Run(t, engine, shapertest.Features{
		RootQdisc: true, EndsIngress: true, Ceilings: true, Groups: 1000,
		Guarantee: 0.98, Total: 0.98,
	})
}
