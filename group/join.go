package group

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var userPattern = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*\$?$`)

// CheckUser refuses what is not a user's name or number. Whether there is such a user is the
// host's to say.
func CheckUser(s string) error {
	if _, err := strconv.ParseUint(s, 10, 32); err != nil && !userPattern.MatchString(s) {
		return fmt.Errorf("%q is not a user: write a name, such as postgres, or a number", s)
	}
	return nil
}

// Joiners are the users who may put connections in the group at a path: its own, and those of
// the groups around it. ok is false if there is no such group.
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
