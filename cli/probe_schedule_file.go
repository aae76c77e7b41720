package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/goccy/go-yaml"

	"headgate/config"
	"headgate/probe/schedule"
)

// readSchedule reads a schedule from a file; mistakes in it have their lines.
func readSchedule(file string, stdin io.Reader) (s schedule.Schedule, err error) {
	var text []byte
	if file == "-" {
		text, err = io.ReadAll(stdin)
	} else {
		text, err = os.ReadFile(file)
	}
	if err != nil {
		return s, err
	}
	if err := yaml.UnmarshalWithOptions(text, &s, yaml.Strict()); err != nil {
		m := config.Mistake{File: file, Message: err.Error()}
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			m.Line, m.Message = at.GetToken().Position.Line, at.GetMessage()+": \"headgate probe schedule set --help\" shows what may be there"
		}
		return s, config.Mistakes{m}
	}
	s = s.Whole()
	var mistakes config.Mistakes
	for _, p := range s.Check() {
		mistakes = append(mistakes, config.Mistake{File: file, Line: lineOf(text, p.Field), Key: keyOf(p.Field), Message: p.Message})
	}
	if len(mistakes) > 0 {
		return s, mistakes
	}
	return s, nil
}

// keyOf is a field in the words of a file: hosts[1].address.
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

// lineOf is the line of a field, or of what is around it.
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
