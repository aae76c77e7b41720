// Package listen adds to the errors of listeners what to do.
package listen

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Remedy adds to the error of a listener what to do. setting names the flag, argument or key that has the address:
// "--metrics"; it is "" if the address cannot be set.
func Remedy(err error, setting string) error {
	var address *net.AddrError
	text := ""
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		text = `stop the program that listens there ("ss -lnp" lists programs)`
		if setting != "" {
			text += fmt.Sprintf(", or set %s to another address or port", setting)
		}
	case errors.Is(err, os.ErrPermission):
		text = "run as root"
		if setting != "" {
			text += fmt.Sprintf(", or set %s to a port from 1024 on", setting)
		}
	case setting == "":
	case errors.Is(err, unix.EADDRNOTAVAIL):
		text = fmt.Sprintf("set %s to an address of this host (\"ip address\" lists them)", setting)
	case errors.As(err, &address):
		text = fmt.Sprintf("set %s to an address and a port, such as 127.0.0.1:9000", setting)
	}
	if text == "" {
		return err
	}
	return fmt.Errorf("%w: %s", err, text)
}
