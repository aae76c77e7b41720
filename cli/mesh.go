package cli

import (
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/internal/peerauth"
	"headgate.dev/headgate/probe/mesh"
	"headgate.dev/headgate/probe/report"
	"headgate.dev/headgate/view"
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
	if err != nil {
		return config.Servers{}, err
	}
	return only("Servers", []string{file}, set.Servers, func(l config.Servers) (string, int) { return l.File, l.Line })
}

// mesh measures all pairs, and prints and writes the results.
func (a *app) mesh(list config.Servers, auth peerauth.Credentials, output, prometheus string) error {
	ctx, stop := interrupted()
	defer stop()
	progress := &view.StatusLine{}
	o := mesh.Options{Auth: auth}
	switch output {
	case "table":
		progress = a.progress("table")
		o.OnProgress = progress.Show
	case "json":
		encoder := json.NewEncoder(a.out)
		o.OnRow = func(r mesh.Row) { encoder.Encode(r) }
	}
	rows, err := mesh.Run(ctx, list, o)
	progress.Clear()
	if err != nil {
		return err
	}
	switch output {
	case "table":
		err = report.WriteMesh(a.out, list.Servers, rows)
	case "prometheus":
		err = rows.WritePrometheus(a.out, time.Now())
	}
	if prometheus != "" {
		err = errors.Join(err, rows.WritePrometheusFile(prometheus, time.Now()))
	}
	if failed := rows.Failed(); err == nil && failed > 0 {
		if output != "table" {
			a.note("headgate: %d of %d directions were not measured", failed, len(rows))
		}
		err = errReported
	}
	return err
}
