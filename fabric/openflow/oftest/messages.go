package oftest

import (
	"encoding/binary"
	"errors"
	"strings"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/pipeline"
)

// execute executes a message of a controller, and returns the error with which it is refused. b is its bytes.
func (c *channel) execute(xid uint32, m openflow.Message, b []byte) *openflow.Error {
	s := c.s
	if c.role == openflow.RoleSlave && changes(m) {
		return refuse(openflow.ErrBadRequest, openflow.RequestIsSlave)
	}
	switch m := m.(type) {
	case *openflow.Hello, *openflow.EchoReply, *openflow.Error:
	case *openflow.EchoRequest:
		c.send(xid, &openflow.EchoReply{Data: m.Data})
	case *openflow.BarrierRequest: // all messages are executed in their order
		c.send(xid, &openflow.BarrierReply{})
	case *openflow.FeaturesRequest:
		c.send(xid, s.features())
	case *openflow.GetConfigRequest:
		c.send(xid, &openflow.GetConfigReply{Config: openflow.Config{Flags: s.fragments, MissSendLen: c.miss}})
	case *openflow.SetConfig:
		c.miss = m.MissSendLen // the whole packet is sent whatever it is, because there are no buffers
		if c.role != openflow.RoleSlave && m.Flags <= openflow.FragDrop {
			s.fragments = m.Flags
		}
	case *openflow.FlowMod:
		return s.flowMod(m)
	case *openflow.GroupMod:
		return s.groupMod(m)
	case *openflow.MeterMod:
		return s.meterMod(m)
	case *openflow.PortMod:
		return s.portMod(c, m)
	case *openflow.TableMod: // OpenFlow 1.3 defines nothing that it could change
		if int(m.Table) >= len(s.tables) && m.Table != openflow.AllTables {
			return refuse(openflow.ErrTableModFailed, openflow.TableModBadTable)
		}
	case *openflow.PacketOut:
		return s.packetOut(m)
	case *openflow.MultipartRequest:
		return c.multipart(xid, m)
	case *openflow.RoleRequest:
		return c.setRole(xid, m)
	case *openflow.GetAsyncRequest:
		c.send(xid, &openflow.GetAsyncReply{Async: c.async})
	case *openflow.SetAsync:
		c.async = m.Async
	case *openflow.QueueGetConfigRequest:
		return c.queues(xid, m.Port)
	case *openflow.Experimenter, *openflow.BundleControl, *openflow.BundleAdd:
		return refuse(openflow.ErrBadRequest, openflow.RequestBadExperimenter)
	default:
		return refuse(openflow.ErrBadRequest, openflow.RequestBadType)
	}
	return nil
}

// changes reports whether a message changes the switch, which a slave may not (section 6.3.6).
func changes(m openflow.Message) bool {
	switch m.(type) {
	case *openflow.FlowMod, *openflow.GroupMod, *openflow.MeterMod, *openflow.PortMod, *openflow.TableMod, *openflow.PacketOut:
		return true
	}
	return false
}

// features is the reply to a features-request (section 7.3.1).
func (s *Switch) features() *openflow.FeaturesReply {
	f := &openflow.FeaturesReply{
		DatapathID: s.options.DatapathID, Tables: uint8(len(s.tables)),
		Capabilities: openflow.CapFlowStats | openflow.CapTableStats | openflow.CapPortStats | openflow.CapQueueStats,
	}
	if s.limits.Groups > 0 {
		f.Capabilities |= openflow.CapGroupStats
	}
	return f
}

// packetOut executes a packet-out (section 7.3.7). The actions must suit the packet.
func (s *Switch) packetOut(m *openflow.PacketOut) *openflow.Error {
	if m.Buffer != openflow.NoBuffer {
		return refuse(openflow.ErrBadRequest, openflow.RequestBufferUnknown)
	}
	x := s.passage(append([]byte(nil), m.Data...), m.InPort, way{})
	defer x.done()
	known := &pipeline.Matcher{Value: x.packet.Key}
	for i := range known.Mask {
		known.Mask[i] = 0xff
	}
	if err := s.checkActions(m.Actions, known); err != nil {
		return err
	}
	if err := s.checkGroups(m.Actions); err != nil {
		return err
	}
	if len(m.Data) < pipeline.EthernetHeader {
		return nil
	}
	x.PacketOut, x.way.id = true, s.newID()
	x.Actions(m.Actions)
	return nil
}

// malformed is the error for bytes that are no message.
func malformed(b []byte, err error) *openflow.Error {
	var d *openflow.DecodeError
	if !errors.As(err, &d) {
		return refuse(openflow.ErrBadRequest, openflow.RequestBadLen)
	}
	has := func(prefix string) bool { return strings.HasPrefix(d.Field, prefix) }
	switch {
	case has("ofp_header.version"):
		return refuse(openflow.ErrBadRequest, openflow.RequestBadVersion)
	case openflow.Type(b[1]) == openflow.TypeError || !request(openflow.Type(b[1])):
		return refuse(openflow.ErrBadRequest, openflow.RequestBadType)
	case has("ofp_match.type"):
		return refuse(openflow.ErrBadMatch, openflow.MatchBadType)
	case has("ofp_match.oxm_fields"):
		return refuse(openflow.ErrBadMatch, openflow.MatchBadField)
	case has("ofp_match"):
		return refuse(openflow.ErrBadMatch, openflow.MatchBadLen)
	case has("ofp_action_set_field"):
		return refuse(openflow.ErrBadAction, openflow.ActionBadSetLen)
	case has("ofp_action"):
		return refuse(openflow.ErrBadAction, openflow.ActionBadLen)
	case has("ofp_instruction"):
		return refuse(openflow.ErrBadInstruction, openflow.InstructionBadLen)
	}
	return refuse(openflow.ErrBadRequest, openflow.RequestBadLen)
}

// request reports whether a controller sends messages of a type.
func request(t openflow.Type) bool {
	switch t {
	case openflow.TypeFeaturesReply, openflow.TypeGetConfigReply, openflow.TypePacketIn, openflow.TypeFlowRemoved, openflow.TypePortStatus,
		openflow.TypeMultipartReply, openflow.TypeBarrierReply, openflow.TypeQueueGetConfigReply, openflow.TypeRoleReply, openflow.TypeGetAsyncReply:
		return false
	}
	return t <= openflow.TypeMeterMod
}

func xidOf(b []byte) uint32 { return binary.BigEndian.Uint32(b[4:]) }
