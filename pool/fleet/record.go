package fleet

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/live/api"
)

// record is a pool as it is kept in the state directory, in a file of its own: a damaged file harms no other pool.
type record struct {
	// ID is unique among all pools, later ones of the same name included.
	ID string `json:"id"`
	// As is the owner with the rights that it had when it made the pool or last changed it: executors have the same.
	As   cluster.Credentials `json:"as"`
	Spec api.PoolSpec        `json:"spec"`
	// Launched is the number of the newest executor. No number is used twice, so the secret of an executor is good for
	// one launch.
	Launched int `json:"launched"`
	// Changed is the number of the newest executor when the definition of executors last changed: earlier ones are
	// replaced.
	Changed int `json:"changed,omitempty"`
	// Removed says that the pool ends as soon as its executors have.
	Removed bool `json:"removed,omitempty"`
}

// ref returns the name of the pool.
func (r *record) ref() api.PoolRef {
	o := api.OwnerOf(r.As)
	return api.PoolRef{UID: o.UID, User: o.Name, Name: r.Spec.Name}
}

// book is the folder with the records.
type book struct{ dir string }

const recordSuffix = ".json"

// openBook opens the folder of records in a state directory, and makes it if it is missing.
func openBook(state string) (book, error) {
	b := book{filepath.Join(state, "pools")}
	if err := durable.MakeDir(b.dir); err != nil {
		return b, fmt.Errorf("make the folder of pools: %w", err)
	}
	if err := durable.SyncDir(state); err != nil {
		return b, fmt.Errorf("make the folder of pools: %w", err)
	}
	return b, nil
}

func (b book) path(r *record) string {
	return filepath.Join(b.dir, r.Spec.Name+"-"+r.ID+recordSuffix)
}

// write stores a record. Afterwards a loss of power cannot undo it.
func (b book) write(r *record) error {
	text, err := json.Marshal(r)
	if err == nil {
		err = durable.Write(b.path(r), append(text, '\n'))
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("store pool %q in %s: its disk is full: free some space", r.Spec.Name, b.dir)
	case err != nil:
		return fmt.Errorf("store pool %q: %w", r.Spec.Name, err)
	}
	return nil
}

// remove removes a record.
func (b book) remove(r *record) error {
	err := durable.RemoveAll(b.path(r))
	if err == nil {
		err = durable.SyncDir(b.dir)
	}
	if err != nil {
		return fmt.Errorf("remove pool %q: %w", r.Spec.Name, err)
	}
	return nil
}

// read returns all records. damaged is called for each file that is not a record.
func (b book) read(damaged func(file string, err error)) (all []*record, err error) {
	entries, err := os.ReadDir(b.dir)
	if err != nil {
		return nil, fmt.Errorf("read the pools: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(b.dir, entry.Name())
		if !strings.HasSuffix(path, recordSuffix) {
			continue
		}
		r, err := b.readOne(path)
		if err != nil {
			damaged(path, err)
			continue
		}
		all = append(all, r)
	}
	return all, nil
}

func (b book) readOne(path string) (*record, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, err
	}
	if r.ID == "" || r.Launched < 0 || b.path(r) != path {
		return nil, errors.New("it is not the definition of a pool, or not of the one that its name says")
	}
	return r, Check(r.Spec)
}

// newID returns an ID that no other pool has.
func newID() string { return rand.Text()[:16] }
