package bench

// Ours is the name of the sheet that a claim's own value comes from.
const Ours = "headgate"

// Claim is one figure that is promised, and what became of it.
type Claim struct {
	// ID is the row, then "/" and the case:
	// "ramp-in/100Mbit/tcp-cubic/group2".
	ID string `json:"id"`
	// Metric says in words what is measured.
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Paper is what the paper found, in the same unit; nil if it has no such figure.
	Paper *float64 `json:"paper"`
	// Peer is what the others reached, by name; nil if one was not measured.
	Peer map[string]*float64 `json:"peer"`
	// Ours is what we reached; nil if it was not measured. Of several measurements it
	// is the median.
	Ours *float64 `json:"ours"`
	// N is how many measurements are behind Ours, and Least and Most are the ends of
	// what they gave, if they are more than one.
	N     int      `json:"n"`
	Least *float64 `json:"least,omitempty"`
	Most  *float64 `json:"most,omitempty"`
	// PeerSpread is the same of those peers that were measured more than once.
	PeerSpread map[string]Spread `json:"peer_spread,omitempty"`

	Target Target `json:"target"`
	OK     bool   `json:"ok"`
	// Missing says why Ours is nil.
	Missing string `json:"missing,omitempty"`
	// Drawn says which values the case has from the seed; "" is a fixed case.
	Drawn string `json:"drawn,omitempty"`
	// Notes are what a reader must know to understand the figures.
	Notes []string `json:"notes,omitempty"`
}

// Spread is how far measurements of one thing lie apart.
type Spread struct {
	N     int     `json:"n"`
	Least float64 `json:"least"`
	Most  float64 `json:"most"`
}

// NewClaim declares a claim, with the names of those measured beside us.
func NewClaim(id, metric string, t Target, peers ...string) Claim {
	c := Claim{ID: id, Metric: metric, Unit: t.Unit, Target: t, Peer: map[string]*float64{}}
	for _, p := range peers {
		c.Peer[p] = nil
	}
	return c
}

// WithPaper adds the paper's figure.
func (c Claim) WithPaper(v float64) Claim {
	c.Paper = &v
	return c
}

// WithNote adds a note.
func (c Claim) WithNote(note string) Claim {
	c.Notes = append(c.Notes, note)
	return c
}
