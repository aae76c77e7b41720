package probing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/link"
	"headgate.dev/headgate/probe/path"
)

// The two ends of every path in the lab, and a router if there is other traffic:
//
//	client ══ emulated ══ server
const (
	client, server = "client", "server"
)

// stage is a lab with a probe server.
type stage struct {
	*lab.Lab
	dir    string
	serves *lab.Cmd
}

// addressOf returns the server's address.
const addressOf = "10.0.0.2"

// twoHosts is a lab of one link, the same in both directions unless back is given.
func twoHosts(forward link.Spec, back ...link.Spec) *lab.Topology {
	if len(back) == 0 {
		back = []link.Spec{forward}
	}
	return &lab.Topology{
		Name:  lab.UniqueName("bench"),
		Nodes: []lab.NodeSpec{{Name: client}, {Name: server}},
		Links: []lab.LinkSpec{{
			Ends: [2]string{client, server}, Backend: lab.Emulator,
			Forward: lab.Path{Spec: forward, Exact: true}, Back: lab.Path{Spec: back[0], Exact: true},
		}},
	}
}

// withServer creates a lab, and runs a server in it, for the duration of fn.
func withServer(ctx context.Context, t *lab.Topology, fn func(*stage) error) (err error) {
	l, err := lab.Up(ctx, t)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	dir, err := os.MkdirTemp("", "headgate-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	s := &stage{Lab: l, dir: dir}
	if err := os.WriteFile(s.key(), []byte("a key of the bench alone"), 0o600); err != nil {
		return err
	}
	if err := s.serve(ctx); err != nil {
		return err
	}
	defer s.stop()
	return fn(s)
}

func (s *stage) key() string { return filepath.Join(s.dir, "key") }

// headgate is this program in a node.
func (s *stage) headgate(ctx context.Context, node string, args ...string) (*lab.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return s.Node(node).Command(ctx, self, args...), nil
}

// serve starts the server, and waits until it listens.
func (s *stage) serve(ctx context.Context) (err error) {
	if s.serves, err = s.headgate(ctx, server, "probe", "serve", "--key-file", s.key(), "--max-bytes", "2GB", "--log-level", "warn"); err != nil {
		return err
	}
	var said bytes.Buffer
	s.serves.Stderr = &said
	if err := s.serves.Start(); err != nil {
		return err
	}
	for range 100 {
		out, err := s.Node(server).Command(ctx, "ss", "-Hltn", "sport = :4950").Output()
		if err == nil && len(out) > 0 {
			return nil
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop()
	return fmt.Errorf("headgate probe serve does not listen: %s", said.String())
}

func (s *stage) stop() {
	s.serves.Process.Kill()
	s.serves.Wait()
}

// probe runs "headgate probe" as a user would, and parses its result.
func (s *stage) probe(ctx context.Context, args ...string) (*path.Report, error) {
	at, err := s.Node(server).Addr(false)
	if err != nil {
		return nil, err
	}
	full := append([]string{"probe", args[0], at.String(), "--key-file", s.key(), "-o", "json"}, args[1:]...)
	c, err := s.headgate(ctx, client, full...)
	if err != nil {
		return nil, err
	}
	var said bytes.Buffer
	c.Stderr = &said
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("headgate %s: %w: %s", strings.Join(full, " "), err, said.String())
	}
	r := &path.Report{}
	return r, json.Unmarshal(out, r)
}

// usable returns an error if an emulator was late.
func (s *stage) usable() error {
	stats, ok := s.WireStats(0)
	for _, w := range stats {
		if ok && w.Writes > 0 && float64(w.Late) > 0.01*float64(w.Writes) {
			return fmt.Errorf("the emulator was late in %.1f %% of the writes", 100*float64(w.Late)/float64(w.Writes))
		}
	}
	return nil
}

// iperf runs one TCP connection for some seconds and returns the received data, in bytes of layer 2.
func (s *stage) iperf(ctx context.Context, seconds int) (float64, error) {
	serves := s.Node(server).Command(ctx, "iperf3", "-s", "-1")
	if err := serves.Start(); err != nil {
		return 0, err
	}
	defer func() {
		serves.Process.Kill()
		serves.Wait()
	}()
	time.Sleep(300 * time.Millisecond)
	out, err := s.Node(client).Command(ctx, "iperf3", "-c", addressOf, "-t", fmt.Sprint(seconds), "-J", "-C", "cubic").Output()
	if err != nil {
		return 0, fmt.Errorf("iperf3: %w", err)
	}
	var said struct {
		End struct {
			Sum struct {
				Bytes float64 `json:"bytes"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	const framed = 1514.0 / 1448 // Ethernet, IPv4, TCP with timestamps
	if err := json.Unmarshal(out, &said); err != nil {
		return 0, err
	}
	return said.End.Sum.Bytes * framed, nil
}
