package controller

import (
	"crypto/tls"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/fabric"
	"headgate.dev/headgate/internal/pki"
)

// switchAuthority signs the certificates of switches and of the listeners at which they connect, and no others. So the certificate
// of a switch is none of a host's agent, and that of an agent is none of a switch or of a controller (docs/decisions, 37).
type switchAuthority struct{ *pki.Authority }

// tls returns the configuration of a listener that has these addresses. It requires the certificate of a switch.
func (a switchAuthority) tls(hosts []string) (*tls.Config, error) {
	c, err := pki.Server(pki.KeyPair{}, a.Cert)
	if err != nil {
		return nil, err
	}
	c.GetCertificate = (&certificate{authority: a.Authority, hosts: hosts}).get
	return c, nil
}

// sign signs a certificate of switches for a number of days. Its names are the datapath ids.
func (a switchAuthority) sign(ids []fabric.DPID, request []byte, days int) (out api.SwitchCertificate, err error) {
	for _, id := range ids {
		out.Switches = append(out.Switches, id.String())
	}
	cert, err := a.Sign(request, pki.Template{Name: "switches", ClientNames: out.Switches, Validity: time.Duration(days) * 24 * time.Hour})
	if err != nil {
		return out, err
	}
	c, err := pki.Certificate(cert)
	if err != nil {
		return out, err
	}
	out.Certificate, out.Authority, out.Expires = string(cert), string(a.Cert), c.NotAfter
	return out, nil
}
