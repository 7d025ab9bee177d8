package live

import (
	"bytes"
	"context"
	"crypto/sha256"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/store"
)

// Key is what a client calls a request by. While the key counts (see store.KeyLife), the same user's request with the
// same key and digest is not carried out again, but answered as the first was; one with another digest is refused.
// The zero value is no key.
type Key struct {
	Text   string            `json:"text"`
	Digest [sha256.Size]byte `json:"digest"` // of the whole request
}

// stored returns a key in the form that is stored; nil if there is none.
func (k *Key) stored(of cluster.Credentials, at timeline.Time) *store.Key {
	if k.Text == "" {
		return nil
	}
	return &store.Key{UID: of.UID, User: of.User, Text: k.Text, Digest: k.Digest[:], At: at}
}

// repeated returns the key as it was stored with an earlier request; nil if there was none. The error is KeyReused if
// that was another request. The key may be nil.
func (d *Driver) repeated(ctx context.Context, key *store.Key) (*store.Key, error) {
	if key == nil {
		return nil, nil
	}
	earlier, err := d.store.Key(ctx, key)
	if err != nil || earlier == nil {
		return nil, err
	}
	return earlier, repeats(key, earlier)
}

// repeats returns a KeyReused unless the request with a key is the earlier one with the same key.
func repeats(key, earlier *store.Key) error {
	if !bytes.Equal(key.Digest, earlier.Digest) {
		return api.Errorf(api.KeyReused,
			"idempotency key %q: belongs to another request, which arrived at %s: a new request needs a new key", key.Text,
			instant(earlier.At).Format(time.DateTime))
	}
	return nil
}
