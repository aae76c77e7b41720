package agents

import (
	"testing"

	"google.golang.org/protobuf/proto"
)

// Each type of an envelope's messages is the type of one field, so that the type alone selects the field.
func TestEnvelopes(t *testing.T) {
	for _, envelope := range []proto.Message{&ToAgent{}, &FromAgent{}} {
		fields := carriers(envelope.ProtoReflect()).Fields()
		for n := range fields.Len() {
			m := envelope.ProtoReflect().NewField(fields.Get(n)).Message().Interface()
			var carried proto.Message
			switch envelope.(type) {
			case *ToAgent:
				carried = Carried(To(m))
			case *FromAgent:
				carried = Carried(From(m))
			}
			if carried != m {
				t.Errorf("%s: carries %T", fields.Get(n).FullName(), carried)
			}
		}
	}
	if m := Carried(&ToAgent{}); m != nil {
		t.Errorf("a heartbeat carries %v", m)
	}
}
