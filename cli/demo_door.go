package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"headgate/config"
)

// demoDoor is where this machine, and nobody else, finds a demo's controller, which is in a
// network of its own.
const demoDoor = "127.0.0.1"

// openDoor listens there: at the controller's usual port, unless somebody has it.
func openDoor() (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(demoDoor, portText(config.APIPort)))
	if err != nil {
		l, err = net.Listen("tcp", net.JoinHostPort(demoDoor, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("the demo cannot be served on loopback: %w", err)
	}
	return l, nil
}

// dialController connects to it within its own network.
func (p *play) dialController(ctx context.Context) (net.Conn, error) {
	return dialFrom(p.lab.Node(demoController))(ctx, "tcp", net.JoinHostPort(p.address, portText(config.APIPort)))
}

// forward passes connections on until ctx ends. What they carry is TLS from end to end.
func forward(ctx context.Context, door net.Listener, dial func(context.Context) (net.Conn, error)) {
	var passing sync.WaitGroup
	defer passing.Wait()
	stop := context.AfterFunc(ctx, func() { door.Close() })
	defer stop()
	for {
		outer, err := door.Accept()
		switch {
		case err == nil:
			passing.Go(func() { pass(ctx, outer, dial) })
		case errors.Is(err, net.ErrClosed) || !sleepUntil(ctx, time.Now().Add(100*time.Millisecond)): // else out of descriptors
			return
		}
	}
}

// pass carries what both ends of a connection say, until one of them ends it.
func pass(ctx context.Context, outer net.Conn, dial func(context.Context) (net.Conn, error)) {
	defer outer.Close()
	inner, err := dial(ctx)
	if err != nil {
		return // the caller sees it closed
	}
	defer inner.Close()
	ended := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{inner, outer}, {outer, inner}} {
		go func() {
			_, _ = io.Copy(way[0], way[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
