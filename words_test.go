package headgate

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// banned are phrases that no user reads: docs/glossary.md has the term for each. They are looked for in the
// strings of product code, in the specification of the API, in the dashboard and in the documentation. The
// benchmarks are left out, because the words of their targets are those of the requirements.
var banned = []string{
	"who asks", "whoever asks", "somebody", "whose it is", "nobody's", "another's",
	"is not said", "not said", "says nothing", "what is said", "is told", "cannot be told", "told of", "not told",
	"any more", "anew", "is not there", "was not there", "not known whether",
	"what is wanted", "is wanted", "what there is", "as it is meant", "as it should be", "make it so",
	"looked after", "spoken to", "is no good", "comes to its end", "stands still",
	"the way in", "the way out", "taken away", "away again", "let go", "lets go",
	"what no other takes", "never more than", "what is over", "has room", "room again", "the seed's", "the issue",
	"are told", "was told", "were told", "told apart", "tells whether", "is said", "are said", "said to be", "says which",
	"stood still", "kept back", "held back", "give back", "gives back", "given back", "went back", "has gone", "mended",
	"what waits", "what became of", "what becomes of", "what is promised", "was promised", "who is busy", "nobody knows",
	"no time at all", "lets nothing through", "room for", "is not kept", "comes to pass", "by twos",
	"at the most", "at the least", "off what", "less what",
}

// quoted are files in which such words are meant: what a paper or a person says, and the list of what is
// not written.
var quoted = []string{"docs/glossary.md", "docs/results/", "docs/decisions/", "CHANGELOG.md"}

var bannedRE = regexp.MustCompile(`(?i)\b(` + strings.Join(banned, "|") + `)\b`)

// TestWords: errors, logs, help, labels and documentation are in the terms of the glossary.
func TestWords(t *testing.T) {
	if len(banned) < 40 {
		t.Fatalf("there are %d banned phrases, want 40", len(banned))
	}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
		case d.IsDir() && (name != "." && strings.HasPrefix(name, ".") || name == "testdata" || name == "vendor" || name == "dist" || path == "bench"):
			return fs.SkipDir
		case d.IsDir() || strings.HasSuffix(name, "_test.go") || strings.Contains(name, ".gen.") || strings.HasSuffix(name, ".pb.go"):
			return nil
		}
		for _, q := range quoted {
			if strings.HasPrefix(path, q) {
				return nil
			}
		}
		switch filepath.Ext(name) {
		case ".go":
			return goStrings(path, func(line int, text string) { checkWords(t, path, line, text) })
		case ".md", ".yaml", ".ts":
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			n := 0
			for line := range strings.Lines(string(text)) {
				n++
				if strings.HasPrefix(strings.TrimSpace(line), "//") {
					continue
				}
				checkWords(t, path, n, line)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkWords(t *testing.T, path string, line int, text string) {
	for _, found := range bannedRE.FindAllString(text, -1) {
		t.Errorf("%s:%d: %q: write the term that docs/glossary.md has for it: %s", path, line, found, strings.TrimSpace(text))
	}
}

// goStrings gives the string literals of a Go file.
func goStrings(path string, each func(line int, text string)) error {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
			if text, err := strconv.Unquote(l.Value); err == nil {
				each(files.Position(l.Pos()).Line, text)
			}
		}
		return true
	})
	return nil
}

// TestLogKeys: keys of log attributes can be searched for as they are.
func TestLogKeys(t *testing.T) {
	spaced := regexp.MustCompile(`^[a-z_]+$`)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		f, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); !ok || x.Name != "slog" {
				return true
			}
			switch sel.Sel.Name {
			case "Debug", "Info", "Warn", "Error":
			default:
				return true
			}
			for i := 1; i < len(call.Args); i += 2 {
				if l, ok := call.Args[i].(*ast.BasicLit); ok && l.Kind == token.STRING {
					if key, _ := strconv.Unquote(l.Value); !spaced.MatchString(key) {
						t.Errorf("%s: the log key %q is not in snake_case", files.Position(l.Pos()), key)
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
