package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"headgate/config"
	"headgate/probe"
	"headgate/probe/path"
	"headgate/probe/session"
)

const meshExample = `  kind: Servers
  measure: tokenrate      # or capacity, available, path
  bytes: 10MB             # budget in each direction of a pair
  time: 30s
  servers:
    - {name: fra, address: fra.example.org}
    - {name: ams, address: "[2001:db8::7]:5000"}
    - {name: lab, address: 192.0.2.7}`

func probeMeshCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mesh -f FILE",
		Short: "Measure every path between several servers",
		Long: `Mesh makes the servers of a list measure the paths between them, in both directions.
The first server of each pair measures the pair once. A host takes part in only one
measurement at a time; pairs without a common host are measured in parallel. Failed
pairs are listed at the end with exit code 1; the other pairs are still measured.

Each server runs "headgate probe serve", with the addresses of the other servers in the
list as --peer. The servers and this host authenticate each other with one key, or with
certificates. The list:

` + meshExample + `

With -o json each direction is printed as a line as soon as it is measured. With
--prometheus the result is also written to a file for the node exporter's textfile
collector. The file is replaced atomically.`,
		Example: `  headgate probe mesh -f servers.yaml
  headgate probe mesh -f servers.yaml -o json > mesh.jsonl
  headgate probe mesh -f servers.yaml --prometheus /var/lib/node_exporter/headgate.prom`,
		Args: cobra.NoArgs,
	}
	var auth authFlags
	auth.add(c)
	file := c.Flags().StringP("file", "f", "", "list of servers, or - for standard input")
	prometheus := c.Flags().String("prometheus", "", "also write the result to this file, as Prometheus text")
	output := "table"
	outputs := []string{"table", "json", "prometheus"}
	c.Flags().VarP(enumFlag{&output, outputs}, "output", "o", "print as table, lines of json, or Prometheus text")
	completeFlag(c, "output", oneOf(outputs...))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *file == "" {
			return usageError{errors.New("missing list of servers: write -f FILE"), c.CommandPath()}
		}
		list, err := loadServers(*file, a.in)
		if err != nil {
			return err
		}
		who, err := auth.client()
		if err != nil {
			return err
		}
		return a.mesh(list, who, output, *prometheus)
	}
	return c
}

// loadServers reads a file with exactly one list of servers.
func loadServers(file string, stdin io.Reader) (config.Servers, error) {
	set, err := config.Load([]string{file}, stdin)
	switch {
	case err != nil:
		return config.Servers{}, err
	case len(set.Servers) == 0:
		return config.Servers{}, config.Errors{{File: file, Message: "no list of servers in the file: write a document with kind: Servers"}}
	case len(set.Servers) > 1:
		return config.Servers{}, config.Errors{{File: file, Line: set.Servers[1].Line, Message: "a second list of servers: write each list in its own file"}}
	}
	return set.Servers[0], nil
}

// meshRow is the result of one direction of a pair.
type meshRow struct {
	From string        `json:"from"`
	To   string        `json:"to"`
	RTT  time.Duration `json:"rtt_ns,omitempty"`
	// Answer can be set together with Failed, if part of the measurement succeeded.
	Answer *path.Answer `json:"answer,omitempty"`
	Failed string       `json:"failed,omitempty"`
}

// mesh measures all pairs in rounds. The pairs of a round run in parallel.
func (a *app) mesh(list config.Servers, auth session.Auth, output, prometheus string) error {
	ctx, stop := interrupted()
	defer stop()
	m := &meshRun{list: list, auth: auth, progress: &progress{}}
	if output == "table" {
		m.progress = a.progress("table")
	}
	if output == "json" {
		m.encoder = json.NewEncoder(a.out)
	}
	all := rounds(len(list.Servers))
	for i, pairs := range all {
		var side sync.WaitGroup
		for _, p := range pairs {
			side.Go(func() { m.pair(ctx, fmt.Sprintf("round %d of %d", i+1, len(all)), p) })
		}
		side.Wait()
		if err := ctx.Err(); err != nil {
			m.progress.clear()
			return err
		}
	}
	m.progress.clear()
	var err error
	switch output {
	case "table":
		err = m.table(a.out)
	case "prometheus":
		err = m.prometheus(a.out, time.Now())
	}
	if prometheus != "" {
		err = errors.Join(err, replaceFile(prometheus, func(w io.Writer) error { return m.prometheus(w, time.Now()) }))
	}
	if err == nil && m.failed() > 0 {
		if output != "table" {
			a.note("headgate: %d of %d directions were not measured", m.failed(), len(m.rows))
		}
		err = errReported
	}
	return err
}

// meshRun is the state of a running mesh.
type meshRun struct {
	list config.Servers
	auth session.Auth

	mu       sync.Mutex
	rows     []meshRow
	progress *progress
	encoder  *json.Encoder // receives each row; may be nil
}

func (m *meshRun) failed() (n int) {
	for _, r := range m.rows {
		if r.Failed != "" {
			n++
		}
	}
	return n
}

func (m *meshRun) report(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.say(format, args...)
}

// pair makes the first of two servers measure to the other, and records both directions.
func (m *meshRun) pair(ctx context.Context, round string, p serverPair) {
	from, to := m.list.Servers[p[0]], m.list.Servers[p[1]]
	m.report("%s: %s and %s", round, from.Name, to.Name)
	got, err := m.requestMeasurement(ctx, from, to, func(text string) { m.report("%s: %s and %s: %s", round, from.Name, to.Name, text) })
	rows := []meshRow{{From: from.Name, To: to.Name}, {From: to.Name, To: from.Name}}
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
		if m.encoder != nil {
			m.encoder.Encode(r)
		}
	}
}

func (m *meshRun) requestMeasurement(ctx context.Context, from, to config.Server, say func(string)) (out path.Report, err error) {
	text, err := json.Marshal(request{Measure: m.list.Measure, Capacity: m.list.Capacity, Bytes: m.list.Bytes, Time: m.list.Time})
	if err != nil {
		return out, err
	}
	result, err := session.RequestMeasurement(ctx, session.Options{Host: from.Address.Host, Port: from.Address.Port, Auth: m.auth, OnWait: func(n int) {
		say(fmt.Sprintf("waiting: %d measurements ahead", n))
	}}, to.Address, text, say)
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
