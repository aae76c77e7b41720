// Transfer sends a number of bytes by a deadline, with no more bandwidth than it takes.
//
// The program has a group of its own with a small guarantee. It puts its connection in that group
// at the agent's socket, and watches how much the other side has acknowledged. From the middle of
// its time on, if it would be late at the pace that it has, it asks the service for the guarantee
// that it needs. At the end, however that comes, it gives back what it asked for. (If it is killed
// with SIGKILL it cannot: the guarantee stays until somebody lowers it.)
//
//	go run ./examples/tenant/go --to 10.0.0.9:873 --size 4000000000 --within 600s \
//	    --service https://10.0.0.1:8420 --ca ca.pem --token-file shop.token \
//	    --host web1 --dev eth0 --group shop/backup
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/unit"
)

const (
	checkEvery = 250 * time.Millisecond
	paceOver   = 2 * time.Second // TCP's pace is not that of every instant
	askAgain   = time.Second     // in which a new guarantee shows in the pace
	spare      = 1.1             // a guarantee counts headers, too (5 %), and the rest is for safety
)

func main() {
	log.SetFlags(0)
	to := flag.String("to", "", "send to this `HOST:PORT`")
	size := flag.Int64("size", 0, "so many `BYTES`")
	within := flag.Duration("within", time.Minute, "in this `TIME`")
	url := flag.String("service", "", "the `URL` of the service; without it nothing is asked for")
	ca := flag.String("ca", "", "the `FILE` with the certificate of the service's authority")
	token := flag.String("token-file", "", "the `FILE` with the token")
	host := flag.String("host", "", "this `HOST`, as the service has it")
	dev := flag.String("dev", "", "the `DEVICE` that the group is of")
	path := flag.String("group", "", "the `GROUP`, by its path")
	socket := flag.String("socket", local.Socket, "the `PATH` of the agent's socket")
	flag.Parse()
	var g *Group
	if *url != "" {
		client, err := connect(*url, *ca, *token)
		if err != nil {
			log.Fatal(err)
		}
		g = &Group{Client: client, Host: *host, Dev: *dev, Path: *path}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *to, *size, *within, local.Agent{Path: *socket}, *path, g); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, to string, size int64, within time.Duration, agent local.Agent, path string, g *Group) (err error) {
	c, err := net.DialTimeout("tcp", to, 10*time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	conn := c.(*net.TCPConn)
	there, err := agent.Assign(conn, path, "")
	if err != nil {
		return err
	}
	defer func() {
		_, back := agent.Unassign(conn, "")
		err = errors.Join(err, back)
	}()
	log.Printf("%s is in %s", there.Connection, there.Group)
	if g != nil {
		defer func() {
			// ctx may have ended, which is a reason to give it back.
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			err = errors.Join(err, g.GiveBack(ctx))
		}()
	}
	took, err := transfer(ctx, conn, size, within, g)
	if err == nil {
		log.Printf("%d bytes arrived in %.1f s", size, took.Seconds())
	}
	return err
}

// reading is what was acknowledged when.
type reading struct {
	at      time.Time
	arrived int64
}

// transfer sends, and asks for more if it would be late.
func transfer(ctx context.Context, c *net.TCPConn, size int64, within time.Duration, g *Group) (took time.Duration, err error) {
	start := time.Now()
	deadline := start.Add(within)
	s := send(c, size)
	past := []reading{{start, 0}}
	asked := start
	ticker := time.NewTicker(checkEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return 0, errors.New("told to stop")
		case <-ticker.C:
		}
		arrived, err := s.arrived()
		now := time.Now()
		switch {
		case err != nil:
			return 0, err
		case arrived == size:
			return now.Sub(start), nil
		case !now.Before(deadline):
			return 0, fmt.Errorf("the time is over, and %d of %d bytes have arrived", arrived, size)
		}
		past = append(past, reading{now, arrived})
		for now.Sub(past[0].at) > paceOver {
			past = past[1:]
		}
		pace := 8 * float64(arrived-past[0].arrived) / now.Sub(past[0].at).Seconds()
		needed := 8 * float64(size-arrived) / deadline.Sub(now).Seconds()
		if g == nil || now.Sub(start) < within/2 || pace >= needed || now.Sub(asked) < askAgain {
			continue
		}
		late := fmt.Sprintf("%.1f s: %.1f Mbit/s, and %.1f are needed", now.Sub(start).Seconds(), pace/1e6, needed/1e6)
		if got, err := g.Ask(ctx, unit.Rate(needed*spare)); err != nil {
			log.Printf("%s: %v", late, err) // it may be in time all the same
		} else {
			log.Printf("%s: the guarantee is %v", late, got)
		}
		asked = time.Now()
	}
}

// sending is a transfer whose bytes are written beside us.
type sending struct {
	c       *net.TCPConn
	written atomic.Int64
	failed  chan error
}

func send(c *net.TCPConn, size int64) *sending {
	s := &sending{c: c, failed: make(chan error, 1)}
	go func() {
		block := make([]byte, 64<<10)
		for left := size; left > 0; {
			n, err := c.Write(block[:min(left, int64(len(block)))])
			left -= int64(n)
			s.written.Add(int64(n))
			if err != nil {
				s.failed <- err
				return
			}
		}
	}()
	return s
}

// arrived is what the other side has acknowledged. What is written only may be megabytes, which
// would look like progress.
func (s *sending) arrived() (n int64, err error) {
	select {
	case err := <-s.failed:
		return 0, err
	default:
	}
	raw, err := s.c.SyscallConn()
	if err != nil {
		return 0, err
	}
	n = s.written.Load()
	var waiting int
	var failed error
	err = raw.Control(func(fd uintptr) { waiting, failed = unix.IoctlGetInt(int(fd), unix.TIOCOUTQ) })
	return max(0, n-int64(waiting)), errors.Join(err, failed)
}
