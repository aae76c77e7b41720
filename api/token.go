package api

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"headgate/store"
)

// tokenPrefix is how a token begins, so that one that is lost in a text is found.
const tokenPrefix = "hg_"

// NewSecret is a token that nobody guesses: 256 random bits.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenKey is where a token is kept. A secret of 256 random bits needs no salt.
func tokenKey(secret string) (key, id string) {
	sum := sha256.Sum256([]byte(secret))
	hash := hex.EncodeToString(sum[:])
	return store.Key(store.Tokens, hash), hash[:idLength]
}

// idLength of a token's name for people: its hash's first digits.
const idLength = 12

type principalKey struct{}

// principalOf is who asks.
func principalOf(r *http.Request) store.Token {
	p, _ := r.Context().Value(principalKey{}).(store.Token)
	return p
}

// authenticate finds out whose token a request has.
func (s *Server) authenticate(r *http.Request) (store.Token, error) {
	secret := secretOf(r)
	if secret == "" {
		return store.Token{}, refuse(http.StatusUnauthorized, "who asks is not said: send a token (Authorization: Bearer hg_...)")
	}
	return s.known(r, secret)
}

// secretOf is the token that a request has, "" if it has none.
func secretOf(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return secret
}

func (s *Server) whose(ctx context.Context, secret string) (p store.Token, err error) {
	key, _ := tokenKey(secret)
	doc, ok, err := s.Store.Get(ctx, key, 0)
	if err != nil {
		return p, err
	}
	if ok {
		err = doc.Into(&p)
	}
	if err == nil && (!ok || time.Now().After(p.Expires)) {
		err = refuse(http.StatusUnauthorized, "the token is not good, or not any more")
	}
	return p, err
}

// may tells whether a role may call an operation at all; what of it is another's is the
// handlers'.
func may(role store.Role, operation string) bool {
	if operation == "getSession" || operation == "deleteSession" {
		return true
	}
	switch role {
	case store.Operator:
		return operation != "signCertificate"
	case store.Viewer:
		return strings.HasPrefix(operation, "get") || strings.HasPrefix(operation, "list") || strings.HasPrefix(operation, "watch")
	case store.TenantRole:
		switch operation {
		case "listHosts", "listInterfaces", "getInterface", "listGroups", "getGroup", "putGroup", "patchGroup", "deleteGroup",
			"listConnections", "putConnection", "deleteConnection", "getRates", "getUsage", "watchEvents", "watchLive", "listAudit",
			"listTokens", "createToken", "deleteToken", "getTenant", "listTenantGroups":
			return true
		}
	case store.Agent:
		return operation == "signCertificate"
	}
	return false
}

// FirstToken is an operator's with that secret, from now on and for the ordinary time, and where it
// is kept.
func FirstToken(secret string) (key string, t store.Token) {
	key, id := tokenKey(secret)
	now := time.Now().UTC().Truncate(time.Second)
	return key, store.Token{ID: id, Name: "first", Role: store.Operator, Created: now, Expires: now.Add(ordinaryLife)}
}
