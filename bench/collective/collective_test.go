package collective

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/bench"
)

// Every row and every case of the table of targets has a claim.
func TestEveryCaseIsClaimed(t *testing.T) {
	claims, err := Bench(bench.NewDraw(1)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	byID := map[string]bench.Claim{}
	for _, c := range claims {
		byID[c.ID] = c
	}
	want := []string{
		"both/one-set/ratio", "both/two-sets/ftp", "calm/1Gbit/throughput", "calm/1Gbit/latency",
		"unfair/cubic", "cost/8-flows", "cost/10000-connections",
	}
	for _, queue := range []string{"full", "half", "double"} {
		for _, ftp := range []string{"2Mbit", "4Mbit", "8Mbit"} {
			for _, marks := range []string{"af31-af21", "af21", "af31", "af11-af31"} {
				for _, control := range []string{"reno", "cubic"} {
					id := strings.Join([]string{queue, ftp, marks, control}, "/")
					want = append(want, "ratio/"+id, "carried/"+id, "losses/"+id, "recover/"+id+"/rate", "recover/"+id+"/caps")
					if ftp == "8Mbit" {
						want = append(want, "smooth/"+id)
					}
				}
			}
		}
	}
	for _, rate := range []string{"100Mbit", "1Gbit"} {
		for _, rtt := range []string{"1ms", "10ms", "50ms"} {
			for _, control := range []string{"cubic", "bbr"} {
				for _, queue := range []string{"droptail", "red", "ecn"} {
					for _, how := range []string{"learned", "by-hand"} {
						want = append(want, strings.Join([]string{"fast", rate, rtt, control, queue, how}, "/"))
					}
				}
			}
		}
	}
	for _, id := range want {
		if _, ok := byID[id]; !ok {
			t.Errorf("no claim %s", id)
		}
	}
	if c := byID["losses/full/4Mbit/af31-af21/cubic"]; c.Target.Value != 0 {
		t.Errorf("the case without losses may lose %v", c.Target.Value)
	}
}

// The drawn cases have each value of each property equally often, or but for one case.
func TestFloorIsDrawnEvenly(t *testing.T) {
	claims, err := Bench(bench.NewDraw(3)).Declared(nil)
	if err != nil {
		t.Fatal(err)
	}
	count, cases := map[string]int{}, 0
	for _, c := range claims {
		id, ok := strings.CutPrefix(c.ID, "parts/")
		if !ok {
			continue
		}
		cases++
		for at, part := range strings.Split(id, "/") {
			count[fmt.Sprint(at, part)]++
		}
	}
	if cases != floorDrawn {
		t.Fatalf("%d cases, want %d", cases, floorDrawn)
	}
	for _, c := range []struct {
		part string
		want int
	}{{"010Mbit", 24}, {"050Mbit", 24}, {"0250Mbit", 24}, {"11ms", 24}, {"1100ms", 24}, {"3codel", 24}, {"3red", 24}, {"5stays", 36}, {"5pauses", 36}} {
		if count[c.part] != c.want {
			t.Errorf("%s is in %d cases, want %d", c.part, count[c.part], c.want)
		}
	}
}

func TestQuickIsQuick(t *testing.T) {
	if took := Bench(bench.NewDraw(1)).Takes(bench.Options{Quick: true}); took > 3*time.Minute {
		t.Errorf("--quick takes %v by its own estimate", took)
	}
}

// The allowed retransmissions are the larger of a part of plain TCP's and a thousandth.
func TestMayResend(t *testing.T) {
	for _, c := range []struct {
		seedCase
		want float64
	}{
		{seedCase{queue: "full", marks: "af31-af21"}, 200}, {seedCase{queue: "half", marks: "af31-af21"}, 500},
		{seedCase{queue: "double", marks: "af21"}, 500}, {seedCase{queue: "double", marks: "af11-af31"}, 200},
	} {
		if got := c.mayResend(1000, 20_000); got != c.want {
			t.Errorf("%s: %v of 1000, want %v", c.id(), got, c.want)
		}
		if got := c.mayResend(0, 20_000); got != 20 {
			t.Errorf("%s: %v of none, want a thousandth of 20,000", c.id(), got)
		}
	}
}
