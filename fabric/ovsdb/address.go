package ovsdb

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// defaultPort is the port that IANA assigned to OVSDB (RFC 7047, section 7).
const defaultPort = "6640"

// connect connects to an address in the notation of ovsdb(7), "Active": unix:PATH, tcp:HOST[:PORT] and
// ssl:HOST[:PORT], where an IPv6 address is in brackets.
func connect(ctx context.Context, address string, config *tls.Config) (net.Conn, error) {
	method, rest, _ := strings.Cut(address, ":")
	if rest == "" || method != "unix" && method != "tcp" && method != "ssl" {
		return nil, errors.New("it is not the address of an OVSDB server: write unix:PATH, tcp:HOST:PORT or ssl:HOST:PORT")
	}
	if method == "unix" {
		return new(net.Dialer).DialContext(ctx, "unix", rest)
	}
	host, port, err := net.SplitHostPort(rest)
	if err != nil { // without a port
		host, port = strings.TrimSuffix(strings.TrimPrefix(rest, "["), "]"), defaultPort
		if strings.Contains(host, ":") && !strings.HasPrefix(rest, "[") {
			return nil, fmt.Errorf("an IPv6 address needs brackets: write %s:[%s]:%s", method, rest, defaultPort)
		}
	}
	target := net.JoinHostPort(host, port)
	if method == "tcp" {
		return new(net.Dialer).DialContext(ctx, "tcp", target)
	}
	if config == nil {
		return nil, errors.New("TLS needs a certificate and an authority, and none is configured")
	}
	return (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", target)
}
