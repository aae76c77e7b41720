package group

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// IFBPrefix begins the name of a device that Headgate makes for what comes in on
// another one, whose index follows.
const IFBPrefix = "hgi"

// IsPattern tells whether dev is a pattern and not the name of one device.
func IsPattern(dev string) bool { return strings.ContainsAny(dev, `*?[\`) }

// Takes tells whether dev, a name or a pattern, is for the device called name. No
// pattern takes in the loopback device, which is no link to divide and by which a
// host speaks to itself, nor a device of Headgate's own.
func Takes(dev, name string) bool {
	if !IsPattern(dev) {
		return dev == name
	}
	match, err := path.Match(dev, name)
	return err == nil && match && name != "lo" && !isOwn(name)
}

func isOwn(name string) bool {
	index, ok := strings.CutPrefix(name, IFBPrefix)
	return ok && index != "" && strings.Trim(index, "0123456789") == ""
}

// mostName is the length of the longest alternative name (ALTIFNAMSIZ, with the zero byte).
const mostName = 127

// behindAt is what "ip link" prints behind "@": the name or number of the device that one is
// joined to or stands on, or NONE. A device's own name may have an "@", and rarely has.
var behindAt = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// checkPattern holds a device name to the kernel's rule (net/core/dev.c,
// dev_valid_name: no slash, no colon, no space; up to 15 bytes, alternative names
// more).
func checkPattern(dev string) error {
	if _, err := path.Match(dev, "x"); err != nil {
		return errors.New("the brackets are not closed")
	}
	if strings.ContainsAny(dev, "/: \t\n") {
		return errors.New("a device's name has no slash, colon or space")
	}
	if name, lower, ok := strings.Cut(dev, "@"); ok && name != "" && behindAt.MatchString(lower) {
		return fmt.Errorf("\"ip link\" prints %q behind a device's name to tell what it is joined to or stands on: write %s", "@"+lower, name)
	}
	if !IsPattern(dev) && len(dev) > mostName {
		return errors.New("a device's name has at most 15 characters, and an alternative one 127")
	}
	if isOwn(dev) {
		return errors.New("it is made by Headgate for what comes in on another device: name that one, and write in")
	}
	return nil
}
