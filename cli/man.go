package cli

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes manual pages for packages. It is hidden from the list of commands.
func manCommand(*app) *cobra.Command {
	return &cobra.Command{
		Use:   "man DIR",
		Short: "Write manual pages",
		Long: `Man writes a page for each command into a folder, which it creates: headgate.1,
headgate-apply.1 and so on. SOURCE_DATE_EPOCH in the environment sets the date of the pages.`,
		Example: "  headgate man ./man",
		Hidden:  true,
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return fmt.Errorf("cannot write manual pages: %w", err)
			}
			root := c.Root()
			root.DisableAutoGenTag = true
			header := &doc.GenManHeader{Title: "HEADGATE", Section: "1", Source: "Headgate " + version, Manual: "Headgate"}
			if err := doc.GenManTree(root, header, args[0]); err != nil {
				return fmt.Errorf("cannot write manual pages: %w", err)
			}
			return nil
		},
	}
}
