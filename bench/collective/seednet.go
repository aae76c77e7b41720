package collective

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/collective/host"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// The paper's network (figure 2). Where the paper has no value: 10 ms of delay between the routers,
// queues of 1,000 segments at the hosts, and of twice L_max of AF31 in a router's port.
//
//	server1 ──┐                      ┌── client1, client2   (databases)
//	          router1 ──10 ms── router2
//	server2 ──┘                      └── client3            (FTP)
const (
	seedRate  = 10 * unit.Mbit
	seedDelay = 10 * time.Millisecond
	// Payload rates of the databases, and the overhead of the lower layers and the application.
	db1Rate, db2Rate = 4.8e6, 2.4e6
	overhead         = 1.1
	streams          = 25 // of FTP
)

// times are the start of the databases, the start and end of FTP, and the end of the run.
type times struct{ db, ftp, quiet, end time.Duration }

// seedTimes are those of section IV-A, and time for the recovery; quickTimes are for a smoke run.
var (
	seedTimes  = times{5 * time.Second, 30 * time.Second, 90 * time.Second, 113 * time.Second}
	quickTimes = times{time.Second, 12 * time.Second, 22 * time.Second, 40 * time.Second}
)

func timesOf(quick bool) times {
	if quick {
		return quickTimes
	}
	return seedTimes
}

func (t times) takes() time.Duration { return t.end + 5*time.Second }

// Code points.
const (
	af11, af21, af31 = 10, 18, 26
)

// seedCase is one of the paper's runs.
type seedCase struct {
	queue   string // full, half, double
	ftp     int    // Mbit/s of offered load
	marks   string // of FTP and of the databases
	control string // congestion control: reno (without SACK) or cubic
	times   times
}

// queues are the values of L_max of AF31; those of other code points are half.
var queues = map[string]int{"full": 120, "half": 60, "double": 240}

// marks are the code points of FTP and of the databases.
var marks = map[string][2]uint8{
	"af31-af21": {af31, af21}, "af21": {af21, af21}, "af31": {af31, af31}, "af11-af31": {af11, af31},
}

func (c seedCase) id() string {
	return fmt.Sprintf("%s/%dMbit/%s/%s", c.queue, c.ftp, c.marks, c.control)
}

// profile is a RED of the paper: L_min a third of L_max, P_D 10 %.
func profile(maxQueue int) link.Profile {
	return link.Profile{Min: link.Amount{Segments: maxQueue / 3}, Max: link.Amount{Segments: maxQueue}, Probability: 0.1}
}

func (c seedCase) topology() *lab.Topology {
	maxQueue := queues[c.queue]
	port := link.Spec{
		Rate: seedRate, Delay: seedDelay, Queue: link.Amount{Segments: 2 * maxQueue},
		RED: &link.RED{Profile: profile(maxQueue / 2), Classes: []link.REDClass{{DSCP: []uint8{af31}, Profile: profile(maxQueue)}}},
	}
	hosts := map[string]string{"net.ipv4.tcp_ecn": "0"}
	if c.control == "reno" {
		hosts["net.ipv4.tcp_sack"] = "0"
	}
	t := &lab.Topology{Name: lab.UniqueName("bench")}
	host := func(name, router string) {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: name, Sysctl: hosts})
		at := lab.Path{Spec: link.Spec{Rate: seedRate, Queue: link.Amount{Bytes: 1000 * 1514}}}
		t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{name, router}, Forward: at, Back: at})
	}
	for _, r := range []string{"router1", "router2"} {
		t.Nodes = append(t.Nodes, lab.NodeSpec{Name: r, Router: true})
	}
	t.Links = append(t.Links, lab.LinkSpec{Ends: [2]string{"router1", "router2"}, Backend: lab.Emulator, Forward: lab.Path{Spec: port}, Back: lab.Path{Spec: port}})
	for _, n := range []string{"server1", "server2"} {
		host(n, "router1")
	}
	for _, n := range []string{"client1", "client2", "client3"} {
		host(n, "router2")
	}
	return t
}

// ports are allocated so that parallel runs have none in common.
var ports atomic.Int32

func nextPorts(n int) uint16 {
	const first, all = 10_000, 20_000
	return uint16(first + (int(ports.Add(int32(n)))-n)%all)
}

// flows returns the flows of the run: the databases use the ports db and db+1 at server1, FTP uses
// db+2 at server2.
func (c seedCase) flows(db uint16) []traffic.Flow {
	dscp := marks[c.marks]
	kib := func(n unit.Bytes) unit.Bytes { return n * 1024 }
	database := func(name, client string, port uint16, rate float64) traffic.Flow {
		return traffic.Flow{
			Name: name, From: "server1", To: client, Protocol: traffic.TCP, Download: true, SrcPort: port,
			Congestion: c.control, DSCP: dscp[1], WindowClamp: 64 * 1024, Start: c.times.db, Backlog: time.Hour,
			Poisson: &traffic.Poisson{Rate: unit.Rate(rate * overhead), Size: traffic.Distribution[unit.Bytes]{Kind: traffic.Uniform, Min: kib(8), Max: kib(16)}},
		}
	}
	file := traffic.Distribution[unit.Bytes]{Kind: traffic.Uniform, Min: kib(5), Max: kib(35)}
	mean := float64(kib(20))
	// The overhead of the lower layers, including the connection's control packets, is 6 %.
	rate := float64(c.ftp) * 1e6 * overhead / 1.06 / 8 / mean
	return []traffic.Flow{
		database("db1", "client1", db, db1Rate), database("db2", "client2", db+1, db2Rate),
		{
			Name: "ftp", From: "client3", To: "server2", Protocol: traffic.TCP, DstPort: db + 2,
			Congestion: c.control, DSCP: dscp[0], WindowClamp: 64 * 1024, Start: c.times.ftp, Stop: c.times.quiet,
			Requests: &traffic.Requests{
				Request: traffic.Always[unit.Bytes](100), Response: file,
				Rate: rate, Connections: streams, MaxBacklog: streams, Reconnect: true,
			},
		},
		{ // half of the transfers are puts. The paper counts what it offers in the direction of the gets: 2 Mbit/s and the databases are above 10 Mbit/s.
			Name: "ftp-puts", From: "client3", To: "server2", Protocol: traffic.TCP, DstPort: db + 3,
			Congestion: c.control, DSCP: dscp[0], WindowClamp: 64 * 1024, Start: c.times.ftp, Stop: c.times.quiet,
			Requests: &traffic.Requests{
				Request: file, Response: traffic.Always[unit.Bytes](100),
				Rate: rate, Connections: streams, MaxBacklog: streams, Reconnect: true,
			},
		},
	}
}

// seedRun is the result of a run.
type seedRun struct {
	*traffic.Result
	times  times
	states []host.State // of the databases
	drops  uint64       // at router1
}

// run runs the case with the databases under a method; equal seeds give the same arrivals.
func (c seedCase) run(ctx context.Context, law string, drawn uint64) (out *seedRun, err error) {
	return c.runWith(ctx, drawn, func(port int) []set {
		return []set{{name: dbSet, scaleControl: law, rules: []string{fmt.Sprintf("sport: %d-%d", port, port+1)}}}
	})
}

// dbSet is the name of the databases' set.
const dbSet = "db"

// runWith runs the case with sets over the ports port and port+1 of the databases, and port+2 of FTP.
func (c seedCase) runWith(ctx context.Context, drawn uint64, sets func(port int) []set) (out *seedRun, err error) {
	l, err := lab.Up(ctx, c.topology())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	port := nextPorts(4)
	d, err := watch(ctx, sets(int(port))...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.end()) }()
	got, err := traffic.Run(ctx, l.Host, c.flows(port), traffic.Options{Duration: c.times.end, Interval: 500 * time.Millisecond, Seed: drawn})
	if err != nil {
		return nil, err
	}
	for _, f := range got.Flows {
		if f.Error != "" && !strings.HasPrefix(f.Name, "ftp") {
			return nil, fmt.Errorf("flow %s: %s", f.Name, f.Error)
		}
	}
	stats, _ := l.WireStats(0)
	return &seedRun{Result: got, times: c.times, states: d.of(dbSet), drops: stats[0].Drops()}, nil
}
