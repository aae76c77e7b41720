package plots

import (
	"path/filepath"
	"testing"

	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/sim"
	"headgate.dev/headgate/probe/sim/simtest"
	"headgate.dev/headgate/unit"
)

// A path with a shaper has all plots. A direction without samples has none.
func TestSave(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pictures")
	m := path.Method{Parts: path.Parts{Capacity: true, TokenRate: true}}
	p := sim.Path{Hops: []link.Spec{{Rate: unit.Gbit, Queue: simtest.UnboundedQueue, Bucket: &link.Bucket{Rate: 100 * unit.Mbit, Size: 50_000}}}}
	samples := simtest.Run(t, p, 1, m.Next)
	a := m.Estimate(samples)
	for _, err := range []error{Save(dir, probe.Out, samples, &a), Save(dir, probe.In, nil, &path.Answer{})} {
		if err != nil {
			t.Error(err)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "*.png")); len(files) != 3 {
		t.Errorf("%q", files)
	}
}
