package relay

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/unit"
)

// application is a program that users have: a server and a client that knows nothing of the relay.
type application struct {
	name string
	// serve starts the server in a directory, where data has the bytes to send. It writes what it logs to the file log.
	serve func(ctx context.Context, a *applications) error
	// transfer moves the data, in either direction.
	transfer func(ctx context.Context, a *applications) error
}

// applications are the network, files and addresses of the applications in one run.
type applications struct {
	dir      string
	to       netip.Addr
	size     int
	stop     []func()
	server   *lab.Node
	client   *lab.Node
	received string // a directory for what is received
}

const appPort = "5001"

// run runs a client's command.
func (a *applications) run(ctx context.Context, name string, args ...string) error {
	c := a.client.Command(ctx, name, args...)
	c.Env = append(os.Environ(), "HOME="+a.dir, "GIT_TERMINAL_PROMPT=0")
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// start starts a server, whose output goes to the log.
func (a *applications) start(ctx context.Context, name string, args ...string) error {
	log, err := os.Create(filepath.Join(a.dir, "log"))
	if err != nil {
		return err
	}
	c := a.server.Command(ctx, name, args...)
	c.Stdout, c.Stderr = log, log
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		log.Close()
		return fmt.Errorf("%s: %w", name, err)
	}
	a.stop = append(a.stop, func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		_ = c.Wait()
		log.Close()
	})
	return bench.Sleep(ctx, time.Second)
}

func (a *applications) url(scheme, path string) string {
	return fmt.Sprintf("%s://%s:%s/%s", scheme, a.to, appPort, path)
}

// theApplications are those of the table.
var theApplications = []application{
	{
		name: "curl",
		serve: func(ctx context.Context, a *applications) error {
			return a.start(ctx, "python3", "-u", "-m", "http.server", appPort, "--directory", a.dir)
		},
		transfer: func(ctx context.Context, a *applications) error {
			return a.run(ctx, "curl", "-sSf", "-o", filepath.Join(a.received, "data"), a.url("http", "data"))
		},
	},
	{name: "http2", serve: serveHTTP2, transfer: func(ctx context.Context, a *applications) error {
		return a.run(ctx, "curl", "-sSf", "--http2-prior-knowledge", "-o", filepath.Join(a.received, "data"), a.url("http", "data"))
	}},
	{name: "websocket", serve: serveWebSocket, transfer: echoWebSocket},
	{
		name: "git",
		serve: func(ctx context.Context, a *applications) error {
			repository := filepath.Join(a.dir, "repository")
			for _, args := range [][]string{
				{"init", "-q", repository},
				{"-C", repository, "-c", "core.safecrlf=false", "--work-tree", a.dir, "add", filepath.Join(a.dir, "data")},
				{"-C", repository, "-c", "user.name=bench", "-c", "user.email=bench@localhost", "commit", "-q", "-m", "data"},
			} {
				if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
					return fmt.Errorf("git %s: %w: %s", args[0], err, out)
				}
			}
			return a.start(ctx, "git", "daemon", "--verbose", "--export-all", "--reuseaddr", "--base-path="+a.dir, "--port="+appPort)
		},
		transfer: func(ctx context.Context, a *applications) error {
			return a.run(ctx, "git", "clone", "-q", a.url("git", "repository"), filepath.Join(a.received, "clone"))
		},
	},
	{
		name: "iperf3",
		serve: func(ctx context.Context, a *applications) error {
			return a.start(ctx, "iperf3", "-s", "-p", appPort, "--forceflush")
		},
		transfer: func(ctx context.Context, a *applications) error {
			return a.run(ctx, "iperf3", "-c", a.to.String(), "-p", appPort, "-C", "cubic", "-n", fmt.Sprint(a.size))
		},
	},
	{name: "rsync", serve: serveSSH, transfer: func(ctx context.Context, a *applications) error {
		ssh := "ssh -p " + appPort + " -i " + filepath.Join(a.dir, "key") + " -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR"
		return a.run(ctx, "rsync", "-e", ssh, filepath.Join(a.dir, "data"), fmt.Sprintf("root@%s:%s/", a.to, a.received))
	}},
}

// serveSSH starts an SSH server with keys of its own.
func serveSSH(ctx context.Context, a *applications) error {
	key, host := filepath.Join(a.dir, "key"), filepath.Join(a.dir, "hostkey")
	for _, file := range []string{key, host} {
		if out, err := exec.CommandContext(ctx, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", file).CombinedOutput(); err != nil {
			return fmt.Errorf("ssh-keygen: %w: %s", err, out)
		}
	}
	config := filepath.Join(a.dir, "sshd_config")
	text := fmt.Sprintf("Port %s\nHostKey %s\nAuthorizedKeysFile %s.pub\nPermitRootLogin yes\nStrictModes no\nUsePAM no\nPidFile none\n", appPort, host, key)
	if err := errors.Join(os.WriteFile(config, []byte(text), 0o600), os.MkdirAll("/run/sshd", 0o755)); err != nil {
		return err
	}
	return a.start(ctx, "/usr/sbin/sshd", "-D", "-e", "-f", config)
}

// appCases are unmodified applications, direct and through the transparent way in.
func appCases() (out []bench.Case) {
	direct := bench.Target{Op: ">=", Value: 100, Unit: "% of direct's"}
	none := bench.Target{Op: "<=", Value: 0, Unit: "logs"}
	for _, app := range theApplications {
		id := "apps/" + app.name
		size := func(quick bool) int { return bench.Pick(quick, 500_000, 4_000_000) }
		out = append(out, bench.Case{
			Name: id,
			Claims: []bench.Claim{
				bench.NewClaim(id, "rate of the unmodified application", direct),
				bench.NewClaim(id+"/address", "server's logs without the client's address", none),
			},
			Takes:     func(quick bool) time.Duration { return bench.Pick(quick, 20*time.Second, 70*time.Second) },
			Alongside: func(quick bool) string { return bench.Pick(quick, "apps", "") },
			Run: func(ctx context.Context, r *bench.Run) error {
				without, _, err := appTime(ctx, app, directCUBIC, size(r.Quick))
				if err != nil {
					return fmt.Errorf("direct: %w", err)
				}
				with, logged, err := appTime(ctx, app, ours, size(r.Quick))
				if err != nil {
					return err
				}
				sheet := r.Sheet(bench.Ours)
				sheet.Set(id, 100*without.Seconds()/with.Seconds())
				sheet.Set(id+"/address", bench.Pick(logged, 0.0, 1.0))
				sheet.Note(id, "%s s, direct %s s, for %s MB", bench.Number(with.Seconds()), bench.Number(without.Seconds()), bench.Number(float64(size(r.Quick))/1e6))
				return nil
			},
		})
	}
	return out
}

// appTime returns how long an application takes, and whether the server's log has the client's address.
func appTime(ctx context.Context, app application, m method, size int) (took time.Duration, logged bool, err error) {
	all := paths(path{100 * unit.Mbit, 100 * ms, 0.01})
	l, _, down, err := m.up(ctx, topology(all, m.tuned), all)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, down()) }()
	a := &applications{size: size, server: l.Node(server), client: l.Node(client)}
	defer func() {
		for _, stop := range a.stop {
			stop()
		}
	}()
	if a.dir, err = os.MkdirTemp("", "headgate-bench-"); err != nil {
		return 0, false, err
	}
	defer os.RemoveAll(a.dir)
	a.received = filepath.Join(a.dir, "received")
	if a.to, err = a.server.Addr(false); err == nil {
		err = errors.Join(os.Mkdir(a.received, 0o700), os.WriteFile(filepath.Join(a.dir, "data"), randomBytes(size), 0o600))
	}
	if err == nil {
		err = app.serve(ctx, a)
	}
	if err != nil {
		return 0, false, err
	}
	began := time.Now()
	if err := app.transfer(ctx, a); err != nil {
		return 0, false, err
	}
	took = time.Since(began)
	from, err := a.client.Addr(false)
	if err != nil {
		return 0, false, err
	}
	log, err := os.ReadFile(filepath.Join(a.dir, "log"))
	return took, strings.Contains(string(log), from.String()), err
}
