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

// demoAccess has the address of a demo's service, and the tokens to log in.
type demoAccess struct {
	URL     string      `json:"url"`
	Pin     string      `json:"pin"`
	Network string      `json:"network"`
	Logins  []demoLogin `json:"logins"`
}

// demoLogin is the token of the operator, or of a tenant.
type demoLogin struct {
	Tenant string `json:"tenant,omitempty"` // "" for the operator
	Token  string `json:"token"`
	File   string `json:"token_file"`
}

// serveDemo runs the service with traffic until the user stops it.
func (a *app) serveDemo(s demoScenario, f format) error {
	ctx, stop := interrupted()
	defer stop()
	w := a.out
	if f != "table" {
		w = a.err
	}
	p := &play{app: a, demoScenario: s, stage: &lineStage{w: w}, others: map[string]*[2]shaper.State{}}
	if err := p.serve(ctx, f); err != nil {
		return demoError(err)
	}
	return nil
}

func (p *play) serve(ctx context.Context, f format) (err error) {
	door, err := listenLoopback()
	if err != nil {
		return err
	}
	defer door.Close()
	if err := p.build(ctx, lab.Held()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.clean(nil)) }()
	p.door = demoLoopback
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
	return p.runTraffic(ctx)
}

// invite collects the addresses and tokens for the user.
func (p *play) invite(door net.Addr) (*demoAccess, error) {
	r := &demoAccess{URL: "https://" + door.String(), Pin: p.pin, Network: p.lab.Topology.Name}
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
The service is running, with changing traffic, until you press Ctrl-C here or run
"headgate demo --end":

  %[1]s/

A browser warns about the certificate, because the demo has its own certificate
authority, with the pin %[2]s. Tokens to log in with:

`

const inviteCommands = `
On the command line, as the operator:
  headgate login %[1]s --profile demo \
      --pin %[2]s \
      --token-file %[3]s
  headgate show --server demo --host host1
On the host itself:
  headgate lab exec host1 --lab %[4]s -- headgate top
`

func (r *demoAccess) write(w io.Writer) error {
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

// demoRound is the lifetime of connections. A connection that the user's changes have broken is opened
// again after it.
const demoRound = 10 * time.Minute

// runTraffic generates traffic until ctx ends or the controller exits.
func (p *play) runTraffic(ctx context.Context) error {
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
			// The user may have left a group too little bandwidth to connect.
			if sleepUntil(running, time.Now().Add(time.Second)) {
				p.stage.say(fmt.Sprintf("Cannot start the traffic, retrying: %v", err))
			}
			continue
		}
		session.Wait()
	}
	if ctx.Err() == nil {
		return controller.exitError()
	}
	return nil
}

// rounds returns the flows with schedules that repeat all phases for the given length.
func (s demoScenario) rounds(length time.Duration) (flows []traffic.Flow) {
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
