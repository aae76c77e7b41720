package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"headgate.dev/headgate/demo/scenario"
	"headgate.dev/headgate/internal/pki"
	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// client is an API client of the service, with a token and the certificate pin.
type client struct {
	url, token string
	client     *http.Client
}

// caller returns an API client that connects from a node.
func (d *deployment) caller(node, token string) *client {
	return &client{d.url, token, &http.Client{Timeout: timeout, Transport: &http.Transport{
		TLSClientConfig: pki.Pinned(d.address, d.pin), DialContext: dialFrom(d.lab.Node(node)), ForceAttemptHTTP2: true,
	}}}
}

// dialFrom opens connections in a node's namespace.
func dialFrom(node *lab.Node) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (c net.Conn, err error) {
		var d net.Dialer
		err = node.Do(func() (err error) { c, err = d.DialContext(ctx, network, address); return err })
		return c, err
	}
}

// ask sends a request once.
func (c *client) ask(ctx context.Context, method, path, body string) (r Request, err error) {
	r = Request{Method: method, Path: path, Body: json.RawMessage(body)}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, bytes.NewReader([]byte(body)))
	if err != nil {
		return r, err
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	answer, err := c.client.Do(request)
	if ctx.Err() != nil {
		return r, ctx.Err()
	}
	if err != nil {
		return r, fmt.Errorf("cannot reach the controller: %w", err)
	}
	defer answer.Body.Close()
	r.Status = answer.StatusCode
	r.Answer, err = io.ReadAll(answer.Body)
	return r, err
}

// must sends a request that has to succeed.
func (c *client) must(ctx context.Context, method, path, body string) error {
	r, err := c.ask(ctx, method, path, body)
	if err == nil && r.Status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s", method, path, r.text())
	}
	return err
}

// text formats the answer for the user.
func (r Request) text() string {
	var got struct {
		Title, Detail  string
		GuaranteedBps  uint64 `json:"guaranteed_bps"`
		UnallocatedBps uint64 `json:"unallocated_bps"`
		Groups         []any
	}
	text := fmt.Sprint(r.Status)
	if json.Unmarshal(r.Answer, &got) != nil {
		return text
	}
	switch {
	case got.Detail != "":
		text += " " + got.Detail
	case got.Title != "":
		text += " " + got.Title
	case got.GuaranteedBps > 0:
		text += fmt.Sprintf(" guaranteed %v", unit.Rate(got.GuaranteedBps))
		if len(got.Groups) > 0 {
			text += fmt.Sprintf(", %v unallocated", unit.Rate(got.UnallocatedBps))
		}
	}
	return text
}

// groupURL returns the path of a group's resource in the API.
func groupURL(host, direction, path string) string {
	return "/v1/hosts/" + host + "/interfaces/" + scenario.Dev + "/" + direction + "/groups/" + url.PathEscape(path)
}

// tenantProgram is a program of a tenant, which uses the API with the tenant's token.
type tenantProgram struct {
	*client
	Requests []Request
	say      func(lines ...string)
}

// asks sends a request, and prints the request and its answer.
func (t *tenantProgram) asks(ctx context.Context, method, path, body string) (Request, error) {
	r, err := t.ask(ctx, method, path, body)
	if err != nil {
		return r, err
	}
	t.Requests = append(t.Requests, r)
	t.say("  > " + method + " " + path)
	if body != "" {
		t.say("    " + body)
	}
	t.say(text.Wrap(r.text(), "      ", 78)...)
	return r, nil
}

// wants requests a guarantee for the tenant's group. If that exceeds what is unallocated in the
// tenant's parent group, it requests all that is unallocated there. It returns the granted guarantee,
// 0 if there is none.
func (t *tenantProgram) wants(ctx context.Context, group, within string, guarantee unit.Rate) (unit.Rate, error) {
	for range 2 {
		r, err := t.asks(ctx, http.MethodPatch, group, fmt.Sprintf(`{"guarantee":"%v"}`, guarantee))
		if err != nil {
			return 0, err
		}
		if r.Status == http.StatusOK {
			return guarantee, nil
		}
		if r.Status != http.StatusUnprocessableEntity || within == "" {
			return 0, nil
		}
		has, err := t.asks(ctx, http.MethodGet, group, "")
		if err != nil {
			return 0, err
		}
		around, err := t.asks(ctx, http.MethodGet, within, "")
		if err != nil {
			return 0, err
		}
		var own, limit struct {
			GuaranteedBps  uint64 `json:"guaranteed_bps"`
			UnallocatedBps uint64 `json:"unallocated_bps"`
		}
		if err := json.Unmarshal(has.Answer, &own); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(around.Answer, &limit); err != nil {
			return 0, err
		}
		guarantee = unit.Rate(own.GuaranteedBps + limit.UnallocatedBps)
	}
	return 0, nil
}

// requestMore has shop's program request more than is unallocated, and get all that is unallocated.
func (p *play) requestMore(ctx context.Context) error {
	const tooMuch = 50 * unit.Mbit
	return p.tenantAsks(ctx, tooMuch)
}

// restoreGuarantee has shop's program set its guarantee back to the former value.
func (p *play) restoreGuarantee(ctx context.Context) error { return p.tenantAsks(ctx, scenario.Export) }

// tenantAsks has shop's program request a guarantee, and waits until the granted one is in force.
func (p *play) tenantAsks(ctx context.Context, guarantee unit.Rate) error {
	group, within := groupURL(scenario.Hosts[0], "out", p.scenario.Path("shop", "export")), groupURL(scenario.Hosts[0], "out", "shop")
	if !p.scenario.Nested() {
		within = ""
	}
	asked := time.Now()
	got, err := p.program.wants(ctx, group, within, guarantee)
	if err != nil {
		return err
	}
	if got == 0 { // without nested groups a tenant has nothing to divide
		return p.operatorChanges(ctx, min(guarantee, scenario.ExportRaised))
	}
	if err := p.inForce(ctx, scenario.Hosts[0], p.scenario.Path("shop", "export"), got); err != nil {
		return err
	}
	change := Change{got.String(), time.Since(asked).Seconds() * 1e3}
	p.changes = append(p.changes, change)
	p.stage.say(fmt.Sprintf("  %s was in force on %s %.0f ms after the first request.", change.Guarantee, scenario.Hosts[0], change.InForce))
	return nil
}
