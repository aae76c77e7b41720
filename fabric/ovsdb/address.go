package ovsdb

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// defaultPort is the port that IANA assigned to OVSDB (RFC 7047, section 7).
const defaultPort = "6640"

// LocalAddress returns the address of this machine's Open vSwitch, as ovs-vsctl(8) finds it: the socket db.sock in the
// directory of the environment variable OVS_RUNDIR, or in /run/openvswitch.
func LocalAddress() string {
	return "unix:" + filepath.Join(cmp.Or(os.Getenv("OVS_RUNDIR"), "/run/openvswitch"), "db.sock")
}

// TLS returns a configuration for Dial that accepts every certificate of an authority, whatever its names, as the
// programs of Open vSwitch do (ovs-vsctl(8), --ca-cert). Certificates of switches have no host names: those of ovs-pki
// have none at all.
func TLS(own tls.Certificate, authority *x509.CertPool) *tls.Config {
	return &tls.Config{
		Certificates:       []tls.Certificate{own},
		InsecureSkipVerify: true, // because it would check names: VerifyConnection checks the rest
		VerifyConnection: func(c tls.ConnectionState) error {
			check := x509.VerifyOptions{Roots: authority, Intermediates: x509.NewCertPool(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
			for _, more := range c.PeerCertificates[1:] {
				check.Intermediates.AddCert(more)
			}
			_, err := c.PeerCertificates[0].Verify(check)
			return err
		},
	}
}

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
