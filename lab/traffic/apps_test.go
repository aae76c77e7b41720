package traffic_test

import (
	"math"
	"testing"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/labtest"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

func bytesOf(b unit.Bytes) traffic.Distribution[unit.Bytes] { return traffic.Always(b) }

func requests(r traffic.Requests) traffic.Flow {
	return traffic.Flow{Name: "r", From: "client", To: "server", Protocol: traffic.TCP, Requests: &r}
}

// balanced checks that every request is accounted for.
func balanced(t testing.TB, s *traffic.RequestStats) {
	t.Helper()
	if s.Arrived != s.Refused+s.Started+s.Backlog || s.Started != s.Done+s.Failed+s.UnderWay {
		t.Errorf("the counts do not add up: %+v", s)
	}
}

// Users of a closed loop send requests as fast as think time and path allow, and the latency is that
// of the path:
//
//	client ──20 ms── router ── server
//
// 20 users with a think time of 80 ms: the request rate follows from the mean latency by Little's law,
// within 12 % (the standard error is 3 %). The minimum latency is the RTT and at most 2 ms more, or
// two RTTs with a connection for each request.
func TestUsers(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{RTT: 20 * time.Millisecond})
	for _, reconnect := range []bool{false, true} {
		labtest.Try(t, func(t *labtest.Check) {
			r := run(t, l, 4*time.Second, requests(traffic.Requests{
				Request: bytesOf(300), Response: bytesOf(3000), Users: 20, Reconnect: reconnect,
				Think: traffic.Distribution[time.Duration]{Kind: traffic.Exponential, Mean: 80 * time.Millisecond},
			}))
			got := r.Flow("r").Requests
			t.Logf("%+v", got)
			balanced(t, got)
			rtt, connections := 20.0, uint64(20)
			if reconnect {
				rtt, connections = 40, got.Started
			}
			if want := r.Seconds * 20 / (0.080 + got.Latency.MeanUs/1e6); math.Abs(float64(got.Done)/want-1) > 0.12 {
				t.Errorf("%d requests were done, want %.0f", got.Done, want)
			}
			if got.Latency.MinUs < rtt*1e3 || got.Latency.MinUs > rtt*1e3+2000 {
				t.Errorf("minimum latency %.0f us, want %.0f ms", got.Latency.MinUs, rtt)
			}
			if got.Failed > 0 || got.Connections+got.UnderWay < connections || got.Connections > connections {
				t.Errorf("%d failed, %d connections, want %d", got.Failed, got.Connections, connections)
			}
			if got.RequestBytes < 300*got.Done || got.ResponseBytes < 3000*got.Done || got.RequestBytes > 300*got.Started || got.ResponseBytes > 3000*got.Started {
				t.Errorf("%d bytes of requests and %d of responses", got.RequestBytes, got.ResponseBytes)
			}
		})
	}
}

// An open loop sends requests at its rate, whatever the path, and the latency includes the backlog:
//
//	client ──20 ms── router ── server
//
// 2 connections complete 100 requests a second. At a rate of 50 there is almost no backlog. At 200
// half of all requests are in the backlog at the end without a bound; with a bound of 10 they are
// refused.
func TestOpenLoop(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{RTT: 20 * time.Millisecond})
	labtest.Try(t, func(t *labtest.Check) {
		ask := func(name string, rate float64, backlog int) traffic.Flow {
			f := requests(traffic.Requests{
				Request: bytesOf(100), Response: bytesOf(1000), Rate: rate, Connections: 2, MaxBacklog: backlog,
			})
			f.Name, f.Seed = name, 1
			return f
		}
		r := run(t, l, 4*time.Second, ask("half", 50, 0), ask("twice", 200, 0), ask("bounded", 200, 10))
		for _, f := range r.Flows {
			t.Logf("%s: %+v", f.Name, f.Requests)
			balanced(t, f.Requests)
		}
		half, twice, bounded := r.Flow("half").Requests, r.Flow("twice").Requests, r.Flow("bounded").Requests
		// Poisson: within 4 sigma of 200 and of 800.
		if n := float64(half.Arrived); math.Abs(n-200) > 4*math.Sqrt(200) || half.Latency.P50Us < 20e3 || half.Latency.P50Us > 30e3 {
			t.Errorf("half: %.0f arrived, median %.0f us", n, half.Latency.P50Us)
		}
		if n := float64(twice.Arrived); math.Abs(n-800) > 4*math.Sqrt(800) {
			t.Errorf("twice: %.0f arrived", n)
		}
		// 400 are completed within 5 %; the last of them had waited for 2 s.
		if math.Abs(float64(twice.Done)-400) > 20 || twice.Refused != 0 || twice.Backlog < 300 || twice.MaxBacklog < twice.Backlog {
			t.Errorf("twice: %+v", twice)
		}
		if twice.Latency.MaxUs < 1.5e6 {
			t.Errorf("twice: the longest latency is %.0f us: it does not include the backlog", twice.Latency.MaxUs)
		}
		if bounded.Refused < 300 || bounded.MaxBacklog != 10 || bounded.Latency.MaxUs > 200e3 {
			t.Errorf("bounded: %+v", bounded)
		}
		// Intervals add up to the whole.
		var done, arrived uint64
		for _, iv := range r.Flow("twice").Intervals {
			done, arrived = done+iv.Requests.Done, arrived+iv.Requests.Arrived
		}
		if done != twice.Done || arrived != twice.Arrived {
			t.Errorf("intervals have %d and %d requests, the run %d and %d", arrived, done, twice.Arrived, twice.Done)
		}
	})
}

// The same seed generates the same requests: the number and sizes of an open loop.
func TestRequestsRepeat(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{})
	ask := func(seed uint64) (n, bytes uint64) {
		f := requests(traffic.Requests{
			Request:  traffic.Distribution[unit.Bytes]{Kind: traffic.Lognormal, Mean: 500, Shape: 1},
			Response: traffic.Distribution[unit.Bytes]{Kind: traffic.Pareto, Mean: 5000, Shape: 1.5, Max: 1 << 20},
			Rate:     500,
		})
		f.Stop = time.Second
		r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{Duration: 2 * time.Second, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		s := r.Flow("r").Requests
		if s.Done != s.Arrived || r.Seed != seed || r.Flow("r").Seed != seed {
			t.Errorf("seed %d of %d: %+v", r.Seed, seed, s)
		}
		return s.Done, s.RequestBytes + s.ResponseBytes
	}
	n1, b1 := ask(42)
	n2, b2 := ask(42)
	n3, b3 := ask(43)
	if n1 != n2 || b1 != b2 || n1 == n3 && b1 == b3 || n1 < 300 {
		t.Errorf("seed 42: %d requests of %d bytes, again %d of %d; seed 43: %d of %d", n1, b1, n2, b2, n3, b3)
	}
}

// Requests that get no connection fail, are counted and do not end the run. They are not retried at
// once: each of 2 users retries after 100 ms, for 2 s.
//
//	client ── router ── server      the router has no route to the server
func TestRequestsFail(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{})
	f := requests(traffic.Requests{Request: bytesOf(100), Response: bytesOf(100), Users: 2, Reconnect: true})
	f.Start = time.Second
	s, err := traffic.Start(t.Context(), l.Host, []traffic.Flow{f}, traffic.Options{Duration: 3 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	labtest.Run(t, l.Node("router"), "ip", "route", "add", "unreachable", "10.0.1.2/32")
	got := s.Wait().Flow("r").Requests
	t.Logf("%+v", got)
	balanced(t, got)
	if got.Done > 0 || got.Failed < 2 || got.Failed > 40 {
		t.Errorf("%d were done and %d failed", got.Done, got.Failed)
	}
}

// A file takes the time of its size at the link's rate, as one stream or as many:
//
//	client ── router ── server      router to server is limited to 50 Mbit/s
//
// 5 MB take 0.84 s of frames; within 8 % (slow start, and queues of 20 ms).
func TestTransfer(t *testing.T) {
	t.Parallel()
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 50 * unit.Mbit, In: true, Queue: link.Amount{Time: 20 * time.Millisecond}})
	for _, c := range []struct {
		streams  int
		download bool
	}{{1, false}, {4, false}, {4, true}} {
		labtest.Try(t, func(t *labtest.Check) {
			r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{{
				Name: "file", From: "client", To: "server", Protocol: traffic.TCP, Download: c.download, Start: 200 * time.Millisecond,
				Transfer: &traffic.Transfer{Size: 5_000_000, Streams: c.streams, Times: 2, Pause: 100 * time.Millisecond},
			}}, traffic.Options{Duration: 20 * time.Second, UntilDone: true})
			if err != nil {
				t.Fatal(err)
			}
			f := r.Flow("file")
			t.Logf("%+v, %d retransmitted, %+v", *f.Transfer, f.Total.Retransmits, f.Total)
			if len(f.Transfer.Completed) != 2 || f.Transfer.Failed > 0 || f.Error != "" || f.Total.DeliveredBytes != 10_000_000 {
				t.Errorf("result %+v, %d bytes, error %q", f.Transfer, f.Total.DeliveredBytes, f.Error)
			}
			const want = 5e6 * 8 * 1514 / 1448 / 50e6
			for _, done := range f.Transfer.Completed {
				if done.Seconds < want*0.97 || done.Seconds > want*1.08 {
					t.Errorf("it took %.3f s, want %.3f", done.Seconds, want)
				}
			}
			if p := f.Intervals[len(f.Intervals)-1].Transfer; p.Completed != 2 || p.Failed != 0 || p.LastSeconds != f.Transfer.Completed[1].Seconds || p.ArrivedBytes != 0 {
				t.Errorf("in the end the progress is %+v", p)
			}
			if first := f.Transfer.Completed[0].StartSeconds; first < 0.2 || first > 0.25 {
				t.Errorf("the first started at %.3f s, want 0.2", first)
			}
			if r.Seconds > 2.5 {
				t.Errorf("the run took %.1f s but should have ended with its transfers", r.Seconds)
			}
		})
	}
}

// A transfer in progress at its flow's stop is aborted. The run, which ends with its transfers but not
// before 1.5 s, lasts for 1.5 s.
func TestTransferStops(t *testing.T) {
	l := labtest.Rig(t, lab.RigOptions{Bottleneck: 10 * unit.Mbit, In: true})
	r, err := traffic.Run(t.Context(), l.Host, []traffic.Flow{{
		Name: "file", From: "client", To: "server", Protocol: traffic.TCP, Stop: time.Second,
		Transfer: &traffic.Transfer{Size: 100_000_000, Times: 5},
	}}, traffic.Options{Duration: 10 * time.Second, UntilDone: true, AtLeast: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	f := r.Flow("file")
	if p := f.Intervals[0].Transfer; p.ArrivedBytes == 0 && p.Failed == 0 {
		t.Errorf("after an interval the progress is %+v", p)
	}
	if r.Seconds < 1.5 || r.Seconds > 2.5 || f.Transfer.Failed != 1 || len(f.Transfer.Completed) != 0 || f.Error != "" {
		t.Errorf("%.1f s, %+v, error %q", r.Seconds, f.Transfer, f.Error)
	}
}
