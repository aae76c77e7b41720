package quantum_test

import (
	"testing"

	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/quantum"
	"headgate.dev/headgate/shaper/shapertest"
)

func engine() shaper.Shaper { return quantum.New() }

func TestMain(m *testing.M) { shapertest.Main(m, engine) }

func TestConformance(t *testing.T) {
	shapertest.Run(t, engine, shapertest.Features{
		Groups: 64,
		// Lending is first come, first served, and the covetous effect occurs: measured 0.93 to
		// 1.0.
		Guarantee: 0.85, Total: 0.97,
	})
}
