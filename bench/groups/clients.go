package groups

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/share"
	"headgate.dev/headgate/unit"
)

// clientsCase is a group with `each:`, with many known clients of which some send more than their
// share.
type clientsCase struct{ in bool }

const (
	clientsKnown  = 10_000
	clientsActive = 1_000
	clientsLimit  = 400 * unit.Mbit
	// clientsOffer is the offered load of active clients, relative to their share.
	clientsOffer = 1.2
	// clientsCostLimit is not reached by a flood of the smallest frames; the flow cache is as large as
	// that of 400 Mbit/s.
	clientsCostLimit = 600 * unit.Mbit
)

func (c clientsCase) id(what string) string {
	return fmt.Sprintf("clients/%s/%s", what, direction(c.in))
}

func (c clientsCase) claims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim(c.id("share"), "largest deviation of 1,000 active clients from their share of 400 Mbit/s", clientsShare),
		bench.NewClaim(c.id("memory"), "kernel memory for 10,000 clients, under traffic", clientsMemory),
		bench.NewClaim(c.id("cost"), "eBPF time per packet, classifier and departure hook, of 1,000 active clients in random order", clientsCost),
		bench.NewClaim(c.id("cost-all"), "the same of all 10,000 clients in random order", clientsCost),
	}
}

// clientsGroup has one client for each source.
func clientsGroup(limit unit.Rate) group.Direction {
	return group.Direction{Limit: limit, Groups: []group.Group{{
		Name: "clients", Each: group.Each{IPv4: 32, IPv6: 64}, Clients: clientsKnown, Default: true,
		Guarantee: group.Amount{Rate: limit / clientsKnown}, Ceiling: group.Amount{Rate: limit / 40},
	}}}
}

func (c clientsCase) run(ctx context.Context, r *bench.Run) error {
	if leftOut(r) {
		return nil
	}
	if err := c.share(ctx, r); err != nil {
		return err
	}
	return c.cost(ctx, r)
}

// share measures the rate of each client.
func (c clientsCase) share(ctx context.Context, r *bench.Run) (err error) {
	l, err := lab.Up(ctx, lab.Rig(lab.RigOptions{Name: lab.UniqueName("bench")}))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	for _, name := range []string{"client", "router", "server"} { // no node has a route back to the clients
		if out, err := l.Node(name).Command(ctx, "sh", "-c", "for f in /proc/sys/net/ipv4/conf/*/rp_filter; do echo 0 > $f; done").CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	p, err := plan(clientsGroup(clientsLimit), c.in)
	if err != nil {
		return err
	}
	before, err := kernelMemory()
	if err != nil {
		return err
	}
	ours, err := newLimiter(bench.Ours)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := within(l, func() error { return ours.Apply(p) }); err != nil {
		return err
	}
	applied := time.Since(began)
	defer within(l, func() error { return ours.Clear(dev) })
	from, to := ends(c.in)
	received := &arrivals{}
	defer received.close()
	if err := l.Node(to).Do(received.open); err != nil {
		return err
	}
	f, err := c.flood(l, from, to)
	if err != nil {
		return err
	}
	defer f.close()
	settle, length := 4*time.Second, 12*time.Second
	if r.Quick {
		settle, length = 2*time.Second, 5*time.Second
	}
	if err := f.each(); err != nil { // so that all are known
		return err
	}
	stop := make(chan struct{})
	sent := make(chan error, 1)
	go func() {
		sent <- f.pace(stop, float64(clientsLimit)*clientsOffer/8/fullest)
	}()
	time.Sleep(settle)
	was, sentBefore := received.read(), f.paced.Load()
	at := time.Now()
	time.Sleep(length)
	now, offered, took := received.read(), f.paced.Load()-sentBefore, time.Since(at).Seconds()
	under, err := kernelMemory()
	close(stop)
	if err := errors.Join(err, <-sent); err != nil {
		return err
	}
	claims := make([]share.Claim, clientsActive)
	for i := range claims {
		claims[i] = share.Claim{
			Parent: -1, Guarantee: clientsLimit / clientsKnown, Ceiling: clientsLimit / 40, Weight: 1,
			Demand: unit.Rate(float64(clientsLimit) * clientsOffer / clientsActive),
		}
	}
	answer := share.Allocate(clientsLimit, share.Equal, claims)
	worst, total := 0.0, 0.0
	for i, want := range answer {
		got := float64(now[i]-was[i]) * fullest * 8 / took
		total += got
		worst = max(worst, 100*math.Abs(got-float64(want))/float64(want))
	}
	apart := 0.0 // deviation from the mean
	for i := range answer {
		apart = max(apart, 100*math.Abs(float64(now[i]-was[i])*fullest*8/took/(total/clientsActive)-1))
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(c.id("share"), worst)
	sheet.Note(c.id("share"), "total %s Mbit/s; apply took %s s", bench.Number(total/1e6), bench.Number(applied.Seconds()))
	sheet.Set(c.id("memory"), float64(under-before)/(1<<20))
	sheet.Keep("apply_s", applied.Seconds())
	sheet.Keep("total_mbit_per_s", total/1e6)
	sheet.Keep("offered_mbit_per_s", float64(offered)*fullest*8/took/1e6)
	sheet.Keep("from_the_mean_percent", apart)
	return nil
}

// cost measures the eBPF programs under a limit that is not reached.
func (c clientsCase) cost(ctx context.Context, r *bench.Run) error {
	length := 4 * time.Second
	if r.Quick {
		length = time.Second
	}
	programs := costCase{in: c.in}
	return programs.withStatistics(ctx, clientsGroup(clientsCostLimit), func(l *lab.Lab, device string) error {
		for _, m := range []struct {
			what   string
			active int
		}{{"cost", clientsActive}, {"cost-all", clientsKnown}} {
			f, err := newFlood(device, clientsKnown, smallest, false)
			if err != nil {
				return err
			}
			defer f.close()
			f.clients()
			if err := f.each(); err != nil {
				return err
			}
			f.frames = f.frames[:m.active]
			taken, err := programs.take(l, f, length)
			if err != nil {
				return err
			}
			taken.set(r.Sheet(bench.Ours), c.id(m.what))
		}
		return nil
	})
}

// clientAddress returns the address of a client.
func clientAddress(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 64, byte(i >> 8), byte(i)}) }

// clients sets a different source in each frame.
func (f *flood) clients() {
	for i, frame := range f.frames {
		address := clientAddress(i).As4()
		copy(frame[26:30], address[:])
		frame[24], frame[25] = 0, 0
		binary.BigEndian.PutUint16(frame[24:], checksum(frame[14:34]))
	}
}

// flood has a full frame of each client, through the router, to a port of the other end.
func (c clientsCase) flood(l *lab.Lab, from, to string) (f *flood, err error) {
	device, err := l.Node(from).Device("router")
	if err != nil {
		return nil, err
	}
	routers, err := l.Node("router").Device(from)
	if err != nil {
		return nil, err
	}
	var mac net.HardwareAddr
	if err := l.Node("router").Do(func() error {
		link, err := net.InterfaceByName(routers)
		if err == nil {
			mac = link.HardwareAddr
		}
		return err
	}); err != nil {
		return nil, err
	}
	address, err := l.Node(to).Addr(false)
	if err != nil {
		return nil, err
	}
	err = l.Node(from).Do(func() error {
		f, err = newFlood(device, clientsKnown, fullest, false)
		return err
	})
	if err != nil {
		return nil, err
	}
	at := address.As4()
	for _, frame := range f.frames {
		copy(frame[0:6], mac)
		copy(frame[30:34], at[:])
		binary.BigEndian.PutUint16(frame[36:], basePort)
	}
	f.clients()
	return f, nil
}

// pace sends frames of the active clients at a rate, one of each in turn.
func (f *flood) pace(stop chan struct{}, rate float64) error {
	order := f.random.Perm(clientsActive)
	done, began := 0, time.Now()
	for {
		select {
		case <-stop:
			return nil
		case <-time.After(500 * time.Microsecond):
		}
		due := int(time.Since(began).Seconds() * rate)
		done = max(done, due-int(rate/2)) // longer stalls of the machine are not compensated
		for done < due {
			n := min(floodBatch, due-done)
			if err := f.send(n, func(k int) int { return order[(done+k)%clientsActive] }); err != nil {
				return err
			}
			done += n
			f.paced.Add(int64(n))
		}
	}
}

// arrivals counts datagrams by client as a program receives them.
type arrivals struct {
	fd    int
	count [clientsActive]atomic.Int64
}

func (a *arrivals) open() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	a.fd = fd
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 64<<20); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: basePort}); err != nil {
		return err
	}
	go func() {
		buf := make([]byte, 16)
		for {
			_, from, err := unix.Recvfrom(fd, buf, unix.MSG_TRUNC)
			if err != nil {
				return
			}
			if in, ok := from.(*unix.SockaddrInet4); ok && in.Addr[0] == 10 && in.Addr[1] == 64 {
				if i := int(in.Addr[2])<<8 | int(in.Addr[3]); i < clientsActive {
					a.count[i].Add(1)
				}
			}
		}
	}()
	return nil
}

func (a *arrivals) read() (out [clientsActive]int64) {
	for i := range a.count {
		out[i] = a.count[i].Load()
	}
	return out
}

func (a *arrivals) close() {
	if a.fd > 0 {
		_ = unix.Shutdown(a.fd, unix.SHUT_RD)
		unix.Close(a.fd)
	}
}

// kernelMemory returns the kernel's own memory in bytes: slabs, per-CPU memory and vmalloc.
func kernelMemory() (sum int64, err error) {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		switch fields[0] {
		case "Slab:", "Percpu:", "VmallocUsed:":
			kib, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil {
				return 0, err
			}
			sum += kib << 10
		}
	}
	return sum, nil
}

func clientsBenches() (out []bench.Case) {
	for _, in := range []bool{false, true} {
		c := clientsCase{in}
		out = append(out, bench.Case{
			Name: "clients/" + direction(in), Run: c.run, Claims: c.claims(),
			Takes: fullOnly(40 * time.Second),
		})
	}
	return out
}
