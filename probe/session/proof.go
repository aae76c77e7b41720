package session

import (
	"crypto/tls"

	"headgate.dev/headgate/internal/peerauth"
)

// The label of the end that sends a MAC. Each end has its own, so that an attacker cannot
// reflect the MAC of one end back to that end.
const (
	clientMACLabel = "headgate probe client"
	serverMACLabel = "headgate probe server"
)

// checkProof checks the other end's proof of the shared key; nil is none.
func checkProof(a peerauth.Credentials, c *tls.Conn, label string, p *proof) error {
	if p == nil {
		return peerauth.ErrKey
	}
	return a.Check(c, label, p.MAC)
}
