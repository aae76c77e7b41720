package demo

import (
	"context"
	"fmt"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/lab/traffic"
)

// ServeNetwork is RunNetwork that leaves the network up, with the traffic of the program and the backup, until ctx ends. It calls ready when
// users can log in.
func ServeNetwork(ctx context.Context, o Options, ready func(*Access) error) error {
	p := newNetworkPlay(o, &lineStage{w: o.Out})
	return p.serve(ctx, served{
		build: p.build, start: p.perform, stop: func() { p.uploads.close() }, commands: func() string {
			return fmt.Sprintf(networkCommands, p.addr(sites.DB))
		},
		flows: func() []traffic.Flow { return append(sites.Repeated(p.granted, sessionLength), p.network.Backup()) },
	}, ready)
}
