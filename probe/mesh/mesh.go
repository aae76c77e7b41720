package mesh

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe"
	"headgate.dev/headgate/probe/measure"
	"headgate.dev/headgate/probe/path"
	"headgate.dev/headgate/probe/session"
)

// Options of a mesh. The functions are called by one goroutine at a time.
type Options struct {
	// Auth has the credentials for all servers.
	Auth peerauth.Credentials
	// OnRow receives each row as soon as it is measured. It may be nil.
	OnRow func(Row)
	// OnProgress receives short texts about the progress. It may be nil.
	OnProgress func(text string)
}

// Run measures all pairs of servers in rounds. The pairs of a round run in parallel. A failed pair is no
// error. After an error the rows are those until then.
func Run(ctx context.Context, list config.Servers, o Options) (Rows, error) {
	m := &run{list: list, options: o}
	all := rounds(len(list.Servers))
	for i, pairs := range all {
		var side sync.WaitGroup
		for _, p := range pairs {
			side.Go(func() { m.pair(ctx, fmt.Sprintf("round %d of %d", i+1, len(all)), p) })
		}
		side.Wait()
		if err := ctx.Err(); err != nil {
			return m.rows, err
		}
	}
	return m.rows, nil
}

// run is the state of a running mesh.
type run struct {
	list    config.Servers
	options Options

	mu   sync.Mutex
	rows Rows
}

func (m *run) progress(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.options.OnProgress != nil {
		m.options.OnProgress(fmt.Sprintf(format, args...))
	}
}

// pair makes the first of two servers measure to the other, and records both directions.
func (m *run) pair(ctx context.Context, round string, p serverPair) {
	from, to := m.list.Servers[p[0]], m.list.Servers[p[1]]
	m.progress("%s: %s and %s", round, from.Name, to.Name)
	got, err := m.requestMeasurement(ctx, from, to, func(text string) { m.progress("%s: %s and %s: %s", round, from.Name, to.Name, text) })
	rows := []Row{{From: from.Name, To: to.Name}, {From: to.Name, To: from.Name}}
	for i, d := range probe.Directions {
		r := &rows[i]
		r.RTT, r.Answer = got.RTT, got.Directions[d]
		// An error ends the measurement: it applies to the direction under way and those after it.
		if err != nil && (i == 1 || got.Directions[probe.In] == nil) {
			r.Failed = err.Error()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rows {
		m.rows = append(m.rows, r)
		if m.options.OnRow != nil {
			m.options.OnRow(r)
		}
	}
}

func (m *run) requestMeasurement(ctx context.Context, from, to config.Server, onProgress func(string)) (out path.Report, err error) {
	text, err := json.Marshal(measure.Request{Measure: m.list.Measure, Capacity: m.list.Capacity, Bytes: m.list.Bytes, Time: m.list.Time})
	if err != nil {
		return out, err
	}
	result, err := session.RequestMeasurement(ctx, session.Options{Host: from.Address.Host, Port: from.Address.Port, Auth: m.options.Auth, OnWait: func(n int) {
		onProgress(fmt.Sprintf("waiting: %d measurements ahead", n))
	}}, to.Address, text, onProgress)
	if err != nil {
		// The error is from the first server, or about the connection to it.
		err = fmt.Errorf("reported by %s: %s", from.Name, strings.TrimPrefix(err.Error(), "server refused the request: "))
	}
	if result == nil {
		return out, err
	}
	if bad := json.Unmarshal(result, &out); bad != nil {
		return path.Report{}, errors.Join(err, fmt.Errorf("cannot parse the result of %s: %w", from.Name, bad))
	}
	return out, err
}
