// Package web serves the dashboard, whose pages are a client of the API. esbuild's Go API bundles
// the TypeScript in src into one script and one style sheet ("go generate ./web"). Both are embedded,
// so that neither building nor running Headgate needs Node.
package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:generate go run ./build

//go:embed dist
var dist embed.FS

// contentSecurityPolicy is the Content-Security-Policy of the pages. It allows resources of this origin only, and
// prevents text from being run as code or parsed as markup (Trusted Types).
const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Handler serves the files of the dashboard under /assets/, and its page at every other path.
func Handler() http.Handler {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // impossible: dist is embedded
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "method not allowed: use GET or HEAD", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/assets/")
		text, err := fs.ReadFile(files, name)
		if err != nil || !strings.HasPrefix(r.URL.Path, "/assets/") {
			if strings.HasPrefix(r.URL.Path, "/assets/") {
				http.NotFound(w, r)
				return
			}
			name = "index.html"
			text, _ = fs.ReadFile(files, name)
		}
		hash := sha256.Sum256(text)
		h := w.Header()
		h.Set("ETag", `"`+hex.EncodeToString(hash[:8])+`"`)
		h.Set("Cache-Control", "no-cache") // browsers revalidate by ETag, because an upgrade changes the files
		h.Set("Content-Type", mime.TypeByExtension(path.Ext(name)))
		h.Set("Content-Security-Policy", contentSecurityPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		if r.Header.Get("If-None-Match") == h.Get("ETag") {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if r.Method == http.MethodGet {
			_, _ = w.Write(text)
		}
	})
}
