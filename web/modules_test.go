package web

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/evanw/esbuild/pkg/api"

	"headgate.dev/headgate/internal/browser"
	"headgate.dev/headgate/web/build/bundle"
)

// TestModules runs the tests of the TypeScript modules, src/**/*.test.ts, in a browser.
func TestModules(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser: not with -short")
	}
	t.Parallel()
	var files []string
	for _, pattern := range []string{"src/*.test.ts", "src/*/*.test.ts"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	var entry strings.Builder
	for _, file := range files {
		entry.WriteString(`import "./` + filepath.ToSlash(file) + `";` + "\n")
	}
	entry.WriteString(`export { results } from "./src/testing/test";`)
	o := bundle.Options()
	o.Stdin = &api.StdinOptions{Contents: entry.String(), ResolveDir: ".", Loader: api.LoaderTS}
	o.Format, o.GlobalName = api.FormatIIFE, "tests"
	built := api.Build(o)
	if len(built.Errors) > 0 {
		t.Fatalf("%v", built.Errors)
	}
	b, err := browser.Start(t.Context(), "about:blank")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	type result struct{ Name, Failure string }
	all, err := browser.Evaluate[[]result](b, string(built.OutputFiles[0].Contents)+"; tests.results()")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 2*len(files) {
		t.Errorf("%d files register %d tests", len(files), len(all))
	}
	for _, one := range all {
		t.Run(one.Name, func(t *testing.T) {
			if one.Failure != "" {
				t.Error(one.Failure)
			}
		})
	}
}
