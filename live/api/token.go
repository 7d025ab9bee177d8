package api

import (
	"crypto/rand"
	"encoding/base32"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope says what a token is good for. Each scope includes those before it.
type Scope uint8

// String returns the name of s; empty if s is not a scope.
func (s Scope) String() string { return scopeNames[s] }

// MarshalText implements encoding.TextMarshaler.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Scope) UnmarshalText(text []byte) error {
	i := slices.Index(scopeNames[:], string(text))
	if i <= int(NoScope) {
		return fmt.Errorf("scope %q: must be one of %s", text, strings.Join(ScopeNames(), ", "))
	}
	*s = Scope(i)
	return nil
}

const (
	NoScope     Scope = iota
	ReadScope         // to see what its user may see
	SubmitScope       // to submit jobs, to change those of its user, and what is known of their applications
	AdminScope        // to do what operators may do, if its user is one
)

var scopeNames = [...]string{ReadScope: "read", SubmitScope: "submit", AdminScope: "admin"}

// ScopeNames returns the names of all scopes, each of which includes those before it.
func ScopeNames() []string { return scopeNames[ReadScope:] }

// Token is what is known of a token. Its secret is not known to the daemon.
type Token struct {
	ID      int64     `json:"id" doc:"the number in the text of the token"`
	UID     uint32    `json:"uid" doc:"of its user"`
	User    string    `json:"user" doc:"the name of its user"`
	Scope   Scope     `json:"scope" examples:"read,submit,admin" doc:"what it is good for; each scope includes those before it"`
	Created time.Time `json:"created" doc:"when it was created"`
	Expires time.Time `json:"expires" doc:"when it expires"`
	Revoked time.Time `json:"revoked,omitzero" doc:"omitted if it was not revoked"`
	Used    time.Time `json:"used,omitzero" doc:"when it was last used, to the hour; omitted if it was not used"`
}

// NewToken is a request to create a token.
type NewToken struct {
	User     string        `json:"user,omitempty" doc:"the name of its user; if left out, the caller. Only root creates tokens for others"`
	Scope    Scope         `json:"scope" enum:"read,submit,admin" doc:"what it is good for; admin only for operators"`
	Lifetime time.Duration `json:"lifetime_ns" doc:"after which it expires: from one minute to 365 days"`
}

// IssuedToken is a new token. The secret is shown once, here.
type IssuedToken struct {
	Token
	Secret string `json:"secret" doc:"the text of the token, which clients send. It is not stored and is shown only here"`
}

// The bounds of a token's lifetime.
const (
	LeastLifetime = time.Minute
	MostLifetime  = 365 * 24 * time.Hour
)

// The text of a token is bellows_ID_SECRET: a prefix by which programs find texts that should be secret, the id of
// the token, which is not secret, and 256 random bits in 52 letters and digits of base 32. What is stored is the
// SHA-256 of the secret: a slow hash is for secrets that people choose.
const (
	tokenPrefix  = "bellows_"
	secretBytes  = 32
	secretLength = (8*secretBytes + 4) / 5
	secretDigits = "abcdefghijklmnopqrstuvwxyz234567"
)

var secretEncoding = base32.NewEncoding(secretDigits).WithPadding(base32.NoPadding)

// NewSecret returns a random secret.
func NewSecret() string {
	var random [secretBytes]byte
	_, _ = rand.Read(random[:]) // It never fails: a system without random numbers ends the program.
	return secretEncoding.EncodeToString(random[:])
}

// TokenText returns the text of a token.
func TokenText(id int64, secret string) string {
	return tokenPrefix + strconv.FormatInt(id, 10) + "_" + secret
}

// ParseToken parses the text of a token; ok is false if text is not a token.
func ParseToken(text string) (id int64, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	number, secret, found := strings.Cut(rest, "_")
	id, err := strconv.ParseInt(number, 10, 64)
	if !ok || !found || err != nil || id <= 0 || strconv.FormatInt(id, 10) != number || len(secret) != secretLength ||
		strings.Trim(secret, secretDigits) != "" {
		return 0, "", false
	}
	return id, secret, true
}
