package service

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/net/http2"

	"headgate.dev/headgate/bench"
	"headgate.dev/headgate/internal/pki"
)

// Targets.
var (
	inAfter    = bench.Target{Op: "<=", Value: 1, Unit: "s"}
	moreMemory = bench.Target{Op: "<=", Value: 200, Unit: "MiB"}
)

// strangersAtOnce is how many connections without a token are held open, and dialAtOnce how many are opened at the same time.
const strangersAtOnce, dialAtOnce = 10_000, 64

func strangerCases() []bench.Case {
	return []bench.Case{{
		Name: "strangers", Run: strangers, Takes: bench.Takes(40*time.Second, 2*time.Minute), Alongside: smoke("bounds"),
		Claims: []bench.Claim{
			bench.NewClaim("strangers/operator", "until an operator has an answer over a new connection, the longest of 20, while 10,000 connections without a token are held open or opened again: silent, half open in TLS, with slow headers, and with requests of HTTP/2 whose answers nobody takes", inAfter),
			bench.NewClaim("strangers/memory", "more memory of the controller and its store, the highest of each second", moreMemory),
		},
	}}
}

// stranger is a way to hold a connection.
type stranger func(ctx context.Context, conn net.Conn, host string) error

// strangerKinds hold a connection until it ends or ctx does.
var strangerKinds = []stranger{
	silent,
	func(ctx context.Context, conn net.Conn, _ string) error { // the first bytes of a ClientHello
		if _, err := conn.Write([]byte{22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3}); err != nil {
			return err
		}
		return silent(ctx, conn, "")
	},
	func(ctx context.Context, conn net.Conn, host string) error { // a letter of a header each second
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"http/1.1"}})
		for _, letter := range []byte("GET /v1/health HTTP/1.1\r\nHost: a\r\nX-Slow: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa") {
			if _, err := c.Write([]byte{letter}); err != nil {
				return err
			}
			if err := bench.Sleep(ctx, time.Second); err != nil {
				return err
			}
		}
		return nil
	},
	func(ctx context.Context, conn net.Conn, host string) error { // HTTP/2 with a window of 0
		c := tls.Client(conn, &tls.Config{InsecureSkipVerify: true, ServerName: host, NextProtos: []string{"h2"}})
		if _, err := c.Write([]byte(http2.ClientPreface)); err != nil {
			return err
		}
		f := http2.NewFramer(c, c)
		if err := f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}); err != nil {
			return err
		}
		// GET / with the static table of HPACK: :method GET, :scheme https, :path /, :authority a.
		block := []byte{0x82, 0x87, 0x84, 0x41, 0x01, 'a'}
		for n := range uint32(20) {
			if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 2*n + 1, BlockFragment: block, EndHeaders: true, EndStream: true}); err != nil {
				return err
			}
		}
		return silent(ctx, conn, "")
	},
}

// silent waits until the connection ends, without taking what arrives but for a little.
func silent(ctx context.Context, conn net.Conn, _ string) error {
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	for b := make([]byte, 1); ; {
		if _, err := conn.Read(b); err != nil {
			return err
		}
		if err := bench.Sleep(ctx, time.Second); err != nil {
			return err
		}
	}
}

func strangers(ctx context.Context, r *bench.Run) (err error) {
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	c := p.controllers[0]
	before, err := p.spent()
	if err != nil {
		return err
	}
	memoryOf := p.highest(ctx)
	holding, cancel := context.WithCancel(ctx)
	defer cancel()
	var opened, open atomic.Int64
	connect := dial(p.caller)
	slots := make(chan struct{}, dialAtOnce)
	var all sync.WaitGroup
	for n := range strangersAtOnce {
		all.Go(func() {
			for holding.Err() == nil {
				slots <- struct{}{}
				conn, err := connect(holding, "tcp", net.JoinHostPort(c.address, apiPort))
				<-slots
				if err == nil {
					opened.Add(1)
					open.Add(1)
					_ = strangerKinds[n%len(strangerKinds)](holding, conn, c.address)
					open.Add(-1)
					conn.Close()
				}
				_ = bench.Sleep(holding, time.Second)
			}
		})
	}
	defer all.Wait()
	defer cancel()
	for end := time.Now().Add(time.Minute); opened.Load() < strangersAtOnce; {
		if err := bench.Sleep(ctx, 100*time.Millisecond); err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("after a minute %d of %d connections were opened", opened.Load(), strangersAtOnce)
		}
	}
	slowest, failed := time.Duration(0), error(nil)
	for range 20 {
		a := &asking{"https://" + net.JoinHostPort(c.address, apiPort), p.token, &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: pki.Pinned(c.address, p.pin), DialContext: connect, ForceAttemptHTTP2: true}}}
		began := time.Now()
		_, err := a.must(ctx, http.MethodGet, "/v1/overview", nil)
		for try := 0; err != nil && try < 10; try++ { // a user tries again, which counts
			failed = err
			_, err = a.must(ctx, http.MethodGet, "/v1/overview", nil)
		}
		slowest = max(slowest, time.Since(began))
		a.client.CloseIdleConnections()
		if err != nil {
			return fmt.Errorf("an operator: %w", err)
		}
		if err := bench.Sleep(ctx, bench.Pick(r.Quick, 200*time.Millisecond, time.Second)); err != nil {
			return err
		}
	}
	held := open.Load()
	most, err := memoryOf()
	if err != nil {
		return err
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("strangers/operator", slowest.Seconds())
	sheet.Note("strangers/operator", "%d connections were opened in all, and %d were open at the end: the controller closes the others", opened.Load(), held)
	if failed != nil {
		sheet.Note("strangers/operator", "a request had to be repeated: %v", failed)
	}
	sheet.Set("strangers/memory", (most-before.memory)/(1<<20))
	return nil
}
