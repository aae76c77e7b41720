package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Each visible command has a page with all its flags.
func TestManualPages(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "man")
	w := newWorld(t)
	if r := w.run("man", dir); r.code != exitOK {
		t.Fatal(r.err)
	}
	pages := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Error(err)
			return
		}
		pages++
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(strings.ReplaceAll(string(text), `\-`, "-"), "--"+f.Name) {
				t.Errorf("%s has no flag --%s", name, f.Name)
			}
		})
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk((&app{}).root())
	if pages < 50 {
		t.Errorf("%d pages, want at least 50", pages)
	}
}
