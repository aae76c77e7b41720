package remote

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"

	"headgate.dev/headgate/internal/wholefile"
)

// The files of the agent's state are JSON objects that begin with the checksum of the rest. The content before the last change is kept beside each, so that a file that the disk has
// damaged costs one change, which the controller sends again, and not all of them.
const (
	checksumKey     = `{"sha256":"`
	previousSuffix  = ".previous"
	damagedSuffix   = ".damaged"
	checksumLetters = 2 * sha256.Size
)

// errDamaged is the error for a file whose content cannot be right.
var errDamaged = errors.New("damaged")

// writeFile writes a file atomically, syncs it to the disk, and keeps the content before.
func writeFile(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if before, err := os.ReadFile(name); err == nil && bytes.HasPrefix(before, []byte(checksumKey)) && isWhole(before) {
		// A second name for the present file, which the new one replaces. If that fails the one before it stays.
		if err := os.Remove(name + previousSuffix); err == nil || errors.Is(err, os.ErrNotExist) {
			_ = os.Link(name, name+previousSuffix)
		}
	}
	return wholefile.Write(name, checked(text), 0o600)
}

// checked adds the checksum to a JSON object.
func checked(object []byte) []byte {
	sum := sha256.Sum256(object)
	rest := object[1:] // behind the brace
	out := []byte(checksumKey + hex.EncodeToString(sum[:]) + `"`)
	if !bytes.Equal(rest, []byte("}")) {
		out = append(out, ',')
	}
	return append(out, rest...)
}

// unchecked returns the object without the checksum. A file of an earlier version has none.
func unchecked(text []byte) (object []byte, err error) {
	rest, has := bytes.CutPrefix(text, []byte(checksumKey))
	if !has {
		return text, nil
	}
	if len(rest) < checksumLetters+2 || rest[checksumLetters] != '"' {
		return nil, fmt.Errorf("%w: the checksum is incomplete", errDamaged)
	}
	sum := string(rest[:checksumLetters])
	object = append([]byte("{"), bytes.TrimPrefix(rest[checksumLetters+1:], []byte(","))...)
	if is := sha256.Sum256(object); hex.EncodeToString(is[:]) != sum {
		return nil, fmt.Errorf("%w: the content does not match its checksum", errDamaged)
	}
	return object, nil
}

func isWhole(text []byte) bool {
	_, err := unchecked(text)
	return err == nil
}

// read reads a file; the error is errDamaged for one whose content cannot be right.
func read(name string, v any) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	object, err := unchecked(text)
	if err == nil {
		if err = json.Unmarshal(object, v); err != nil {
			err = fmt.Errorf("%w: %w", errDamaged, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s is %w", name, err)
	}
	return nil
}

// readFile reads a file into v. A damaged one is renamed, and the content before its last change is read instead. The error is errDamaged if there is none, and os.ErrNotExist without
// a file.
func readFile[T any](name string, v *T) error {
	err := read(name, v)
	if !errors.Is(err, errDamaged) {
		return err
	}
	var zero T
	*v = zero
	if aside := os.Rename(name, name+damagedSuffix); aside != nil {
		return errors.Join(err, aside)
	}
	before := read(name+previousSuffix, v)
	if before != nil {
		*v = zero
		return fmt.Errorf("%w: it was renamed to %s", err, name+damagedSuffix)
	}
	slog.Warn("state file is damaged, using the content before its last change", "path", name, "renamed", name+damagedSuffix, "error", err)
	return os.Link(name+previousSuffix, name)
}
