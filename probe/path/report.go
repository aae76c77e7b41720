package path

import (
	"time"

	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/unit"
)

// Report is the result for a path in its output form.
type Report struct {
	Host string        `json:"host"`
	Peer string        `json:"peer,omitempty"`
	RTT  time.Duration `json:"rtt_ns,omitempty"`
	// Directions has the answer of each direction.
	Directions map[probe.Direction]*Answer `json:"directions"`
	// Control is the bytes of the control connection in both directions.
	Control unit.Bytes `json:"control_bytes,omitempty"`
	// Failed is the reason why a part was not measured.
	Failed string `json:"failed,omitempty"`
}
