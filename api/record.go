package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"headgate/store"
)

func entryOf(e store.AuditEntry, revision int64) AuditEntry {
	role := Role(e.Role)
	return AuditEntry{Id: e.ID, At: e.At, By: e.By, Role: &role, What: e.What, Status: &e.Status, Revision: &revision}
}

// ListAudit lists changes, the newest first; a tenant's its own.
func (s *Server) ListAudit(w http.ResponseWriter, r *http.Request, p ListAuditParams) {
	by := principalOf(r)
	out, err := s.audit(r.Context(), or(p.Before, ""), or(p.Limit, ordinaryPage), func(e store.AuditEntry, _ int64) bool { return by.Tenant == "" || e.Tenant == by.Tenant })
	show(w, r, out, err)
}

// ListHistory lists an interface's, also of one that was given back.
func (s *Server) ListHistory(w http.ResponseWriter, r *http.Request, host, dev string, p ListHistoryParams) {
	_, there := s.readInterface(r, host, dev, 0)
	var refusal *Refusal
	if there != nil && !errors.As(there, &refusal) {
		problem(w, r, there)
		return
	}
	of, remembered := resourceOf(ledger(host, dev)), true
	// byFile tells whether a file changed it, which may be about other devices.
	byFile := func(revision int64) bool {
		if !remembered {
			return false
		}
		d, ok, err := s.Store.Get(r.Context(), ledger(host, dev), revision)
		remembered = !errors.Is(err, store.ErrCompacted)
		return err == nil && ok && d.Revision == revision
	}
	before := or(p.Before, "")
	out, err := s.audit(r.Context(), before, or(p.Limit, ordinaryPage), func(e store.AuditEntry, revision int64) bool {
		return e.Resource == of || strings.HasPrefix(e.Resource, of+"/") || e.Resource == "policy/"+host && byFile(revision)
	})
	if err == nil && len(out.Items) == 0 && out.Next == "" && before == "" {
		err = there
	}
	show(w, r, out, err)
}

// mostAudited is how many entries are read for one answer: what is asked for may be rare among them, or
// not there at all.
const mostAudited = 2000

// audit reads the record backwards from an entry, "" for the newest. If that takes long the answer has
// fewer than could be, and next all the same.
func (s *Server) audit(ctx context.Context, before string, most int, wanted func(e store.AuditEntry, revision int64) bool) (page[AuditEntry], error) {
	out := page[AuditEntry]{Items: []AuditEntry{}}
	read, second := 0, time.Time{}
	err := s.Store.Backwards(ctx, store.Prefix(store.Audit), before, func(d store.Doc) (more bool, err error) {
		var e store.AuditEntry
		if err := d.Into(&e); err != nil {
			return false, err
		}
		at := e.At.Truncate(time.Second)
		if read >= mostAudited && at.Before(second) {
			// The name of what was read last may be another's to know; the second in which it was tells nothing.
			out.Next = fmt.Sprintf("%016x", second.UnixNano())
			return false, nil
		}
		read, second = read+1, at
		if !wanted(e, d.Revision) {
			return true, nil
		}
		if len(out.Items) == most {
			out.Next = out.Items[most-1].Id
			return false, nil
		}
		out.Items = append(out.Items, entryOf(e, d.Revision))
		return true, nil
	})
	return out, err
}
