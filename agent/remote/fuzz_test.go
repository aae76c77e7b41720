package remote

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzIntent: a desired state file with any content starts an agent with what is good of it, and an identity is one or is refused.
func FuzzIntent(f *testing.F) {
	f.Add([]byte(`{"epoch":1,"revision":2,"interfaces":{"eth0":{"revision":2,"document":{"dev":"eth0","out":{"limit":"1Gbit","groups":[{"name":"a","default":true}]}}}},"collectives":{"db":"kind: Collective"}}`))
	f.Add([]byte(`{"host":"h1","cert":"eA==","key":"eA==","authority":"eA==","agents":["10.0.0.1:8421"],"joined":"10.0.0.1"}`))
	f.Add([]byte(`{"sha256":"00","epoch":1}`))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		for _, name := range []string{desiredFile, identityFile} {
			if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if i, err := OpenIntent(dir); err == nil {
			for dev, err := range func() map[string]error { _, errs := i.Interfaces(); return errs }() {
				if err == nil {
					t.Errorf("%s has no error", dev)
				}
			}
			i.Collectives()
			i.Revisions()
		}
		if id, err := ReadIdentity(dir); err == nil && len(id.Agents) > 0 { // Run needs one
			id.nextController("")
			_ = id.joinedAddress()
		}
	})
}
