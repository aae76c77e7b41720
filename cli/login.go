package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"headgate/api"
	"headgate/config"
	"headgate/internal/pki"
	"headgate/internal/wholefile"
)

// login is how one gets into a service.
type login struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	Pin   string `json:"pin"`
}

// logins are those of a user, by profile; the newest is used if none is named.
type logins struct {
	Newest   string           `json:"newest"`
	Profiles map[string]login `json:"profiles"`
}

func loginsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("where logins are kept cannot be told: %w", err)
	}
	return filepath.Join(dir, "headgate", "logins.json"), nil
}

func readLogins() (all logins, err error) {
	all.Profiles = map[string]login{}
	file, err := loginsFile()
	if err != nil {
		return all, err
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return all, fmt.Errorf("logins cannot be read from %s: %w", file, err)
	}
	return all, nil
}

func (all logins) save() error {
	file, err := loginsFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return wholefile.Write(file, text, 0o600)
}

func loginCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "login URL",
		Short: "Keep a token, so that commands with --server get into a service",
		Long: `Login tries a token at a service and keeps it, with the hash of the service's authority,
for its owner alone. Commands with --server use it: by the URL, or by the profile's name.
Without --token-file the token is read from standard input.`,
		Example: `  headgate login https://10.0.0.1:8420 --pin yKx... --token-file operator.token
  headgate apply --server default --host web1 -f web1.yaml`,
		Args: cobra.ExactArgs(1),
	}
	file := c.Flags().String("token-file", "-", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the `HASH` of the service's authority, which its operator knows")
	ca := c.Flags().String("ca-file", "", "write the certificate of the service's authority to this `FILE`, for programs that trust it (curl --cacert)")
	profile := c.Flags().String("profile", "default", "the `NAME` under which it is kept")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *pin == "" {
			return usageError{errors.New("write --pin: without it anybody could be the service"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		l := login{strings.TrimSuffix(args[0], "/"), token, *pin}
		client, err := l.client(callPatience)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		r, err := client.Login(c.Context(), nil, api.LoginJSONRequestBody{Token: token})
		who, err := asked[api.Principal](r, err)
		if err != nil {
			return err
		}
		if *ca != "" {
			if err := writeAuthority(*ca, r.TLS, *pin); err != nil {
				return err
			}
		}
		all, err := readLogins()
		if err != nil {
			return err
		}
		all.Profiles[*profile], all.Newest = l, *profile
		if err := all.save(); err != nil {
			return err
		}
		as := string(who.Role)
		if who.Tenant != nil {
			as += " of " + *who.Tenant
		}
		a.note("logged in as %s, %s", who.Name, as)
		return nil
	}
	return c
}

// writeAuthority writes the certificate that a pin is of, which the server sends along.
func writeAuthority(file string, s *tls.ConnectionState, pin string) error {
	for _, cert := range s.PeerCertificates {
		if pki.Hash(cert) == pin {
			return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
		}
	}
	return pki.ErrPin
}

// client speaks to the service; a call may take so long, 0 is for ever.
func (l login) client(patience time.Duration) (*api.Client, error) {
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is no address of a service: write for example https://10.0.0.1:8420", l.URL)
	}
	h := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: pki.Pinned(u.Hostname(), l.Pin), ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingEvery, PingTimeout: pingEvery}, // a stream may be silent for long
	}}
	return api.NewClient(l.URL, api.WithHTTPClient(h), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+l.Token)
		return nil
	}))
}

// callPatience is for how long a call may take: a report asks every agent.
const callPatience = 30 * time.Second

// pingEvery is how often a service that says nothing is asked whether it is there.
const pingEvery = 5 * time.Second

// service is the one that --server says: by profile or URL; the newest login if it says nothing.
func service(server string) (*api.Client, error) {
	l, err := findLogin(server)
	if err != nil {
		return nil, err
	}
	return l.client(callPatience)
}

func findLogin(server string) (login, error) {
	all, err := readLogins()
	if err != nil {
		return login{}, err
	}
	return all.find(server)
}

// find is a login by its profile or, if there is one of that URL alone, by that; the newest is meant
// before others of the same URL.
func (all logins) find(server string) (login, error) {
	if server == "" {
		server = all.Newest
	}
	if l, ok := all.Profiles[server]; ok {
		return l, nil
	}
	at := strings.TrimSuffix(server, "/")
	if l := all.Profiles[all.Newest]; l.URL != "" && l.URL == at {
		return l, nil
	}
	var names []string
	for name, l := range all.Profiles {
		if l.URL == at {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	switch len(names) {
	case 0:
		return login{}, fmt.Errorf("there is no login for %q: run \"headgate login URL\" first", server)
	case 1:
		return all.Profiles[names[0]], nil
	}
	return login{}, fmt.Errorf("several logins are for %s: write one of their profiles instead: %s", at, strings.Join(names, ", "))
}

// asked is what a service answers: the value, or the reason as an error.
func asked[T any](r *http.Response, err error) (out T, _ error) {
	if err != nil {
		return out, fmt.Errorf("the service does not answer: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return out, fmt.Errorf("the service's answer cannot be read: %w", err)
	}
	if r.StatusCode >= http.StatusBadRequest {
		return out, refusal(r, text)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// every reads all pages of a list: one asks for the page behind another.
func every[T any](one func(after *string) (items []T, next *string, err error)) ([]T, error) {
	all := []T{}
	for after := (*string)(nil); ; {
		items, next, err := one(after)
		if err != nil {
			return nil, err
		}
		if all = append(all, items...); next == nil {
			return all, nil
		}
		after = next
	}
}

// refusal is a problem as a person reads it; what is not permitted, or not as it should be, has
// an exit code of its own.
func refusal(r *http.Response, text []byte) error {
	var p api.Problem
	if json.Unmarshal(text, &p) != nil || p.Title == "" {
		return fmt.Errorf("the service answers %s", r.Status)
	}
	lines := []string{p.Title}
	if p.Detail != nil {
		lines[0] = *p.Detail
	}
	if p.Errors != nil {
		for _, e := range *p.Errors {
			if len(*p.Errors) == 1 && strings.Contains(lines[0], e.Message) {
				break // it says that already
			}
			lines = append(lines, "  "+e.Field+": "+e.Message)
		}
	}
	err := errors.New(strings.Join(slices.Compact(lines), "\n"))
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (%w)", err, os.ErrPermission)
	case http.StatusNotFound:
		return notThere{err}
	case http.StatusPreconditionFailed:
		return changedMeanwhile{err}
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return config.Mistakes{{File: "service", Message: err.Error()}}
	}
	return err
}

// changedMeanwhile is that somebody else was faster.
type changedMeanwhile struct{ error }

// notThere is that there is nothing of that name, or nothing that one may see.
type notThere struct{ error }

// Is is for package errors.
func (notThere) Is(target error) bool { return target == fs.ErrNotExist }
