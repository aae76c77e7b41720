package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
	by := principalOf(r)
	_, there := s.readInterface(r, host, dev, 0)
	var refusal *Refusal
	if there != nil && (by.Tenant != "" || !errors.As(there, &refusal)) {
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
	out, err := s.audit(r.Context(), "", or(p.Limit, ordinaryPage), func(e store.AuditEntry, revision int64) bool {
		changed := e.Resource == of || strings.HasPrefix(e.Resource, of+"/") || e.Resource == "policy/"+host && byFile(revision)
		return changed && (by.Tenant == "" || e.Tenant == by.Tenant)
	})
	if err == nil && len(out.Items) == 0 {
		err = there
	}
	out.Next = ""
	show(w, r, out, err)
}

// audit reads the record backwards from an entry, "" for the newest.
func (s *Server) audit(ctx context.Context, before string, most int, wanted func(e store.AuditEntry, revision int64) bool) (page[AuditEntry], error) {
	out := page[AuditEntry]{Items: []AuditEntry{}}
	err := s.Store.Backwards(ctx, store.Prefix(store.Audit), before, func(d store.Doc) (more bool, err error) {
		var e store.AuditEntry
		if err := d.Into(&e); err != nil {
			return false, err
		}
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

// GetRates shows what groups carry.
func (s *Server) GetRates(w http.ResponseWriter, r *http.Request, host string) {
	out, ok := s.Agents.Rates(host)
	if by := principalOf(r); ok && by.Tenant != "" {
		mine, err := s.mine(r, host, by.Tenant)
		if err != nil {
			problem(w, r, err)
			return
		}
		out.Items = slices.DeleteFunc(slices.Clone(out.Items), func(g GroupRates) bool { return !mine[g.Dev+" "+g.Direction+"/"+g.Group] })
		ok = len(mine) > 0
	}
	if !ok {
		problem(w, r, notFound("connected host", host))
		return
	}
	show(w, r, out, nil)
}

// mine are a tenant's groups on a host, as "eth0 out/web".
func (s *Server) mine(r *http.Request, host, tenant string) (map[string]bool, error) {
	out := map[string]bool{}
	docs, _, _, err := s.Store.List(r.Context(), store.Prefix(store.Interfaces, host), "", 0)
	if err != nil {
		return nil, err
	}
	for _, d := range docs {
		var i store.Interface
		if err := d.Into(&i); err != nil {
			return nil, err
		}
		for _, direction := range directions {
			all, err := states(&i, direction, store.Token{Tenant: tenant})
			if err != nil {
				return nil, err
			}
			for _, g := range all {
				out[i.Dev+" "+direction+"/"+g.Path] = true
			}
		}
	}
	return out, nil
}

// GetUsage shows what groups had.
func (s *Server) GetUsage(w http.ResponseWriter, r *http.Request, p GetUsageParams) {
	by := principalOf(r)
	tenant := or(p.Tenant, by.Tenant)
	if by.Tenant != "" && tenant != by.Tenant {
		problem(w, r, notFound("tenant", tenant))
		return
	}
	docs, _, _, err := s.Store.List(r.Context(), store.Prefix(store.Interfaces), "", 0)
	if err != nil {
		problem(w, r, err)
		return
	}
	owners := map[string]*store.Interface{}
	var hosts []string
	for _, d := range docs {
		var i store.Interface
		if err := d.Into(&i); err != nil {
			problem(w, r, err)
			return
		}
		_, name := store.Name(d.Key)
		if p.Host != nil && *p.Host != name[0] || tenant != "" && !i.HasTenant(tenant) {
			continue
		}
		owners[name[0]+" "+i.Dev] = &i
		hosts = append(hosts, name[0])
	}
	slices.Sort(hosts)
	rows, missing := s.Agents.Usage(r.Context(), slices.Compact(hosts), p.Since, or(p.Until, time.Now()))
	out := UsageList{Items: []Usage{}, Missing: &missing}
	for _, u := range rows {
		if i := owners[u.Host+" "+u.Dev]; i != nil {
			if t := i.Owner(u.Direction, u.Group); t != "" {
				u.Tenant = &t
			}
		}
		if tenant == "" || u.Tenant != nil && *u.Tenant == tenant {
			out.Items = append(out.Items, u)
		}
	}
	slices.SortFunc(out.Items, func(a, b Usage) int {
		return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Dev, b.Dev), cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Group, b.Group))
	})
	show(w, r, out, nil)
}

// WatchEvents tells of changes as they are made.
func (s *Server) WatchEvents(w http.ResponseWriter, r *http.Request, p WatchEventsParams) {
	by := principalOf(r)
	after := or(p.After, 0)
	if p.LastEventID != nil {
		after = *p.LastEventID
	}
	rc := http.NewResponseController(w)
	send := func(id int64, event string, data any) error {
		text, err := json.Marshal(data)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", strconv.FormatInt(id, 10), event, text); err != nil {
			return err
		}
		return rc.Flush()
	}
	_, _, now, err := s.Store.List(r.Context(), store.Prefix(store.Service), "", 1)
	if err != nil {
		problem(w, r, err)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	if after == 0 || after > now { // from now on; a store that was restored may be behind
		after = now
	}
	if send(after, "hello", struct {
		Revision int64 `json:"revision"`
	}{after}) != nil {
		return
	}
	for {
		err := s.Store.Watch(r.Context(), store.Prefix(store.Audit), after, func(revision int64, events []store.Event) error {
			after = revision
			for _, e := range events {
				var entry store.AuditEntry
				if e.Value == nil || e.Into(&entry) != nil || by.Tenant != "" && entry.Tenant != by.Tenant {
					continue
				}
				if err := send(revision, "change", entryOf(entry, revision)); err != nil {
					return err
				}
			}
			return nil
		}, func(revision int64) error {
			after = revision
			return send(revision, "quiet", struct{}{})
		})
		switch {
		case r.Context().Err() != nil:
			return
		case errors.Is(err, store.ErrCompacted):
			_, _, now, err := s.Store.List(r.Context(), store.Prefix(store.Service), "", 1)
			if err != nil || send(now, "reset", struct{}{}) != nil {
				return
			}
			after = now
		default:
			return // the client comes again, with what it has seen
		}
	}
}
