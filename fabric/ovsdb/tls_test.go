package ovsdb

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"headgate.dev/headgate/fabric/ovsdb/ovsdbtest"
)

// authority signs certificates for a test.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// sign makes a certificate, signed by the authority, or by itself if there is none yet.
func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	serial := time.Now().UnixNano()
	template.SerialNumber, template.Subject = big.NewInt(serial), pkix.Name{CommonName: fmt.Sprint("test ", serial)}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, key
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
}

// files writes a certificate for 127.0.0.1, its key and the authority, and returns the names.
func (a *authority) files(dir string) (cert, key, authority string) {
	c, k := a.sign(&x509.Certificate{IPAddresses: []net.IP{{127, 0, 0, 1}},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}})
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			a.t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", c.Raw), write("key.pem", "PRIVATE KEY", der), write("ca.pem", "CERTIFICATE", a.cert.Raw)
}

// config is a client's, with a certificate if it has one.
func (a *authority) config(certificate bool) *tls.Config {
	c := &tls.Config{RootCAs: x509.NewCertPool()}
	c.RootCAs.AddCert(a.cert)
	if certificate {
		cert, key := a.sign(&x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		c.Certificates = []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}
	}
	return c
}

// Over TLS the session works with certificates of the same authority, and with no other.
func TestTLS(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	cert, key, ca := ours.files(t.TempDir())
	s := startServer(t, "--remote=pssl:0:127.0.0.1", "--certificate="+cert, "--private-key="+key, "--ca-cert="+ca)
	address := "ssl:127.0.0.1:" + s.port()
	ctx := testContext(t)

	session, err := Dial(ctx, address, ours.config(true))
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	s.vsctl("add-br", "br0")
	mustConnect(t, session, ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	if got := vsctl(t, address, "--certificate="+cert, "--private-key="+key, "--ca-cert="+ca, "get-controller", "br0"); got != "tcp:192.0.2.1:6653" {
		t.Errorf("ovs-vsctl lists the controllers %q over TLS, want tcp:192.0.2.1:6653", got)
	}

	named := ours.config(true)
	named.ServerName = "switch1" // a name that the server's certificate does not have
	_, err = Dial(ctx, address, named)
	wantError(t, err, "switch1")
	anyName, err := Dial(ctx, address, TLS(named.Certificates[0], named.RootCAs))
	if err != nil {
		t.Fatal(err)
	}
	defer anyName.Close()
	if err := anyName.call(ctx, "list_dbs", nil); err != nil {
		t.Error(err)
	}
	_, err = Dial(ctx, address, TLS(named.Certificates[0], other.config(true).RootCAs))
	wantError(t, err, address, "certificate signed by unknown authority")

	_, err = Dial(ctx, address, other.config(true)) // the server's certificate is not of this authority
	wantError(t, err, address, "certificate signed by unknown authority")
	_, err = Dial(ctx, address, nil)
	wantError(t, err, address, "TLS needs a certificate")

	for name, config := range map[string]*tls.Config{"no certificate": ours.config(false), "foreign certificate": {
		RootCAs: ours.config(false).RootCAs, Certificates: other.config(true).Certificates,
	}} {
		t.Run(name, func(t *testing.T) {
			session, err := Dial(ctx, address, config)
			if err == nil { // TLS 1.3: the client has finished before the server has checked
				defer session.Close()
				err = session.call(ctx, "list_dbs", nil)
			}
			wantError(t, err, address)
		})
	}

	tcp, err := Dial(ctx, "tcp:127.0.0.1:"+s.port(), nil) // without TLS
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	wantError(t, tcp.call(ctx, "list_dbs", nil), "list_dbs", "tcp:127.0.0.1:"+s.port())
}

// Over TCP the session sees what ovs-vsctl writes, and ovs-vsctl what the session writes.
func TestTCP(t *testing.T) {
	s := startServer(t, "--remote=ptcp:0:127.0.0.1")
	ctx, address := testContext(t), "tcp:127.0.0.1:"+s.port()
	session, err := Dial(ctx, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var databases []string
	if err := session.call(ctx, "list_dbs", &databases); err != nil || !slices.Contains(databases, database) {
		t.Errorf("the databases are %v, %v", databases, err)
	}
	vsctl(t, address, "add-br", "br0")
	mustConnect(t, session, ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"tcp:192.0.2.1:6653"}})
	snapshot, err := session.Snapshot(ctx)
	if err != nil || snapshot.Bridge("br0") == nil || snapshot.Bridge("br1") != nil {
		t.Errorf("the bridges are %+v, %v", snapshot, err)
	}
	if got := s.vsctl("get-controller", "br0"); got != "tcp:192.0.2.1:6653" {
		t.Errorf("ovs-vsctl lists the controllers %q", got)
	}
}

// A bridge that is connected to ssl: authenticates to its controller with the files of Connect, and the controller to it.
func TestConnectTLS(t *testing.T) {
	ours, other := newAuthority(t), newAuthority(t)
	o := ovsdbtest.Start(t)
	o.Run("ovs-vsctl", "add-br", "br0")
	session, err := Dial(testContext(t), o.Address(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	accept := func(server *authority) (version byte, err error) {
		t.Helper()
		config := server.config(true)
		cert, key, ca := ours.files(t.TempDir())
		config.Certificates[0], err = tls.LoadX509KeyPair(server.pair(t))
		if err != nil {
			t.Fatal(err)
		}
		config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, ours.config(false).RootCAs
		listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		want := ConnectConfig{Bridges: []string{"br0"}, Controllers: []string{"ssl:" + listener.Addr().String()}, SSL: SSL{key, cert, ca}}
		if _, _, err := session.Connect(testContext(t), want); err != nil {
			t.Fatal(err)
		}
		conn, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		hello := make([]byte, 1)
		_, err = io.ReadFull(conn, hello)
		return hello[0], err
	}
	if version, err := accept(ours); err != nil || version < 4 { // of OpenFlow 1.3 or newer
		t.Errorf("the bridge sent the version %d, %v", version, err)
	}
	if _, err := accept(other); err == nil {
		t.Error("the bridge has connected to a controller of another authority")
	}
}

// pair writes a certificate and its key, and returns their names.
func (a *authority) pair(t *testing.T) (cert, key string) {
	cert, key, _ = a.files(t.TempDir())
	return cert, key
}
