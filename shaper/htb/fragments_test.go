package htb

import (
	"testing"

	"github.com/cilium/ebpf"

	"headgate.dev/headgate/shaper/classifier"
)

// TestFragmentsByProcessors: the table holds 1,024 first fragments per processor, for any
// number of processors up to 64.
func TestFragmentsByProcessors(t *testing.T) {
	spec, err := loadClassifier()
	if err != nil {
		t.Fatal(err)
	}
	if err := classifier.Configure(spec, classifier.Config{FlowCache: 4096}); err != nil {
		t.Fatal(err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := int(spec.Maps[classifier.Fragments].MaxEntries), 1024*min(cpus, 64); got < want {
		t.Errorf("capacity for %d first fragments with %d processors; want %d", got, cpus, want)
	}
}
