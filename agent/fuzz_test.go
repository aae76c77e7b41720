package agent

import (
	"os"
	"path/filepath"
	"testing"

	"headgate.dev/headgate/api/local"
	"headgate.dev/headgate/internal/ask"
)

// FuzzClaim: a state file with any content is that of an agent that owned something, or nothing.
func FuzzClaim(f *testing.F) {
	f.Add([]byte(`{"pid":1,"files":["/etc/headgate"],"devs":["eth0"],"sources":["a"],"made":{"eth0":"1"},"assigned":{"eth0":[{"conn":{"proto":6,"a":"10.0.0.1:1","b":"10.0.0.2:2"},"group":"web"}]},"limits":{"x":"1Gbit"}}`))
	f.Add([]byte("{\"pid\":1}\n{\"pid\":2,\"devs\":[\"eth*\",\"eth0\"]}"))
	f.Add([]byte(`{"devs":["[","a"],"origins":{"[":{"out/a":"tenant"}}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		name, err := claimPath(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := NewClaim(dir, nil)
		if err != nil {
			t.Fatalf("an agent does not start: %v", err)
		}
		defer c.Close()
		Owner(dir, "eth0")
		Origins(dir, "eth0")
		c.takeAppliedHash("eth0")
		c.takeAssigned("eth0")
		if err := c.write(stateFileContent{Devs: []string{"eth0"}}); err != nil {
			t.Fatal(err)
		}
		if is := readClaim(c.file); len(is.Devs) != 1 || is.Devs[0] != "eth0" {
			t.Errorf("after a write in %s the devices are %v", filepath.Base(name), is.Devs)
		}
	})
}

// FuzzRequest: any request at the agent's socket gets a response, and no connection that was not passed.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"assign":"web","dev":"eth0"}`))
	f.Add([]byte(`{"unassign":true}`))
	f.Add([]byte(`{"assign":"web","unassign":true}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		a := &Agent{}
		out, ok := a.handleRequest(ask.Request{Text: text, FD: -1}).(local.Response)
		if !ok || out.Err() == nil {
			t.Errorf("%q without a connection: %+v", text, out)
		}
	})
}
