package host

import (
	"bytes"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"strings"
)

// Users are the users of a proxy and their passwords. nil needs no authentication.
type Users map[string]string

// ReadUsers reads the users of a proxy: a name, a colon and a password on each line. Empty lines and those that begin
// with # are left out. SOCKS allows names and passwords of 255 bytes (RFC 1929, section 2).
func ReadUsers(file string) (Users, error) {
	text, err := readPrivate(file)
	if err != nil {
		return nil, fmt.Errorf("cannot read the users of a proxy: %w", err)
	}
	out := Users{}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		one := strings.TrimRight(string(line), "\r\n")
		if one == "" || one[0] == '#' {
			continue
		}
		name, password, ok := strings.Cut(one, ":")
		if !ok || name == "" || password == "" || len(name) > 255 || len(password) > 255 {
			return nil, fmt.Errorf("%s:%d: not a name, a colon and a password, of at most 255 bytes each", file, number)
		}
		if _, twice := out[name]; twice {
			return nil, fmt.Errorf("%s:%d: %q has a password already: remove one line", file, number, name)
		}
		out[name] = password
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%s has no user: write a name, a colon and a password on a line", file)
	}
	return out, nil
}

// allow reports whether the password is that of the user. Its time does not depend on the password.
func (u Users) allow(name, password string) bool {
	want, ok := u[name]
	a, b := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(password))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1 && ok
}
