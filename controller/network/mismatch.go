package network

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"headgate.dev/headgate/fabric/openflow"
	"headgate.dev/headgate/fabric/openflow/session"
)

// explainTLS returns the error of a handshake in the words of the network if only one of switch and listener has TLS, and else
// the error. conn is the accepted connection.
func explainTLS(err error, conn net.Conn) error {
	var record tls.RecordHeaderError
	switch at := conn.LocalAddr(); {
	case errors.As(err, &record) && beginsHello(record.RecordHeader):
		return fmt.Errorf("the switch connects without TLS, and %v requires it: give the switch a certificate (\"headgate network certificate\"), and ssl:%[1]v as its controller", at)
	case errors.Is(err, session.ErrTLS):
		return fmt.Errorf("the switch connects with TLS, and %v has none: give the switch tcp:%[1]v as its controller, or a listener with TLS (\"listen\" in the configuration of the network)", at)
	}
	return err
}

// beginsHello reports whether what a peer sent instead of a record of TLS is OFPT_HELLO of any version (OpenFlow 1.3.5, section 7.1).
func beginsHello(b [5]byte) bool {
	const newest = 6 // OpenFlow 1.5
	return b[0] >= 1 && b[0] <= newest && b[1] == byte(openflow.TypeHello)
}
