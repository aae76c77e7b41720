// Build makes the dashboard that is embedded: "go generate ./web". It needs no Node.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/getkin/kin-openapi/openapi3"

	"headgate.dev/headgate/web/build/bundle"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("web/build: ")
	spec, err := openapi3.NewLoader().LoadFromFile("../api/openapi.yaml")
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile("src/api.gen.ts", []byte(client(spec)), 0o644); err != nil {
		log.Fatal(err)
	}
	o := bundle.Options()
	o.EntryPoints, o.Outdir, o.Write, o.Format = []string{"src/main.ts", "src/style.css"}, "dist", true, api.FormatESModule
	o.MinifyWhitespace, o.MinifySyntax, o.MinifyIdentifiers, o.LegalComments = true, true, true, api.LegalCommentsEndOfFile
	out := api.Build(o)
	for _, m := range append(out.Errors, out.Warnings...) {
		at := ""
		if m.Location != nil {
			at = fmt.Sprintf("%s:%d:%d: ", m.Location.File, m.Location.Line, m.Location.Column)
		}
		log.Print(at, m.Text)
	}
	if len(out.Errors) > 0 {
		os.Exit(1)
	}
	page, err := os.ReadFile("src/index.html")
	if err == nil {
		err = os.WriteFile("dist/index.html", page, 0o644)
	}
	if err != nil {
		log.Fatal(err)
	}
}
