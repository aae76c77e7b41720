package bench

// Ours is the name of the sheet with a claim's own value.
const Ours = "headgate"

// Claim is one figure with a target, and its result.
type Claim struct {
	// ID is the id of the row, then "/" and the case: "ramp-in/100Mbit/tcp-cubic/group2".
	ID string `json:"id"`
	// Metric describes what is measured.
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Paper is the paper's value, in the same unit; nil if it has none.
	Paper *float64 `json:"paper"`
	// Peer has the values of the peers, by name; nil if one was not measured.
	Peer map[string]*float64 `json:"peer"`
	// Ours is the measured value; nil if it was not measured. Of several measurements it is the
	// median.
	Ours *float64 `json:"ours"`
	// N is the number of measurements behind Ours, and Least and Most are their minimum and maximum if
	// there are several.
	N     int      `json:"n"`
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	// PeerSpread has the same for peers that were measured more than once.
	PeerSpread map[string]Spread `json:"peer_spread,omitempty"`

	Target Target `json:"target"`
	OK     bool   `json:"ok"`
	// Missing is the reason why Ours is nil.
	Missing string `json:"missing,omitempty"`
	// Drawn describes the random values of the case; "" is a fixed case.
	Drawn string `json:"drawn,omitempty"`
	// Notes are what a reader needs to interpret the values.
	Notes []string `json:"notes,omitempty"`
}

// Spread is the range of several measurements.
type Spread struct {
	N     int     `json:"n"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// NewClaim declares a claim, with the names of its peers.
func NewClaim(id, metric string, t Target, peers ...string) Claim {
	c := Claim{ID: id, Metric: metric, Unit: t.Unit, Target: t, Peer: map[string]*float64{}}
	for _, p := range peers {
		c.Peer[p] = nil
	}
	return c
}

// WithPaper adds the paper's value.
func (c Claim) WithPaper(v float64) Claim {
	c.Paper = &v
	return c
}

// WithNote adds a note.
func (c Claim) WithNote(note string) Claim {
	c.Notes = append(c.Notes, note)
	return c
}
