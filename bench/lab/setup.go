package lab

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/vishvananda/netlink"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// A network of 20 hosts and 30 links: a ring, and a chord for every second host.
const (
	setupHosts = 20
	setupLinks = 30
)

func setupCases() (out []bench.Case) {
	for _, backend := range []lab.Backend{lab.Veth, lab.Emulator} {
		id := "setup/" + string(backend)
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id+"/up", "20 hosts and 30 links: time until every address can be used", upSeconds),
				bench.NewClaim(id+"/down", "time until everything is removed, including the namespaces", downSeconds),
				bench.NewClaim(id+"/left", "namespaces, files and devices of the host that remain", nothingLeft),
			},
			Run:   func(ctx context.Context, r *bench.Run) error { return runSetup(ctx, r, backend) },
			Takes: takes(5*time.Second, 20*time.Second),
		})
	}
	return out
}

func ring(backend lab.Backend) *lab.Topology {
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	path := lab.Path{Spec: link.Spec{Rate: 100 * unit.Mbit}}
	if backend == lab.Emulator {
		path.Delay = 5 * time.Millisecond
	}
	host := func(i int) string { return fmt.Sprintf("h%d", i%setupHosts) }
	for i := range setupHosts {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: host(i), Router: true})
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{host(i), host(i + 1)}, Forward: path, Back: path, Backend: backend})
	}
	for i := range setupLinks - setupHosts {
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{host(2 * i), host(2*i + 7)}, Forward: path, Back: path, Backend: backend})
	}
	return t
}

func runSetup(ctx context.Context, r *bench.Run, backend lab.Backend) error {
	id := "setup/" + string(backend)
	var ups, downs []float64
	left := 0
	for range bench.Pick(r.Quick, 1, 5) {
		t := ring(backend)
		before, err := devices()
		if err != nil {
			return err
		}
		began := time.Now()
		l, err := lab.Up(ctx, t)
		if err != nil {
			return err
		}
		ups = append(ups, time.Since(began).Seconds())
		began = time.Now()
		if err := l.Close(); err != nil {
			return err
		}
		downs = append(downs, time.Since(began).Seconds())
		n, err := remains(t.Name, before)
		if err != nil {
			return err
		}
		left += n
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id+"/up", bench.Median(ups))
	sheet.Set(id+"/down", bench.Median(downs))
	sheet.Set(id+"/left", float64(left))
	sheet.Keep("up_s", ups)
	sheet.Keep("down_s", downs)
	return nil
}

// remains counts what a lab that was taken down has left: namespaces and files of its name, and new
// devices in the host's namespace.
func remains(name string, before []string) (n int, err error) {
	for _, pattern := range []string{"/run/netns/hg-" + name + "-*", "/run/headgate/lab/" + name + "*", "/run/headgate/lab/." + name + "*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			return 0, err
		}
		n += len(found)
	}
	after, err := devices()
	for _, d := range after {
		if !slices.Contains(before, d) {
			n++
		}
	}
	return n, err
}

// devices returns the names of this namespace's devices.
func devices() (names []string, err error) {
	links, err := netlink.LinkList()
	for _, l := range links {
		names = append(names, l.Attrs().Name)
	}
	return names, err
}
