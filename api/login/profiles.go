package login

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"headgate.dev/headgate/internal/wholefile"
)

// Credentials is the address of a service and a token for it.
type Credentials struct {
	URL   string `json:"url"` // without a slash at the end
	Token string `json:"token"`
	// Pin is the hash of the service's certificate authority (pki.Hash).
	Pin string `json:"pin"`
}

// Logins are a user's logins by profile. Newest is the default profile.
type Logins struct {
	Newest   string                 `json:"newest"`
	Profiles map[string]Credentials `json:"profiles"`
}

func file() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("cannot find the folder for logins: %w", err)
	}
	return filepath.Join(dir, "headgate", "logins.json"), nil
}

// Load reads the logins of the user.
func Load() (all Logins, err error) {
	all.Profiles = map[string]Credentials{}
	name, err := file()
	if err != nil {
		return all, err
	}
	text, err := os.ReadFile(name)
	if errors.Is(err, os.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return all, fmt.Errorf("cannot read logins from %s: %w", name, err)
	}
	return all, nil
}

// Save writes the logins, readable by the user only.
func (all Logins) Save() error {
	name, err := file()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return wholefile.Write(name, text, 0o600)
}

// Find returns the stored login of a profile or URL, or the newest one for "".
func Find(server string) (Credentials, error) {
	all, err := Load()
	if err != nil {
		return Credentials{}, err
	}
	return all.Find(server)
}

// Find returns the login of a profile or URL, or the newest one for "". A profile comes first, then the
// newest login if the URL is the same, then the only login with the URL.
func (all Logins) Find(server string) (Credentials, error) {
	if server == "" {
		server = all.Newest
	}
	if l, ok := all.Profiles[server]; ok {
		return l, nil
	}
	if server == "" {
		return Credentials{}, all.none()
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
		return Credentials{}, fmt.Errorf("no login for %q: run \"headgate login URL\" first", server)
	case 1:
		return all.Profiles[names[0]], nil
	}
	return Credentials{}, fmt.Errorf("several logins have the URL %s: select one by its profile: %s", at, strings.Join(names, ", "))
}

// none is the error of a command without --server where no login is the newest one.
func (all Logins) none() error {
	if len(all.Profiles) == 0 {
		return errors.New("no login is stored: log in with \"headgate login URL\"")
	}
	return fmt.Errorf("the newest login was removed: select another one by its profile: %s", strings.Join(slices.Sorted(maps.Keys(all.Profiles)), ", "))
}

// Remove removes the login of a profile, and returns it. The one that is left, if only one is, becomes the newest.
func (all *Logins) Remove(profile string) (Credentials, error) {
	l, ok := all.Profiles[profile]
	switch {
	case !ok && profile == "":
		return l, all.none()
	case !ok:
		return l, fmt.Errorf("no login has the profile %q", profile)
	}
	delete(all.Profiles, profile)
	if all.Newest == profile {
		all.Newest = ""
		if left := slices.Collect(maps.Keys(all.Profiles)); len(left) == 1 {
			all.Newest = left[0]
		}
	}
	return l, nil
}
