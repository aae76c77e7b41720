package oftest

import (
	"encoding/binary"

	"headgate.dev/headgate/fabric/openflow"
)

// defaultAsync is the asynchronous messages that are sent if a controller selects none (section 6.3.7): all to masters
// and equals but packets with an invalid TTL, and the status of ports to slaves.
func defaultAsync() openflow.Async {
	return openflow.Async{
		PacketIn:    [2]uint32{1<<openflow.ReasonNoMatch | 1<<openflow.ReasonAction, 0},
		PortStatus:  [2]uint32{1<<openflow.PortAdd | 1<<openflow.PortDelete | 1<<openflow.PortModify, 1<<openflow.PortAdd | 1<<openflow.PortDelete | 1<<openflow.PortModify},
		FlowRemoved: [2]uint32{1<<openflow.RemovedIdleTimeout | 1<<openflow.RemovedHardTimeout | 1<<openflow.RemovedDelete | 1<<openflow.RemovedGroupDelete, 0},
	}
}

// notify sends an asynchronous message to the controllers that have selected it.
func (s *Switch) notify(m openflow.Message) { s.notifyBut(nil, m) }

// notifyBut leaves out one of them.
func (s *Switch) notifyBut(but *channel, m openflow.Message) {
	for _, c := range s.channels {
		if c == but {
			continue
		}
		slave := 0
		if c.role == openflow.RoleSlave {
			slave = 1
		}
		var selected bool
		switch m := m.(type) {
		case *openflow.PacketIn:
			selected = c.async.PacketIn[slave]>>m.Reason&1 == 1
		case *openflow.FlowRemoved:
			selected = c.async.FlowRemoved[slave]>>m.Reason&1 == 1
		case *openflow.PortStatus:
			selected = c.async.PortStatus[slave]>>m.Reason&1 == 1
		}
		if selected {
			c.send(0, m)
		}
	}
}

// setRole executes a role-request (section 6.3.6). The distance of generations is signed: a counter that wraps is newer.
func (c *channel) setRole(xid uint32, m *openflow.RoleRequest) *openflow.Error {
	s := c.s
	switch m.Role.Role {
	case openflow.RoleNoChange, openflow.RoleEqual:
	case openflow.RoleMaster, openflow.RoleSlave:
		if s.elected && int64(m.GenerationID-s.generation) < 0 {
			return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestStale)
		}
		s.generation, s.elected = m.GenerationID, true
	default:
		return refuse(openflow.ErrRoleRequestFailed, openflow.RoleRequestBadRole)
	}
	if m.Role.Role != openflow.RoleNoChange {
		c.role = m.Role.Role
	}
	generation := ^uint64(0)
	if s.elected {
		generation = s.generation
	}
	c.send(xid, &openflow.RoleReply{Role: openflow.Role{Role: c.role, GenerationID: generation}})
	if m.Role.Role == openflow.RoleMaster {
		for _, o := range s.channels {
			if o != c && o.role == openflow.RoleMaster {
				o.role = openflow.RoleSlave
				o.demoted()
			}
		}
	}
	return nil
}

// The role-status message that OpenFlow 1.4 defines, and ONF EXT-191 for OpenFlow 1.3: Open vSwitch sends it.
const (
	roleStatus           = 1911
	roleStatusMasterTook = 0 // OFPCRR_MASTER_REQUEST
)

// demoted informs a former master that another controller is master now.
func (c *channel) demoted() {
	data := binary.BigEndian.AppendUint32(nil, uint32(openflow.RoleSlave))
	data = append(data, roleStatusMasterTook, 0, 0, 0)
	data = binary.BigEndian.AppendUint64(data, c.s.generation)
	c.send(0, &openflow.Experimenter{Experimenter: openflow.ONF, ExpType: roleStatus, Data: data})
}
