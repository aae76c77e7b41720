// Package golden compares output of tests with files, and writes the files with the flag -update. It is for
// tests alone.
package golden

import (
	"flag"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// Update reports whether the files are to be written.
func Update() bool { return *update }

// Compare fails the test if a file has another text, or writes it with -update.
func Compare(t testing.TB, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v: create it with -update", err)
	}
	if got != string(want) {
		t.Errorf("%s differs (update it with -update if the new text is right):\n%s", file, got)
	}
}
