package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"sync"
	"syscall"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"

	"headgate.dev/headgate/lab"
)

// capture is tcpdump on a device: the outgoing packets, in bytes of layer 2 by destination port.
type capture struct {
	cmd  *lab.Cmd
	said bytes.Buffer
	read chan error

	mu    sync.Mutex
	bytes map[uint16]uint64
}

// capturing starts a capture.
func capturing(ctx context.Context, node *lab.Node, dev string) (*capture, error) {
	c := &capture{read: make(chan error, 1), bytes: map[uint16]uint64{}}
	// With -U tcpdump writes each packet at once, so that none is missing at the end.
	c.cmd = node.Command(context.WithoutCancel(ctx), "tcpdump", "-n", "-i", dev, "-Q", "out", "-s", "96", "-B", "16384", "-U", "-w", "-", "tcp or udp")
	c.cmd.Stderr = &c.said
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("cannot start tcpdump: install it: %w", err)
	}
	reader, err := pcapgo.NewReader(out) // tcpdump writes the header when it listens
	if err != nil {
		_ = c.cmd.Process.Kill()
		return nil, errors.Join(fmt.Errorf("tcpdump on %s: %w", dev, err), c.cmd.Wait(), errors.New(c.said.String()))
	}
	go func() { c.read <- c.count(reader) }()
	return c, nil
}

func (c *capture) count(from *pcapgo.Reader) error {
	for {
		data, info, err := from.ZeroCopyReadPacketData()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		packet := gopacket.NewPacket(data, from.LinkType(), gopacket.DecodeOptions{Lazy: true, NoCopy: true})
		var port uint16
		switch l := packet.TransportLayer().(type) {
		case *layers.TCP:
			port = uint16(l.DstPort)
		case *layers.UDP:
			port = uint16(l.DstPort)
		}
		c.mu.Lock()
		c.bytes[port] += uint64(info.Length)
		c.mu.Unlock()
	}
}

// lostPackets is a line of tcpdump's final output.
var lostPackets = regexp.MustCompile(`(\d+) packets? dropped by kernel`)

// end stops the capture, and returns its result.
func (c *capture) end() (map[uint16]uint64, error) {
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	if err := errors.Join(<-c.read, c.cmd.Wait()); err != nil {
		return nil, fmt.Errorf("tcpdump: %w: %s", err, c.said.String())
	}
	found := lostPackets.FindStringSubmatch(c.said.String())
	if found == nil {
		return nil, fmt.Errorf("cannot find the number of lost packets in tcpdump's output: %s", c.said.String())
	}
	if n, _ := strconv.Atoi(found[1]); n > 0 {
		return nil, fmt.Errorf("tcpdump lost %d packets", n)
	}
	return c.bytes, nil
}
