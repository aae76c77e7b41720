package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"headgate.dev/headgate/group"
)

// Set is the configuration from all files.
type Set struct {
	// Interfaces are in the order of files and lines. No two have the same Dev.
	Interfaces []Interface
	// Servers configures probe meshes. It applies to no device.
	Servers []Servers
	// Collectives are connection sets, independent of devices. No two have the same Name or the
	// same whole Cgroup.
	Collectives []Collective
	// Controllers configures the controllers of the service.
	Controllers []Controllers
	// Relays configures relay agents.
	Relays []Relay
	// Networks configures networks of switches. No two have the same Name.
	Networks []Network
	// Reservations reserve bandwidth across a network. No two have the same Name.
	Reservations []Reservation

	names group.AltNames // see WithAltNames
}

func (s *Set) empty() bool {
	return len(s.Interfaces) == 0 && len(s.Servers) == 0 && len(s.Collectives) == 0 && len(s.Controllers) == 0 && len(s.Relays) == 0 && len(s.Networks) == 0 && len(s.Reservations) == 0
}

// kinds maps each document kind to the function that parses it. A new kind needs an entry here,
// a field in Set and a file with its function.
var kinds = map[string]func(*Set, *source, *node){
	"Interface": func(set *Set, s *source, n *node) {
		set.Interfaces = append(set.Interfaces, interfaceDocument(s, n))
	},
	"Collective": func(set *Set, s *source, n *node) {
		set.Collectives = append(set.Collectives, collectiveDocument(s, n))
	},
	"Controllers": func(set *Set, s *source, n *node) {
		set.Controllers = append(set.Controllers, controllersDocument(s, n))
	},
	"Network": func(set *Set, s *source, n *node) {
		set.Networks = append(set.Networks, networkDocument(s, n))
	},
	"Relay": func(set *Set, s *source, n *node) {
		set.Relays = append(set.Relays, relayDocument(s, n))
	},
	"Reservation": func(set *Set, s *source, n *node) {
		set.Reservations = append(set.Reservations, reservationDocument(s, n))
	},
	"Servers": func(set *Set, s *source, n *node) {
		set.Servers = append(set.Servers, serversDocument(s, n))
	},
}

// Load reads files, directories (their *.yaml and *.yml files, by name, without subdirectories)
// and "-", which is stdin. The error is an Errors with the errors of all files.
func Load(paths []string, stdin io.Reader) (Set, error) {
	l := loader{now: time.Now()}
	return l.load(paths, stdin)
}

func (l *loader) load(paths []string, stdin io.Reader) (Set, error) {
	for _, path := range paths {
		l.path(path, stdin)
	}
	if len(l.mistakes) == 0 && l.set.empty() {
		l.file(strings.Join(paths, " "), "%s", noDocument())
	}
	l.checkDuplicateDevs()
	l.checkDuplicateSets()
	l.checkRelays()
	l.checkNetworks()
	l.checkReservations()
	if len(l.mistakes) > 0 {
		slices.SortStableFunc(l.mistakes, func(a, b Error) int {
			return cmp.Or(
				cmp.Compare(slices.Index(l.files, a.File), slices.Index(l.files, b.File)),
				cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
		})
		return Set{}, l.mistakes
	}
	return l.set, nil
}

// Parse parses the text of one file. name is the file name in errors.
func Parse(name string, text []byte) (Set, error) {
	return Load([]string{"-"}, named{bytes.NewReader(text), name})
}

// named is a standard input with a name for messages.
type named struct {
	io.Reader
	name string
}

type loader struct {
	now      time.Time // zero if times in documents may be past
	set      Set
	mistakes Errors
	files    []string // in reading order
}

func (l *loader) file(name, format string, args ...any) {
	l.mistakes = append(l.mistakes, Error{File: name, Message: fmt.Sprintf(format, args...)})
}

func (l *loader) path(path string, stdin io.Reader) {
	l.files = append(l.files, path)
	if path == "-" {
		name := "-"
		if n, ok := stdin.(named); ok {
			name = n.name
		}
		l.read(name, stdin)
		return
	}
	info, err := os.Stat(path)
	if err != nil {
		l.file(path, "cannot read file: %v", reason(err))
		return
	}
	if !info.IsDir() {
		l.open(path)
		return
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		l.file(path, "cannot read directory: %v", reason(err))
		return
	}
	found := false
	for _, e := range entries {
		if isFile(e) {
			found = true
			l.open(filepath.Join(path, e.Name()))
		}
	}
	if !found {
		l.file(path, "the directory has no *.yaml or *.yml file: add one, or name a file")
	}
}

// isFile reports whether Load reads a directory entry.
func isFile(e fs.DirEntry) bool {
	ext := filepath.Ext(e.Name())
	return (ext == ".yaml" || ext == ".yml") && !e.IsDir()
}

// NoFiles reports whether all paths are directories without a file that Load reads.
func NoFiles(paths []string) bool {
	return !slices.ContainsFunc(paths, func(path string) bool {
		entries, err := os.ReadDir(path)
		return err != nil || slices.ContainsFunc(entries, isFile)
	})
}

func (l *loader) open(path string) {
	f, err := os.Open(path)
	if err != nil {
		l.file(path, "cannot read file: %v", reason(err))
		return
	}
	defer f.Close()
	l.read(path, f)
}

// reason returns the cause without the path, which the message already contains.
func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (l *loader) read(name string, r io.Reader) {
	l.files = append(l.files, name)
	text, err := io.ReadAll(io.LimitReader(r, MaxFile+1))
	switch {
	case err != nil:
		l.file(name, "cannot read file: %v", reason(err))
		return
	case len(text) > MaxFile:
		l.file(name, "the file is larger than %d MiB: split it", MaxFile>>20)
		return
	}
	s := &source{file: name, now: l.now}
	docs := s.documents(text)
	if len(docs) == 0 && len(s.mistakes) == 0 {
		if bytes.Contains(text, []byte("# kind: ")) {
			l.file(name, "every line is a comment: remove the \"# \" before each line of a document, from its kind on")
		} else {
			l.file(name, "%s", noDocument())
		}
	}
	for _, doc := range docs {
		l.document(s, doc)
	}
	l.mistakes = append(l.mistakes, s.mistakes...)
}

func (l *loader) document(s *source, doc *node) {
	if doc.shape != mapping {
		s.addError(doc.position, "", "the document is %s: write a mapping that begins with its kind: %s", doc.shape, anyKind())
		return
	}
	for _, p := range doc.pairs {
		if p.key != "kind" {
			continue
		}
		if read, ok := kinds[p.value.text]; ok && p.value.shape == scalar {
			read(&l.set, s, doc)
		} else {
			s.addError(p.position, "kind", "%s", unknownKind(p.value))
		}
		return
	}
	at := doc.position
	remedy := "write for example kind: Interface; the kinds are " + anyKind()
	if len(doc.pairs) > 0 && nearest(doc.pairs[0].key, []string{"kind"}) != "" {
		at, remedy = doc.pairs[0].position, fmt.Sprintf("did you mean kind instead of %q?", doc.pairs[0].key)
	}
	s.addError(at, "kind", "the document has no kind: %s", remedy)
}

func unknownKind(n *node) string {
	if n.shape != scalar {
		return fmt.Sprintf("the kind is %s: write %s", n.shape, anyKind())
	}
	names := slices.Sorted(maps.Keys(kinds))
	for _, name := range names {
		if strings.EqualFold(name, n.text) || nearest(n.text, names) == name {
			return fmt.Sprintf("unknown kind %q: did you mean %s?", n.text, name)
		}
	}
	return fmt.Sprintf("unknown kind %q: write %s", n.text, anyKind())
}

// anyKind lists the kinds of documents.
func anyKind() string { return strings.Join(slices.Sorted(maps.Keys(kinds)), " or ") }

func noDocument() string {
	return "no document found: write one that begins with its kind: " + anyKind()
}

// checkDuplicateDevs reports devices that more than one document configures.
func (l *loader) checkDuplicateDevs() {
	first := map[string]Interface{}
	for _, i := range l.set.Interfaces {
		if i.Dev == "" {
			continue
		}
		earlier, dup := first[i.Dev]
		if !dup {
			first[i.Dev] = i
			continue
		}
		_, line, column := i.Where("dev")
		l.mistakes = append(l.mistakes, Error{i.File, line, column, "dev",
			fmt.Sprintf("%q is already configured in %s: write both directions in one document", i.Dev, earlier.Name())})
	}
}

// For returns the Interface of an existing device: the one that names the device, or else the
// first whose pattern matches.
func (s Set) For(dev string) (Interface, bool) {
	all := make([]string, len(s.Interfaces))
	for n := range s.Interfaces {
		all[n] = s.Interfaces[n].Dev
	}
	if n := s.names.Of(dev, all); n >= 0 {
		return s.Interfaces[n], true
	}
	return Interface{}, false
}
