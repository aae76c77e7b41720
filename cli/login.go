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

// credentials is the address and credentials of a service.
type credentials struct {
	URL   string `json:"url"`
	Token string `json:"token"`
	Pin   string `json:"pin"`
}

// logins are a user's logins by profile. Newest is the default profile.
type logins struct {
	Newest   string                 `json:"newest"`
	Profiles map[string]credentials `json:"profiles"`
}

func loginsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder for logins: %w", err)
	}
	return filepath.Join(dir, "headgate", "logins.json"), nil
}

func readLogins() (all logins, err error) {
	all.Profiles = map[string]credentials{}
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
		return all, fmt.Errorf("cannot read logins from %s: %w", file, err)
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
		Short: "Store a token for commands with --server",
		Long: `Login validates a token at a service and stores it with the service's certificate pin, in a file
that only the user can read. Commands with --server select it by URL or by profile name.
Without --token-file the token is read from standard input.`,
		Example: `  headgate login https://10.0.0.1:8420 --pin yKx... --token-file operator.token
  headgate apply --server default --host web1 -f web1.yaml`,
		Args: cobra.ExactArgs(1),
	}
	file := c.Flags().String("token-file", "-", "the `FILE` with the token; - is standard input")
	pin := c.Flags().String("pin", "", "the certificate pin: the `HASH` of the service's certificate authority, from the operator")
	ca := c.Flags().String("ca-file", "", "write the certificate of the service's certificate authority to this `FILE`, for other programs (curl --cacert)")
	profile := c.Flags().String("profile", "default", "the `NAME` under which the login is stored")
	c.RunE = func(c *cobra.Command, args []string) error {
		if *pin == "" {
			return usageError{errors.New("missing --pin: it authenticates the service; ask the operator for it"), c.CommandPath()}
		}
		token, err := readToken(*file, a.in)
		if err != nil {
			return err
		}
		l := credentials{strings.TrimSuffix(args[0], "/"), token, *pin}
		client, err := l.client(requestTimeout)
		if err != nil {
			return usageError{err, c.CommandPath()}
		}
		r, err := client.Login(c.Context(), nil, api.LoginJSONRequestBody{Token: token})
		who, err := decodeResponse[api.Principal](r, err)
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

// writeAuthority writes the certificate with this pin. The server sends it in the TLS handshake.
func writeAuthority(file string, s *tls.ConnectionState, pin string) error {
	for _, cert := range s.PeerCertificates {
		if pki.Hash(cert) == pin {
			return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o644)
		}
	}
	return pki.ErrPin
}

// client returns a client of the service. patience is the timeout of a request; 0 is none.
func (l credentials) client(patience time.Duration) (*api.Client, error) {
	u, err := url.Parse(l.URL)
	if err != nil || u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is not the URL of a service: write for example https://10.0.0.1:8420", l.URL)
	}
	h := &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: pki.Pinned(u.Hostname(), l.Pin), ForceAttemptHTTP2: true,
		HTTP2: &http.HTTP2Config{SendPingTimeout: pingInterval, PingTimeout: pingInterval}, // finds a lost connection of a silent stream
	}}
	return api.NewClient(l.URL, api.WithHTTPClient(h), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+l.Token)
		return nil
	}))
}

// requestTimeout is the timeout of a request. For a report the service queries every agent.
const requestTimeout = 30 * time.Second

// pingInterval is the time without data after which a ping is sent, and the timeout of the ping.
const pingInterval = 5 * time.Second

// service returns a client for the value of --server: a profile or URL, or "" for the newest login.
func service(server string) (*api.Client, error) {
	l, err := findLogin(server)
	if err != nil {
		return nil, err
	}
	return l.client(requestTimeout)
}

func findLogin(server string) (credentials, error) {
	all, err := readLogins()
	if err != nil {
		return credentials{}, err
	}
	return all.find(server)
}

// find returns the login of a profile or URL. A profile comes first, then the newest login if the URL
// is the same, then the only login with the URL.
func (all logins) find(server string) (credentials, error) {
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
		return credentials{}, fmt.Errorf("no login for %q: run \"headgate login URL\" first", server)
	case 1:
		return all.Profiles[names[0]], nil
	}
	return credentials{}, fmt.Errorf("several logins have the URL %s: select one by its profile: %s", at, strings.Join(names, ", "))
}

// decodeResponse decodes the response of a service: the value, or the problem as an error.
func decodeResponse[T any](r *http.Response, err error) (out T, _ error) {
	if err != nil {
		return out, fmt.Errorf("request to the service failed: %w", err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return out, fmt.Errorf("cannot read the response of the service: %w", err)
	}
	if r.StatusCode >= http.StatusBadRequest {
		return out, problemError(r, text)
	}
	if len(text) > 0 {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// listAll reads all pages of a list. one requests the page after a cursor.
func listAll[T any](one func(after *string) (items []T, next *string, err error)) ([]T, error) {
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

// problemError converts a problem response to an error. The error's type determines the exit code:
// missing permission and invalid requests have their own.
func problemError(r *http.Response, text []byte) error {
	var p api.Problem
	if json.Unmarshal(text, &p) != nil || p.Title == "" {
		return fmt.Errorf("the service returned %s", r.Status)
	}
	lines := []string{p.Title}
	if p.Detail != nil {
		lines[0] = *p.Detail
	}
	if p.Errors != nil {
		for _, e := range *p.Errors {
			if len(*p.Errors) == 1 && strings.Contains(lines[0], e.Message) {
				break // the detail has it already
			}
			lines = append(lines, "  "+e.Field+": "+e.Message)
		}
	}
	err := errors.New(strings.Join(slices.Compact(lines), "\n"))
	switch r.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (%w)", err, os.ErrPermission)
	case http.StatusNotFound:
		return notFound{err}
	case http.StatusPreconditionFailed:
		return preconditionFailed{err}
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return config.Errors{{File: "service", Message: err.Error()}}
	}
	return err
}

// preconditionFailed is a failed precondition: another request changed the resource.
type preconditionFailed struct{ error }

// notFound is the error for a resource that does not exist, or that the user may not see.
type notFound struct{ error }

// Is makes errors.Is match fs.ErrNotExist.
func (notFound) Is(target error) bool { return target == fs.ErrNotExist }
