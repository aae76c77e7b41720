package groups

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/group"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/shaper"
	"headgate.dev/headgate/shaper/htb"
)

// churnVeths are created at once.
const churnVeths = 200

// churnGroup is the device group of the veths, by which they are deleted.
const churnGroup = 200

// churnRounds is the number of rounds in a full benchmark.
const churnRounds = 5

// churnConfig is the configuration of a host with containers.
const churnConfig = `kind: Interface
dev: "veth*"
perspective: guest
out:
  limit: 20Mbit
  groups:
    - {name: web, guarantee: 50%, match: [{dport: 443}]}
    - {name: all, default: true}
in:
  limit: 20Mbit
  groups:
    - {name: all, default: true}
`

func churnClaims() []bench.Claim {
	return []bench.Claim{
		bench.NewClaim("churn/200-veths/last", "time from the creation of the last of 200 until all are shaped in both directions", churnLast),
		bench.NewClaim("churn/200-veths/first-ten", "time from the creation of the tenth until ten are shaped in both directions", churnFirst),
		bench.NewClaim("churn/200-veths/left", "devices, nftables tables and files that are left after the veths were deleted, and devices that were not shaped as configured", churnLeft),
	}
}

func runChurn(ctx context.Context, r *bench.Run) error {
	rounds := churnRounds
	if r.Quick {
		rounds = 1
	}
	found := findings{}
	sheet := r.Sheet(bench.Ours)
	for range rounds {
		if err := churn(ctx, found); err != nil {
			return err
		}
	}
	sheet.Keep("rounds", found)
	sheet.SetAll("churn/200-veths/last", found["last"])
	sheet.SetAll("churn/200-veths/first-ten", found["first-ten"])
	sheet.Set("churn/200-veths/left", slices.Max(found["left"]))
	sheet.Note("churn/200-veths/last", "created within %s s; all were shaped %s s after the first was created; the processor time of the agent was %s s",
		bench.Number(bench.Median(found["made-in"])), bench.Number(bench.Median(found["all-in"])), bench.Number(bench.Median(found["agent-cpu"])))
	sheet.Note("churn/200-veths/left", "%s s after the last veth had gone", bench.Number(bench.Median(found["gone-in"])))
	return nil
}

// churn is one round: a new agent, and 200 veths that are created and deleted.
func churn(ctx context.Context, found findings) (err error) {
	l, err := lab.Up(ctx, &lab.Topology{
		Name: lab.UniqueName("bench"), Nodes: []lab.NodeSpec{{Name: "host"}, {Name: "containers"}}, Links: []lab.LinkSpec{{Ends: [2]string{"host", "containers"}}},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	host := l.Node("host")
	a, err := startAgent(ctx, host, churnConfig)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.end()) }()
	files, err := a.files()
	if err != nil {
		return err
	}
	var w *tcWatch
	if err := host.Do(func() (err error) { w, err = watchTC(); return err }); err != nil {
		return err
	}
	defer w.close()
	var come strings.Builder
	for i := range churnVeths {
		fmt.Fprintf(&come, "link add veth%d group %d up type veth peer name c%d netns %s\n", i, churnGroup, i, l.Node("containers").Namespace())
	}
	if err := ipBatch(ctx, host, come.String()); err != nil {
		return err
	}
	// Veths that are not shaped by then count as left.
	const patience = 20 * time.Second
	for end := time.Now().Add(patience); time.Now().Before(end) && len(w.divided()) < churnVeths; {
		if err := bench.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	if err := bench.Sleep(ctx, 500*time.Millisecond); err != nil { // for later changes
		return err
	}
	made, divided := w.made(), w.divided()
	if len(divided) < churnVeths {
		return fmt.Errorf("after %v %d of %d veths are shaped:\n%s", patience, len(divided), churnVeths, a.said())
	}
	wrong := 0
	err = host.Do(func() error {
		var devs []string
		for i := range churnVeths {
			devs = append(devs, fmt.Sprint("veth", i))
		}
		for _, o := range shaper.ObserveAll(htb.New(), devs) {
			if o.Err != nil || o.State.In == nil || o.State.Out == nil || len(o.State.Drift) > 0 {
				wrong++
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	seconds := func(from, to time.Time) float64 { return to.Sub(from).Seconds() }
	last := len(made) - 1
	found.set("made-in", seconds(made[0], made[last]))
	found.set("all-in", seconds(made[0], divided[last]))
	found.set("last", seconds(made[last], divided[last]))
	found.set("first-ten", seconds(made[9], divided[9]))
	found.set("agent-cpu", bench.ProcessTime(a.cmd.Process.Pid))
	if err := ipBatch(ctx, host, fmt.Sprintf("link del group %d\n", churnGroup)); err != nil {
		return err
	}
	gone := time.Now()
	left, err := a.left(host, files)
	for ; err == nil && left > 0 && time.Since(gone) < 10*time.Second; left, err = a.left(host, files) {
		if err := bench.Sleep(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
	found.set("gone-in", time.Since(gone).Seconds())
	found.set("left", float64(left+wrong))
	return err
}

func ipBatch(ctx context.Context, n *lab.Node, lines string) error {
	cmd := n.Command(ctx, "ip", "-batch", "-")
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip -batch: %w: %s", err, firstLine(out))
	}
	return nil
}

// agentProgram is "headgate agent", as a user would start it.
type agentProgram struct {
	cmd *lab.Cmd
	dir string
	mu  sync.Mutex
	log bytes.Buffer
}

// Write stores the log.
func (a *agentProgram) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(b)
}

func (a *agentProgram) said() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	text := a.log.String()
	return text[max(0, len(text)-2000):]
}

// startAgent starts an agent with a configuration, and waits until it is ready.
func startAgent(ctx context.Context, n *lab.Node, config string) (_ *agentProgram, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	a := &agentProgram{}
	if a.dir, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(a.dir))
		}
	}()
	in := func(name string) string { return filepath.Join(a.dir, name) }
	err = errors.Join(os.Mkdir(in("config"), 0o755), os.Mkdir(in("state"), 0o755), os.WriteFile(in("config/all.yaml"), []byte(config), 0o644))
	if err != nil {
		return nil, err
	}
	ready, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: in("notify"), Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	defer ready.Close()
	a.cmd = n.Command(ctx, self, "agent", "-f", in("config"), "--dir", in("agent"), "--socket", "")
	a.cmd.Cancel = func() error { return a.cmd.Process.Signal(syscall.SIGTERM) }
	a.cmd.Env = append(os.Environ(), "HEADGATE_STATE="+in("state"), "NOTIFY_SOCKET="+in("notify"))
	a.cmd.Stdout, a.cmd.Stderr = a, a
	if err := a.cmd.Start(); err != nil {
		return nil, err
	}
	text := make([]byte, 4096)
	for err = ready.SetReadDeadline(time.Now().Add(10 * time.Second)); err == nil; {
		var n int
		if n, err = ready.Read(text); err == nil && strings.HasPrefix(string(text[:n]), "READY=1") {
			return a, nil
		}
	}
	_ = a.cmd.Process.Kill()
	_ = a.cmd.Wait()
	return nil, fmt.Errorf("the agent does not start: %w\n%s", err, a.said())
}

func (a *agentProgram) end() error {
	_ = a.cmd.Process.Signal(syscall.SIGTERM)
	_ = a.cmd.Wait() // by the signal
	return os.RemoveAll(a.dir)
}

// files returns how many files the agent has open, besides the lock of its network namespace.
func (a *agentProgram) files() (n int, err error) {
	err = filepath.WalkDir(a.dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && filepath.Ext(d.Name()) != ".lock" {
			n++
		}
		return err
	})
	return n, err
}

// left counts devices and tables of Headgate in a node without devices to shape, and files that the
// agent has opened since.
func (a *agentProgram) left(n *lab.Node, files int) (left int, err error) {
	err = n.Do(func() error {
		all, err := net.Interfaces()
		for _, i := range all {
			if strings.HasPrefix(i.Name, group.IFBPrefix) {
				left++
			}
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if out, err := n.Command(context.Background(), "nft", "list", "tables").Output(); err == nil { // otherwise there are none
		left += strings.Count(string(out), " "+group.IFBPrefix)
	}
	now, err := a.files()
	return left + max(0, now-files), err
}

// tcWatch receives the kernel's notifications of devices and of their traffic control.
type tcWatch struct {
	conn *netlink.Conn
	all  sync.WaitGroup
	mu   sync.Mutex
	veth map[int]*vethSeen // by index
	ifbs map[int]int       // the veth's index by the IFB's
}

// vethSeen has the time of a veth's creation, and that of the last change of its traffic control.
type vethSeen struct {
	made, last           time.Time
	out, in, redirecting bool
}

// watchTC listens in the namespace of the calling thread.
func watchTC() (*tcWatch, error) {
	c, err := netlink.Dial(unix.NETLINK_ROUTE, &netlink.Config{Groups: 1<<(unix.RTNLGRP_LINK-1) | 1<<(unix.RTNLGRP_TC-1)})
	if err != nil {
		return nil, fmt.Errorf("cannot listen to the kernel's notifications: %w", err)
	}
	if err := c.SetReadBuffer(64 << 20); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	w := &tcWatch{conn: c, veth: map[int]*vethSeen{}, ifbs: map[int]int{}}
	w.all.Go(w.listen)
	return w, nil
}

func (w *tcWatch) close() {
	w.conn.Close()
	w.all.Wait()
}

func (w *tcWatch) listen() {
	for {
		msgs, err := w.conn.Receive()
		if err != nil {
			return // it was closed, or a veth was not shaped in time
		}
		now := time.Now()
		w.mu.Lock()
		for _, m := range msgs {
			w.take(m, now)
		}
		w.mu.Unlock()
	}
}

// take handles a notification. Changes of a shaped device count as part of shaping it.
func (w *tcWatch) take(m netlink.Message, now time.Time) {
	const ifname, kind = 3, 1 // IFLA_IFNAME, TCA_KIND
	if len(m.Data) < 16 {
		return
	}
	index := int(binary.NativeEndian.Uint32(m.Data[4:]))
	text := func(from int, attribute uint16) string {
		ad, err := netlink.NewAttributeDecoder(m.Data[min(from, len(m.Data)):])
		for err == nil && ad.Next() {
			if ad.Type() == attribute {
				return ad.String()
			}
		}
		return ""
	}
	if m.Header.Type == unix.RTM_NEWLINK {
		name := text(16, ifname)
		if of, ok := strings.CutPrefix(name, group.IFBPrefix); ok {
			if n, err := strconv.Atoi(of); err == nil {
				w.ifbs[index] = n
			}
		} else if strings.HasPrefix(name, "veth") && w.veth[index] == nil {
			w.veth[index] = &vethSeen{made: now}
		}
		return
	}
	of, onIFB := index, false
	if n, ok := w.ifbs[index]; ok {
		of, onIFB = n, true
	}
	v := w.veth[of]
	if v == nil {
		return
	}
	switch m.Header.Type {
	case unix.RTM_NEWQDISC:
		if text(20, kind) == "htb" {
			if onIFB {
				v.out = true // of perspective guest
			} else {
				v.in = true
			}
		}
	case unix.RTM_NEWTFILTER:
		v.redirecting = v.redirecting || !onIFB
	case unix.RTM_NEWTCLASS:
	default:
		return
	}
	v.last = now
}

// made returns when veths were created, and divided when the traffic control of each existing one was
// last changed, both in order.
func (w *tcWatch) made() []time.Time { return w.times(func(v *vethSeen) time.Time { return v.made }) }
func (w *tcWatch) divided() []time.Time {
	return w.times(func(v *vethSeen) time.Time {
		if !v.out || !v.in || !v.redirecting {
			return time.Time{}
		}
		return v.last
	})
}

func (w *tcWatch) times(of func(*vethSeen) time.Time) (out []time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.veth {
		if t := of(v); !t.IsZero() {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, time.Time.Compare)
	return out
}

func churnBenches() []bench.Case {
	return []bench.Case{{
		Name: "churn/200-veths", Claims: churnClaims(), Run: runChurn,
		Takes: func(quick bool) time.Duration {
			const one = 10 * time.Second
			if quick {
				return one
			}
			return churnRounds * one
		},
	}}
}
