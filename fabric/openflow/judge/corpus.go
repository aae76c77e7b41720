package judge

import (
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"

	"headgate.dev/headgate/fabric/openflow"
)

// random is a Source of random numbers.
type random struct{ *rand.Rand }

// Int implements Source.
func (r random) Int(low, high int) int { return low + r.IntN(high-low+1) }

// Corpus returns n tame messages of a kind, the same in each run. osken is Gen.OSKen.
func Corpus(k Kind, n int, osken bool) []openflow.Message {
	h := fnv.New64a()
	h.Write([]byte(k.Name))
	g := Gen{Source: random{rand.New(rand.NewPCG(1, h.Sum64()))}, Tame: true, OSKen: osken}
	all := make([]openflow.Message, n)
	for i := range all {
		all[i] = k.Draw(g)
	}
	return all
}

// helloErrors is how many errors are of refused connections: they come first, and have a text instead of a message.
const helloErrors = 2

// errorsOf are all errors of the specification, and bundleErrors those of the extension for bundles.
var errorsOf, bundleErrors = func() (all, bundles []*openflow.Error) {
	known := func(e *openflow.Error) bool { return strings.HasPrefix(e.Name(), "OFP") }
	for kind := openflow.ErrorType(0); known(&openflow.Error{Kind: kind}); kind++ {
		for code := uint16(0); known(&openflow.Error{Kind: kind, Code: code}); code++ {
			all = append(all, &openflow.Error{Kind: kind, Code: code})
		}
	}
	for code := openflow.BundleUnknown; ; code++ {
		e := &openflow.Error{Kind: openflow.ErrExperimenter, Experimenter: openflow.ONF, Code: code}
		if !known(e) {
			return all, bundles
		}
		bundles = append(bundles, e)
	}
}()

// Errors returns an error of each type and code.
func Errors() []openflow.Message {
	var out []openflow.Message
	for _, e := range append(append([]*openflow.Error{}, errorsOf...), bundleErrors...) {
		out = append(out, e)
	}
	return out
}

// Lonely returns flow-mods with a match of one field that needs others, of those that Open vSwitch has.
func Lonely() (all []openflow.Message) {
	for id := openflow.FieldInPort; id.Bits() > 0; id++ {
		m := openflow.Match{newField(id, make([]byte, octetsOf(id)), nil)}
		if m.Check() == nil || slices.Contains(notInOVS, id) || id == openflow.FieldVLANVID {
			continue
		}
		all = append(all, &openflow.FlowMod{Match: m, Buffer: openflow.NoBuffer, OutPort: openflow.PortAny, OutGroup: openflow.GroupAny})
	}
	return all
}
