package controller

import (
	"net"
	"time"

	"google.golang.org/grpc/credentials"

	"headgate.dev/headgate/internal/connlimit"
)

// Bounds of connections, chosen for Headgate. A connection costs 30 to 100 KB, with HTTP/2 and TLS.
var (
	// clientConnections are those of API clients. A peer is known by its first valid token: a tenant, or a token without one.
	clientConnections = connlimit.Bounds{Unknown: 1024, UnknownOf: 256, Known: 256}
	// agentConnections are those of agents. A peer is known by its certificate; an agent that reconnects may have an earlier connection. Thousands of agents
	// behind one address may connect again at once, and a connection costs 10 to 20 KB before its handshake.
	agentConnections = connlimit.Bounds{Unknown: 8192, UnknownOf: 4096, Known: 3, Young: 256}
)

const (
	// maxHeader is the largest header of a request, in bytes.
	maxHeader = 32 << 10
	// handshakeTimeout is how long an agent may take for its handshake.
	handshakeTimeout = 10 * time.Second
)

// identified tells the listener of agents who a peer is, once its certificate was checked.
type identified struct {
	credentials.TransportCredentials
}

func (i identified) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c, info, err := i.TransportCredentials.ServerHandshake(raw)
	if t, ok := info.(credentials.TLSInfo); err == nil && ok && len(t.State.PeerCertificates) > 0 {
		connlimit.Identify(raw, t.State.PeerCertificates[0].Subject.CommonName)
	}
	return c, info, err
}

func (i identified) Clone() credentials.TransportCredentials {
	return identified{i.TransportCredentials.Clone()}
}
