package agents

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// To returns the message to an agent that carries m, which must be of a type that ToAgent has.
func To(m proto.Message) *ToAgent {
	out := &ToAgent{}
	carry(out.ProtoReflect(), m.ProtoReflect())
	return out
}

// From returns the message of an agent that carries m, which must be of a type that FromAgent has.
func From(m proto.Message) *FromAgent {
	out := &FromAgent{}
	carry(out.ProtoReflect(), m.ProtoReflect())
	return out
}

// Carried returns what a message carries; nil if that is nothing, or of a type that this version does not know.
func Carried[M interface {
	*ToAgent | *FromAgent
	proto.Message
}](m M) proto.Message {
	envelope := m.ProtoReflect()
	field := envelope.WhichOneof(carriers(envelope))
	if field == nil {
		return nil
	}
	return envelope.Get(field).Message().Interface()
}

// carry sets the field of an envelope that has the type of m.
func carry(envelope, m protoreflect.Message) {
	fields := carriers(envelope).Fields()
	for n := range fields.Len() {
		if f := fields.Get(n); f.Message() == m.Descriptor() {
			envelope.Set(f, protoreflect.ValueOfMessage(m))
			return
		}
	}
	panic(fmt.Sprintf("agents: %s has no field of type %s", envelope.Descriptor().Name(), m.Descriptor().Name()))
}

func carriers(envelope protoreflect.Message) protoreflect.OneofDescriptor {
	return envelope.Descriptor().Oneofs().ByName("message")
}
