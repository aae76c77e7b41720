package cli

import (
	"fmt"
	"io"
	"time"

	"headgate.dev/headgate/probe/report"
)

// localOnlyFlags are the flags of measurements from this machine. They cannot be used with --server.
var localOnlyFlags = []string{"key-file", "cert", "cert-key", "ca", "direction", "method", "bytes", "time", "capacity", "log", "plots", "watch", "ticks", "ipv4", "ipv6"}

// probeRemote makes a host of a service measure its path to a peer, and prints the report.
func (a *app) probeRemote(t *remoteHost, measure, peer string, f format) error {
	ctx, stop := interrupted()
	defer stop()
	h, err := t.open()
	if err != nil {
		return err
	}
	progress := a.progress(f)
	defer progress.Clear()
	begun := time.Now()
	result, err := h.Probe(ctx, measure, peer, func(state string) {
		progress.Show(fmt.Sprintf("%s: %s, %v", h.Name, state, time.Since(begun).Round(time.Second)))
	})
	progress.Clear()
	if err != nil {
		return err
	}
	return a.print(f, result, func(w io.Writer) error { return report.Write(w, &result) })
}
