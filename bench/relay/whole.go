package relay

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/unit"
)

// wholeConns is the number of connections, and slowReaders how many of them are read slowly.
const wholeConns, slowReaders = 200, 20

// wholeCase is random data in many connections, over two paths that lose, reorder, die and return. The server sends
// back the hash of what it has received.
func wholeCase() bench.Case {
	const id = "whole"
	none := func(unit string) bench.Target { return bench.Target{Op: "<=", Value: 0, Unit: unit} }
	size := func(quick bool) int64 { return bench.Pick[int64](quick, 100e6, 10e9) }
	return bench.Case{
		Name: id,
		Claims: []bench.Claim{
			bench.NewClaim(id+"/wrong", "connections whose hash is wrong or that end early", none("connections")),
			bench.NewClaim(id+"/descriptors", "descriptors of both agents after all connections, beyond those before", none("descriptors")),
			bench.NewClaim(id+"/memory", "memory of the busier agent after 100 more connections than after 100", bench.Target{Op: "<=", Value: 20, Unit: "%"}),
		},
		Takes: func(quick bool) time.Duration { return bench.Pick(quick, 20*time.Second, 8*time.Minute) },
		Run: func(ctx context.Context, r *bench.Run) error {
			return wholeRun(ctx, r, id, size(r.Quick))
		},
	}
}

// wholePaths have loss and reordering.
func wholePaths() (*lab.Topology, []path) {
	all := paths(path{300 * unit.Mbit, 20 * ms, 0.005}, path{300 * unit.Mbit, 60 * ms, 0.001})
	t := topology(all, false)
	for n := range all {
		l := &t.Links[n+1]
		for _, p := range []*lab.Path{&l.Forward, &l.Back} {
			p.Jitter = link.Jitter{Amount: 2 * ms, Reorder: true}
		}
	}
	return t, all
}

// wholeEvents are the deaths of the paths: the first loses everything for some seconds, and later the second.
func wholeEvents(t *lab.Topology, length time.Duration) (out []lab.Event) {
	dead := lab.Path{Spec: link.Spec{Rate: unit.Mbit, Loss: link.Loss{Probability: 1}}}
	for n, from := range []time.Duration{length / 5, 3 * length / 5} {
		l := t.Links[n+1]
		out = append(out,
			lab.Event{At: from, Link: l.Name, Forward: &dead, Back: &dead},
			lab.Event{At: from + length/10, Link: l.Name, Forward: &l.Forward, Back: &l.Back})
	}
	return out
}

func wholeRun(ctx context.Context, r *bench.Run, id string, size int64) (err error) {
	t, all := wholePaths()
	length := bench.Pick(r.Quick, 8*time.Second, 5*time.Minute)
	t.Timeline, t.Duration = wholeEvents(t, length), length
	l, agents, down, err := ours.up(ctx, t, all)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down()) }()
	address, err := l.Node(server).Addr(false)
	if err != nil {
		return err
	}
	to := netip.AddrPortFrom(address, 5001)
	stop, err := hashServer(l, to)
	if err != nil {
		return err
	}
	defer stop()
	// Agents are ready with one path. The streams of the other, 4 at each of them, were counted as leaked when they came later.
	if err := bench.Sleep(ctx, 3*time.Second); err != nil {
		return err
	}
	before := agents.descriptors()
	running := make(chan error, 1)
	go func() {
		_, err := l.Run(ctx, lab.RunOptions{})
		running <- err
	}()
	wrong, first := 0, 0.0
	for half := range 2 {
		wrong += sendHashed(ctx, l, to, half*wholeConns/2, size/wholeConns)
		// Agents give back memory after 5 s without a connection, and close the streams that are left over after 15.
		if err := bench.Sleep(ctx, 25*time.Second); err != nil {
			return err
		}
		if half == 0 {
			first = agents.memory()
		}
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set(id+"/wrong", float64(wrong))
	sheet.Set(id+"/memory", max(0, 100*(agents.memory()/first-1)))
	sheet.Set(id+"/descriptors", float64(max(0, agents.descriptors()-before)))
	sheet.Note(id+"/descriptors", "%d before, %d after; the number of streams may differ", before, agents.descriptors())
	return <-running
}

// sendHashed sends random bytes in half of the connections at once, and returns how many failed.
func sendHashed(ctx context.Context, l *lab.Lab, to netip.AddrPort, first int, size int64) (wrong int) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range wholeConns / 2 {
		all.Go(func() {
			if err := sendOne(ctx, l, to, first+n, size); err != nil {
				mu.Lock()
				defer mu.Unlock()
				wrong++
			}
		})
	}
	all.Wait()
	return wrong
}

// sendOne sends random bytes with a header of their number, and checks the hash that comes back.
func sendOne(ctx context.Context, l *lab.Lab, to netip.AddrPort, number int, size int64) error {
	if err := bench.Sleep(ctx, time.Duration(number%100)*20*ms); err != nil {
		return err
	}
	c, err := dial(l.Node(client), to.String())
	if err != nil {
		return err
	}
	defer c.Close()
	header := binary.BigEndian.AppendUint32(nil, uint32(number))
	random := rand.New(rand.NewPCG(uint64(number), 1))
	hash := sha256.New()
	hash.Write(header)
	if _, err := c.Write(header); err != nil {
		return err
	}
	block := make([]byte, 32<<10)
	for left := size; left > 0; left -= int64(len(block)) {
		for n := 0; n < len(block); n += 8 {
			binary.LittleEndian.PutUint64(block[n:], random.Uint64())
		}
		hash.Write(block)
		if _, err := c.Write(block); err != nil {
			return err
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return err
	}
	got, err := io.ReadAll(c)
	if err == nil && !bytes.Equal(got, hash.Sum(nil)) {
		err = errors.New("another hash")
	}
	return err
}

// hashServer answers each connection's bytes with their hash. It reads some connections slowly.
func hashServer(l *lab.Lab, to netip.AddrPort) (stop func(), err error) {
	listener, err := listen(l.Node(server), to.String())
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go answerHash(c)
		}
	}()
	return func() { listener.Close() }, nil
}

func answerHash(c net.Conn) {
	defer c.Close()
	hash := sha256.New()
	header := make([]byte, 4)
	if _, err := io.ReadFull(c, header); err != nil {
		return
	}
	hash.Write(header)
	slow := binary.BigEndian.Uint32(header)%(wholeConns/slowReaders) == 0
	block := make([]byte, 64<<10)
	for {
		n, err := c.Read(block)
		hash.Write(block[:n])
		if err != nil {
			break
		}
		if slow {
			time.Sleep(20 * ms)
		}
	}
	c.Write(hash.Sum(nil))
}

// descriptors returns how many descriptors the processes have.
func (a *agents) descriptors() (n int) {
	for _, one := range a.all {
		all, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", one.cmd.Process.Pid))
		if err == nil {
			n += len(all)
		}
	}
	return n
}

// memory returns the resident memory of the largest process in bytes.
func (a *agents) memory() (most float64) {
	for _, one := range a.all {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", one.cmd.Process.Pid))
		var size, resident float64
		if err == nil {
			if _, err = fmt.Sscan(string(b), &size, &resident); err == nil {
				most = max(most, resident*float64(os.Getpagesize()))
			}
		}
	}
	return most
}
