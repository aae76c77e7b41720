package group

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var userPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*\$?$`)

// CheckUser rejects text that is not a user name or number. It does not check whether the user
// exists on a host.
func CheckUser(s string) error {
	if _, err := strconv.ParseUint(s, 10, 32); err != nil && !userPattern.MatchString(s) {
		return fmt.Errorf("%q is not a user: write a name, such as postgres, or a number", s)
	}
	return nil
}

// Joiners returns the users who may assign connections to the group at a path: those listed in
// the group and in its parent groups. ok is false if there is no such group.
func (d *Direction) Joiners(path string) (users []string, ok bool) {
	groups := d.Groups
	for name := range strings.SplitSeq(path, "/") {
		found := false
		for _, g := range groups {
			if found = g.Name == name; found {
				users, groups = append(users, g.Join...), g.Groups
				break
			}
		}
		if !found {
			return nil, false
		}
	}
	return users, true
}
