package traffic

import (
	"errors"
	"fmt"
	"io"

	"golang.org/x/sys/unix"
)

// receiver reads all flows on one goroutine, once per tick. It does not block in epoll, so that
// packets wake no thread: at 1 Gbit/s in single segments that would be 80,000 wake-ups a second.
type receiver struct {
	epoll int
	flows []*flow
}

func newReceiver(flows []*flow) (*receiver, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("cannot create an epoll instance: %w", err)
	}
	for i, f := range flows {
		ev := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}
		if err := unix.EpollCtl(epoll, unix.EPOLL_CTL_ADD, f.recv, &ev); err != nil {
			unix.Close(epoll)
			return nil, fmt.Errorf("cannot watch flow %q: %w", f.Name, err)
		}
	}
	return &receiver{epoll, flows}, nil
}

func (r *receiver) loop(stop <-chan struct{}) {
	defer unix.Close(r.epoll)
	events := make([]unix.EpollEvent, max(len(r.flows), 1))
	for next := mono(); ; next = max(next+int64(tick), mono()) {
		sleepUntil(next)
		select {
		case <-stop:
			return
		default:
		}
		n, err := unix.EpollWait(r.epoll, events, 0)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, ev := range events[:max(n, 0)] {
			f := r.flows[ev.Fd]
			if err := f.receiver.work(); err != nil {
				unix.EpollCtl(r.epoll, unix.EPOLL_CTL_DEL, f.recv, nil)
				if !errors.Is(err, io.EOF) {
					f.fail(err)
				}
			}
		}
	}
}
