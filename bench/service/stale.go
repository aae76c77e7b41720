package service

import (
	"bufio"
	"cmp"
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
	"sync/atomic"
	"syscall"
	"time"

	"github.com/chromedp/chromedp"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/browser"
	"headgate.dev/headgate/lab"
)

// stale is the target for what may be out of date.
var stale = bench.Target{Op: "<=", Value: 5, Unit: "s"}

// Chosen by this project.
const (
	// silence is after how long without an event a client of /v1/live knows that it is cut off (openapi.yaml, watchLive).
	silence = 3500 * time.Millisecond
	// stalePatience is the time limit for a surface to say that it is out of date, and to be current again.
	stalePatience = 20 * time.Second
)

// cut is a way in which a viewer of a host's rates is cut off from the host. A viewer uses the first controller, the host's agent
// another one.
type cut struct {
	name, what string
	inject     func(ctx context.Context, v *viewing) (mend func() error, err error)
}

// cuts are the 12 ways. The last one ends the session, and is not mended.
var cuts = []cut{
	{"dropped", "packets between viewer and controller vanish", func(ctx context.Context, v *viewing) (func() error, error) {
		return v.lose(ctx, "blackhole", between(v.caller, []*control{v.at})...)
	}},
	{"responses-dropped", "packets from the controller to the viewer vanish", func(ctx context.Context, v *viewing) (func() error, error) {
		return v.lose(ctx, "blackhole", [2]string{v.at.address, v.caller})
	}},
	{"unreachable", "the controller is unreachable, with an ICMP error", func(ctx context.Context, v *viewing) (func() error, error) {
		return v.lose(ctx, "unreachable", between(v.caller, []*control{v.at})...)
	}},
	{"link-down", "the viewer's link is down", func(ctx context.Context, v *viewing) (func() error, error) {
		link := func(state string) error { return v.router(ctx, "link", "set", "dev", "caller", state) }
		return func() error { return link("up") }, link("down")
	}},
	{"controller-stopped", "the controller's processes are stopped", func(_ context.Context, v *viewing) (func() error, error) {
		return suspend(v.at.cmd.Process.Pid)
	}},
	{"controller-killed", "the controller is killed", func(ctx context.Context, v *viewing) (func() error, error) {
		return func() error {
			if err := v.at.start(ctx); err != nil {
				return err
			}
			return v.ready(ctx)
		}, v.at.stop(syscall.SIGKILL)
	}},
	{"minority", "the controller is cut off from the two others", func(ctx context.Context, v *viewing) (func() error, error) {
		return v.lose(ctx, "blackhole", between(v.at.address, v.others(v.at))...)
	}},
	{"agent-dropped", "packets between agent and controllers vanish", func(ctx context.Context, v *viewing) (func() error, error) {
		return v.lose(ctx, "blackhole", between(v.host, v.controllers)...)
	}},
	{"reports-dropped", "packets from the agent to the controllers vanish", func(ctx context.Context, v *viewing) (func() error, error) {
		ways := between(v.host, v.controllers)
		return v.lose(ctx, "blackhole", slices.DeleteFunc(ways, func(way [2]string) bool { return way[1] == v.host })...)
	}},
	{"agent-stopped", "the agent's process is stopped", func(_ context.Context, v *viewing) (func() error, error) {
		return suspend(v.agent.agent.Process.Pid)
	}},
	{"agent-killed", "the agent is killed", func(ctx context.Context, v *viewing) (func() error, error) {
		v.agent.kill()
		return func() error { return v.agent.start(ctx) }, nil
	}},
	{"token-revoked", "the viewer's token is revoked", func(ctx context.Context, v *viewing) (func() error, error) {
		a := v.ask(v.others(v.at)[0])
		defer a.client.CloseIdleConnections()
		_, err := a.must(ctx, http.MethodDelete, "/v1/tokens/"+v.id, nil)
		return func() error { return nil }, err
	}},
}

// suspend stops a process and its children.
func suspend(pid int) (resume func() error, err error) {
	all := bench.Family(pid)
	send := func(signal syscall.Signal) (err error) {
		for _, pid := range all {
			err = errors.Join(err, syscall.Kill(pid, signal))
		}
		return err
	}
	return func() error { return send(syscall.SIGCONT) }, send(syscall.SIGSTOP)
}

func staleCases() []bench.Case {
	c := bench.Case{Name: "true", Run: showTruth, Takes: bench.Takes(3*time.Minute, 4*time.Minute)}
	for _, cut := range cuts {
		for _, surface := range surfaces {
			c.Claims = append(c.Claims, bench.NewClaim("true/"+cut.name+"/"+surface.name, cut.what+": until "+surface.what, stale))
		}
	}
	return []bench.Case{c}
}

// viewing is a viewer of the rates of the host "host".
type viewing struct {
	*place
	at           *control
	agent        *enforcing
	caller, host string // addresses
	login        *asking
	id           string // of the viewer's token
	folder       string // of the viewer's configuration
	page         *browser.Browser
}

// showTruth cuts a viewer off in all ways.
func showTruth(ctx context.Context, r *bench.Run) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	p, err := build(ctx, 3)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	v, err := p.view(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, v.agent.close()) }()
	defer v.page.Close()
	sheet := r.Sheet(bench.Ours)
	for _, cut := range cuts {
		if err := v.suffer(ctx, sheet, cut); err != nil {
			return fmt.Errorf("%s: %w", cut.name, err)
		}
		r.Say("%s: done", cut.name)
	}
	return nil
}

// view starts the agent and the viewer.
func (p *place) view(ctx context.Context) (v *viewing, err error) {
	v = &viewing{place: p, at: p.controllers[0], folder: filepath.Join(p.dir, "viewer")}
	for name, to := range map[string]*string{"caller": &v.caller, "host": &v.host} {
		a, err := p.lab.Node(name).Addr(false)
		if err != nil {
			return nil, err
		}
		*to = a.String()
	}
	if err := p.isolate(ctx, "add", "unreachable", []*control{v.at}); err != nil {
		return nil, err
	}
	if v.agent, err = p.enforce(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, v.agent.close())
		}
	}()
	operator := p.ask(v.at)
	made, err := operator.newToken(ctx, map[string]any{"name": "viewer", "role": "operator"})
	if err != nil {
		return nil, err
	}
	v.id, v.login = made.ID, &asking{operator.url, made.Token, &http.Client{Transport: p.pinned(v.at.address)}}
	if err := os.MkdirAll(v.folder, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(v.folder, "token")
	if err := os.WriteFile(file, []byte(made.Token), 0o600); err != nil {
		return nil, err
	}
	signIn, err := v.command(ctx, "login", v.login.url, "--pin", p.pin, "--token-file", file)
	if err != nil {
		return nil, err
	}
	if out, err := signIn.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("headgate login: %w: %s", err, out)
	}
	address, err := browser.Forward(ctx, func(ctx context.Context) (net.Conn, error) {
		return dial(p.caller)(ctx, "tcp", net.JoinHostPort(v.at.address, apiPort))
	})
	if err != nil {
		return nil, err
	}
	origin := "https://" + address
	if v.page, err = browser.Start(ctx, origin); err != nil {
		return nil, err
	}
	signing, stop := context.WithTimeout(v.page.Context(), stalePatience)
	defer stop()
	return v, chromedp.Do(signing, chromedp.Navigate(origin), chromedp.WaitVisible("#token"),
		chromedp.SendKeys("#token", made.Token+"\r"), chromedp.WaitVisible("nav[aria-label=Pages]"),
		chromedp.Navigate(origin+"/hosts/host/"+url.PathEscape(v.agent.dev)))
}

// command returns a command of this program for the viewer.
func (v *viewing) command(ctx context.Context, args ...string) (*lab.Cmd, error) {
	c, err := command(ctx, v.place.caller, args...)
	if err == nil {
		c.Env = append(os.Environ(), "XDG_CONFIG_HOME="+v.folder)
	}
	return c, err
}

// lose makes the router lose packets on some ways.
func (v *viewing) lose(ctx context.Context, how string, ways ...[2]string) (mend func() error, err error) {
	return func() error { return v.rules(ctx, "del", how, ways) }, v.rules(ctx, "add", how, ways)
}

// surfaces are where a viewer sees rates. Each returns "" when it shows current ones, or what it says instead.
var surfaces = []struct {
	name, what string
	open       func(ctx context.Context, v *viewing) (look func() (string, error), err error)
}{
	{"page", "the dashboard says so", func(_ context.Context, v *viewing) (func() (string, error), error) {
		return func() (string, error) { return browser.Evaluate[string](v.page, pageSays) }, nil
	}},
	{"cli", "\"top --server\" says so", openTop},
	{"api", "a client of /v1/live knows it", openLive},
}

// pageSays returns what the page says instead of current rates.
const pageSays = `(() => {
	if (document.querySelector("#token")) return "sign in";
	const live = document.querySelector(".live")?.innerText ?? "";
	if (live !== "Live") return live || "loading";
	if (!document.querySelector('tr[data-key^="web "]')) return "no groups";
	return /Agent disconnected/.exec(document.body.innerText)?.[0] ?? "";
})()`

// openTop starts "headgate top", which prints a line for each interval, and exits when it cannot.
func openTop(ctx context.Context, v *viewing) (func() (string, error), error) {
	c, err := v.command(ctx, "top", "--server", "default", "--host", "host", "-o", "json")
	if err != nil {
		return nil, err
	}
	said := &bench.Tail{Keep: keptOutput}
	lines, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.Stderr = said
	if err := c.Start(); err != nil {
		return nil, err
	}
	var printed atomic.Bool
	over := make(chan error, 1)
	go func() {
		for s := bufio.NewScanner(lines); s.Scan(); {
			printed.Store(true)
		}
		over <- c.Wait()
	}()
	ended := ""
	return func() (string, error) {
		select {
		case err := <-over:
			ended = strings.TrimSpace(said.String())
			if err == nil || ended == "" {
				return "", fmt.Errorf("top exits with %v, and says %q", err, ended)
			}
		default:
		}
		if ended == "" && !printed.Load() {
			return "starting", nil
		}
		return ended, nil
	}, nil
}

// openLive opens a live stream of the host.
func openLive(ctx context.Context, v *viewing) (func() (string, error), error) {
	events, err := v.login.stream(ctx, "/v1/live?see=/v1/hosts/host")
	if err != nil {
		return nil, err
	}
	var heard atomic.Int64 // when, in ns
	var says atomic.Value
	says.Store("no response yet")
	go func() {
		defer events.Close()
		s := bufio.NewScanner(events)
		s.Buffer(nil, 1<<20)
		for s.Scan() {
			heard.Store(time.Now().UnixNano())
			text, is := strings.CutPrefix(s.Text(), "data: ")
			var e struct {
				Path   string
				Status int
				Data   struct{ Connected bool }
			}
			switch {
			case !is || json.Unmarshal([]byte(text), &e) != nil || e.Path == "":
			case e.Status != http.StatusOK:
				says.Store(fmt.Sprint("status ", e.Status))
			case !e.Data.Connected:
				says.Store("disconnected")
			default:
				says.Store("")
			}
		}
		says.Store("the stream ended: " + fmt.Sprint(cmp.Or(s.Err(), errors.New("end of file"))))
	}()
	return func() (string, error) {
		if is := says.Load().(string); is != "" {
			return is, nil
		}
		if time.Since(time.Unix(0, heard.Load())) > silence {
			return "silence", nil
		}
		return "", nil
	}, nil
}

// suffer measures when each surface says that what it shows may be out of date.
func (v *viewing) suffer(ctx context.Context, sheet *bench.Sheet, cut cut) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	looks, err := v.current(ctx)
	if err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // all have shown current rates for a while
	began := time.Now()
	mend, err := cut.inject(ctx, v)
	if err != nil {
		return err
	}
	missing := len(looks)
	for told := make([]bool, len(looks)); missing > 0 && time.Since(began) < stalePatience && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		for i, look := range looks {
			if told[i] {
				continue
			}
			says, err := look()
			if err != nil {
				return errors.Join(err, mend())
			}
			if says != "" {
				told[i] = true
				missing--
				id := "true/" + cut.name + "/" + surfaces[i].name
				sheet.Set(id, time.Since(began).Seconds())
				sheet.Note(id, "%s", says)
			}
		}
	}
	return mend()
}

// current opens the surfaces, and waits until all show current rates.
func (v *viewing) current(ctx context.Context) (looks []func() (string, error), err error) {
	for _, s := range surfaces {
		var look func() (string, error)
		says := "" // of the last try
		for until := time.Now().Add(stalePatience); ; time.Sleep(200 * time.Millisecond) {
			if look == nil {
				if look, err = s.open(ctx, v); err != nil {
					says, look = err.Error(), nil
				}
			}
			if look != nil {
				if says, err = look(); err != nil {
					return nil, err
				}
				if says == "" {
					break
				}
				if s.name != "page" && says != "starting" && says != "no response yet" { // it does not come back by itself
					look = nil
				}
			}
			if time.Now().After(until) || ctx.Err() != nil {
				return nil, fmt.Errorf("%s does not become current: %s", s.name, says)
			}
		}
		looks = append(looks, look)
	}
	return looks, nil
}
