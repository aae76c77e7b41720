package browser

import "os"

// Violations returns the accessibility violations that axe-core finds on the page. axe is the path
// of its source.
func (b *Browser) Violations(axe string) (all []string, err error) {
	source, err := os.ReadFile(axe)
	if err != nil {
		return nil, err
	}
	if _, err := Evaluate[bool](b, string(source)+"; true"); err != nil {
		return nil, err
	}
	return Evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"]}).then((r) =>
		r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.html.slice(0, 300) + ": " + n.failureSummary)))`)
}
