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

// demoLoopback is the loopback address at which this machine alone reaches a demo's controller, which
// is in a network namespace of its own.
const demoLoopback = "127.0.0.1"

// listenLoopback listens on demoDoor: on the controller's default port, or any port if that is in use.
func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(demoLoopback, portText(config.APIPort)))
	if err != nil {
		l, err = net.Listen("tcp", net.JoinHostPort(demoLoopback, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback for the demo: %w", err)
	}
	return l, nil
}

// dialController connects to the controller from within its own network namespace.
func (p *play) dialController(ctx context.Context) (net.Conn, error) {
	return dialFrom(p.lab.Node(demoController))(ctx, "tcp", net.JoinHostPort(p.address, portText(config.APIPort)))
}

// forward forwards connections to the controller until ctx ends. TLS is end to end.
func forward(ctx context.Context, door net.Listener, dial func(context.Context) (net.Conn, error)) {
	var passing sync.WaitGroup
	defer passing.Wait()
	stop := context.AfterFunc(ctx, func() { door.Close() })
	defer stop()
	for {
		outer, err := door.Accept()
		switch {
		case err == nil:
			passing.Go(func() { assignDescriptor(ctx, outer, dial) })
		case errors.Is(err, net.ErrClosed) || !sleepUntil(ctx, time.Now().Add(100*time.Millisecond)): // retry other errors, such as too many open files
			return
		}
	}
}

// assignDescriptor copies data in both directions between a connection and the controller, until one side closes.
func assignDescriptor(ctx context.Context, outer net.Conn, dial func(context.Context) (net.Conn, error)) {
	defer outer.Close()
	inner, err := dial(ctx)
	if err != nil {
		return // the client sees a closed connection
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
