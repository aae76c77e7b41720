package config

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"headgate.dev/headgate/probe/schedule"
)

// LoadSchedule reads a probe schedule, which belongs to a service and is no document with a kind, from a file or,
// for "-", from stdin. Its keys are those of the API. The error is an Errors.
func LoadSchedule(file string, stdin io.Reader) (s schedule.Schedule, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return s, Errors{{File: file, Message: "cannot read the file: " + err.Error()}}
	}
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		m := Error{File: file, Message: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			m.Line, m.Message = at.GetToken().Position.Line, at.GetMessage()+": see \"headgate probe schedule set --help\" for the keys"
		}
		return s, Errors{m}
	}
	s = s.WithDefaults()
	var mistakes Errors
	for _, p := range s.Check() {
		mistakes = append(mistakes, Error{File: file, Line: fieldLine(text, p.Field), Key: fieldKey(p.Field), Message: p.Message})
	}
	if len(mistakes) > 0 {
		return s, mistakes
	}
	return s, nil
}

// fieldKey converts a field path to the notation of files: hosts.1.address to hosts[1].address.
func fieldKey(field string) (key string) {
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

// fieldLine returns the line of a field or, if the field is not in the file, of its parent.
func fieldLine(text []byte, field string) int {
	for at := strings.Split(field, "."); len(at) > 0; at = at[:len(at)-1] {
		p, err := yaml.PathString("$." + fieldKey(strings.Join(at, ".")))
		if err != nil {
			continue
		}
		if node, err := p.ReadNode(bytes.NewReader(text)); err == nil && node != nil && node.GetToken() != nil {
			return node.GetToken().Position.Line
		}
	}
	return 0
}
