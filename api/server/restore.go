package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	api "headgate.dev/headgate/api/client"
	"headgate.dev/headgate/store"
)

// errRestored refuses a token of a backup that no operator has confirmed.
var errRestored = refuse(http.StatusUnauthorized, "the service was restored from a backup, and tokens of the backup are refused until an operator confirms them: some may have been revoked since (\"headgate controller confirm-restore\", with the token that the controller has created at its start)")

// restoredThings returns the valid tokens and the hosts of a backup at a revision.
func restoredThings(tokens, hosts []store.Doc, revision int64) (out api.Restore, err error) {
	out.Tokens, out.Hosts = []api.Token{}, []api.Host{}
	for _, d := range tokens {
		var t store.Token
		if err := d.Into(&t); err != nil {
			return out, err
		}
		if d.Revision < revision && time.Now().Before(t.Expires) {
			out.Tokens = append(out.Tokens, tokenOf(t))
		}
	}
	for _, d := range hosts {
		var h store.Host
		if err := d.Into(&h); err != nil {
			return out, err
		}
		if d.Revision < revision && !h.Revoked {
			out.Hosts = append(out.Hosts, hostConfig(h))
		}
	}
	return out, nil
}

// GetRestore shows the restore that is not confirmed, with the tokens and hosts of the backup.
func (s *Server) GetRestore(w http.ResponseWriter, r *http.Request) {
	doc, there, err := s.Store.Get(r.Context(), store.RestoreKey, 0)
	if err == nil && !there {
		err = refuse(http.StatusNotFound, "no restore waits for a confirmation")
	}
	var is store.Restore
	if err == nil {
		err = doc.Into(&is)
	}
	var out api.Restore
	if err == nil {
		var tokens, hosts []store.Doc
		var tokensErr, hostsErr error
		tokens, _, tokensErr = s.Store.All(r.Context(), store.Prefix(store.Tokens), 0)
		hosts, _, hostsErr = s.Store.All(r.Context(), store.Prefix(store.Hosts), 0)
		if err = errors.Join(tokensErr, hostsErr); err == nil {
			out, err = restoredThings(tokens, hosts, doc.Revision)
		}
	}
	out.At = is.At
	writeResource(w, r, out, err)
}

// ConfirmRestore revokes some tokens and hosts of the backup, and permits all others again.
func (s *Server) ConfirmRestore(w http.ResponseWriter, r *http.Request, _ api.ConfirmRestoreParams) {
	want, err := parseBody[api.RestoreConfirmation](r)
	if err != nil {
		problem(w, r, err)
		return
	}
	s.change(w, r, store.RestoreKey, func(c *changeRequest) (response, error) {
		c.resource = resourceOf(store.RestoreKey)
		_, revision, err := c.tx.Unconfirmed()
		if err != nil {
			return response{}, err
		}
		if revision == 0 {
			return response{}, refuse(http.StatusNotFound, "no restore waits for a confirmation")
		}
		if err := c.revokeTokens(valueOr(want.RevokeTokens, nil)); err != nil {
			return response{}, err
		}
		for _, name := range valueOr(want.RevokeHosts, nil) {
			key := store.Key(store.Hosts, name)
			var h store.Host
			if _, there, err := c.tx.Get(key, &h); err != nil {
				return response{}, err
			} else if !there {
				return response{}, invalidField("revoke_hosts", fmt.Errorf("host %q does not exist", name))
			}
			h.Revoked = true
			if err := c.tx.Put(key, h); err != nil {
				return response{}, err
			}
		}
		c.tx.Delete(store.RestoreKey)
		return noContent, nil
	})
}

// TakeBack begins a new epoch, which is later than that of any agent that is known to be ahead.
func (s *Server) TakeBack(w http.ResponseWriter, r *http.Request, _ api.TakeBackParams) {
	s.change(w, r, store.EpochKey, func(c *changeRequest) (response, error) {
		c.resource = resourceOf(store.EpochKey)
		var epoch, highest uint64
		if _, _, err := c.tx.Get(store.EpochKey, &epoch); err != nil {
			return response{}, err
		}
		if s.HighestEpoch != nil {
			highest = s.HighestEpoch()
		}
		epoch = max(epoch+1, highest+1, uint64(time.Now().Unix()))
		if err := c.tx.Put(store.EpochKey, epoch); err != nil {
			return response{}, err
		}
		return respondWith(http.StatusOK, struct {
			Epoch uint64 `json:"epoch"`
		}{epoch})
	})
}

// revokeTokens revokes tokens by their ids.
func (c *changeRequest) revokeTokens(ids []string) error {
	if len(ids) == 0 {
		return nil
	}
	docs, err := c.tx.All(store.Prefix(store.Tokens))
	if err != nil {
		return err
	}
	left := slices.Clone(ids)
	for _, d := range docs {
		var t store.Token
		if err := d.Into(&t); err != nil {
			return err
		}
		if slices.Contains(ids, t.ID) {
			c.tx.Delete(d.Key)
			left = slices.DeleteFunc(left, func(id string) bool { return id == t.ID })
		}
	}
	if len(left) > 0 {
		return invalidField("revoke_tokens", fmt.Errorf("token %q does not exist", left[0]))
	}
	return nil
}
