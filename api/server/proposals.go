package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/tune"
	"headgate.dev/headgate/store"
	"headgate.dev/headgate/unit"
)

// proposal is an interface with limits that follow from the measurements.
type proposal struct {
	Dev       string             `json:"dev"`
	Out       *directionProposal `json:"out,omitempty"`
	In        *directionProposal `json:"in,omitempty"`
	Interface *interfaceDoc      `json:"interface,omitempty"`
	Tag       string             `json:"etag,omitempty"`
	Changes   []proposedChange   `json:"changes,omitempty"`
	Problems  []string           `json:"problems,omitempty"`
}

// directionProposal is the proposed limit of one direction, with the measurement from which it follows.
type directionProposal struct {
	LimitBps  int64           `json:"limit_bps,omitempty"`
	BeforeBps int64           `json:"before_bps,omitempty"` // the current limit
	Cannot    string          `json:"cannot_tell,omitempty"`
	Notes     []string        `json:"notes,omitempty"`
	From      string          `json:"from,omitempty"`
	To        string          `json:"to,omitempty"`
	Measure   string          `json:"measure,omitempty"`
	At        time.Time       `json:"at,omitzero"`
	Measured  *probe.Estimate `json:"measured,omitempty"`
}

// proposedChange is a group whose guarantee the proposal would change.
type proposedChange struct {
	Direction string `json:"direction"`
	Group     string `json:"group"`
	BeforeBps *int64 `json:"before_bps,omitempty"`
	AfterBps  int64  `json:"after_bps"`
}

// measuredPath is a result that has a token rate, with its decoded answer.
type measuredPath struct {
	store.ProbeResult
	answer path.Answer
}

// ListProposals proposes limits for a host's interfaces.
func (s *Server) ListProposals(w http.ResponseWriter, r *http.Request, host string, p api.ListProposalsParams) {
	margin, err := marginOf(p.Margin)
	if err == nil {
		_, err = get[store.Host](s, r, store.Key(store.Hosts, host), notFound("host", host))
	}
	var interfaces []store.Interface
	if err == nil {
		docs, _, e := s.Store.All(r.Context(), store.Prefix(store.Interfaces, host), 0)
		interfaces, err = decodeDocs[store.Interface](docs, e)
	}
	var ways map[string][]measuredPath
	if err == nil {
		ways, err = s.pathsOf(r.Context(), host)
	}
	out := page[proposal]{Items: []proposal{}}
	for _, i := range devicesOf(interfaces, ways) {
		if err != nil || p.Dev != nil && i.Dev != *p.Dev {
			continue
		}
		var one proposal
		one, err = s.propose(&i, ways, margin, principalOf(r))
		out.Items = append(out.Items, one)
	}
	writeResource(w, r, out, err)
}

// marginOf parses the margin below the measured rate.
func marginOf(text *string) (unit.Share, error) {
	if text == nil {
		return tune.Margin, nil
	}
	margin, err := unit.ParseShare(*text)
	if err == nil && margin >= unit.Whole/2 {
		err = errors.New("the margin must be less than 50%: write for example 1%")
	}
	if err != nil {
		return 0, invalidField("margin", err)
	}
	return margin, nil
}

// pathsOf reads the newest measurements of token rates from a host ("out") and to a host ("in").
func (s *Server) pathsOf(ctx context.Context, host string) (map[string][]measuredPath, error) {
	ways := map[string][]measuredPath{}
	take := func(way string, below string) ([]measuredPath, error) {
		docs, _, err := s.Store.All(ctx, below, 0)
		results, err := decodeDocs[store.ProbeResult](docs, err)
		var all []measuredPath
		for _, v := range results {
			m := measuredPath{ProbeResult: v}
			if v.Answer == nil || json.Unmarshal(v.Answer, &m.answer) != nil || m.answer.TokenRate == nil {
				continue
			}
			all = append(all, m)
		}
		ways[way] = append(ways[way], all...)
		return all, err
	}
	// Both directions are measured together, so that the peers of one direction are those of the other.
	from, err := take("out", store.Prefix(store.Newest, host))
	others := map[string]bool{}
	for _, m := range from {
		if err == nil && !others[m.To] {
			others[m.To] = true
			_, err = take("in", store.Prefix(store.Newest, m.To, host))
		}
	}
	return ways, err
}

// creditsValid is how long burst credits count beside later measurements that did not use them up.
const creditsValid = 7 * 24 * time.Hour

// outlasted reports whether a measurement did not meet a limiter whose burst credits a longer one of the same hosts used up.
func outlasted(m measuredPath, paths []measuredPath) bool {
	is := m.answer.TokenRate.Rate.WithoutCarried()
	return m.answer.Credits == nil && slices.ContainsFunc(paths, func(other measuredPath) bool {
		c := other.answer.Credits
		return other.From == m.From && other.To == m.To && c != nil && c.Baseline.Known() && m.At.Sub(other.At) < creditsValid && (!is.Known() || is.Value > c.Baseline.Value)
	})
}

// localDevices returns the devices that the path passes at the host's own end.
func (m measuredPath) localDevices(way string) []string {
	if way == "out" {
		return m.FromDevices
	}
	return m.ToDevices
}

// devicesOf returns a host's configured interfaces, without patterns, and one without limits for each
// measured device that no interface configures yet.
func devicesOf(interfaces []store.Interface, ways map[string][]measuredPath) []store.Interface {
	all := slices.DeleteFunc(slices.Clone(interfaces), func(i store.Interface) bool { return group.IsPattern(i.Dev) })
	for _, way := range directions {
		for _, m := range ways[way] {
			through := m.localDevices(way)
			if len(through) == 0 || slices.ContainsFunc(through, func(dev string) bool {
				return slices.ContainsFunc(append(all[:len(all):len(all)], interfaces...), func(i store.Interface) bool { return group.MatchesDevice(i.Dev, dev) })
			}) {
				continue
			}
			all = append(all, store.Interface{Interface: group.Interface{Dev: through[0]}})
		}
	}
	return all
}

// propose proposes limits for an interface: for the directions that have a limit, or for both if none has.
func (s *Server) propose(i *store.Interface, ways map[string][]measuredPath, margin unit.Share, by store.Token) (p proposal, err error) {
	p.Dev = i.Dev
	divided := i.Out != nil || i.In != nil
	next := i.Clone()
	limits := 0
	for _, way := range directions {
		side := i.Direction(way)
		if divided && side == nil {
			continue
		}
		d := s.proposeDirection(i, way, ways[way], margin)
		if side != nil {
			d.BeforeBps = int64(side.Limit)
		}
		if way == "in" {
			p.In = &d
		} else {
			p.Out = &d
		}
		if d.LimitBps > 0 {
			limit(next, way, unit.Rate(d.LimitBps))
			limits++
		}
	}
	if divided {
		now, err := interfaceForOperator(i, by)
		if err != nil {
			return p, err
		}
		text, err := json.Marshal(now)
		if err != nil {
			return p, err
		}
		p.Tag = etag(text)
	}
	if limits == 0 {
		return p, nil
	}
	doc, err := interfaceForOperator(next, by)
	p.Interface = &doc
	p.Changes, p.Problems = guaranteeChanges(i, next)
	return p, err
}

// limit sets the limit of a direction. A direction that has no groups yet gets a default group.
func limit(i *store.Interface, way string, to unit.Rate) {
	d := i.Direction(way)
	if d == nil {
		d = &group.Direction{Groups: []group.Group{{Name: "all", Default: true}}}
		if way == "in" {
			i.In = d
		} else {
			i.Out = d
		}
	}
	d.Limit = to
}

// proposeDirection derives a limit from the paths of one direction that pass the device. The path with the
// highest rate is taken to be limited by the device's own link: the bottleneck of a slower path is elsewhere.
func (s *Server) proposeDirection(i *store.Interface, way string, paths []measuredPath, margin unit.Share) (best directionProposal) {
	switch {
	case i.Perspective == group.Guest:
		best.Cannot = "the device carries the traffic of a guest, and measurements from the host do not pass it"
		return best
	case i.Engine == group.Quantum:
		best.Cannot = "engine quantum counts payload and cannot enforce a limit that counts frames: use htb"
		return best
	}
	best.Cannot = "no token rate has been measured through the device: add tokenrate or path to the probe schedule"
	most, others := 0.0, 0
	for _, m := range paths {
		if !slices.ContainsFunc(m.localDevices(way), func(dev string) bool { return group.MatchesDevice(i.Dev, dev) }) || outlasted(m, paths) {
			continue
		}
		others++
		r := m.answer.TokenRate.Rate
		p := tune.Direction{
			Dev: i.Dev, DeviceLimit: m.OwnLimit, Margin: margin, Bytes: m.answer.Bytes, Burst: s.Burst,
			WithoutLimitHint: "Remove the limit here, or the one at the other end, for one measurement",
			LargerBudgetHint: func(b unit.Bytes) string { return fmt.Sprintf("set bytes of the probe schedule to %v", b) },
		}.Propose(&m.answer)
		d := directionProposal{LimitBps: int64(p.Limit), Cannot: p.Cannot, Notes: p.Notes, From: m.From, To: m.To, Measure: m.Measure, At: m.At, Measured: &r}
		known := r.WithoutCarried()
		gives := known.Value
		if j := m.answer.TokenRate.Joint; !known.Known() && j != nil {
			gives = j.Rate
		}
		// Among paths with the same rate, prefer one from which a limit follows.
		if others == 1 || gives > most || gives == most && best.LimitBps == 0 {
			best, most = d, max(most, gives)
		}
	}
	if others > 1 {
		best.Notes = append(best.Notes, fmt.Sprintf("of %d measurements through %s, this one has the highest rate", others, i.Dev))
	}
	return best
}

// guaranteeChanges returns the groups whose guarantees differ, or the problems that make the second interface
// invalid.
func guaranteeChanges(before, after *store.Interface) (changes []proposedChange, problems []string) {
	is, wrong := after.Resolve()
	for _, p := range wrong {
		problems = append(problems, p.Error())
	}
	if len(wrong) > 0 {
		return nil, problems
	}
	was, wrong := before.Resolve()
	trees := [][2]*group.Tree{{nil, is.OutTree}, {nil, is.InTree}}
	if len(wrong) == 0 {
		trees[0][0], trees[1][0] = was.OutTree, was.InTree
	}
	for n, t := range trees {
		if t[1] == nil {
			continue
		}
		for _, node := range t[1].Nodes {
			c := proposedChange{Direction: directions[n], Group: node.Path, AfterBps: int64(node.Guarantee)}
			if t[0] != nil {
				if at := slices.IndexFunc(t[0].Nodes, func(b group.Node) bool { return b.Path == node.Path }); at >= 0 {
					current := int64(t[0].Nodes[at].Guarantee)
					c.BeforeBps = &current
				}
			}
			if c.BeforeBps == nil || *c.BeforeBps != c.AfterBps {
				changes = append(changes, c)
			}
		}
	}
	return changes, nil
}
