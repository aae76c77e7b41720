package link

import (
	"strings"
	"testing"
	"time"

	"headgate.dev/headgate/unit"
)

// Every error has its key and a remedy.
func TestProblems(t *testing.T) {
	rate := unit.Mbit
	for want, s := range map[string]Spec{
		"rate: 1bit is not between":                                  {Rate: 1},
		"delay: 1h0m0s is not between":                               {Delay: time.Hour},
		"jitter: 2ms is more than the delay":                         {Jitter: Jitter{Amount: 2 * time.Millisecond}},
		"jitter: no amount":                                          {Jitter: Jitter{Reorder: true}},
		"loss: 2 is not between":                                     {Loss: Loss{Probability: 2}},
		"loss.to_good: the link would never leave the bad state":     {Loss: Loss{ToBad: 0.1}},
		"loss.to_bad: the link would never enter the bad state":      {Loss: Loss{Bad: 1}},
		"loss: a probability and two states":                         {Loss: Loss{ToBad: 0.1, ToGood: 0.1, Probability: 0.1}},
		"queue: a queue needs a rate":                                {Queue: Amount{Segments: 5}},
		"queue: more than one unit is set":                           {Rate: rate, Queue: Amount{Segments: 5, Bytes: 2000}},
		"queue: 10B does not hold one frame":                         {Rate: rate, Queue: Amount{Bytes: 10}},
		"red: min, max and probability are required":                 {Rate: rate, RED: &RED{}},
		"red.max: max is not above min":                              {Rate: rate, RED: &RED{Profile: Profile{Amount{Segments: 5}, Amount{Segments: 5}, 0.1}}},
		"red.classes[0].dscp: no code point":                         {Rate: rate, RED: &RED{Profile: Profile{Amount{Segments: 5}, Amount{Segments: 9}, 0.1}, Classes: []REDClass{{nil, Profile{Amount{Segments: 5}, Amount{Segments: 9}, 0.1}}}}},
		"bucket.size: 100B is not between":                           {Bucket: &Bucket{Rate: rate, Size: 100}},
		"bucket.peak: 1kbit is less":                                 {Bucket: &Bucket{Rate: rate, Size: 2000, Peak: unit.Kbit}},
		"bucket.peak_low: 2Mbit is not between":                      {Bucket: &Bucket{Rate: rate, Size: 2000, PeakLow: 2 * rate}},
		"bucket.gift: a gift has a size and an interval":             {Bucket: &Bucket{Rate: rate, Size: 2000, Gift: 5}},
		"xen: the direction also has a bucket":                       {Bucket: &Bucket{Rate: rate, Size: 2000}, Xen: &Xen{time.Millisecond, 2000}},
		"xen.interval: 0s is not between":                            {Xen: &Xen{Tokens: 2000, Interval: 0}},
		"active.off: 0s is not between":                              {Active: &Active{On: time.Second}},
		"suspension.packets: 0 is not between":                       {Suspension: &Suspension{Time: time.Second}},
		"cross[0].load: 0bit is not between":                         {Rate: rate, Cross: []Cross{{}}},
		"cross[0]: cross traffic needs a rate":                       {Cross: []Cross{{Load: rate}}},
		"cross[0].model: \"bursty\" is not a model":                  {Rate: rate, Cross: []Cross{{Load: rate, Model: "bursty"}}},
		"cross[0].shape: 0.5 is not a shape":                         {Rate: rate, Cross: []Cross{{Load: rate, Model: Pareto, Shape: 0.5}}},
		"cross[0].sizes: 9000 bytes are not a frame size":            {Rate: rate, Cross: []Cross{{Load: rate, Sizes: []int{9000}}}},
		"cross[0].stop: the stop at 1s is not after the start at 2s": {Rate: rate, Cross: []Cross{{Load: rate, Start: 2 * time.Second, Stop: time.Second}}},
	} {
		var got []string
		for _, p := range s.Problems() {
			got = append(got, p.Key+": "+p.What)
		}
		if all := strings.Join(got, "\n"); !strings.Contains(all, want) {
			t.Errorf("want %q, got\n%s", want, all)
		}
	}
}
