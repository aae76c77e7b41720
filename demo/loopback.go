package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"
	"time"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/sleep"
)

// loopback is the loopback address at which this machine alone reaches a demo's controller, which
// is in a network namespace of its own.
const loopback = "127.0.0.1"

// port is the default port of a controller's API.
var port = strconv.Itoa(config.APIPort)

// listenLoopback listens on loopback: on the controller's default port, or any port if that is in use.
func listenLoopback() (net.Listener, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(loopback, port))
	if err != nil {
		l, err = net.Listen("tcp", net.JoinHostPort(loopback, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("cannot listen on loopback for the demo: %w", err)
	}
	return l, nil
}

// dialController connects to the controller from within its own network namespace.
func (d *deployment) dialController(ctx context.Context) (net.Conn, error) {
	return dialFrom(d.lab.Node(scenario.Controller))(ctx, "tcp", net.JoinHostPort(d.address, port))
}

// forward forwards connections to the controller until ctx ends. TLS is end to end.
func forward(ctx context.Context, from net.Listener, dial func(context.Context) (net.Conn, error)) {
	var connections sync.WaitGroup
	defer connections.Wait()
	stop := context.AfterFunc(ctx, func() { from.Close() })
	defer stop()
	for {
		outer, err := from.Accept()
		switch {
		case err == nil:
			connections.Go(func() { relay(ctx, outer, dial) })
		case errors.Is(err, net.ErrClosed) || !sleep.Until(ctx, time.Now().Add(100*time.Millisecond)): // retry other errors, such as too many open files
			return
		}
	}
}

// relay copies data in both directions between a connection and the controller, until one side closes.
func relay(ctx context.Context, outer net.Conn, dial func(context.Context) (net.Conn, error)) {
	defer outer.Close()
	inner, err := dial(ctx)
	if err != nil {
		return // the client sees a closed connection
	}
	defer inner.Close()
	ended := make(chan struct{}, 2)
	for _, ends := range [][2]net.Conn{{inner, outer}, {outer, inner}} {
		go func() {
			_, _ = io.Copy(ends[0], ends[1])
			ended <- struct{}{}
		}()
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
