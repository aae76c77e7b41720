package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/internal/pki"
)

// Identity is the agent's credentials and the addresses of its controllers.
type Identity struct {
	Host string `json:"host"`
	pki.KeyPair
	// Authority is the certificate of the controllers' authority. Agents are the addresses at which
	// controllers listen for agents.
	Authority []byte   `json:"authority"`
	Agents    []string `json:"agents"`
	// Joined is the name or address by which the host joined, which may be the only one that it reaches: a public address, or that of a forwarded port. With
	// a port it is the address for agents. "" is not known.
	Joined string `json:"joined,omitempty"`
}

// joinedAddress returns the address for agents by which the host joined, "" if the controllers announce that name or address themselves.
func (id Identity) joinedAddress() string {
	if _, _, err := net.SplitHostPort(id.Joined); err == nil {
		return id.Joined
	}
	port := ""
	for _, at := range id.Agents {
		host, p, err := net.SplitHostPort(at)
		if err != nil || host == id.Joined {
			return ""
		}
		port = p
	}
	if id.Joined == "" || port == "" {
		return ""
	}
	return net.JoinHostPort(id.Joined, port)
}

// nextController returns the address of the controller to connect to after that of another has failed, "" for none: the address by which the host joined, if
// the controllers do not announce it, and else a random one of theirs.
func (id Identity) nextController(failed string) string {
	if joined := id.joinedAddress(); joined != "" && joined != failed {
		return joined
	}
	return randomController(id.Agents, failed)
}

const identityFile = "identity.json"

// ErrNotJoined means that this host has not joined a controller.
var ErrNotJoined = errors.New("this host has not joined a controller")

// HasJoined reports whether a directory is the state directory of a host that has joined a service.
func HasJoined(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, identityFile))
	return err == nil
}

// ReadIdentity reads the identity from a directory.
func ReadIdentity(dir string) (id Identity, err error) {
	err = readFile(filepath.Join(dir, identityFile), &id)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = ErrNotJoined
	case errors.Is(err, errDamaged):
		err = fmt.Errorf("%w: join the host again with \"headgate agent join\"", err)
	}
	return id, err
}

func (id Identity) save(dir string) error {
	return writeFile(filepath.Join(dir, identityFile), id)
}

// changing serializes changes of the identity.
var changing sync.Mutex

// change changes the stored identity, if its certificate is still that of id: the host may have
// joined again meanwhile.
func (id Identity) change(dir string, do func(*Identity)) error {
	changing.Lock()
	defer changing.Unlock()
	now, err := ReadIdentity(dir)
	if err != nil || !bytes.Equal(now.Cert, id.Cert) {
		return err
	}
	do(&now)
	return now.save(dir)
}

// updateControllers stores the addresses of the controllers, if they changed.
func (id *Identity) updateControllers(dir string, at []string) error {
	if len(at) == 0 || slices.Equal(at, id.Agents) {
		return nil
	}
	id.Agents = at
	return id.change(dir, func(now *Identity) { now.Agents = at })
}

// Controller describes the controller that a host joins.
type Controller struct {
	URL  string
	Host string
	// Token is valid once, for that host.
	Token string
	// Pin is the hash of the controller's certificate authority (pki.Hash).
	Pin string
	// AgentAddress, if set, is the address with the port at which the controller is reachable for agents: that of the URL has another port.
	AgentAddress string
	// Dial, if set, opens connections to the controller.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Join requests a certificate for a host from a controller, and stores the identity in a directory.
func Join(ctx context.Context, dir string, s Controller) error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is not a controller address: use for example https://10.0.0.1:8420", s.URL)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	request, key, err := pki.Request(s.Host)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]string{"request": string(request)})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.JoinPath("v1", "hosts", url.PathEscape(s.Host), "certificate").String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+s.Token)
	r.Header.Set("Content-Type", "application/json")
	client := &http.Client{Timeout: joinTimeout, Transport: &http.Transport{TLSClientConfig: pki.Pinned(u.Hostname(), s.Pin), DialContext: s.Dial, DisableKeepAlives: true}}
	answer, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("cannot join: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		var p api.Problem
		json.NewDecoder(answer.Body).Decode(&p)
		return fmt.Errorf("cannot join: %s: %s", answer.Status, deref(p.Detail))
	}
	var got api.Certificate
	if err := json.NewDecoder(answer.Body).Decode(&got); err != nil {
		return fmt.Errorf("cannot join: cannot parse the controller's response: %w", err)
	}
	return Identity{
		Host: s.Host, KeyPair: pki.KeyPair{Cert: []byte(got.Certificate), Key: key},
		Authority: []byte(got.Authority), Agents: got.Agents, Joined: cmp.Or(s.AgentAddress, u.Hostname()),
	}.save(dir)
}

const joinTimeout = 10 * time.Second

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
