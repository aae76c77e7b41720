package client_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	. "headgate.dev/headgate/api/client"
)

// TestDecode checks the value or error of responses.
func TestDecode(t *testing.T) {
	for _, c := range []struct {
		status     int
		text, want string
		kind       error
	}{
		{200, `{"name": "a"}`, "", nil},
		{204, "", "", nil},
		{403, `{"title": "Forbidden", "detail": "not yours"}`, "not yours", os.ErrPermission},
		{404, `{"title": "Not Found", "detail": "host \"a\" not found"}`, `host "a" not found`, fs.ErrNotExist},
		{412, `{"title": "Precondition Failed"}`, "Precondition Failed", ErrPreconditionFailed},
		{422, `{"title": "Invalid", "errors": [{"field": "name", "message": "missing"}, {"field": "role", "message": "unknown"}]}`, "Invalid\n  name: missing\n  role: unknown", ErrInvalid},
		{503, "bad gateway", "the service returned 503", nil},
	} {
		r := &http.Response{StatusCode: c.status, Status: "503 Service Unavailable", Body: io.NopCloser(strings.NewReader(c.text))}
		got, err := Decode[struct{ Name string }](r, nil)
		if c.want == "" {
			if err != nil || c.text != "" && got.Name != "a" {
				t.Errorf("%d: %+v, %v", c.status, got, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%d: error %v, want %q and %v", c.status, err, c.want, c.kind)
		}
	}
	if _, err := Decode[string](nil, io.ErrUnexpectedEOF); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a failed request: %v", err)
	}
}

func TestListAll(t *testing.T) {
	pages := map[string][]int{"": {1, 2}, "b": {3}}
	next := map[string]string{"": "b"}
	got, err := ListAll(func(after *string) ([]int, *string, error) {
		at := ""
		if after != nil {
			at = *after
		}
		if n, ok := next[at]; ok {
			return pages[at], &n, nil
		}
		return pages[at], nil, nil
	})
	if err != nil || !slices.Equal(got, []int{1, 2, 3}) {
		t.Errorf("%v, %v", got, err)
	}
}

// ListUpTo continues after a short page, and stops at its bound or at the last page.
func TestListUpTo(t *testing.T) {
	pages := map[string][]int{"": {9, 8}, "8": {7}, "7": {6, 5}}
	for most, want := range map[int]string{2: "[9 8]", 3: "[9 8 7]", 4: "[9 8 7 6 5]", 50: "[9 8 7 6 5]"} {
		got, err := ListUpTo(most, func(before *string, limit *int) ([]int, *string, error) {
			at := ""
			if before != nil {
				at = *before
			}
			page := pages[at]
			next := fmt.Sprint(page[len(page)-1])
			if pages[next] == nil {
				return page, nil, nil
			}
			return page, &next, nil
		})
		if err != nil || fmt.Sprint(got) != want {
			t.Errorf("up to %d: %v, %v, want %s", most, got, err, want)
		}
	}
}
