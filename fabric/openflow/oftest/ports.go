package oftest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/unit"
)

// port is a port of a switch.
type port struct {
	no     openflow.PortNo
	name   string
	mac    openflow.MAC
	up     bool // there is a link, if the port is not down
	config openflow.PortConfig
	down   bool // by config: it follows PortDown after that was reported
	speed  unit.Rate
	rx, tx counter
	drops  counter // received, but not accepted
	added  time.Time
	peer   receiver // at the other end of the cable, nil if there is none
	cable  *Cable
}

// receiver is what a port is connected to.
type receiver interface {
	// frame takes a frame. The lock must be held. The receiver owns the bytes.
	frame(data []byte, w way)
}

// way is where a frame has been.
type way struct {
	id   uint64 // of the frame that a host or a controller sent, and of all copies of it; 0 outside of a network
	hops int    // switches
}

// receiverFunc is a function that receives.
type receiverFunc func(data []byte)

func (f receiverFunc) frame(data []byte, _ way) { f(data) }

// live reports whether a fast-failover group may use the port (OFPPS_LIVE).
func (p *port) live() bool { return p.up && !p.down && p.config&openflow.PortDown == 0 }

func (p *port) forwards() bool { return p.live() && p.config&openflow.PortNoFwd == 0 }

func (p *port) desc() openflow.Port {
	d := openflow.Port{No: p.no, HWAddr: p.mac, Name: p.name, Config: p.config, CurrSpeed: uint32(p.speed / 1000), MaxSpeed: uint32(p.speed / 1000)}
	switch p.speed {
	case 10e6:
		d.Current = openflow.Feature10MbFD
	case 100e6:
		d.Current = openflow.Feature100MbFD
	case 1e9:
		d.Current = openflow.Feature1GbFD
	case 10e9:
		d.Current = openflow.Feature10GbFD
	case 40e9:
		d.Current = openflow.Feature40GbFD
	case 100e9:
		d.Current = openflow.Feature100GbFD
	}
	if !p.up || p.down {
		d.State |= openflow.PortLinkDown
	}
	if p.live() {
		d.State |= openflow.PortLive
	}
	return d
}

// mac returns the address of a port.
func (s *Switch) mac(n openflow.PortNo) openflow.MAC {
	m := openflow.MAC{0xaa, 0x55}
	binary.BigEndian.PutUint32(m[2:], uint32(s.options.DatapathID)<<12|uint32(n)&0xfff)
	return m
}

// PortOptions describe a port.
type PortOptions struct {
	No     openflow.PortNo // 1 to openflow.PortMax
	Name   string          // up to 15 bytes; "p" and the number if it is empty
	HWAddr openflow.MAC    // made of the datapath id and the number if it is zero
	Speed  unit.Rate       // of the link, bit/s; 0 if it is unknown
	Down   bool            // the link is down
}

// AddPort adds a port, and reports it to the controllers.
func (s *Switch) AddPort(o PortOptions) error {
	s.lock()
	defer s.unlock()
	switch {
	case o.No == 0 || o.No > openflow.PortMax:
		return fmt.Errorf("port %d: a port has a number from 1 to %d", o.No, openflow.PortMax)
	case s.ports[o.No] != nil:
		return fmt.Errorf("port %d: it exists already", o.No)
	case len(o.Name) > 15:
		return fmt.Errorf("port %d: the name %q has more than 15 bytes", o.No, o.Name)
	}
	p := &port{no: o.No, name: cmp.Or(o.Name, fmt.Sprint("p", o.No)), mac: o.HWAddr, speed: o.Speed, up: !o.Down, added: time.Now()}
	if p.mac == (openflow.MAC{}) {
		p.mac = s.mac(o.No)
	}
	s.ports[p.no] = p
	s.portChanged(openflow.PortAdd, p)
	return nil
}

// RemovePort removes a port, with its cable, and reports it to the controllers.
func (s *Switch) RemovePort(no openflow.PortNo) {
	s.lock()
	defer s.unlock()
	p := s.ports[no]
	if p == nil {
		return
	}
	if p.cable != nil {
		p.cable.setPlugged(false)
	}
	delete(s.ports, no)
	s.portChanged(openflow.PortDelete, p)
}

// SetLink sets whether the link of a port is up, and reports a change to the controllers.
func (s *Switch) SetLink(no openflow.PortNo, up bool) {
	s.lock()
	defer s.unlock()
	if p := s.ports[no]; p != nil {
		s.setLink(p, up)
	}
}

func (s *Switch) setLink(p *port, up bool) {
	if p.up != up {
		p.up = up
		s.portChanged(openflow.PortModify, p)
	}
}

// SetSpeed sets the speed of a port, and reports a change to the controllers.
func (s *Switch) SetSpeed(no openflow.PortNo, speed unit.Rate) {
	s.lock()
	defer s.unlock()
	if p := s.ports[no]; p != nil && p.speed != speed {
		p.speed = speed
		s.portChanged(openflow.PortModify, p)
	}
}

// portChanged reports a port to the controllers.
func (s *Switch) portChanged(why openflow.PortReason, p *port) { s.portChangedBy(nil, why, p) }

// portChangedBy reports a port to the controllers but the one that has changed it.
func (s *Switch) portChangedBy(c *channel, why openflow.PortReason, p *port) {
	s.changes++
	s.notifyBut(c, &openflow.PortStatus{Reason: why, Port: p.desc()})
}

func (s *Switch) sortedPorts() []*port {
	all := make([]*port, 0, len(s.ports))
	for _, p := range s.ports {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *port) int { return cmp.Compare(a.no, b.no) })
	return all
}

// Listen calls f with each frame that leaves a port, instead of a cable. f must not call methods of the switch.
func (s *Switch) Listen(no openflow.PortNo, f func(frame []byte)) error {
	s.lock()
	defer s.unlock()
	p := s.ports[no]
	if p == nil {
		return fmt.Errorf("port %d: it does not exist", no)
	}
	p.peer = receiverFunc(f)
	return nil
}

// Receive processes a frame that arrives at a port. It returns when the switch has processed it.
func (s *Switch) Receive(no openflow.PortNo, frame []byte) {
	s.lock()
	defer s.unlock()
	s.receive(no, append([]byte(nil), frame...), way{id: s.newID()})
}

func (s *Switch) receive(no openflow.PortNo, data []byte, w way) {
	p := s.ports[no]
	if p == nil || !p.live() || s.off {
		return
	}
	p.rx.count(1, float64(len(data)))
	if p.config&openflow.PortNoRecv != 0 {
		p.drops.count(1, float64(len(data)))
		return
	}
	x := s.passage(data, no, w)
	defer x.done()
	if x.packet.Divided && s.fragments == openflow.FragDrop {
		p.drops.count(1, float64(len(data)))
		return
	}
	x.Tables()
}

// portMod executes a port-mod of a controller (section 7.3.4.3). The controller itself is informed only of the link, which
// goes with the port, as in Open vSwitch.
func (s *Switch) portMod(c *channel, m *openflow.PortMod) *openflow.Error {
	const config = openflow.PortDown | openflow.PortNoRecv | openflow.PortNoFwd | openflow.PortNoPacketIn
	p := s.ports[m.No]
	switch {
	case p == nil:
		return refuse(openflow.ErrPortModFailed, openflow.PortModBadPort)
	case p.mac != m.HWAddr:
		return refuse(openflow.ErrPortModFailed, openflow.PortModBadHWAddr)
	case (m.Mask|m.Config)&^config != 0:
		return refuse(openflow.ErrPortModFailed, openflow.PortModBadConfig)
	}
	set := p.config&^m.Mask | m.Config&m.Mask
	if set == p.config {
		return nil
	}
	p.config = set
	s.portChangedBy(c, openflow.PortModify, p)
	if down := set&openflow.PortDown != 0; down != p.down {
		p.down = down
		s.portChanged(openflow.PortModify, p)
		if p.cable != nil {
			p.cable.carrier(p, !down)
		}
	}
	return nil
}

// PortStats returns the counters of a port, and whether the port exists.
func (s *Switch) PortStats(no openflow.PortNo) (openflow.PortStats, bool) {
	s.lock()
	defer s.unlock()
	if p := s.ports[no]; p != nil {
		return p.stats(), true
	}
	return openflow.PortStats{}, false
}

// unknown is a counter that a switch does not have.
const unknown = ^uint64(0)

func (p *port) stats() openflow.PortStats {
	return openflow.PortStats{
		Port: p.no, RxPackets: p.rx.packets, RxBytes: p.rx.bytes, TxPackets: p.tx.packets, TxBytes: p.tx.bytes,
		RxDropped: unknown, TxDropped: unknown, RxErrors: unknown, TxErrors: unknown, RxFrameErr: unknown, RxOverErr: unknown,
		RxCRCErr: unknown, Collisions: unknown, Duration: since(p.added),
	}
}
