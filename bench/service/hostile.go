package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"headgate.dev/headgate/agent/remote"
	"headgate.dev/headgate/api/agents"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/pki"
)

func hostileCases() []bench.Case {
	return []bench.Case{{
		Name: "host", Run: hostile, Takes: bench.Takes(40*time.Second, 2*time.Minute), Alongside: smoke("bounds"),
		Claims: []bench.Claim{
			bench.NewClaim("host/change-p99", "99 of 100 changes of an operator on another host, while the agent of one host sends messages of megabytes, opens streams without hello, connects again and renews its certificate as fast as it can", otherP99),
			bench.NewClaim("host/memory", "more memory of the controller and its store, the highest of each second", moreMemory),
			bench.NewClaim("host/named", "events that do not name the host", bench.Target{Op: "<=", Value: 0, Unit: "events"}),
			bench.NewClaim("host/cut-off", "agents of other hosts that were disconnected", cutOff),
		},
	}}
}

func hostile(ctx context.Context, r *bench.Run) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	f, err := p.provision(ctx, noisyAgents, groupsEach, r.Say)
	if err != nil {
		return err
	}
	defer f.stop()
	operator := p.ask(p.controllers[0])
	if _, err := operator.must(ctx, http.MethodPut, "/v1/hosts/evil", map[string]any{}); err != nil {
		return err
	}
	dir, err := p.join(ctx, operator, "evil")
	if err != nil {
		return err
	}
	if err := f.start(ctx); err != nil {
		return err
	}
	if _, err := p.connected(ctx, noisyAgents, comeBack); err != nil {
		return err
	}
	before, err := p.spent()
	if err != nil {
		return err
	}
	memoryOf, during := p.highest(ctx), operator.others(ctx, "/v1/hosts/"+f.hosts[1]+"/interfaces/eth0/out/groups/g0", otherEvery)
	sent, err := p.attack(ctx, dir, bench.Pick(r.Quick, 15*time.Second, time.Minute))
	if err != nil {
		return err
	}
	took, err := during()
	if err != nil {
		return fmt.Errorf("a change of an operator: %w", err)
	}
	most, err := memoryOf()
	if err != nil {
		return err
	}
	events, err := operator.must(ctx, http.MethodGet, "/v1/audit?limit=1000", nil)
	if err != nil {
		return err
	}
	_, connected := p.streams(ctx)
	sheet := r.Sheet(bench.Ours)
	sheet.Set("host/change-p99", took.at(0.99))
	sheet.Note("host/change-p99", "%d changes, the median in %s ms; %s", took.count(), bench.Number(took.at(0.5)), sent)
	sheet.Set("host/memory", (most-before.memory)/(1<<20))
	sheet.Set("host/named", named(events))
	sheet.Set("host/cut-off", float64(max(noisyAgents-connected, 0)))
	return nil
}

// named returns how many of the two kinds of events about a hostile host are missing from the audit log: too much at once, and too many certificates.
func named(audit []byte) (missing float64) {
	for _, text := range []string{`agent sends more than`, `agent sends more requests for certificates`} {
		if !bytes.Contains(audit, []byte(text)) || !bytes.Contains(audit, []byte(`"principal":"evil"`)) {
			missing++
		}
	}
	return missing
}

// attack uses the identity of a host as badly as it can for a time, and returns what it did.
func (p *place) attack(ctx context.Context, dir string, length time.Duration) (did string, err error) {
	id, err := remote.ReadIdentity(dir)
	if err != nil {
		return "", err
	}
	tls, err := pki.Client(&id.KeyPair, id.Authority)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	connect := dial(p.caller)
	open := func() (*grpc.ClientConn, agents.AgentsClient) {
		conn, err := grpc.NewClient("passthrough:///"+id.Agents[0], grpc.WithTransportCredentials(credentials.NewTLS(tls)), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return connect(ctx, "tcp", address) }))
		if err != nil {
			return nil, nil
		}
		return conn, agents.NewAgentsClient(conn)
	}
	var messages, streams, connections, renewals atomic.Int64
	var all sync.WaitGroup
	report := agents.From(&agents.Report{AtNs: 1, Devices: []*agents.DeviceReport{{Dev: "eth0", Names: strings.Split(strings.Repeat("out/"+strings.Repeat("x", 96)+" ", 30_000), " ")}}})
	floods := []*agents.FromAgent{report, agents.From(&agents.Facts{Kernel: strings.Repeat("k", 3<<20)}), agents.From(&agents.Facts{Kernel: strings.Repeat("k", 15<<20)}), {}}
	for n := range 8 {
		all.Go(func() { // messages of megabytes, and many small ones
			for ctx.Err() == nil {
				conn, client := open()
				if conn == nil {
					return
				}
				connections.Add(1)
				if stream, err := client.Connect(ctx); err == nil {
					for err = stream.Send(agents.From(&agents.Hello{})); err == nil && ctx.Err() == nil; err = stream.Send(floods[n%len(floods)]) {
						messages.Add(1)
					}
				}
				conn.Close()
				_ = bench.Sleep(ctx, 10*time.Millisecond) // what its own processor could not do faster
			}
		})
		all.Go(func() { // streams without hello
			for ctx.Err() == nil {
				conn, client := open()
				if conn == nil {
					return
				}
				connections.Add(1)
				for range 200 {
					go func() {
						if stream, err := client.Connect(ctx); err == nil {
							streams.Add(1)
							_, _ = stream.Recv()
						}
					}()
				}
				_ = bench.Sleep(ctx, 500*time.Millisecond)
				conn.Close()
			}
		})
	}
	all.Go(func() {
		conn, client := open()
		if conn == nil {
			return
		}
		defer conn.Close()
		request, _, err := pki.Request(id.Host)
		for err == nil && ctx.Err() == nil {
			_, failed := client.Renew(ctx, &agents.RenewRequest{Request: request})
			if renewals.Add(1); status.Code(failed) == codes.Unavailable {
				_ = bench.Sleep(ctx, 10*time.Millisecond) // the connection is being opened again
			}
		}
	})
	all.Wait()
	return fmt.Sprintf("the host opened %d connections and %d streams without hello, sent %d messages and asked for %d certificates", connections.Load(), streams.Load(), messages.Load(), renewals.Load()), nil
}
