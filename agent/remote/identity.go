package remote

import (
	"bytes"
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

	"headgate/api"
	"headgate/internal/pki"
	"headgate/internal/wholefile"
)

// Identity is who an agent is, and whom it speaks to.
type Identity struct {
	Host string `json:"host"`
	pki.Pair
	// Authority is the service's certificate, Agents are where controllers listen for agents.
	Authority []byte   `json:"authority"`
	Agents    []string `json:"agents"`
}

const identityFile = "identity.json"

// ErrNotJoined means that this host has not joined a service.
var ErrNotJoined = errors.New("this host has not joined a service")

// ReadIdentity is that of a folder.
func ReadIdentity(dir string) (id Identity, err error) {
	err = readFile(filepath.Join(dir, identityFile), &id)
	if errors.Is(err, os.ErrNotExist) {
		err = ErrNotJoined
	}
	return id, err
}

func (id Identity) save(dir string) error {
	return writeFile(filepath.Join(dir, identityFile), id)
}

// changing keeps two changes of an identity from undoing each other.
var changing sync.Mutex

// change changes the identity of a folder, if it is still the one that somebody has in mind: the
// host may have joined anew meanwhile.
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

// found keeps where the controllers are from now on, as one of them says, if that is not where they
// were.
func (id *Identity) found(dir string, at []string) error {
	if len(at) == 0 || slices.Equal(at, id.Agents) {
		return nil
	}
	id.Agents = at
	return id.change(dir, func(now *Identity) { now.Agents = at })
}

// Service is what a host joins, and as whom.
type Service struct {
	URL  string
	Host string
	// Token is good for that host once.
	Token string
	// Pin is the hash of the service's authority (pki.Hash).
	Pin string
	// Dial, if set, is how the service is spoken to.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Join has a controller sign a certificate for a host, and keeps it in the folder.
func Join(ctx context.Context, dir string, s Service) error {
	u, err := url.Parse(s.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%q is no address of a controller: write for example https://10.0.0.1:8420", s.URL)
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
	client := &http.Client{Timeout: joinPatience, Transport: &http.Transport{TLSClientConfig: pki.Pinned(u.Hostname(), s.Pin), DialContext: s.Dial, DisableKeepAlives: true}}
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
		return fmt.Errorf("cannot join: the controller's answer cannot be read: %w", err)
	}
	return Identity{
		Host: s.Host, Pair: pki.Pair{Cert: []byte(got.Certificate), Key: key},
		Authority: []byte(got.Authority), Agents: got.Agents,
	}.save(dir)
}

const joinPatience = 10 * time.Second

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func readFile(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s is damaged: %w", name, err)
	}
	return nil
}

// writeFile writes a file whole or not at all, and to the disk.
func writeFile(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return wholefile.Write(name, text, 0o600)
}
