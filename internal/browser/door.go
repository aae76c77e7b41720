package browser

import (
	"context"
	"io"
	"net"
)

// Door is an address on this machine's loopback, until ctx ends, at which what dial reaches answers: such as a
// service in a network namespace.
func Door(ctx context.Context, dial func(context.Context) (net.Conn, error)) (address string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer in.Close()
				out, err := dial(ctx)
				if err != nil {
					return
				}
				defer out.Close()
				go func() {
					_, _ = io.Copy(out, in)
					out.Close()
				}()
				_, _ = io.Copy(in, out)
			}()
		}
	}()
	return l.Addr().String(), nil
}
