package browser

import "os"

// Violations are what axe-core, a file of its source, finds on the page that keeps people out.
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
