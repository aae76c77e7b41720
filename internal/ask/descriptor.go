package ask

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Descriptor duplicates a file descriptor of another process, for a request. The caller closes it.
func Descriptor(pid, fd int) (int, error) {
	p, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot find process %d: %w", pid, err)
	}
	defer unix.Close(p)
	got, err := unix.PidfdGetfd(p, fd, 0)
	if err != nil {
		return -1, fmt.Errorf("cannot get descriptor %d of process %d: %w", fd, pid, err)
	}
	return got, nil
}
