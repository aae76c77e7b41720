package cli

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

	"headgate/internal/pki"
	"headgate/lab"
	"headgate/unit"
)

// demoCaller speaks to the service over HTTPS, with a token and the authority's pin.
type demoCaller struct {
	url, token string
	client     *http.Client
}

// caller is one who sits in a node.
func (p *play) caller(node, token string) *demoCaller {
	return &demoCaller{p.url, token, &http.Client{Timeout: demoPatience, Transport: &http.Transport{
		TLSClientConfig: pki.Pinned(p.address, p.pin), DialContext: dialFrom(p.lab.Node(node)), ForceAttemptHTTP2: true,
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

// demoRequest is one that was made, and its answer.
type demoRequest struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
	Status int             `json:"status"`
	// Answer is the group's state, or why it was refused.
	Answer json.RawMessage `json:"answer,omitempty"`
}

// ask asks once.
func (c *demoCaller) ask(ctx context.Context, method, path, body string) (r demoRequest, err error) {
	r = demoRequest{Method: method, Path: path, Body: json.RawMessage(body)}
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
		return r, fmt.Errorf("the controller does not answer: %w", err)
	}
	defer answer.Body.Close()
	r.Status = answer.StatusCode
	r.Answer, err = io.ReadAll(answer.Body)
	return r, err
}

// must asks for what has to be done.
func (c *demoCaller) must(ctx context.Context, method, path, body string) error {
	r, err := c.ask(ctx, method, path, body)
	if err == nil && r.Status >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s", method, path, r.says())
	}
	return err
}

// says is the answer in words.
func (r demoRequest) says() string {
	var got struct {
		Title, Detail string
		Rate, Free    unit.Rate
		Groups        []any
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
	case got.Rate > 0:
		text += fmt.Sprintf(" guaranteed %v", got.Rate)
		if len(got.Groups) > 0 {
			text += fmt.Sprintf(", of which %v is free", got.Free)
		}
	}
	return text
}

// groupURL is a group of a host in the API.
func groupURL(host, direction, path string) string {
	return "/v1/hosts/" + host + "/interfaces/" + demoDev + "/" + direction + "/groups/" + url.PathEscape(path)
}

// tenantProgram is what a tenant runs on its own: it has its token, and knows its group.
type tenantProgram struct {
	*demoCaller
	Requests []demoRequest
	say      func(lines ...string)
}

// asks asks, and prints what it asks and is answered.
func (t *tenantProgram) asks(ctx context.Context, method, path, body string) (demoRequest, error) {
	r, err := t.ask(ctx, method, path, body)
	if err != nil {
		return r, err
	}
	t.Requests = append(t.Requests, r)
	t.say("  > " + method + " " + path)
	if body != "" {
		t.say("    " + body)
	}
	t.say(wrapped(r.says(), "      ", 78)...)
	return r, nil
}

// wants makes its group have a guarantee; if that is more than is left within the tenant's
// own limit, it takes what is free there. It says what it has then.
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
		var own, limit struct{ Rate, Free unit.Rate }
		if err := json.Unmarshal(has.Answer, &own); err != nil {
			return 0, err
		}
		if err := json.Unmarshal(around.Answer, &limit); err != nil {
			return 0, err
		}
		guarantee = own.Rate + limit.Free
	}
	return 0, nil
}

// askForMore has shop's program ask for more than there is, and get what there is.
func (p *play) askForMore(ctx context.Context) error {
	const tooMuch = 50 * unit.Mbit
	return p.tenantAsks(ctx, tooMuch)
}

// giveBack has it give back what it took.
func (p *play) giveBack(ctx context.Context) error { return p.tenantAsks(ctx, demoExport) }

// tenantAsks has shop's program ask, and waits for the kernel to have what it got.
func (p *play) tenantAsks(ctx context.Context, guarantee unit.Rate) error {
	group, within := groupURL(demoHosts[0], "out", p.path("shop", "export")), groupURL(demoHosts[0], "out", "shop")
	if !p.nested() {
		within = ""
	}
	asked := time.Now()
	got, err := p.program.wants(ctx, group, within, guarantee)
	if err != nil {
		return err
	}
	if got == 0 { // without groups in groups there is nothing that is the tenant's to divide
		return p.operatorChanges(ctx, min(guarantee, demoExportMore))
	}
	if err := p.inForce(ctx, demoHosts[0], p.path("shop", "export"), got); err != nil {
		return err
	}
	change := tenantChange{got.String(), time.Since(asked).Seconds() * 1e3}
	p.changes = append(p.changes, change)
	p.stage.say(fmt.Sprintf("  The kernel of %s had %s %.0f ms after it began to ask.", demoHosts[0], change.Guarantee, change.InForce))
	return nil
}

// tenantChange is one that a tenant's program made.
type tenantChange struct {
	Guarantee string `json:"guarantee"`
	// InForce is how long after the first request the kernel had it, in ms.
	InForce float64 `json:"in_force_ms"`
}
