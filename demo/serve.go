package demo

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

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
)

// Access has the address of a demo's service, and the tokens to log in.
type Access struct {
	URL     string  `json:"url"`
	Pin     string  `json:"pin"`
	Network string  `json:"network"`
	Logins  []Login `json:"logins"`

	commands string // to begin with
}

// Login is the token of the operator, or of a tenant.
type Login struct {
	Tenant string `json:"tenant,omitempty"` // "" for the operator
	Token  string `json:"token"`
	File   string `json:"token_file"`
}

// Serve runs the service with changing traffic until ctx ends, and then removes it. It calls
// ready when users can log in.
func Serve(ctx context.Context, o Options, ready func(*Access) error) error {
	p := newPlay(o, &lineStage{w: o.Out})
	return p.serve(ctx, served{
		build: p.build, start: p.service, tenants: scenario.Tenants, commands: func() string { return groupCommands },
		flows: func() []traffic.Flow { return p.scenario.Repeated(sessionLength) },
	}, ready)
}

// served is what a demo that is served differs in.
type served struct {
	build    func(context.Context, ...lab.Option) error
	start    func(context.Context) error // everything, before users log in
	stop     func()                      // what this process has in the network, before it is removed; nil if it has nothing
	tenants  []string
	commands func() string // to begin with
	flows    func() []traffic.Flow
}

// serve runs a demo until ctx ends, and then removes it.
func (d *deployment) serve(ctx context.Context, s served, ready func(*Access) error) (err error) {
	d.served = true
	listener, err := listenLoopback()
	if err != nil {
		return err
	}
	defer listener.Close()
	if err := s.build(ctx, lab.Held()); err != nil {
		return err
	}
	defer func() {
		if s.stop != nil {
			s.stop()
		}
		err = errors.Join(err, d.cleanServed())
	}()
	if err := s.start(ctx); err != nil {
		return err
	}
	forwarding, stop := context.WithCancel(ctx)
	var forwarder sync.WaitGroup
	forwarder.Go(func() { forward(forwarding, listener, d.dialController) })
	defer forwarder.Wait()
	defer stop()
	access, err := d.access(listener.Addr(), s)
	if err != nil {
		return err
	}
	if err := ready(access); err != nil {
		return err
	}
	return d.runTraffic(ctx, s.flows())
}

// access collects the addresses and tokens for the user.
func (d *deployment) access(at net.Addr, s served) (*Access, error) {
	r := &Access{URL: "https://" + at.String(), Pin: d.pin, Network: d.lab.Topology.Name, commands: s.commands()}
	for _, tenant := range append([]string{""}, s.tenants...) {
		file := filepath.Join(d.dir, tenant+".token")
		if tenant == "" {
			file = filepath.Join(d.dir, scenario.Controller, "operator.token")
		}
		token, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		r.Logins = append(r.Logins, Login{tenant, strings.TrimSpace(string(token)), file})
	}
	return r, nil
}

const accessText = `
The service is running, with changing traffic, until you press Ctrl-C here or run
"headgate demo --end":

  %[1]s/

A browser warns about the certificate, because the demo has its own certificate
authority, with the pin %[2]s. Tokens to log in with:

`

const groupCommands = `
On the command line, as the operator:
  headgate login %[1]s --profile demo \
      --pin %[2]s \
      --token-file %[3]s
  headgate show --server demo --host host1
On the host itself:
  headgate lab exec host1 --lab %[4]s -- headgate top
`

// Write prints how to log in.
func (r *Access) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, accessText, r.URL, r.Pin)
	for _, l := range r.Logins {
		who := "operator"
		if l.Tenant != "" {
			who = "tenant " + l.Tenant
		}
		fmt.Fprintf(&b, "  %-14s%s\n", who, l.Token)
	}
	fmt.Fprintf(&b, r.commands, r.URL, r.Pin, r.Logins[0].File, r.Network)
	_, err := io.WriteString(w, b.String())
	return err
}

// sessionLength is the lifetime of connections. A connection that the user's changes have broken is opened
// again after it.
const sessionLength = 10 * time.Minute

// runTraffic generates traffic until ctx ends or the controller exits.
func (d *deployment) runTraffic(ctx context.Context, flows []traffic.Flow) error {
	running, stop := context.WithCancel(ctx)
	defer stop()
	controller := d.processes[0]
	go func() {
		select {
		case <-controller.gone:
			stop()
		case <-running.Done():
		}
	}()
	for running.Err() == nil {
		session, err := traffic.Start(running, d.lab.Host, flows, traffic.Options{Duration: sessionLength})
		if err != nil {
			// The user may have left a group too little bandwidth to connect.
			if sleep.Until(running, time.Now().Add(time.Second)) {
				d.stage.say(fmt.Sprintf("Cannot start the traffic, retrying: %v", err))
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

// networkCommands has the address of a host, and then what all demos have.
const networkCommands = `
On the command line, as the operator:
  headgate login %%[1]s --profile demo \
      --pin %%[2]s \
      --token-file %%[3]s
  headgate network show --server demo
  headgate reserve top --server demo
In the network itself:
  headgate lab exec app --lab %%[4]s -- ping %[1]s
`
