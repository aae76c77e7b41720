package pending

import (
	"fmt"
	"time"
)

// Describe describes a pending change for people, with the commands for it; "" if there is none.
func (s *Store) Describe(c Change, stage Stage) string {
	when := c.Began.Local().Format(time.DateTime)
	switch {
	case stage == None:
		return ""
	case s.Rebooted(c):
		return fmt.Sprintf("the machine was restarted before the change of %s to %s was confirmed; the change is lost", when, c.Names())
	case stage == Waiting:
		return fmt.Sprintf("the change of %s to %s is rolled back at %s unless you run \"headgate confirm\"",
			when, c.Names(), c.Deadline().Local().Format(time.TimeOnly))
	case stage == RollingBack:
		return fmt.Sprintf("the change of %s to %s was not confirmed and is being rolled back", when, c.Names())
	case stage == Unfinished:
		return fmt.Sprintf("the change of %s to %s was not confirmed, and its rollback did not finish: run \"headgate confirm --roll-back\" to finish it, or apply a configuration", when, c.Names())
	}
	return fmt.Sprintf("the change of %s to %s was not confirmed, and the process that rolls it back has died: run \"headgate confirm\" to keep it, or \"headgate confirm --roll-back\"", when, c.Names())
}
