package groups
import ("testing";"time";"headgate/lab";"headgate/lab/traffic";"fmt")
func TestDbg(t *testing.T) {
	c := wakeCases()[0]
	tm := wakeTiming{40*time.Second, 10*time.Second, 30*time.Second, 1}
	p, _ := plan(seedGroups(c.limit), c.in)
	f, err := trial{rig: lab.RigOptions{RTT: wakeRTT}, limiter: quantumName, plan: p, flows: c.flows(tm), length: tm.ends(), sample: 100*time.Millisecond, bin: wakeBin}.run(t.Context())
	if err != nil { t.Fatal(err) }
	for i := range seedShares {
		s := ""
		for at := time.Duration(0); at < tm.ends(); at += time.Second { s += fmt.Sprintf(" %.0f", f.arrivals[groupName(i)].Rate(at, at+time.Second)/1e6) }
		t.Log(groupName(i), s)
	}
	s := ""
	for at := 55*time.Second; at < 57*time.Second; at += 50*time.Millisecond { s += fmt.Sprintf(" %.0f", (f.arrivals["group0"].Rate(at, at+50*time.Millisecond)+f.arrivals["group1"].Rate(at, at+50*time.Millisecond)+f.arrivals["group2"].Rate(at, at+50*time.Millisecond))/1e6) }
	t.Log(s)
	_ = traffic.TCP
}
