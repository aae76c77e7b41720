package cli

import (
	"context"
	"fmt"
	"io"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/config"
	"headgate.dev/headgate/config/diff"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/tune/device"
	"headgate.dev/headgate/unit"
)

// localTuneFlags are the flags of local measurements. They cannot be used with --server.
var localTuneFlags = []string{"peer", "file", "bytes", "time", "capacity", "log", "apply", "confirm-within", "key-file", "cert", "cert-key", "ca"}

// tuneRemote prints the limits that a service proposes for a device of a host, from the results of the
// probe schedule.
func (a *app) tuneRemote(ctx context.Context, at *remoteHost, dev string, margin unit.Share, f format) error {
	h, err := at.open()
	if err != nil {
		return err
	}
	if dev, err = a.resolveRemote(ctx, h, dev); err != nil {
		return err
	}
	under := margin.String()
	got, err := api.Decode[api.ProposalList](h.Client.ListProposals(ctx, h.Name, &api.ListProposalsParams{Dev: &dev, Margin: &under}))
	if err != nil {
		return err
	}
	if len(got.Items) == 0 {
		return fmt.Errorf("no measurements through %s of %s: see \"headgate probe schedule show\"", dev, at.host)
	}
	is, _, err := h.DesiredState(ctx)
	if err != nil {
		return err
	}
	p := got.Items[0]
	t := device.NewTarget(dev)
	t.Source = "the desired state of " + at.host
	if i, ok := is.For(dev); ok {
		t.Interface = i.Resolved.Interface
	}
	limits := 0
	for d, one := range map[probe.Direction]*api.DirectionProposal{probe.Out: p.Out, probe.In: p.In} {
		if one == nil || one.LimitBps == nil {
			continue
		}
		t.SetLimit(d, unit.Rate(*one.LimitBps))
		limits++
	}
	var document string
	var next config.Set
	if limits > 0 {
		if document, next, err = t.Document(); err != nil {
			return err
		}
	}
	if err := a.print(f, p, func(w io.Writer) error { return proposalTable(w, p, document, diff.CompareInterfaces(is, next)) }); err != nil || limits > 0 {
		return err
	}
	return errReported
}

// proposalTable prints the configuration, and all other output as comments.
func proposalTable(w io.Writer, p api.Proposal, document string, changes []diff.Entry) error {
	for _, d := range []struct {
		name string
		*api.DirectionProposal
	}{{"out", p.Out}, {"in", p.In}} {
		if d.DirectionProposal == nil {
			continue
		}
		if d.LimitBps == nil {
			fmt.Fprintf(w, "# %s: no limit is proposed: %s\n", d.name, orNone(d.CannotTell))
			continue
		}
		before := ""
		if d.BeforeBps != nil {
			before = fmt.Sprintf(" (now %v)", unit.Rate(*d.BeforeBps))
		}
		when := ""
		if d.At != nil {
			when = ", measured " + d.At.Local().Format(time.DateTime)
		}
		fmt.Fprintf(w, "# %s: from %s to %s%s: limit %v%s\n", d.name, orNone(d.From), orNone(d.To), when, unit.Rate(*d.LimitBps), before)
		if d.Notes != nil {
			for _, n := range *d.Notes {
				fmt.Fprintf(w, "# %s: %s\n", d.name, n)
			}
		}
	}
	if document == "" {
		return nil
	}
	device.WriteDocument(w, document, changes)
	return nil
}
