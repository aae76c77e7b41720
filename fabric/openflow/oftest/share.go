package oftest

import (
	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// A thousand switches have thousands of flows each, of which most differ in a number or two from those of the others. What is the same is in memory
// once: 13 million flows take 550 bytes each instead of 1,000.

// pattern is the match of a flow.
type pattern struct {
	pipeline.Matcher
	fields openflow.Match // as a switch returns it
}

// behaviour is the instructions of a flow.
type behaviour struct {
	pipeline.Program
	instructions openflow.Instructions // as a switch returns them
}

// shared has what flows of all switches of a network have in common, by its bytes in a message. The zero value is empty.
type shared struct {
	patterns   map[string]*pattern
	behaviours map[string]*behaviour
	buffer     []byte
}

// bytesOf returns the bytes of a message, until the next call.
func (s *shared) bytesOf(m *openflow.FlowMod) []byte {
	b, err := openflow.Append(s.buffer[:0], 0, m)
	if err != nil {
		return nil
	}
	s.buffer = b
	return b
}

func (s *shared) pattern(m *pipeline.Matcher, fields openflow.Match) *pattern {
	b := s.bytesOf(&openflow.FlowMod{Match: fields})
	if p := s.patterns[string(b)]; p != nil && b != nil && p.Matcher == *m {
		return p
	}
	p := &pattern{*m, fields}
	if b != nil {
		if s.patterns == nil {
			s.patterns = map[string]*pattern{}
		}
		s.patterns[string(b)] = p
	}
	return p
}

func (s *shared) behaviour(all openflow.Instructions) *behaviour {
	b := s.bytesOf(&openflow.FlowMod{Instructions: all})
	if h := s.behaviours[string(b)]; h != nil && b != nil {
		return h
	}
	h := &behaviour{pipeline.Compile(all), all}
	if b != nil {
		if s.behaviours == nil {
			s.behaviours = map[string]*behaviour{}
		}
		s.behaviours[string(b)] = h
	}
	return h
}
