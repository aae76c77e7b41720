package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"headgate/lab"
	"headgate/lab/traffic"
	"headgate/shaper"
)

// demoInvitation says how to get into a demo's service from this machine.
type demoInvitation struct {
	URL     string      `json:"url"`
	Pin     string      `json:"pin"`
	Network string      `json:"network"`
	Logins  []demoLogin `json:"logins"`
}

// demoLogin is the token of the operator, or of a tenant.
type demoLogin struct {
	Tenant string `json:"tenant,omitempty"` // "" is the operator
	Token  string `json:"token"`
	File   string `json:"token_file"`
}

// serveDemo keeps the service up, with traffic, until the user ends it.
func (a *app) serveDemo(s scenario, f format) error {
	ctx, stop := interrupted()
	defer stop()
	w := a.out
	if f != "table" {
		w = a.err
	}
	p := &play{app: a, scenario: s, stage: &lineStage{w: w}, others: map[string]*[2]shaper.State{}}
	if err := p.serve(ctx, f); err != nil {
		return demoError(err)
	}
	return nil
}

func (p *play) serve(ctx context.Context, f format) (err error) {
	door, err := openDoor()
	if err != nil {
		return err
	}
	defer door.Close()
	if err := p.build(ctx, lab.Held()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.clean(nil)) }()
	p.door = demoDoor
	if err := p.service(ctx); err != nil {
		return err
	}
	passing, stop := context.WithCancel(ctx)
	var porter sync.WaitGroup
	porter.Go(func() { forward(passing, door, p.dialController) })
	defer porter.Wait()
	defer stop()
	r, err := p.invite(door.Addr())
	if err != nil {
		return err
	}
	if err := p.print(f, r, r.write); err != nil {
		return err
	}
	return p.goOn(ctx)
}

// invite collects what one needs to get in.
func (p *play) invite(door net.Addr) (*demoInvitation, error) {
	r := &demoInvitation{URL: "https://" + door.String(), Pin: p.pin, Network: p.lab.Topology.Name}
	for _, tenant := range append([]string{""}, demoTenants...) {
		file := filepath.Join(p.dir, tenant+".token")
		if tenant == "" {
			file = filepath.Join(p.dir, demoController, "operator.token")
		}
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r.Logins = append(r.Logins, demoLogin{tenant, strings.TrimSpace(string(token)), file})
	}
	return r, nil
}

const inviteText = `
The service is up, with traffic that changes all the time, until you press Ctrl-C
here or run "headgate demo --end":

  %[1]s/

A browser asks whether to trust it, because the demo is its own authority, with the
key %[2]s. Tokens to get in with:

`

const inviteCommands = `
With commands, as the operator:
  headgate login %[1]s --profile demo \
      --pin %[2]s \
      --token-file %[3]s
  headgate show --server demo --host host1
In the host itself:
  headgate lab exec host1 --lab %[4]s -- headgate top
`

func (r *demoInvitation) write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, inviteText, r.URL, r.Pin)
	for _, l := range r.Logins {
		who := "operator"
		if l.Tenant != "" {
			who = "tenant " + l.Tenant
		}
		fmt.Fprintf(&b, "  %-14s%s\n", who, l.Token)
	}
	fmt.Fprintf(&b, inviteCommands, r.URL, r.Pin, r.Logins[0].File, r.Network)
	_, err := io.WriteString(w, b.String())
	return err
}

// demoRound is for how long connections last: one that the user's own changes have broken comes
// back then.
const demoRound = 10 * time.Minute

// goOn makes traffic until ctx or the controller ends.
func (p *play) goOn(ctx context.Context) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	controller := p.processes[0]
	go func() {
		select {
		case <-controller.gone:
			stop()
		case <-running.Done():
		}
	}()
	flows := p.rounds(demoRound)
	for running.Err() == nil {
		session, err := traffic.Start(running, p.lab.Host, flows, traffic.Options{Duration: demoRound})
		if err != nil {
			// The user may have left a group nothing to connect with.
			if sleepUntil(running, time.Now().Add(time.Second)) {
				p.stage.say(fmt.Sprintf("The traffic cannot begin, and is tried again: %v", err))
			}
			continue
		}
		session.Wait()
	}
	if ctx.Err() == nil {
		return controller.alive()
	}
	return nil
}

// rounds are the flows, going through the phases again and again for so long.
func (s scenario) rounds(length time.Duration) (flows []traffic.Flow) {
	for _, f := range s.flows {
		once := f.Schedule
		f.Schedule = nil
		for at := time.Duration(0); at < length; at += s.length() {
			for _, step := range once {
				f.Schedule = append(f.Schedule, traffic.Step{At: at + step.At, Rate: step.Rate})
			}
		}
		flows = append(flows, f.Flow)
	}
	return flows
}
