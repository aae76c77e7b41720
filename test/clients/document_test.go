package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"headgate.dev/headgate/api"
	"headgate.dev/headgate/api/client"
)

// The programs of docs/tenants.md in Go, TypeScript and Python list a tenant's groups, made by the commands there.
// Only what fetches generators and modules has been run before: the versions are those of TestOperations.
func TestDocument(t *testing.T) {
	if testing.Short() {
		t.Skip("generates clients")
	}
	t.Parallel()
	folder, dir := generate(t), t.TempDir()
	s := start(t)
	guarantee, shop, rest, yes := "40%", "shop", "rest", true
	must[client.Tenant](t)(s.client.PutTenant(t.Context(), shop, nil, client.Tenant{}))
	must[client.Interface](t)(s.client.PutInterface(t.Context(), connected, "eth0", nil, client.Interface{Out: &client.Direction{Limit: "1Gbit", Groups: []client.Group{
		{Name: &shop, Guarantee: &guarantee, Tenant: &shop, Match: &[]client.Selector{{Dport: &[]string{"443", "873"}}}}, {Name: &rest, Default: &yes},
	}}}))
	token := must[client.NewToken](t)(s.client.CreateToken(t.Context(), nil, client.TokenRequest{Name: "program", Role: client.RoleTenant, Tenant: &shop}))
	write(t, filepath.Join(dir, "shop.token"), []byte(token.Token+"\n"))
	write(t, filepath.Join(dir, "openapi.yaml"), api.Specification())
	write(t, filepath.Join(dir, "ca.pem"), read(t, s.authority))

	// What the commands that are not run would make.
	done := map[string]bool{
		"go mod init groups":                      false,
		"go get headgate.dev/headgate/api/client": false,
		"npm pkg set type=module":                 false,
		"python3 -m venv venv":                    false,
		"pip install openapi-python-client==" + pythonVersion(t, "openapi-python-client"):                                                    false,
		fmt.Sprintf("npm install @hey-api/openapi-ts@%s typescript@%s", nodeVersion(t, "@hey-api/openapi-ts"), nodeVersion(t, "typescript")): false,
	}
	for _, file := range []string{"go.mod", "go.sum"} {
		write(t, filepath.Join(dir, file), read(t, filepath.Join(root, "examples/tenant/go", file)))
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	run(t, dir, nil, "go", "mod", "edit", "-module", "groups", "-replace", "headgate.dev/headgate="+here)
	for _, link := range []string{"typescript/node_modules", "typescript/package.json", "typescript/tsconfig.json", "python/venv"} {
		if err := os.Symlink(filepath.Join(folder, link), filepath.Join(dir, filepath.Base(link))); err != nil {
			t.Fatal(err)
		}
	}
	path := []string{"PATH=" + filepath.Join(folder, "typescript/bin") + ":" + os.Getenv("PATH")}

	programs := 0
	for _, b := range blocks(t, filepath.Join(root, "docs/tenants.md"), "From Go, TypeScript and Python") {
		text := strings.ReplaceAll(b.text, "https://10.0.0.1:8420", s.URL)
		if b.language != "sh" {
			name, _, _ := strings.Cut(strings.TrimLeft(text, "/# "), "\n")
			write(t, filepath.Join(dir, name), []byte(text))
			continue
		}
		var script strings.Builder
		for line := range strings.Lines(text) {
			if _, ok := done[strings.TrimSpace(line)]; ok {
				done[strings.TrimSpace(line)] = true
				continue
			}
			script.WriteString(line)
		}
		programs++
		if out := run(t, dir, path, "sh", "-euc", script.String()); !strings.Contains(out, "shop 400000000\n") {
			t.Errorf("%s\nprints %q, want the group shop with 400 Mbit/s", text, out)
		}
	}
	if programs != 3 {
		t.Errorf("docs/tenants.md has %d programs, want 3", programs)
	}
	for command, found := range done {
		if !found {
			t.Errorf("docs/tenants.md does not have the command %q", command)
		}
	}
	run(t, root, nil, "scripts/tsc", dir)
}

// block is a code block of a document.
type block struct{ language, text string }

// blocks returns the code blocks of a section.
func blocks(t testing.TB, file, section string) (out []block) {
	t.Helper()
	_, text, found := strings.Cut(string(read(t, file)), "\n## "+section+"\n")
	text, _, _ = strings.Cut(text, "\n## ")
	if !found {
		t.Fatalf("%s has no section %q", file, section)
	}
	for _, m := range regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$").FindAllStringSubmatch(text, -1) {
		out = append(out, block{m[1], m[2]})
	}
	return out
}

func read(t testing.TB, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// nodeVersion returns the version of a package in package.json.
func nodeVersion(t testing.TB, name string) string {
	t.Helper()
	var all struct{ Dependencies map[string]string }
	if err := json.Unmarshal(read(t, "typescript/package.json"), &all); err != nil {
		t.Fatal(err)
	}
	return all.Dependencies[name]
}

// pythonVersion returns the version of a package in requirements.txt.
func pythonVersion(t testing.TB, name string) string {
	t.Helper()
	_, after, _ := strings.Cut("\n"+string(read(t, "python/requirements.txt")), "\n"+name+"==")
	version, _, _ := strings.Cut(after, "\n")
	return version
}
