package traffic

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// roomFor raises this process's limit of open files if the flows need it: 3 for each connection (both
// ends, and a listener until it is accepted).
func roomFor(flows []Flow) error {
	need := uint64(64)
	for _, f := range flows {
		n := 1
		switch {
		case f.Requests != nil:
			n = max(f.Requests.Users, f.Requests.Connections, DefaultConnections)
			if f.Requests.Reconnect {
				n *= 2 // one is still closing when the next is opened
			}
		case f.Transfer != nil:
			n = max(f.Transfer.Streams, 1)
		}
		need += 3 * uint64(n)
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		need += uint64(len(open))
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Cur >= need {
		return err
	}
	limit.Cur, limit.Max = need, max(limit.Max, need)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("the flows need %d open files, but the limit cannot be raised: raise it (ulimit -n, or fs.nr_open): %w", need, err)
	}
	return nil
}
