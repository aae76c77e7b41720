package program

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"slices"

	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/fabric/openflow"
)

// A switch keeps the fingerprint of its program in the cookie of its discovery flow, so that a controller that connects need not read
// thousands of flows to know that they are right.

// Discovery returns the flow that every program has, and that a switch needs before its program can be made: without it no link
// is found. Its cookie has the fingerprint of what the switch has, 0 while that changes or is not known.
func Discovery(fingerprint uint32) Flow {
	return newFlow(false, TablePort, KindDiscovery, fingerprint, openflow.Match{openflow.EthType(etherLLDP)}, "see links", apply(toController()))
}

// FingerprintOf returns the fingerprint in flows of a switch, 0 if there is none.
func FingerprintOf(all []openflow.FlowStats) uint32 {
	for _, f := range all {
		if withoutFingerprint(f.Cookie) != f.Cookie {
			return uint32(f.Cookie)
		}
	}
	return 0
}

// withoutFingerprint returns a cookie without the fingerprint that it may have.
func withoutFingerprint(cookie uint64) uint64 {
	if k, ours := KindOf(cookie); ours && k == KindDiscovery {
		return cookie &^ 0xffffffff
	}
	return cookie
}

// Fingerprints are those of the switches of a network.
type Fingerprints struct {
	Of    *Connectivity
	salt  []byte
	hosts map[fabric.DPID]hostHash
}

// hostHash is of the hosts of a switch, as the rules of others have them.
type hostHash struct {
	hosts int
	sum   uint64
}

// hostBytes is the length of a MAC and a VLAN.
const hostBytes = 6 + 2

// Fingerprints prepares the fingerprints of the switches. salt names the executable: another one may make other rules of the same.
func (c *Connectivity) Fingerprints(salt []byte) *Fingerprints {
	ids := map[fabric.DPID][]byte{}
	for _, h := range c.Topology.Hosts() {
		ids[h.At.Switch] = binary.BigEndian.AppendUint16(append(ids[h.At.Switch], h.MAC[:]...), h.VLAN)
	}
	f := &Fingerprints{Of: c, salt: salt, hosts: make(map[fabric.DPID]hostHash, len(ids))}
	for id, one := range ids {
		sum := sha256.Sum256(one)
		f.hosts[id] = hostHash{len(one) / hostBytes, binary.BigEndian.Uint64(sum[:])}
	}
	return f
}

// Switch returns a hash of the program of a switch, and how many flows that has. It hashes what the rules depend on, so that it takes a
// hundredth of the time in which the program is made. A switch with circuits has the fingerprint 0, which is none: its meters change all
// the time.
func (f *Fingerprints) Switch(id fabric.DPID) (sum uint32, flows int, err error) {
	c := f.Of
	local, err := c.Part(id, &Part{})
	if err != nil {
		return 0, 0, err
	}
	at, _ := c.Topology.Switch(id)
	form := formOf(at.Capabilities)
	h := sha256.New()
	h.Write(f.salt)
	local.hash(h)
	flows = len(local.Flows)
	var b []byte
	hops := c.Next.From(id)
	for i, d := range c.Topology.Switches() {
		t := form.toward(c.Labels[d.ID], hops[i], nil)
		if t == (toward{}) {
			continue
		}
		flows += t.rules() + f.hosts[d.ID].hosts
		b = binary.BigEndian.AppendUint16(b, t.label)
		for _, p := range []fabric.PortNo{t.hop.Best, t.hop.Backup, t.hop.Detour} {
			b = binary.BigEndian.AppendUint32(b, uint32(p))
		}
		if t.hop.Hairpin {
			b = append(b, 1)
		}
		b = binary.BigEndian.AppendUint64(b, f.hosts[d.ID].sum)
	}
	h.Write(b)
	if c.Circuits.concerns(id) {
		return 0, flows, nil
	}
	return max(binary.BigEndian.Uint32(h.Sum(nil)), 1), flows, nil
}

// hash hashes a program, whose order does not matter.
func (p Program) hash(h hash.Hash) {
	var all [][]byte
	for _, f := range p.Flows {
		all = append(all, wire(f.Mod()))
	}
	for _, g := range p.Groups {
		all = append(all, wire(&openflow.GroupMod{Kind: g.Kind, Group: g.ID, Buckets: g.Buckets}))
	}
	for _, m := range p.Meters {
		all = append(all, wire(&openflow.MeterMod{Flags: m.Flags, Meter: m.ID, Bands: m.Bands}))
	}
	slices.SortFunc(all, bytes.Compare)
	for _, one := range all {
		h.Write(one)
	}
}
