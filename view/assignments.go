package view

import (
	"fmt"
	"io"

	"headgate.dev/headgate/internal/text"
	"headgate.dev/headgate/shaper"
)

// DeviceAssignments are the connections that are assigned to groups of a device.
type DeviceAssignments struct {
	Dev         string              `json:"dev"`
	Assignments []shaper.Assignment `json:"assignments"`
}

// WriteAssignments prints a line for each connection.
func WriteAssignments(w io.Writer, all []DeviceAssignments) error {
	rows := [][]string{{"DEV", "GROUP", "CONNECTION"}}
	for _, d := range all {
		for _, one := range d.Assignments {
			rows = append(rows, []string{d.Dev, one.Group, one.Conn.String()})
		}
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintln(w, "no connection is assigned: assign one with \"headgate assign GROUP\"")
		return err
	}
	return text.Table(w, "", rows)
}
