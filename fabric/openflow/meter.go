package openflow

import "fmt"

// MeterID is the number of a meter (enum ofp_meter). Meters have the numbers 1 to MeterMax.
type MeterID uint32

// The largest number of a meter, and meters with a meaning of their own.
const (
	MeterMax        MeterID = 0xffff0000
	MeterSlowPath   MeterID = 0xfffffffd
	MeterController MeterID = 0xfffffffe // packets to the controller
	MeterAll        MeterID = 0xffffffff // deletions and requests: all meters
)

// MeterMod adds, changes or deletes a meter (struct ofp_meter_mod, section 7.3.4.4).
type MeterMod struct {
	Command MeterCommand
	Flags   MeterFlags
	Meter   MeterID
	Bands   []Band
}

// MeterCommand is what is done with a meter (enum ofp_meter_mod_command).
type MeterCommand uint16

// What is done with a meter.
const (
	MeterAdd MeterCommand = iota
	MeterModify
	MeterDelete
)

// MeterFlags are units and options of a meter (enum ofp_meter_flags).
type MeterFlags uint16

// The units and options of meters.
const (
	MeterKbps  MeterFlags = 1 << 0 // rates in kbit/s, bursts in kbit
	MeterPktps MeterFlags = 1 << 1 // rates in packets/s, bursts in packets
	MeterBurst MeterFlags = 1 << 2 // bursts are in force
	MeterStats MeterFlags = 1 << 3 // packets are counted
)

// Band is what a meter does with packets above a rate (struct ofp_meter_band_header). Bands are values, not pointers.
type Band interface {
	Type() BandType
	text(f MeterFlags) string
	// fields passes over what follows the header, and returns the band with what was read.
	fields(c *codec) Band
}

// BandType is the type of a band (enum ofp_meter_band_type).
type BandType uint16

// The types of bands.
const (
	BandTypeDrop         BandType = 1
	BandTypeDSCPRemark   BandType = 2
	BandTypeExperimenter BandType = 0xffff
)

// BandLimit is from where on a band acts. The units are those of the meter's flags.
type BandLimit struct {
	Rate  uint32
	Burst uint32
}

// DropBand drops packets.
type DropBand struct{ BandLimit }

// DSCPRemarkBand raises the drop precedence in the DSCP field of IP packets by Levels.
type DSCPRemarkBand struct {
	BandLimit
	Levels uint8
}

// ExperimenterBand is a band of an extension, kept as bytes.
type ExperimenterBand struct {
	BandLimit
	Experimenter uint32
	Data         []byte // 8n bytes
}

// UnknownBand is a band of a type that OpenFlow 1.3 does not define. It is encoded to the bytes that were decoded.
type UnknownBand struct {
	BandLimit
	Kind BandType
	Body []byte // what follows the burst size: 8n+4 bytes
}

// Type is BandTypeDrop.
func (DropBand) Type() BandType { return BandTypeDrop }

// Type is BandTypeDSCPRemark.
func (DSCPRemarkBand) Type() BandType { return BandTypeDSCPRemark }

// Type is BandTypeExperimenter.
func (ExperimenterBand) Type() BandType { return BandTypeExperimenter }

// Type is the type in the header.
func (b UnknownBand) Type() BandType { return b.Kind }

// String is the name by which ovs-ofctl prints the band, such as "drop".
func (t BandType) String() string {
	switch t {
	case BandTypeDrop:
		return "drop"
	case BandTypeDSCPRemark:
		return "dscp_remark"
	case BandTypeExperimenter:
		return "experimenter"
	}
	return fmt.Sprintf("band(%d)", uint16(t))
}

// empty is the band of a type that is read.
func (t BandType) empty() Band {
	switch t {
	case BandTypeDrop:
		return DropBand{}
	case BandTypeDSCPRemark:
		return DSCPRemarkBand{}
	case BandTypeExperimenter:
		return ExperimenterBand{}
	}
	return UnknownBand{Kind: t}
}

// Type is TypeMeterMod.
func (m *MeterMod) Type() Type { return TypeMeterMod }

func (m *MeterMod) layout(c *codec) {
	u16(c, &m.Command, "ofp_meter_mod.command")
	u16(c, &m.Flags, "ofp_meter_mod.flags")
	u32(c, &m.Meter, "ofp_meter_mod.meter_id")
	list(c, &m.Bands, (*codec).band)
}

// band is a band with its header.
func (c *codec) band(p *Band) {
	start := c.at()
	var t BandType
	if c.encoding {
		if *p == nil {
			c.fail("ofp_meter_band_header.type", start, "a band is nil")
			return
		}
		t = (*p).Type()
	}
	u16(c, &t, "ofp_meter_band_header.type")
	s := c.length(start, "ofp_meter_band_header.len")
	if c.err != nil {
		return
	}
	b := *p
	if !c.encoding {
		b = t.empty()
	}
	b = b.fields(c)
	c.multipleOf8(s)
	c.close(s)
	if !c.encoding {
		*p = b
	}
}

func (l *BandLimit) layout(c *codec) {
	u32(c, &l.Rate, "ofp_meter_band_header.rate")
	u32(c, &l.Burst, "ofp_meter_band_header.burst_size")
}

func (b DropBand) fields(c *codec) Band {
	b.layout(c)
	c.pad(4)
	return b
}

func (b DSCPRemarkBand) fields(c *codec) Band {
	b.layout(c)
	u8(c, &b.Levels, "ofp_meter_band_dscp_remark.prec_level")
	c.pad(3)
	return b
}

func (b ExperimenterBand) fields(c *codec) Band {
	c.unknown++
	b.layout(c)
	u32(c, &b.Experimenter, "ofp_meter_band_experimenter.experimenter")
	c.rest(&b.Data, "ofp_meter_band_experimenter")
	return b
}

func (b UnknownBand) fields(c *codec) Band {
	c.unknown++
	if _, unknown := b.Kind.empty().(UnknownBand); c.encoding && !unknown {
		c.fail("ofp_meter_band_header.type", c.at(), "a band of type %d is no UnknownBand: use that of %s", b.Kind, b.Kind)
	}
	b.layout(c)
	c.rest(&b.Body, "ofp_meter_band_header")
	return b
}
