package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// CheckReport returns an error if the report in dir is of a full run, and the options are for a smoke
// run or for some claims only.
func (b Bench) CheckReport(dir string, o Options) error {
	path := filepath.Join(dir, b.Name+".json")
	text, err := os.ReadFile(path)
	if err != nil || !o.Quick && len(o.Only) == 0 {
		return nil
	}
	var have Result
	if err := json.Unmarshal(text, &have); err != nil || have.Smoke || len(have.Only) > 0 {
		return nil
	}
	return fmt.Errorf("%s has the results of a full run, and this run (%s) would replace them: set another folder for the report", path, strings.Join(o.wishes(), ", "))
}

// wishes returns the options that make a run incomplete.
func (o Options) wishes() (out []string) {
	if o.Quick {
		out = append(out, "--quick")
	}
	for _, id := range o.Only {
		out = append(out, "--only "+id)
	}
	return out
}

// WriteReport writes NAME.md, its plots in NAME/, and NAME.json into dir.
func (r *Result) WriteReport(dir string, b Bench) error {
	pictures := filepath.Join(dir, b.Name)
	if err := os.MkdirAll(pictures, 0o755); err != nil {
		return fmt.Errorf("cannot create the folder of the report: %w", err)
	}
	var failed []error
	for _, p := range r.plots {
		if r.Smoke {
			p.Title += " (smoke run)"
		}
		failed = append(failed, p.Save(pictures))
	}
	var text, data bytes.Buffer
	r.markdown(&text, b)
	if err := r.WriteJSON(&data); err != nil {
		return err
	}
	return errors.Join(append(failed,
		os.WriteFile(filepath.Join(dir, b.Name+".md"), text.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, b.Name+".json"), data.Bytes(), 0o644),
	)...)
}

// WriteJSON writes the result with all measurements: indented, except for the runs, which are a line
// each.
func (r *Result) WriteJSON(w io.Writer) error {
	short := *r
	short.Sheets = []*Sheet{}
	text, err := encode(short, " ")
	if err != nil {
		return err
	}
	const empty = "\"runs\": []"
	at := bytes.LastIndex(text, []byte(empty))
	out := bytes.NewBuffer(text[:at:at])
	out.WriteString("\"runs\": [")
	for i, s := range r.Sheets {
		line, err := encode(s, "")
		if err != nil {
			return err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteString("\n  ")
		out.Write(bytes.TrimSpace(line))
	}
	out.WriteString("\n ]")
	out.Write(text[at+len(empty):])
	_, err = w.Write(out.Bytes())
	return err
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetIndent("", indent)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return b.Bytes(), err
}

func (r *Result) markdown(w io.Writer, b Bench) {
	fmt.Fprintf(w, "# %s\n\n", b.Title)
	if r.Smoke {
		fmt.Fprintf(w, "**This is a smoke run** with few and short cases. It checks that every claim can be measured; its values are not results.\n\n")
	}
	fmt.Fprintf(w, "Written by `headgate bench %s`. %s\n\n%s\n\n", b.Name, strings.ReplaceAll(r.summary(), "\n", " "), strings.TrimSpace(b.About))
	r.Environment.markdown(w)
	if short := r.Short(); len(short) > 0 {
		fmt.Fprintf(w, "## Missed targets\n\n| claim | target | %s | |\n|---|---|---|---|\n", r.subject)
		for _, c := range short {
			why := ""
			if c.Ours == nil {
				why = "not measured: " + c.Missing
			}
			fmt.Fprintf(w, "| %s | %s %s | %s | %s |\n", c.ID, c.Target, c.Unit, c.figure(), cell(why))
		}
		fmt.Fprintln(w)
	}
	for _, row := range b.Rows {
		r.rowMarkdown(w, b, row)
	}
	fmt.Fprintf(w, "All runs are in [%s.json](%s.json).\n", b.Name, b.Name)
}

func (r *Result) rowMarkdown(w io.Writer, b Bench, row Row) {
	var claims []Claim
	var peers []string
	seen := map[string]bool{}
	for _, c := range r.Claims {
		if wanted([]string{row.ID}, c.ID) {
			claims = append(claims, c)
			for _, p := range c.peerNames() {
				if !seen[p] {
					seen[p], peers = true, append(peers, p)
				}
			}
		}
	}
	if len(claims) == 0 {
		return
	}
	fmt.Fprintf(w, "## %s\n\n%s\n\n", row.ID, row.What)
	for _, p := range r.plots {
		if p.Row == row.ID {
			fmt.Fprintf(w, "[![%s](%s/%s.png)](%[2]s/%[3]s.svg)\n\n%s\n\n", p.Title, b.Name, p.File, p.Caption)
		}
	}
	head := append([]string{"case", "what", "unit", "target", r.subject, "", "paper"}, peers...)
	fmt.Fprintf(w, "| %s |\n|%s\n", strings.Join(head, " | "), strings.Repeat("---|", len(head)))
	var notes []string
	for _, c := range claims {
		cells := []string{strings.TrimPrefix(c.ID, row.ID+"/"), c.Metric, c.Unit, c.Target.String(), c.figure(), c.verdict(), number(c.Paper)}
		for _, p := range peers {
			if _, ok := c.Peer[p]; ok {
				cells = append(cells, c.peerFigure(p))
			} else {
				cells = append(cells, "")
			}
		}
		for i := range cells {
			cells[i] = cell(cells[i])
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
		if c.Drawn != "" {
			notes = append(notes, fmt.Sprintf("%s: drawn at random: %s", cells[0], c.Drawn))
		}
		for _, n := range c.Notes {
			notes = append(notes, fmt.Sprintf("%s: %s", cells[0], n))
		}
	}
	fmt.Fprintln(w)
	for _, n := range gather(notes) {
		fmt.Fprintf(w, "- %s\n", n)
	}
	if len(notes) > 0 {
		fmt.Fprintln(w)
	}
}

// gather joins equal notes of several cases ("a: same" and "b: same").
func gather(notes []string) (out []string) {
	about := map[string][]string{}
	var order []string
	for _, n := range notes {
		who, what, _ := strings.Cut(n, ": ")
		if about[what] == nil {
			order = append(order, what)
		}
		about[what] = append(about[what], who)
	}
	for _, what := range order {
		who := about[what]
		if len(who) > 3 {
			who = append(who[:2:2], fmt.Sprintf("and %d more", len(who)-2))
		}
		out = append(out, strings.Join(who, ", ")+": "+what)
	}
	return out
}

func cell(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "|", "\\|"), "\n", " ")
}

func (e Environment) markdown(w io.Writer) {
	hz := "unknown"
	if e.HZ > 0 {
		hz = fmt.Sprint(e.HZ)
	}
	fmt.Fprintf(w, "| measured on | |\n|---|---|\n")
	rows := [][2]string{
		{"date", e.Date.Format("2006-01-02 15:04 MST")},
		{"kernel", e.Kernel + ", HZ " + hz},
		{"processor", fmt.Sprintf("%d x %s", e.CPUs, e.CPU)},
		{"memory", fmt.Sprintf("%.1f GiB", float64(e.MemoryBytes)/(1<<30))},
		{"Go", e.Go}, {"commit", e.Commit},
		{"congestion control", e.CongestionControl + " by default; has " + strings.Join(e.Available, ", ") + "; every flow names its own"},
		{"qdiscs", strings.Join(e.Qdiscs, ", ")},
		{"offloads of a new veth", strings.Join(e.Offloads, ", ")},
		{"load average at the start", fmt.Sprintf("%.2f", e.Load)},
	}
	if e.KeptAwake {
		rows = append(rows, [2]string{"virtual machine", "yes; its processors were kept from halting (decision 13)"})
	}
	for _, tool := range slices.Sorted(maps.Keys(e.Tools)) {
		rows = append(rows, [2]string{tool, e.Tools[tool]})
	}
	for _, row := range rows {
		fmt.Fprintf(w, "| %s | %s |\n", row[0], cell(row[1]))
	}
	fmt.Fprintln(w)
}
