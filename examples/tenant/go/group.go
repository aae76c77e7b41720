package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/unit"
)

// connect is the service, as the owner of a token sees it.
func connect(url, ca, tokenFile string) (*api.Client, error) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(ca)
	if err != nil {
		return nil, err
	}
	trust := x509.NewCertPool()
	if !trust.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("there is no certificate in %s", ca)
	}
	h := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trust}}}
	return api.NewClient(url, api.WithHTTPClient(h), api.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
		return nil
	}))
}

// Group is a group of one's own, whose guarantee is borrowed for a while.
type Group struct {
	Client          *api.Client
	Host, Dev, Path string

	had   json.RawMessage    // its guarantee before: text or null
	asked map[unit.Rate]bool // since
}

// Refused is the service's answer to what it does not do (RFC 9457).
type Refused struct {
	Status int
	Reason string
}

func (r *Refused) Error() string { return r.Reason }

// Ask raises the guarantee to what is wanted, or to what is free if that is less.
func (g *Group) Ask(ctx context.Context, want unit.Rate) (unit.Rate, error) {
	for range 5 {
		now, tag, err := g.see(ctx, g.Path)
		if err != nil {
			return 0, err
		}
		if g.had == nil {
			if g.had, err = json.Marshal(now.Guarantee); err != nil {
				return 0, err
			}
		}
		has := unit.Rate(now.GuaranteedBps)
		if want = min(want, rate(now.CeilingBps)); want <= has {
			return has, nil
		}
		text, err := json.Marshal(want)
		if err != nil {
			return 0, err
		}
		if g.asked == nil {
			g.asked = map[unit.Rate]bool{}
		}
		g.asked[want] = true // before: if the answer is lost, it may have been done
		err = g.change(ctx, text, tag)
		if err == nil {
			return want, nil
		}
		var refused *Refused
		if !errors.As(err, &refused) {
			return 0, err
		}
		switch {
		case refused.Status == http.StatusPreconditionFailed: // somebody changed it meanwhile: look again
		case refused.Status == http.StatusUnprocessableEntity:
			around, _, err := g.see(ctx, g.Path[:max(0, strings.LastIndexByte(g.Path, '/'))])
			if err != nil {
				return 0, err
			}
			want = has + rate(around.UnallocatedBps)
			log.Printf("refused: %v; %v are to be had", refused, want)
		default:
			return 0, err
		}
	}
	return 0, errors.New("the group is changed again and again by others")
}

// GiveBack makes the guarantee what it was, unless somebody else has changed it since.
func (g *Group) GiveBack(ctx context.Context) error {
	for len(g.asked) > 0 {
		now, tag, err := g.see(ctx, g.Path)
		if err != nil {
			return err
		}
		if !g.asked[unit.Rate(now.GuaranteedBps)] { // somebody else has changed it
			break
		}
		err = g.change(ctx, g.had, tag)
		if refused := new(Refused); errors.As(err, &refused) && refused.Status == http.StatusPreconditionFailed {
			continue
		}
		if err != nil {
			return err
		}
		log.Printf("released %v: the guarantee is %s again", unit.Rate(now.GuaranteedBps), g.had)
		break
	}
	clear(g.asked)
	return nil
}

func (g *Group) see(ctx context.Context, path string) (api.GroupState, string, error) {
	return call(ctx, func() (*http.Response, error) { return g.Client.GetGroup(ctx, g.Host, g.Dev, "out", path) })
}

// change changes what was seen with this ETag, and nothing newer. It is made once, however often it
// has to be asked for.
func (g *Group) change(ctx context.Context, guarantee json.RawMessage, tag string) error {
	key := rand.Text()
	body, err := json.Marshal(map[string]json.RawMessage{"guarantee": guarantee})
	if err != nil {
		return err
	}
	_, _, err = call(ctx, func() (*http.Response, error) {
		return g.Client.PatchGroupWithBody(ctx, g.Host, g.Dev, "out", g.Path,
			&api.PatchGroupParams{IfMatch: &tag, IdempotencyKey: &key}, "application/merge-patch+json", bytes.NewReader(body))
	})
	return err
}

// call is the group that an answer shows, and its ETag. What got lost is asked for again.
func call(ctx context.Context, ask func() (*http.Response, error)) (g api.GroupState, tag string, err error) {
	wait := 200 * time.Millisecond
	for range 5 {
		var again bool
		if g, tag, wait, again, err = one(ask, wait); !again {
			return g, tag, err
		}
		select {
		case <-ctx.Done():
			return g, "", ctx.Err()
		case <-time.After(wait):
		}
		wait *= 2
	}
	return g, "", err
}

func one(ask func() (*http.Response, error), patience time.Duration) (g api.GroupState, tag string, wait time.Duration, again bool, err error) {
	r, err := ask()
	if err != nil {
		return g, "", patience, true, err
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return g, "", patience, true, err
	}
	if r.StatusCode == http.StatusOK {
		return g, r.Header.Get("ETag"), 0, false, json.Unmarshal(text, &g)
	}
	var p api.Problem
	_ = json.Unmarshal(text, &p) // else there is no more to say than the status
	refused := &Refused{r.StatusCode, r.Status}
	if p.Detail != nil {
		refused.Reason = *p.Detail
	}
	if seconds, err := strconv.Atoi(r.Header.Get("Retry-After")); err == nil { // too many at a time, or not now
		return g, "", time.Duration(seconds) * time.Second, true, refused
	}
	return g, "", 0, false, refused
}

// rate is one that the service may leave out; nil is none.
func rate(bps *int64) unit.Rate {
	if bps == nil {
		return 0
	}
	return unit.Rate(*bps)
}
