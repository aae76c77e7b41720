package web

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// request returns the response of Handler to a request.
func request(method, path string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for n := 0; n < len(headers); n += 2 {
		r.Header.Set(headers[n], headers[n+1])
	}
	w := httptest.NewRecorder()
	Handler().ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
		kind, has    string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", `src="/assets/main.js"`},
		{"GET", "/hosts/web1/eth0", 200, "text/html; charset=utf-8", `src="/assets/main.js"`},
		{"GET", "/assets/main.js", 200, "text/javascript; charset=utf-8", "EventSource"},
		{"GET", "/assets/main.css", 404, "text/plain; charset=utf-8", ""},
		{"GET", "/assets/style.css", 200, "text/css; charset=utf-8", ".uplot"},
		{"GET", "/assets/../web.go", 404, "text/plain; charset=utf-8", ""},
		{"POST", "/", 405, "text/plain; charset=utf-8", ""},
	} {
		w := request(c.method, c.path)
		if w.Code != c.status || w.Header().Get("Content-Type") != c.kind || !strings.Contains(w.Body.String(), c.has) {
			t.Errorf("%s %s: status %d, content type %s", c.method, c.path, w.Code, w.Header().Get("Content-Type"))
		}
		if c.status != 200 {
			continue
		}
		for header, has := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if !strings.Contains(w.Header().Get(header), has) {
				t.Errorf("%s %s: header %s is %q", c.method, c.path, header, w.Header().Get(header))
			}
		}
		if w := request(c.method, c.path, "If-None-Match", w.Header().Get("ETag")); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
			t.Errorf("%s %s with If-None-Match: status %d, %d bytes", c.method, c.path, w.Code, w.Body.Len())
		}
	}
}

// TestBundle: the embedded files refer to no other origin, and are at most 150 KB gzipped.
func TestBundle(t *testing.T) {
	var all bytes.Buffer
	z := gzip.NewWriter(&all)
	err := fs.WalkDir(dist, "dist", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := fs.ReadFile(dist, path)
		for _, from := range []string{"http://", "https://"} {
			for _, rest := range strings.Split(string(text), from)[1:] {
				// Browsers do not fetch the names of XML namespaces and of licenses.
				if !strings.HasPrefix(rest, "www.w3.org/") && !strings.HasPrefix(rest, "github.com/leeoniya/") {
					t.Errorf("%s refers to another origin: %s%.40s", path, from, rest)
				}
			}
		}
		if err == nil {
			_, err = z.Write(text)
		}
		return err
	})
	if err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	if all.Len() > 150_000 {
		t.Errorf("the dashboard is %d bytes gzipped, want at most 150000", all.Len())
	}
}
