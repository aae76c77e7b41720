package group

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// IFBPrefix is the name prefix of the IFB devices that Headgate creates for the ingress of
// other devices. The index of the other device follows.
const IFBPrefix = "hgi"

// IsPattern reports whether dev is a pattern and not the name of one device.
func IsPattern(dev string) bool { return strings.ContainsAny(dev, `*?[\`) }

// MatchesDevice reports whether dev, a name or a pattern, applies to the device called name. No pattern
// matches the loopback device, which is not a link with limited bandwidth, or an IFB device
// that Headgate created.
func MatchesDevice(dev, name string) bool {
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

// maxAltName is the maximum length of an alternative name (ALTIFNAMSIZ, with the zero byte).
const maxAltName = 127

// lowerDevPattern matches the text that "ip link" prints after "@": the name or index of the peer or
// lower device, or NONE. A device's own name may contain "@", but rarely does.
var lowerDevPattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._-]*$`)

// checkPattern checks a device name against the kernel's rules (net/core/dev.c, dev_valid_name:
// no slash, colon or space; up to 15 bytes, more for alternative names).
func checkPattern(dev string) error {
	if _, err := path.Match(dev, "x"); err != nil {
		return errors.New("the brackets are not closed")
	}
	if strings.ContainsAny(dev, "/: \t\n") {
		return errors.New("a device name must not contain a slash, colon or space")
	}
	if name, lower, ok := strings.Cut(dev, "@"); ok && name != "" && lowerDevPattern.MatchString(lower) {
		return fmt.Errorf("%q is the peer or lower device, which \"ip link\" appends to the name: write %s", "@"+lower, name)
	}
	if !IsPattern(dev) && len(dev) > maxAltName {
		return errors.New("a device name has at most 15 characters, and an alternative name 127")
	}
	if isOwn(dev) {
		return errors.New("this is an IFB that Headgate created for the ingress of another device: name that device, and configure its in direction")
	}
	return nil
}
