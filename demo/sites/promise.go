package sites

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// Reservable is the part of the long paths that can be reserved, in percent.
const Reservable = 70

// Ask is the rate that the application asks for: what the port of the north path would allow, and its limiter does not.
func (n Network) Ask() unit.Rate { return whole(n.North.Port * Reservable / 100) }

// The ports of the applications.
const (
	AppPort, BackupPort, FilesPort = 5001, 5002, 8080
	// FirstStream and LastStream are the ports at which the relay's exit accepts streams: one for each long path.
	FirstStream, LastStream = 8424, 8425
)

// Lending is the traffic by which a reservation lends and takes back: the application sends at its reserved rate, then at a fifth of it, and then as
// before, beside a backup that takes all it can get.
func (n Network) Lending(reserved unit.Rate, phase time.Duration) []traffic.Flow {
	return []traffic.Flow{
		{Name: App, From: App, To: DB, Protocol: traffic.UDP, DstPort: AppPort, Schedule: []traffic.Step{{At: 0, Rate: reserved}, {At: phase, Rate: Little(reserved)}, {At: 2 * phase, Rate: reserved}}},
		n.Backup(),
	}
}

// Repeated is the traffic of the application for a longer time: as in Lending, again and again.
func Repeated(reserved unit.Rate, length time.Duration) []traffic.Flow {
	const phase = 10 * time.Second
	f := traffic.Flow{Name: App, From: App, To: DB, Protocol: traffic.UDP, DstPort: AppPort}
	for at := time.Duration(0); at < length; at += 2 * phase {
		f.Schedule = append(f.Schedule, traffic.Step{At: at, Rate: reserved}, traffic.Step{At: at + phase, Rate: Little(reserved)})
	}
	return []traffic.Flow{f}
}

// Little is what the application sends while it lends.
func Little(reserved unit.Rate) unit.Rate { return reserved / 5 }

// Backup is traffic without a reservation that takes all it can get of the north path.
func (n Network) Backup() traffic.Flow {
	return traffic.Flow{Name: "backup", From: Files, To: Store, Protocol: traffic.UDP, DstPort: BackupPort, Schedule: traffic.Constant(n.North.Port)}
}

// Promise is what was promised, and what was delivered.
type Promise struct {
	ID        string  `json:"id"`
	Text      string  `json:"text"`
	Unit      string  `json:"unit"`
	Promised  float64 `json:"promised"`
	Kind      Kind    `json:"kind"`
	Delivered float64 `json:"delivered"`
	OK        bool    `json:"ok"`
}

// Kind is how what was delivered compares with what was promised.
type Kind string

// The kinds.
const (
	Least  Kind = "at least"
	Most   Kind = "at most"
	Around Kind = "about" // within aroundPart
)

// aroundPart is by how much a measured capacity may differ.
const aroundPart = 0.05

// New judges a promise.
func (k Kind) New(id, text, unit string, promised, delivered float64) Promise {
	p := Promise{ID: id, Text: text, Unit: unit, Promised: promised, Kind: k, Delivered: delivered}
	switch k {
	case Least:
		p.OK = delivered >= promised
	case Most:
		p.OK = delivered <= promised
	case Around:
		p.OK = math.Abs(delivered-promised) <= aroundPart*promised
	}
	return p
}

// String is the promise in a line of at most 78 cells.
func (p Promise) String() string {
	verdict := "kept"
	if !p.OK {
		verdict = "BROKEN"
	}
	return fmt.Sprintf("%-37s %-8s %6s %7s %-6s %s", p.Text, p.Kind, number(p.Promised), number(p.Delivered), p.Unit, verdict)
}

func number(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// Upload is the rate that the upload reserves, on two paths together: what the program leaves of the north path, and less than the south path has.
func (n Network) Upload() unit.Rate { return whole(n.Limiter / 2) }

// Interruption is the longest time in which less than a rate in bit/s was delivered.
func Interruption(all []traffic.Interval, rate float64) (longest time.Duration) {
	var seconds float64
	for _, i := range all {
		if seconds += i.Seconds; i.DeliveredRate() >= rate {
			seconds = 0
		}
		longest = max(longest, time.Duration(seconds*float64(time.Second)))
	}
	return longest
}
