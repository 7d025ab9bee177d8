package server

import (
	"crypto/sha256"
	"io"
	"strconv"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/live"
	"github.com/bellows-rm/bellows/live/api"
)

// keyed is a request that can have a key: draft-ietf-httpapi-idempotency-key-header. Of the other requests, none does
// more when it arrives twice than when it arrives once.
type keyed[T any] struct {
	Key    string `header:"Idempotency-Key" doc:"what the caller calls the request by, 1 to 200 visible ASCII characters, in quotes or not: for 24 hours, the caller's request with the same key is not carried out again, but answered as the first was; another request with the key is refused"`
	Digest digest // set by register
	Body   T
}

// digest is that of a request: of its operation and its body, byte by byte.
type digest [sha256.Size]byte

func digestOf(operation string, body []byte) (d digest) {
	h := sha256.New()
	_, _ = io.WriteString(h, operation+"\n") // a hash takes everything
	_, _ = h.Write(body)
	h.Sum(d[:0])
	return d
}

// key returns the key of a request; the zero value if it has none.
func (k *keyed[T]) key() (live.Key, error) {
	text, quoted := strings.CutPrefix(k.Key, `"`)
	if quoted {
		text, quoted = strings.CutSuffix(text, `"`)
		if !quoted {
			text = "" // is refused
		}
	} else if text == "" {
		return live.Key{}, nil
	}
	visible := func(c byte) bool { return c > ' ' && c <= '~' && c != '"' && c != '\\' }
	ok := text != "" && len(text) <= cluster.LongestName
	for i := range len(text) {
		ok = ok && visible(text[i])
	}
	if !ok {
		return live.Key{}, wrong("Idempotency-Key", strconv.Quote(api.Clipped(k.Key)),
			"must be 1 to %d visible ASCII characters, with or without quotes around them", cluster.LongestName)
	}
	return live.Key{Text: text, Digest: k.Digest}, nil
}
