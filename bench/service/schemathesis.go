package service

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/api"
	"headgate.dev/headgate/bench"
)

// checks are those of the target. A schema cannot express all reasons for which a request may be
// refused, such as guarantees that do not fit.
const checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance"

// schemathesis generates requests from the specification, and checks the responses against it. The
// objects of the specification's examples exist, and a host with an agent.
func schemathesis(ctx context.Context, r *bench.Run) (err error) {
	tool, err := exec.LookPath("schemathesis")
	if err != nil {
		return fmt.Errorf("cannot find schemathesis: install it with \"pip install schemathesis\": %w", err)
	}
	p, err := build(ctx, 1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	a := p.shared(p.controllers[0])
	for _, path := range []string{"/v1/tenants/shop", "/v1/hosts/web1"} {
		if _, err := a.must(ctx, http.MethodPut, path, map[string]any{}); err != nil {
			return err
		}
	}
	if err := a.spare(ctx); err != nil {
		return err
	}
	e, err := p.enforce(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	settings, err := p.settings(ctx, a, e.dev)
	if err != nil {
		return err
	}
	spec := filepath.Join(p.dir, "openapi.yaml")
	if err := os.WriteFile(spec, api.Specification(), 0o600); err != nil {
		return err
	}
	before, err := p.controllers[0].answered(ctx)
	if err != nil {
		return err
	}
	// Streams do not end, and schemathesis would wait for that.
	c := p.caller.Command(ctx, tool, "--config-file", settings, "run", spec, "--url", a.url, "--tls-verify", "false", "--checks", checks,
		"--max-examples", examples(r.Quick), "--exclude-operation-id", "watchEvents", "--exclude-operation-id", "watchLive", "--continue-on-failure", "--suppress-health-check", "all", "--no-color")
	c.Dir = p.dir // it creates a folder there
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	failed := c.Run()
	n, told := failures(out.String())
	if failed != nil && n == 0 {
		return fmt.Errorf("schemathesis: %w: %s", failed, lastLines(&out))
	}
	sheet := r.Sheet(bench.Ours)
	sheet.Set("security/schemathesis", float64(n))
	for _, one := range told {
		sheet.Note("security/schemathesis", "%s", one)
	}
	after, err := p.controllers[0].answered(ctx)
	if err != nil {
		return err
	}
	for operation, path := range map[string]string{"watchEvents": "/v1/events", "watchLive": "/v1/live?see=/v1/session"} {
		if err := a.watchOnce(ctx, path); err != nil {
			return err
		}
		after[operation]++
	}
	missed, err := unreached(before, after)
	sheet.Set("security/reached", float64(len(missed)))
	if len(missed) > 0 {
		sheet.Note("security/reached", "%s", strings.Join(missed, ", "))
	}
	return err
}

func examples(quick bool) string {
	if quick {
		return "8"
	}
	return "60"
}

// Objects to delete, and an object with the revision of the specification's example: generated ones
// rarely exist.
const (
	spareTenant, spareHost, spareDev, spareGroup = "spare", "spare", "eth0", "spare"
	changedHost, exampleRevision                 = "changed", 41
)

// spare creates these objects.
func (a *asking) spare(ctx context.Context) error {
	divided := map[string]any{"out": map[string]any{"limit": "1Gbit", "groups": []map[string]any{{"name": spareGroup}, {"name": "rest", "default": true}}}}
	for _, each := range []struct {
		path string
		body any
	}{
		{"/v1/tenants/" + spareTenant, map[string]any{}},
		{"/v1/hosts/" + changedHost, map[string]any{}}, {"/v1/hosts/" + changedHost + "/interfaces/" + spareDev, divided},
		{"/v1/hosts/" + spareHost, map[string]any{}}, {"/v1/hosts/" + spareHost + "/interfaces/" + spareDev, divided},
		{"/v1/hosts/" + spareHost + "/interfaces/" + spareDev + "/connections/" + url.PathEscape(connection), map[string]any{"group": "rest"}},
	} {
		if _, err := a.must(ctx, http.MethodPut, each.path, each.body); err != nil {
			return err
		}
	}
	for n := range exampleRevision { // each change is a revision
		if _, err := a.must(ctx, http.MethodPut, "/v1/hosts/"+changedHost, map[string]any{"description": fmt.Sprint(n)}); err != nil {
			return err
		}
	}
	return nil
}

// settings writes a configuration for schemathesis: it authenticates as an operator, and for a
// certificate as an agent. Probes use the host with an agent, the history is that of its device, and
// deletions use the objects that were created for them.
func (p *place) settings(ctx context.Context, a *asking, dev string) (file string, err error) {
	join, err := a.tokenOf(ctx, map[string]any{"name": "web1", "role": "agent", "host": "web1"})
	if err != nil {
		return "", err
	}
	// Otherwise it would revoke its own token.
	text, err := a.must(ctx, http.MethodPost, "/v1/tokens", map[string]any{"name": "old", "role": "viewer"})
	if err != nil {
		return "", err
	}
	var old struct{ ID string }
	if err := json.Unmarshal(text, &old); err != nil {
		return "", err
	}
	file = filepath.Join(p.dir, "schemathesis.toml")
	return file, os.WriteFile(file, fmt.Appendf(nil, `headers = { Authorization = "Bearer %s" }

[[operations]]
include-operation-id = "signCertificate"
headers = { Authorization = "Bearer %s" }

[[operations]]
include-operation-id = "startProbe"
parameters = { "path.host" = "host" }

[[operations]]
include-operation-id = "listHistory"
parameters = { "path.host" = "host", "path.dev" = "%s" }

[[operations]]
include-operation-id = "deleteToken"
parameters = { "path.token" = "%s" }

[[operations]]
include-operation-id = "deleteTenant"
parameters = { "path.tenant" = "%s" }

[[operations]]
include-operation-id = "deleteGroup"
parameters = { "path.host" = "%[6]s", "path.dev" = "%[7]s", "path.direction" = "out", "path.group" = "%[8]s" }

[[operations]]
include-operation-id = "deleteConnection"
parameters = { "path.host" = "%[6]s", "path.dev" = "%[7]s", "path.connection" = "%[9]s" }

[[operations]]
include-operation-id = "rollBack"
parameters = { "path.host" = "%[10]s", "path.dev" = "%[7]s" }
`, p.token, join, dev, old.ID, spareTenant, spareHost, spareDev, spareGroup, connection, changedHost), 0o600)
}

// watchOnce opens a stream, and closes it.
func (a *asking) watchOnce(ctx context.Context, path string) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	stream, err := a.stream(ctx, path)
	if err != nil {
		return err
	}
	return stream.Close()
}

// unreached returns the specification's operations that have not been answered since a time.
func unreached(before, after map[string]float64) (missed []string, err error) {
	spec, err := openapi3.NewLoader().LoadFromData(api.Specification())
	if err != nil {
		return nil, err
	}
	for _, item := range spec.Paths.Map() {
		for _, o := range item.Operations() {
			if after[o.OperationID] <= before[o.OperationID] {
				missed = append(missed, o.OperationID)
			}
		}
	}
	slices.Sort(missed)
	return missed, nil
}

func lastLines(from io.Reader) string {
	text, _ := io.ReadAll(from)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(len(lines)-20, 0):], "\n")
}

// failures returns the failures that schemathesis reports: one of each kind for each operation, as "-
// text" below the operation's name.
func failures(said string) (n int, told []string) {
	operation := ""
	for line := range strings.Lines(said) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "___"):
			operation = strings.Trim(line, "_ ")
		case operation != "" && strings.HasPrefix(line, "- "):
			n++
			if len(told) < 20 {
				told = append(told, operation+": "+strings.TrimPrefix(line, "- "))
			}
		}
	}
	return n, told
}
