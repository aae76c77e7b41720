package cycle

import (
	"fmt"
	"time"

	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// DefaultScheme is the name of the scheme of the product.
const DefaultScheme = "adaptive"

// SchemeNames are the names of all schemes.
var SchemeNames = []string{DefaultScheme, "thesis", "static", "queues", "hybrid"}

// frameBits is the size of the frames that counters count, those of Ethernet at most.
const frameBits = 1514 * 8

// SchemeNamed returns a scheme without flows, for cycles of a length: adaptive, or one that is compared with it. thesis is the algorithm of the paper, static holds
// each flow to its reservation, queues limits nothing, and hybrid limits only what is reserved (reservations, section 4.2): the last two need
// queues at the links, which are not made here.
func SchemeNamed(name string, interval time.Duration) (share.Scheme, error) {
	switch name {
	case DefaultScheme:
		a := share.NewAdaptive(share.DefaultQuantum)
		a.CountsFrames(unit.Rate(frameBits / interval.Seconds()))
		return a, nil
	case "thesis":
		return &share.AQoS{}, nil
	case "static":
		return &share.StaticMeters{}, nil
	case "queues":
		return &share.DiffServ{}, nil
	case "hybrid":
		return &share.Hybrid{}, nil
	}
	return nil, fmt.Errorf("%q is not a scheme of sharing: write adaptive, thesis, static, queues or hybrid", name)
}
