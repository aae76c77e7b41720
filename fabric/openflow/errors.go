package openflow

import "fmt"

// Error reports that a message was refused (struct ofp_error_msg, section 7.4.4). It has the transaction id of the
// refused message. As a Go error it can be returned by functions that send requests.
type Error struct {
	Kind         ErrorType
	Code         uint16 // ofp_error_msg.code; of ErrExperimenter ofp_error_experimenter_msg.exp_type
	Experimenter uint32 // of ErrExperimenter
	Data         []byte // at least 64 bytes of the refused message; of ErrHelloFailed text
}

// ErrorType is the type of an error (enum ofp_error_type).
type ErrorType uint16

// The types of errors.
const (
	ErrHelloFailed ErrorType = iota
	ErrBadRequest
	ErrBadAction
	ErrBadInstruction
	ErrBadMatch
	ErrFlowModFailed
	ErrGroupModFailed
	ErrPortModFailed
	ErrTableModFailed
	ErrQueueOpFailed
	ErrSwitchConfigFailed
	ErrRoleRequestFailed
	ErrMeterModFailed
	ErrTableFeaturesFailed

	ErrExperimenter ErrorType = 0xffff
)

// Type is TypeError.
func (m *Error) Type() Type { return TypeError }

func (m *Error) layout(c *codec) {
	u16(c, &m.Kind, "ofp_error_msg.type")
	u16(c, &m.Code, "ofp_error_msg.code")
	switch {
	case m.Kind == ErrExperimenter:
		u32(c, &m.Experimenter, "ofp_error_experimenter_msg.experimenter")
	case m.Experimenter != 0:
		c.fail("ofp_error_msg.type", 8, "%#x has no experimenter", uint16(m.Kind))
	}
	c.rest(&m.Data, "ofp_error_msg.data")
}

// Name is the name of the type and code in the specification, such as "OFPBRC_BAD_LEN".
func (m *Error) Name() string {
	switch {
	case int(m.Kind) < len(codeNames) && int(m.Code) < len(codeNames[m.Kind]):
		return codeNames[m.Kind][m.Code]
	case m.Kind != ErrExperimenter:
		return fmt.Sprintf("type %d, code %d", uint16(m.Kind), m.Code)
	case m.Experimenter == ONF && m.Code >= firstBundleError && int(m.Code-firstBundleError) < len(bundleCodeNames):
		return bundleCodeNames[m.Code-firstBundleError]
	}
	return fmt.Sprintf("experimenter %#x, type %d", m.Experimenter, m.Code)
}

// Refused is the type and transaction id of the refused message, if Data has its header.
func (m *Error) Refused() (t Type, xid uint32, ok bool) {
	if m.Kind == ErrHelloFailed || len(m.Data) < HeaderLen {
		return 0, 0, false
	}
	d := m.Data
	return Type(d[1]), uint32(d[4])<<24 | uint32(d[5])<<16 | uint32(d[6])<<8 | uint32(d[7]), true
}

// Error is such as "the switch refuses flow-mod: OFPBMC_BAD_PREREQ".
func (m *Error) Error() string {
	if t, _, ok := m.Refused(); ok {
		return fmt.Sprintf("the switch refuses %s: %s", t, m.Name())
	}
	if m.Kind == ErrHelloFailed {
		return fmt.Sprintf("the other side refuses the connection: %s: %q", m.Name(), m.Data)
	}
	return fmt.Sprintf("the switch refuses a message: %s", m.Name())
}
