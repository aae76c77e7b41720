package path

import (
	"time"

	"headgate/probe"
	"headgate/unit"
)

// Report is a path, as it is printed.
type Report struct {
	Host string        `json:"host"`
	Peer string        `json:"peer,omitempty"`
	RTT  time.Duration `json:"rtt_ns,omitempty"`
	// Directions are the answers.
	Directions map[probe.Direction]*Answer `json:"directions"`
	// Control is what the control connection carried, in both directions.
	Control unit.Bytes `json:"control_bytes,omitempty"`
	// Failed says why not all was measured.
	Failed string `json:"failed,omitempty"`
}
