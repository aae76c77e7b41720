package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"headgate.dev/headgate/config"
	"headgate.dev/headgate/probe/schedule"
)

// readSchedule reads a schedule from a file. Mistakes have line numbers.
func readSchedule(file string, stdin io.Reader) (s schedule.Schedule, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return s, config.Errors{{File: file, Message: "cannot read the file: " + err.Error()}}
	}
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		m := config.Error{File: file, Message: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			m.Line, m.Message = at.GetToken().Position.Line, at.GetMessage()+": see \"headgate probe schedule set --help\" for the keys"
		}
		return s, config.Errors{m}
	}
	s = s.WithDefaults()
	var mistakes config.Errors
	for _, p := range s.Check() {
		mistakes = append(mistakes, config.Error{File: file, Line: lineOf(text, p.Field), Key: keyOf(p.Field), Message: p.Message})
	}
	if len(mistakes) > 0 {
		return s, mistakes
	}
	return s, nil
}

// keyOf converts a field path to the notation of files: hosts.1.address to hosts[1].address.
func keyOf(field string) (key string) {
	for _, part := range strings.Split(field, ".") {
		switch {
		case strings.Trim(part, "0123456789") == "":
			key += "[" + part + "]"
		case key == "":
			key = part
		default:
			key += "." + part
		}
	}
	return key
}

// lineOf returns the line of a field or, if the field is not in the file, of its parent.
func lineOf(text []byte, field string) int {
	for at := strings.Split(field, "."); len(at) > 0; at = at[:len(at)-1] {
		p, err := yaml.PathString("$." + keyOf(strings.Join(at, ".")))
		if err != nil {
			continue
		}
		if node, err := p.ReadNode(bytes.NewReader(text)); err == nil && node != nil && node.GetToken() != nil {
			return node.GetToken().Position.Line
		}
	}
	return 0
}
