package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"headgate.dev/headgate/unit"
)

// enumFlag is a flag whose value is one of a list of words.
type enumFlag struct {
	value *string
	words []string
}

func (w enumFlag) String() string { return *w.value }
func (w enumFlag) Type() string   { return strings.Join(w.words, "|") }

// Set implements pflag.Value.
func (w enumFlag) Set(s string) error {
	if !slices.Contains(w.words, s) {
		last := len(w.words) - 1
		if last == 0 {
			return fmt.Errorf("write %s", w.words[0])
		}
		return fmt.Errorf("write %s or %s", strings.Join(w.words[:last], ", "), w.words[last])
	}
	*w.value = s
	return nil
}

// methodFlag adds --method, which selects Headgate's estimation method or that of the
// estimation seed.
func methodFlag(c *cobra.Command, method *string, usage string) {
	words := []string{"ours", "seed"}
	*method = words[0]
	c.Flags().Var(enumFlag{method, words}, "method", usage)
	completeFlag(c, "method", oneOf(words...))
}

// rateFlag is a flag whose value is a rate.
type rateFlag unit.Rate

func (r *rateFlag) Type() string { return "rate" }
func (r *rateFlag) String() string {
	if *r == 0 {
		return ""
	}
	return unit.Rate(*r).String()
}

// Set implements pflag.Value.
func (r *rateFlag) Set(s string) error {
	v, err := unit.ParseRate(s)
	*r = rateFlag(v)
	return err
}

// bytesFlag is a flag whose value is a size in bytes.
type bytesFlag unit.Bytes

func (b *bytesFlag) Type() string   { return "size" }
func (b *bytesFlag) String() string { return unit.Bytes(*b).String() }

// Set implements pflag.Value.
func (b *bytesFlag) Set(s string) error {
	v, err := unit.ParseBytes(s)
	*b = bytesFlag(v)
	return err
}

// shareFlag is a flag whose value is a percentage.
type shareFlag unit.Share

func (s *shareFlag) Type() string   { return "percentage" }
func (s *shareFlag) String() string { return unit.Share(*s).String() }

// Set implements pflag.Value.
func (s *shareFlag) Set(text string) error {
	v, err := unit.ParseShare(text)
	*s = shareFlag(v)
	return err
}
