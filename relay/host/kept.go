package host

import (
	"context"
	"io"
	"slices"
	"sync"
	"time"

	"headgate.dev/headgate/relay"
)

// kept is a stream that is kept open.
type kept struct {
	path   relay.Path
	reach  *outage // of the path
	in     *session
	ctx    context.Context
	cancel context.CancelFunc
	mu     sync.Mutex
	link   *Link // while it is open
	number uint32
	// congestion is the name of the congestion control, "" for the kernel's default.
	congestion string
	failed     error // why it ended, or could not be opened
}

// of returns the link and number of the stream, nil while it is not open.
func (k *kept) of() (*Link, uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link, k.number
}

// set sets the link and number of a stream that is open now, nil of one that is not any longer.
func (k *kept) set(l *Link, number uint32) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.link, k.number = l, number
	if l == nil || k.congestion == "" {
		return nil
	}
	err := l.selectCongestion(number, k.congestion, k.only())
	if k.congestion == idleControl {
		return nil // without it, idle streams keep the kernel's
	}
	return err
}

// selectCongestion selects the congestion control, now if the stream is open, and whenever it is opened.
func (k *kept) selectCongestion(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.congestion = name
	if k.link == nil {
		return nil
	}
	return k.link.selectCongestion(k.number, name, k.only())
}

// only reports whether the path may not have idleControl.
func (k *kept) only() bool {
	return len(k.path.Congestion) > 0 && !slices.Contains(k.path.Congestion, idleControl)
}

func (k *kept) fail(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.failed = err
}

// add and remove keep the list of streams that are kept open.
func (d *Dialer) add(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = append(d.all, k)
}

func (d *Dialer) remove(k *kept) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all = slices.DeleteFunc(d.all, func(o *kept) bool { return o == k })
}

// retireTimeout is how long a stream that is not needed waits for what it has sent to be acknowledged.
const retireTimeout = 5 * time.Second

// retire ends a stream that is not needed.
func (d *Dialer) retire(k *kept) {
	defer k.cancel()
	l, number := k.of()
	if l == nil {
		return
	}
	for end := time.Now().Add(retireTimeout); time.Now().Before(end); {
		l.mu.Lock()
		l.session.Retire(number)
		drained := l.session.Drained(number)
		l.mu.Unlock()
		if drained {
			break
		}
		select {
		case <-k.ctx.Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if st := l.streams[number]; st != nil {
		st.conn.Close()
	}
}

// keep keeps one stream open.
func (d *Dialer) keep(k *kept) {
	ctx := k.ctx
	d.add(k)
	defer d.remove(k)
	for pause := minPause; ctx.Err() == nil; {
		began := time.Now()
		err := d.stream(k)
		if ctx.Err() != nil {
			return
		}
		k.fail(err)
		k.reach.failed(err)
		if time.Since(began) > maxPause {
			pause = minPause
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, maxPause)
	}
}

// stream opens one stream, and returns when it has ended.
func (d *Dialer) stream(k *kept) error {
	ctx, p := k.ctx, k.path
	tcp, over, err := dialPath(ctx, d.Auth, d.Exit, p)
	if err != nil {
		return err
	}
	defer tcp.Close()
	in := k.in
	d.mu.Lock()
	in.number++
	number, established := in.number, in.established
	d.mu.Unlock()
	if _, err := over.Write(appendHello(in.id, number)); err != nil {
		return err
	}
	var reply [1]byte
	if _, err := io.ReadFull(over, reply[:]); err != nil {
		return err
	}
	if err := d.establish(in, established, reply[0]); err != nil {
		return err
	}
	in.link.on(number, p.Name)
	st, err := in.link.addStream(number, tcp, over)
	if err != nil {
		return err
	}
	d.opened(in)
	defer k.set(nil, 0)
	defer k.reach.opened()()
	if err := k.set(in.link, number); err != nil {
		d.Log.Warn("cannot select the congestion control", "exit", d.Exit.Address, "path", p.Name, "error", err)
	}
	return in.link.serve(st)
}
