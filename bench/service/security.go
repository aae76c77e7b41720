package service

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/api"
	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/pki"
)

func securityCases() []bench.Case {
	const id = "security"
	return []bench.Case{{
		Name: id + "/walk",
		Claims: []bench.Claim{
			bench.NewClaim(id+"/walk", "operations that permit unauthorized callers, reject authorized ones, or show data of other tenants", violations),
			bench.NewClaim(id+"/walk/asked", "number of operations times callers", measured),
			bench.NewClaim(id+"/unauthenticated", "routes besides health and login that answer without authentication", violations),
			bench.NewClaim(id+"/plain", "routes that answer without TLS", violations),
			bench.NewClaim(id+"/loopback", "sockets of an unconfigured controller that are not on loopback", violations),
		},
		Takes:     func(bool) time.Duration { return 20 * time.Second },
		Alongside: smoke("last"),
		Run:       walk,
	}, {
		Name: id + "/schemathesis",
		Claims: []bench.Claim{
			bench.NewClaim(id+"/schemathesis", "failures that schemathesis finds", violations),
			bench.NewClaim(id+"/reached", "operations without a 2xx response to schemathesis", violations),
		},
		Takes: func(quick bool) time.Duration {
			if quick {
				return 40 * time.Second
			}
			return 5 * time.Minute
		},
		Alongside: smoke("last"),
		Run:       schemathesis,
	}}
}

// caller is a client with a token, or without.
type caller struct{ role, token string }

// shared is h1's eth0, of which two tenants have a part.
func shared() map[string]any {
	groups := []map[string]any{
		{"name": "a", "guarantee": "40%", "tenant": "a", "match": []map[string]any{{"dst": []string{"10.1.0.0/16"}}}, "groups": []map[string]any{{"name": "secret", "default": true}}},
		{"name": "b", "guarantee": "20%", "tenant": "b", "match": []map[string]any{{"dst": []string{"10.2.0.0/16"}}}},
		{"name": "rest", "guarantee": "10%", "default": true},
	}
	return map[string]any{"out": map[string]any{"limit": "100Mbit", "groups": groups}}
}

// twoTenants creates the objects of the walk: groups, a connection and a token of a's, and a set.
func (a *asking) twoTenants(ctx context.Context) (w walked, err error) {
	for _, each := range []struct {
		path string
		body any
	}{
		{"/v1/tenants/a", map[string]any{}}, {"/v1/tenants/b", map[string]any{}}, {"/v1/hosts/h1", map[string]any{}}, {eth0, shared()},
		{"/v1/hosts/h1/collectives/db", bodies["putCollective"]},
	} {
		if _, err := a.must(ctx, http.MethodPut, each.path, each.body); err != nil {
			return w, err
		}
	}
	tenant := *a
	if tenant.token, err = a.tokenOf(ctx, map[string]any{"name": "a", "role": "tenant", "tenant": "a"}); err != nil {
		return w, err
	}
	if _, err := tenant.must(ctx, http.MethodPut, eth0+"/connections/"+url.PathEscape(connection), map[string]any{"group": "a/secret"}); err != nil {
		return w, err
	}
	text, err := tenant.must(ctx, http.MethodPost, "/v1/tokens", map[string]any{"name": "secret", "role": "viewer"})
	if err != nil {
		return w, err
	}
	var made struct{ ID string }
	if err := json.Unmarshal(text, &made); err != nil {
		return w, err
	}
	w.fill = strings.NewReplacer("{tenant}", "a", "{host}", "h1", "{dev}", "eth0", "{direction}", "out", "{group}", "a%2Fsecret", "{token}", made.ID, "{owner}", "a", "{reservation}", "x",
		"{connection}", url.PathEscape(connection), "{collective}", "db", "{relay}", "east", "{dpid}", "0000000000000001", "{port}", "1", "{probe}", "0000000000000000")
	request, _, err := pki.Request("h1")
	w.request = string(request)
	return w, err
}

func (a *asking) tokenOf(ctx context.Context, body map[string]any) (string, error) {
	made, err := a.newToken(ctx, body)
	return made.Token, err
}

// newToken creates a token.
func (a *asking) newToken(ctx context.Context, body map[string]any) (made struct{ ID, Token string }, err error) {
	text, err := a.must(ctx, http.MethodPost, "/v1/tokens", body)
	if err == nil {
		err = json.Unmarshal(text, &made)
	}
	return made, err
}

func walk(ctx context.Context, r *bench.Run) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	a := p.shared(p.controllers[0])
	w, err := a.twoTenants(ctx)
	if err != nil {
		return err
	}
	callers := []caller{{"anonymous", ""}, {"unknown token", "hg_stranger"}, {"operator", p.token}}
	for role, body := range map[string]map[string]any{
		"tenant":  {"name": "a", "role": "tenant", "tenant": "a"},
		"foreign": {"name": "b", "role": "tenant", "tenant": "b"},
		"viewer":  {"name": "v", "role": "viewer"},
	} {
		token, err := a.tokenOf(ctx, body)
		if err != nil {
			return err
		}
		callers = append(callers, caller{role, token})
	}
	callers = append(callers, caller{"agent", ""})
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	asked, wrong, open, plain := 0, 0, 0, 0
	for path, item := range spec.Paths.Map() {
		for method, o := range item.Operations() {
			if in, err := p.inTheClear(ctx, method, w.fill.Replace(path)); err != nil {
				return err
			} else if in {
				plain++
			}
			for _, c := range callers {
				if strings.HasPrefix(o.OperationID, "watch") && may(c.role, method, o.OperationID) {
					continue // it does not end
				}
				if c.role == "agent" { // its token can be used only once
					if c.token, err = a.tokenOf(ctx, map[string]any{"name": "h1", "role": "agent", "host": "h1"}); err != nil {
						return err
					}
				}
				asked++
				status, text, err := w.ask(ctx, a, c, method, path, o)
				if err != nil {
					return err
				}
				if why := judge(c.role, method, path, o.OperationID, status, text); why != "" {
					wrong++
					sheet.Note("security/walk", "%s %s as %s: %d: %s: %.200s", method, path, c.role, status, why, text)
				}
				if c.role == "anonymous" && status != http.StatusUnauthorized && !may("anonymous", method, o.OperationID) {
					open++
				}
			}
		}
	}
	n, told, err := a.reach(ctx, callers)
	if err != nil {
		return err
	}
	asked, wrong = asked+n, wrong+len(told)
	for _, why := range told {
		sheet.Note("security/walk", "%s", why)
	}
	sheet.Set("security/walk", float64(wrong))
	sheet.Set("security/walk/asked", float64(asked))
	sheet.Set("security/unauthenticated", float64(open))
	sheet.Set("security/plain", float64(plain))
	beyond, err := p.unconfigured(ctx)
	if err != nil {
		return err
	}
	sheet.Set("security/loopback", float64(len(beyond)))
	if len(beyond) > 0 {
		sheet.Note("security/loopback", "%s", strings.Join(beyond, ", "))
	}
	return nil
}

// inTheClear reports whether a route answers successfully without TLS.
func (p *place) inTheClear(ctx context.Context, method, path string) (bool, error) {
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: dial(p.caller), DisableKeepAlives: true}}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+net.JoinHostPort(p.controllers[0].address, apiPort)+path, nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	got, err := client.Do(r)
	if err != nil {
		return false, nil
	}
	defer got.Body.Close()
	return got.StatusCode < 300, nil
}

// unconfigured starts a controller with only a folder, and returns the sockets of its network
// namespace that are not on loopback.
func (p *place) unconfigured(ctx context.Context) (beyond []string, err error) {
	node := p.lab.Node("host")
	c, err := command(context.WithoutCancel(ctx), node, "controller", "--data", filepath.Join(p.dir, "unconfigured"))
	if err != nil {
		return nil, err
	}
	said := &bench.Tail{Keep: keptOutput}
	c.Stderr = said
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		_ = c.Wait()
	}()
	for until := time.Now().Add(startPatience); !strings.Contains(said.String(), "certificate pin "); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			return nil, fmt.Errorf("an unconfigured controller does not serve: %s", said)
		}
	}
	var all []string
	err = node.Do(func() (err error) { all, err = listeners(); return err })
	if len(all) == 0 && err == nil {
		err = errors.New("an unconfigured controller has no listening socket")
	}
	return slices.DeleteFunc(all, func(at string) bool {
		return strings.HasPrefix(at, "0100007F:") || strings.HasPrefix(at, "00000000000000000000000001000000:")
	}), err
}

// listeners returns the addresses of listening sockets in the thread's network namespace, in the
// format of proc_pid_net(5): 127.0.0.1 is 0100007F.
func listeners() (at []string, err error) {
	for _, file := range []string{"tcp", "tcp6"} {
		text, err := os.ReadFile("/proc/thread-self/net/" + file)
		if err != nil {
			return nil, err
		}
		for line := range strings.Lines(string(text)) {
			const listens = "0A"
			if f := strings.Fields(line); len(f) > 3 && f[3] == listens {
				at = append(at, f[1])
			}
		}
	}
	return at, nil
}
