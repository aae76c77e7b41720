package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// blockSizes are what an application writes at once, in bytes.
var blockSizes = []int{512, 1024, 2048, 4096, 8192}

// blockCase is an application that writes in small pieces, over a path of the thesis's round-trip time. The thesis's
// agent read and sent as much at once.
func blockCase() bench.Case {
	p := path{500 * unit.Mbit, 100 * ms, 0}
	var claims []bench.Claim
	id := func(size int) string { return fmt.Sprintf("block/%dB", size) }
	paper := map[int]float64{512: 155, 1024: 156, 2048: 169, 4096: 188, 8192: 198}
	for _, size := range blockSizes {
		claims = append(claims, bench.NewClaim(id(size), "goodput with this size of a write, of the best size's", most97, "direct CUBIC").WithPaper(100*paper[size]/198))
	}
	claims = append(claims, bench.NewClaim("block/framing", "bytes on the streams beyond the application's, unencrypted, writes of 8,192 bytes", framing).WithPaper(0.098))
	return bench.Case{
		Name: "block", Claims: claims,
		Takes: func(quick bool) time.Duration {
			n := len(blockSizes)
			return time.Duration(n*bench.Pick(quick, 1, 2)) * (bench.Pick(quick, 2*time.Second, 30*time.Second) + 4*time.Second)
		},
		Run: func(ctx context.Context, r *bench.Run) error {
			methods := []method{relayed(bench.Ours, agentOptions{plain: true, path: "streams: 4"}), directCUBIC}
			if r.Quick && !r.Few {
				methods = methods[:1]
			}
			for _, m := range methods {
				rates := map[int]float64{}
				best := 0.0
				for _, size := range blockSizes {
					rate, over, err := writeBlocks(ctx, p, m, size, bench.Pick(r.Quick, 2*time.Second, 30*time.Second))
					if err != nil {
						return fmt.Errorf("%s, %d bytes: %w", m.name, size, err)
					}
					rates[size], best = rate, max(best, rate)
					if m.name == bench.Ours && size == 8192 {
						if over < 0 { // a stream was not there at both readings: not measured
							r.Sheet(m.name).Note("block/framing", "the streams that are open have carried %s %% less than arrived", bench.Number(-over))
						} else {
							r.Sheet(m.name).Set("block/framing", over)
						}
					}
				}
				for size, rate := range rates {
					r.Sheet(m.name).Set(id(size), 100*rate/best)
					r.Sheet(m.name).Note(id(size), "%s: %s Mbit/s", m.name, bench.Number(rate/1e6))
				}
			}
			return nil
		},
	}
}

// writeBlocks returns the rate in bit/s at which an application's bytes arrive that it writes in blocks, in the second
// half of a time, and how many more bytes the streams carry, in percent.
func writeBlocks(ctx context.Context, p path, m method, size int, length time.Duration) (rate, over float64, err error) {
	l, _, down, err := m.up(ctx, topology(paths(p), m.tuned), paths(p))
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, down()) }()
	before, err := streamBytes(ctx, l)
	if err != nil {
		return 0, 0, err
	}
	to, err := l.Node(server).Addr(false)
	if err != nil {
		return 0, 0, err
	}
	c, s, err := connect(l, netip.AddrPortFrom(to, 5001))
	if err != nil {
		return 0, 0, err
	}
	var arrived atomic.Uint64
	read := make(chan struct{})
	go func() {
		defer close(read)
		buffer := make([]byte, 1<<20)
		for {
			n, err := s.Read(buffer)
			arrived.Add(uint64(n))
			if err != nil {
				return
			}
		}
	}()
	stop := make(chan struct{})
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		block := make([]byte, size)
		for {
			select {
			case <-stop:
				c.(*net.TCPConn).CloseWrite()
				return
			default:
			}
			if _, err := c.Write(block); err != nil {
				return
			}
		}
	}()
	err = bench.Sleep(ctx, length/2)
	half, began := arrived.Load(), time.Now()
	err = errors.Join(err, bench.Sleep(ctx, length/2))
	rate = 8 * float64(arrived.Load()-half) / time.Since(began).Seconds()
	close(stop)
	select {
	case <-read:
	case <-time.After(20 * time.Second):
		err = errors.Join(err, errors.New("the end does not arrive"))
	}
	err = errors.Join(err, bench.Sleep(ctx, time.Second)) // until the last bytes are acknowledged
	after, failed := streamBytes(ctx, l)
	err = errors.Join(err, failed, c.Close(), s.Close())
	<-wrote
	<-read
	return rate, 100 * (float64(after-before)/float64(arrived.Load()) - 1), err
}

// connect opens a connection from the client to the server.
func connect(l *lab.Lab, to netip.AddrPort) (c, s net.Conn, err error) {
	listener, err := listen(l.Node(server), to.String())
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	if c, err = dial(l.Node(client), to.String()); err != nil {
		return nil, nil, err
	}
	if err := listener.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return nil, nil, err
	}
	s, err = listener.Accept()
	return c, s, err
}

var acked = regexp.MustCompile(`bytes_acked:(\d+)`)

// streamBytes returns how many bytes the streams have carried from the entry to the exit.
func streamBytes(ctx context.Context, l *lab.Lab) (all uint64, err error) {
	out, err := l.Node(entry).Command(ctx, "ss", "-tinH", "dport", "=", ":8424").Output()
	if err != nil {
		return 0, fmt.Errorf("ss: %w", err)
	}
	for _, m := range acked.FindAllSubmatch(out, -1) {
		n, err := strconv.ParseUint(string(m[1]), 10, 64)
		if err != nil {
			return 0, err
		}
		all += n
	}
	return all, nil
}
