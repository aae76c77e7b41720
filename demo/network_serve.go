package demo

import (
	"context"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/lab/traffic"
)

// ServeNetwork is RunNetwork that leaves the network up, with the traffic of the program and the backup, until ctx ends. It calls ready when
// users can log in.
func ServeNetwork(ctx context.Context, o Options, ready func(*Access) error) error {
	p := newNetworkPlay(o, &lineStage{w: o.Out})
	defer func() { p.uploads.close() }()
	return p.serve(ctx, served{
		build: p.build, start: p.perform, commands: networkCommands,
		flows: func() []traffic.Flow { return append(sites.Repeated(p.granted, sessionLength), p.network.Backup()) },
	}, ready)
}
