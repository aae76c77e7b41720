package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// entryOf returns the API form of an audit entry.
func entryOf(e store.AuditEntry, revision int64) api.AuditEntry {
	role := api.Role(e.Role)
	out := api.AuditEntry{Id: e.ID, At: e.At, Principal: e.By, Role: &role, Request: e.Change, Status: &e.Status, Revision: &revision}
	if len(e.Differences) > 0 {
		all := make([]api.Difference, len(e.Differences))
		for i, d := range e.Differences {
			all[i] = api.Difference{Field: d.Field, Before: optional(d.Before), After: optional(d.After)}
		}
		out.Differences, out.MoreDifferences = &all, optional(e.MoreDifferences)
	}
	return out
}

// ListAudit lists the audit log, newest first. A tenant gets only its own changes.
func (s *Server) ListAudit(w http.ResponseWriter, r *http.Request, p api.ListAuditParams) {
	by := principalOf(r)
	out, err := s.audit(r.Context(), valueOr(p.Before, ""), valueOr(p.Limit, defaultPageSize), func(e store.AuditEntry, _ int64) bool { return by.Tenant == "" || e.Tenant == by.Tenant })
	writeResource(w, r, out, err)
}

// ListHistory lists the audit entries of an interface, also of one that has been deleted.
func (s *Server) ListHistory(w http.ResponseWriter, r *http.Request, host, dev string, p api.ListHistoryParams) {
	_, there := s.readInterface(r, host, dev, 0)
	var refusal *Refusal
	if there != nil && !errors.As(there, &refusal) {
		problem(w, r, there)
		return
	}
	of, remembered := resourceOf(interfaceKey(host, dev)), true
	// byFile reports whether a policy changed this interface at a revision: a policy may be about other
	// devices.
	byFile := func(revision int64) bool {
		if !remembered {
			return false
		}
		d, ok, err := s.Store.Get(r.Context(), interfaceKey(host, dev), revision)
		remembered = !errors.Is(err, store.ErrCompacted)
		return err == nil && ok && d.Revision == revision
	}
	before := valueOr(p.Before, "")
	out, err := s.audit(r.Context(), before, valueOr(p.Limit, defaultPageSize), func(e store.AuditEntry, revision int64) bool {
		return e.Resource == of || strings.HasPrefix(e.Resource, of+"/") || e.Resource == "policy/"+host && byFile(revision)
	})
	if err == nil && len(out.Items) == 0 && out.Next == "" && before == "" {
		err = there
	}
	writeResource(w, r, out, err)
}

// maxAuditScan is the number of entries after which a search ends, because matching entries may be rare or
// missing.
const maxAuditScan = 2000

// audit reads the audit log backwards from an entry, "" for the newest, and returns the wanted entries. After
// maxAuditScan entries the page may have fewer items than there are, and has a cursor to go on.
func (s *Server) audit(ctx context.Context, before string, most int, wanted func(e store.AuditEntry, revision int64) bool) (page[api.AuditEntry], error) {
	out := page[api.AuditEntry]{Items: []api.AuditEntry{}}
	read, second := 0, time.Time{}
	err := s.Store.Descending(ctx, store.Prefix(store.Audit), before, func(d store.Doc) (more bool, err error) {
		var e store.AuditEntry
		if err := d.Into(&e); err != nil {
			return false, err
		}
		at := e.At.Truncate(time.Second)
		if read >= maxAuditScan && at.Before(second) {
			// The id of the last entry read may belong to another tenant; its second reveals nothing.
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
