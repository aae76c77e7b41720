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
  bytes: 10MB             # in each direction of a pair, at the most
  time: 30s
  servers:
    - {name: fra, address: fra.example.org}
    - {name: ams, address: "[2001:db8::7]:5000"}
    - {name: lab, address: 192.0.2.7}`

func probeMeshCommand(a *app) *cobra.Command {
	c := &cobra.Command{
		Use:   "mesh -f FILE",
		Short: "Measure every path between some servers",
		Long: `Mesh has the servers of a list measure to each other, both ways. Each pair is measured
once, by its first server; never do two measurements pass through one host at once,
and pairs that have no host in common are measured at the same time. A pair that
fails is told of at the end, and exit code 1 too; the others are measured.

On each of them "headgate probe serve" runs, with the others as its --peer, by the
addresses that the list has. They know each other, and this host, by one key, or by
certificates. The list:

` + meshExample + `

With -o json each direction is a line as soon as it is measured. With --prometheus the
result is a file for the node exporter's textfile collector as well, which is replaced
in one step.`,
		Example: `  headgate probe mesh -f servers.yaml
  headgate probe mesh -f servers.yaml -o json > mesh.jsonl
  headgate probe mesh -f servers.yaml --prometheus /var/lib/node_exporter/headgate.prom`,
		Args: cobra.NoArgs,
	}
	var auth authFlags
	auth.add(c)
	file := c.Flags().StringP("file", "f", "", "list of servers, or - for standard input")
	prometheus := c.Flags().String("prometheus", "", "write the result to this file as well, as Prometheus text")
	output := "table"
	outputs := []string{"table", "json", "prometheus"}
	c.Flags().VarP(oneWord{&output, outputs}, "output", "o", "print as table, lines of json, or Prometheus text")
	completeFlag(c, "output", oneOf(outputs...))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *file == "" {
			return usageError{errors.New("there is no list of servers: write -f and a file"), c.CommandPath()}
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

// loadServers reads the one list of servers of a file.
func loadServers(file string, stdin io.Reader) (config.Servers, error) {
	set, err := config.Load([]string{file}, stdin)
	switch {
	case err != nil:
		return config.Servers{}, err
	case len(set.Servers) == 0:
		return config.Servers{}, config.Mistakes{{File: file, Message: "there is no list of servers in it: write a document that begins with kind: Servers"}}
	case len(set.Servers) > 1:
		return config.Servers{}, config.Mistakes{{File: file, Line: set.Servers[1].Line, Message: "there is a second list of servers: write each in a file of its own"}}
	}
	return set.Servers[0], nil
}

// direction of a mesh: what a line says.
type meshRow struct {
	From string        `json:"from"`
	To   string        `json:"to"`
	RTT  time.Duration `json:"rtt_ns,omitempty"`
	// Answer may be there although Failed says why it is not all.
	Answer *path.Answer `json:"answer,omitempty"`
	Failed string       `json:"failed,omitempty"`
}

// mesh measures all pairs, round by round.
func (a *app) mesh(list config.Servers, auth session.Auth, output, prometheus string) error {
	ctx, stop := interrupted()
	defer stop()
	m := &meshing{list: list, auth: auth, progress: &progress{}}
	if output == "table" {
		m.progress = a.progress("table")
	}
	if output == "json" {
		m.finished = json.NewEncoder(a.out)
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
		err = errSaid
	}
	return err
}

// meshing is a mesh under way.
type meshing struct {
	list config.Servers
	auth session.Auth

	mu       sync.Mutex
	rows     []meshRow
	progress *progress
	finished *json.Encoder // nil is to tell nobody
}

func (m *meshing) failed() (n int) {
	for _, r := range m.rows {
		if r.Failed != "" {
			n++
		}
	}
	return n
}

func (m *meshing) say(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.progress.say(format, args...)
}

// pair has the first of two servers measure to the other, and notes both directions.
func (m *meshing) pair(ctx context.Context, round string, p pairOf) {
	from, to := m.list.Servers[p[0]], m.list.Servers[p[1]]
	m.say("%s: %s and %s", round, from.Name, to.Name)
	got, err := m.ask(ctx, from, to, func(text string) { m.say("%s: %s and %s: %s", round, from.Name, to.Name, text) })
	rows := []meshRow{{From: from.Name, To: to.Name}, {From: to.Name, To: from.Name}}
	for i, d := range probe.Directions {
		r := &rows[i]
		r.RTT, r.Answer = got.RTT, got.Directions[d]
		// What failed ended it: the direction that came last, and those after it.
		if err != nil && (i == 1 || got.Directions[probe.In] == nil) {
			r.Failed = err.Error()
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range rows {
		m.rows = append(m.rows, r)
		if m.finished != nil {
			m.finished.Encode(r)
		}
	}
}

func (m *meshing) ask(ctx context.Context, from, to config.Server, say func(string)) (out path.Report, err error) {
	text, err := json.Marshal(request{Measure: m.list.Measure, Capacity: m.list.Capacity, Bytes: m.list.Bytes, Time: m.list.Time})
	if err != nil {
		return out, err
	}
	result, err := session.Ask(ctx, session.Options{Host: from.Address.Host, Port: from.Address.Port, Auth: m.auth, Waiting: func(n int) {
		say(fmt.Sprintf("waiting: %d measure before us", n))
	}}, to.Address, text, say)
	if err != nil {
		// Told by the server that was asked, or of it.
		err = fmt.Errorf("asked of %s: %s", from.Name, strings.TrimPrefix(err.Error(), "the server refuses: "))
	}
	if result == nil {
		return out, err
	}
	if bad := json.Unmarshal(result, &out); bad != nil {
		return path.Report{}, errors.Join(err, fmt.Errorf("%s answers what cannot be read: %w", from.Name, bad))
	}
	return out, err
}
