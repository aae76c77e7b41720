package browser

import (
	"context"
	"io"
	"net"
)

// Forward forwards connections from an address on the loopback interface to dial, until ctx ends: for
// example to a service in another network namespace.
func Forward(ctx context.Context, dial func(context.Context) (net.Conn, error)) (address string, err error) {
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
