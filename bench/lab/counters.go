package lab

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"headgate.dev/headgate/lab"
)

// socketDrops returns the number of datagrams that the server's sockets dropped.
func socketDrops(l *lab.Lab) (n uint64, err error) {
	var text []byte
	err = l.Node(server).Do(func() (err error) {
		text, err = os.ReadFile("/proc/thread-self/net/snmp")
		return err
	})
	if err != nil {
		return 0, err
	}
	return counter(string(text), "Udp", "RcvbufErrors")
}

// counter finds a value in a file like /proc/net/snmp: a line of names, and one of values, each after
// "Udp:".
func counter(text, protocol, name string) (uint64, error) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != protocol+":" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for i, n := range names {
			if n == name && i < len(fields) {
				return strconv.ParseUint(fields[i], 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("/proc/net/snmp has no %s %s", protocol, name)
}
