package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"headgate.dev/headgate/internal/golden"
)

// metric is the description of a metric.
type metric struct{ name, kind, help, labels string }

var described = regexp.MustCompile(`fqName: "(\w+)", help: "([^"]*)".*, constLabels: \{\}, variableLabels: \{([^}]*)\}`)

// metricsOf returns the descriptions of a collector's metrics.
func metricsOf(t *testing.T, c prometheus.Collector) (out []metric) {
	t.Helper()
	all := make(chan *prometheus.Desc, 100)
	c.Describe(all)
	close(all)
	for d := range all {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("cannot parse the description %v", d)
		}
		kind := "gauge"
		switch _, isHistogram := c.(Requests); {
		case isHistogram:
			kind = "histogram"
		case strings.HasSuffix(m[1], "_total"):
			kind = "counter"
		}
		out = append(out, metric{m[1], kind, m[2], strings.ReplaceAll(m[3], ",", ", ")})
	}
	return out
}

// allMetrics returns the metrics, by the command that serves them.
func allMetrics(t *testing.T) (served []string, metrics map[string][]metric) {
	const agent, sets, controller = "headgate agent --metrics 127.0.0.1:9422", "headgate collective run --metrics 127.0.0.1:9420", "headgate controller --metrics 127.0.0.1:9421"
	const relay = "headgate relay run --metrics 127.0.0.1:9423"
	return []string{agent, sets, controller, relay}, map[string][]metric{
		agent: metricsOf(t, NewGroups(nil, nil)), sets: metricsOf(t, NewCollective(nil)), relay: metricsOf(t, NewRelay(nil)),
		controller: slices.Concat(metricsOf(t, Controller(nil)[0]), metricsOf(t, NewRequests()), metricsOf(t, NewProbes(nil)), metricsOf(t, NewNetwork(nil)), metricsOf(t, NewReservations(nil))),
	}
}

const reference = "../docs/metrics.md"

// docs/metrics.md lists every metric ("go test ./metrics -update" writes the list).
func TestReference(t *testing.T) {
	was, err := os.ReadFile(reference)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- What is below is made by \"go test ./metrics -update\". -->\n"
	text, _, found := strings.Cut(string(was), mark)
	if !found {
		t.Fatalf("%s has no line %q", reference, mark)
	}
	b := strings.Builder{}
	b.WriteString(text + mark)
	served, metrics := allMetrics(t)
	for _, by := range served {
		fmt.Fprintf(&b, "\n## `%s`\n\n| metric | type | labels | |\n|---|---|---|---|\n", by)
		for _, m := range metrics[by] {
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind, m.labels, m.help)
		}
	}
	switch {
	case golden.Update():
		if err := os.WriteFile(reference, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	case b.String() != string(was):
		t.Errorf("%s is out of date: run go test ./metrics -update", reference)
	}
}

var (
	ours  = regexp.MustCompile(`\bheadgate_\w+`)
	label = regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)"`)
)

// The dashboard and the alerts query only metrics and labels that exist.
func TestDashboardAndAlerts(t *testing.T) {
	known, labels := []string{}, []string{"instance", "job", "le"}
	_, metrics := allMetrics(t)
	for _, list := range metrics {
		for _, m := range list {
			known = append(known, m.name)
			if m.kind == "histogram" {
				known = append(known, m.name+"_bucket", m.name+"_count", m.name+"_sum")
			}
			labels = append(labels, strings.Split(m.labels, ", ")...)
		}
	}
	for _, file := range []string{"../packaging/grafana/headgate.json", "../packaging/prometheus/headgate.rules.yaml"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		asked := ours.FindAllString(string(text), -1)
		for _, name := range asked {
			if !slices.Contains(known, name) {
				t.Errorf("%s queries the metric %s, which does not exist", file, name)
			}
		}
		if len(asked) < 10 {
			t.Errorf("%s queries %d metrics, want at least 10", file, len(asked))
		}
		for _, m := range label.FindAllStringSubmatch(strings.ReplaceAll(string(text), `\"`, `"`), -1) {
			if !slices.Contains(labels, m[1]) {
				t.Errorf("%s queries the label %s, which no metric has", file, m[1])
			}
		}
	}
	var dashboard struct {
		Panels []struct {
			ID    int
			Title string
		}
	}
	text, err := os.ReadFile("../packaging/grafana/headgate.json")
	if err == nil {
		err = json.Unmarshal(text, &dashboard)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range dashboard.Panels {
		if p.ID != i+1 || p.Title == "" {
			t.Errorf("panel %d has the id %d and the title %q", i, p.ID, p.Title)
		}
	}
}

// Each alert fires when it should, and only then.
func TestAlerts(t *testing.T) {
	if testing.Short() {
		t.Skip("downloads promtool: not with -short")
	}
	if os.Getuid() != 0 {
		if _, err := exec.LookPath("promtool"); err != nil {
			t.Skip("promtool is not installed, and only root can download it")
		}
	}
	for _, of := range []string{"check rules headgate.rules.yaml", "test rules headgate.rules.test.yaml"} {
		c := exec.Command("../../scripts/promtool", strings.Fields(of)...)
		c.Dir = "../packaging/prometheus"
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", of, err, out)
		}
	}
	rules, err := os.ReadFile("../packaging/prometheus/headgate.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("../packaging/prometheus/headgate.rules.test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !strings.Contains(string(tests), m[1]) {
			t.Errorf("no rule test has the alert %s", m[1])
		}
	}
}
