package server

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strings"
	"time"

	"headgate.dev/headgate/store"
)

// tokenPrefix is the start of every token, by which secret scanners find leaked tokens.
const tokenPrefix = "hg_"

// NewSecret returns a new token of 256 random bits.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:])
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
}

// tokenKey returns the store key of a token, which contains its SHA-256, and the token's id. A secret of 256
// random bits needs no salt.
func tokenKey(secret string) (key, id string) {
	sum := sha256.Sum256([]byte(secret))
	hash := hex.EncodeToString(sum[:])
	return store.Key(store.Tokens, hash), hash[:idLength]
}

// idLength is the length of a token's id, which is the start of its hash.
const idLength = 12

// principalKey is the context key of the principal.
type principalKey struct{}

// principalOf returns the caller's token.
func principalOf(r *http.Request) store.Token {
	p, _ := r.Context().Value(principalKey{}).(store.Token)
	return p
}

// authenticate looks up the token of a request.
func (s *Server) authenticate(r *http.Request) (store.Token, error) {
	secret := bearerToken(r)
	if secret == "" {
		return store.Token{}, refuse(http.StatusUnauthorized, "missing bearer token: send a token (Authorization: Bearer hg_...)")
	}
	key, _ := tokenKey(secret)
	if wait := s.rateLimits.exhausted(key); wait > 0 {
		return store.Token{}, tooMany(wait)
	}
	p, err := s.checkToken(r, secret)
	if err == nil {
		s.rateLimits.remember(key, p)
	}
	return p, err
}

// bearerToken returns the bearer token of a request, "" if it has none.
func bearerToken(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return secret
}

// lookupToken validates a bearer token: it refuses one that the store does not have, and an expired token.
func (s *Server) lookupToken(ctx context.Context, secret string) (p store.Token, err error) {
	key, _ := tokenKey(secret)
	doc, ok, err := s.Store.Get(ctx, key, 0)
	if err != nil {
		return p, err
	}
	if ok {
		err = doc.Into(&p)
	}
	if err == nil && (!ok || time.Now().After(p.Expires)) {
		err = refuse(http.StatusUnauthorized, "the token is invalid, expired or revoked")
	}
	if err == nil && s.Restored != nil {
		var revision int64
		if revision, err = s.Restored(ctx); err == nil && doc.Revision < revision {
			err = errRestored
		}
	}
	return p, err
}

// FirstToken returns the operator's first token, with the given secret and the default lifetime, and its
// store key.
func FirstToken(secret string) (key string, t store.Token) {
	key, id := tokenKey(secret)
	now := time.Now().UTC().Truncate(time.Second)
	return key, store.Token{ID: id, Name: "first", Role: store.Operator, Created: now, Expires: now.Add(defaultTokenLifetime)}
}
