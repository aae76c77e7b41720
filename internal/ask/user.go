package ask

import (
	"fmt"
	"os/user"
	"strconv"
)

// User returns the id of a user, given by name or id.
func User(name string) (uint32, error) {
	id := name
	if _, err := strconv.ParseUint(name, 10, 32); err != nil {
		u, err := user.Lookup(name)
		if err != nil {
			return 0, err
		}
		id = u.Uid
	}
	n, err := strconv.ParseUint(id, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("user %s has the invalid id %q", name, id)
	}
	return uint32(n), nil
}
