package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate.dev/headgate/demo/sites"
	"headgate.dev/headgate/internal/sleep"
	"headgate.dev/headgate/lab"
	"headgate.dev/headgate/lab/traffic"
	"headgate.dev/headgate/unit"
)

// uploads is an HTTP server that counts what is uploaded to it, and keeps from which addresses.
type uploads struct {
	server *http.Server
	got    atomic.Int64
	mu     sync.Mutex
	from   map[string]bool
}

// serveUploads starts the server in a node.
func serveUploads(n *lab.Node, at string) (*uploads, error) {
	u := &uploads{from: map[string]bool{}}
	var l net.Listener
	err := n.Do(func() (err error) { l, err = net.Listen("tcp", at); return err })
	if err != nil {
		return nil, err
	}
	u.server = &http.Server{ReadHeaderTimeout: timeout, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			u.mu.Lock()
			u.from[host] = true
			u.mu.Unlock()
		}
		_, _ = io.Copy(u, r.Body)
	})}
	go func() { _ = u.server.Serve(l) }()
	return u, nil
}

// Write counts what is uploaded.
func (u *uploads) Write(b []byte) (int, error) {
	u.got.Add(int64(len(b)))
	return len(b), nil
}

// others returns how many addresses other than one have uploaded.
func (u *uploads) others(than string) (n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for from := range u.from {
		if from != than {
			n++
		}
	}
	return n
}

func (u *uploads) close() {
	if u != nil {
		_ = u.server.Close()
	}
}

// tcpPart is the part of layer 2 that segments of 1,448 bytes have.
const tcpPart = 1448. / 1514

// carry uploads over one path and then, carried, over both.
func (p *networkPlay) carry(ctx context.Context) (err error) {
	at := net.JoinHostPort(p.addr(sites.Store), fmt.Sprint(sites.FilesPort))
	if p.uploads, err = serveUploads(p.lab.Node(sites.Store), at); err != nil {
		return err
	}
	const file = "upload.bin" // sparse
	if err := p.writeFile(file, ""); err != nil {
		return err
	}
	if err := os.Truncate(filepath.Join(p.dir, file), 1<<30); err != nil {
		return err
	}
	direct, err := p.upload(ctx, file, at, "as it is")
	if err != nil {
		return err
	}
	half := p.granted / 2 / unit.Mbit * unit.Mbit
	p.stage.say("", "  The program releases half of its reservation, and the upload gets one:", "")
	if _, err := p.headgate(ctx, sites.Controller, "reserve", "change", appName, "--rate", half.String(), "--server", "default"); err != nil {
		return err
	}
	p.granted = half
	rate := p.network.Upload()
	if err := p.show(ctx, "reserve", "create", "upload", "--from", p.addr(sites.Files), "--to", p.addr(sites.Store), "--protocol", "tcp", "--port", fmt.Sprint(sites.FilesPort),
		"--rate", rate.String(), "--carry", "relay", "--paths", "2", "--class", "2", "--for", "1h", "--server", "default"); err != nil {
		return err
	}
	if err := p.inForceNow(ctx); err != nil {
		return err
	}
	carried, err := p.upload(ctx, file, at, "carried")
	if err != nil {
		return err
	}
	p.stage.say("", fmt.Sprintf("  Without: %.1f Mbit/s. Carried: %.1f Mbit/s.", direct, carried), "")
	p.promise("carried", "the upload on two paths, reserved", "Mbit/s", sites.Least, 0.95*mbits(float64(rate)), carried)
	p.promise("addresses", "other addresses than the client's", "", sites.Most, 0, float64(p.uploads.others(p.addr(sites.Files))))
	_, err = p.headgate(ctx, sites.Controller, "reserve", "cancel", "upload", "--server", "default")
	return err
}

// upload runs curl for a time beside the backup, and returns the rate in Mbit/s of layer 2 that the server got from settle on.
func (p *networkPlay) upload(ctx context.Context, file, to, how string) (rate float64, err error) {
	const length, settle = 9 * time.Second, 3 * time.Second
	args := []string{"-sS", "--max-time", fmt.Sprint(length.Seconds()), "--upload-file", file, "http://" + to + "/"}
	p.stage.say("", fmt.Sprintf("  %s$ curl %s    # %s", sites.Files, shellWords(args), how), "")
	_, err = p.send(ctx, []traffic.Flow{p.network.Backup()}, length, func(ctx context.Context) error {
		c := p.lab.Node(sites.Files).Command(ctx, "curl", args...)
		c.Dir = p.dir
		var said strings.Builder
		c.Stderr = &said
		if err := c.Start(); err != nil {
			return fmt.Errorf("cannot run curl: %w", err)
		}
		if !sleep.Until(ctx, time.Now().Add(settle)) {
			return errors.Join(ctx.Err(), c.Wait())
		}
		began, before := time.Now(), p.uploads.got.Load()
		err := c.Wait()
		rate = mbits(float64(p.uploads.got.Load()-before) * 8 / tcpPart / time.Since(began).Seconds())
		const timedOut = 28 // curl(1), exit codes
		if c.ProcessState != nil && c.ProcessState.ExitCode() == timedOut {
			return ctx.Err()
		}
		return fmt.Errorf("curl ended early: %w: %s", err, said.String())
	})
	return rate, err
}
