package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/durable/statedir"
)

// Errors to test for with errors.Is. A write that fails with ErrFull or ErrReadOnly changed nothing, and may be tried
// again.
var (
	// ErrFull is returned by every method that writes when the disk is full.
	ErrFull = errors.New("its disk is full: free some space")
	// ErrReadOnly is returned by Open, and by every method that writes, when the store cannot be written.
	ErrReadOnly = errors.New("it is read-only: make it writable, or choose another state directory")
	// ErrDamaged is returned by every method when the content of the store cannot be read.
	ErrDamaged = errors.New(
		"restore a copy of it, or begin with an empty store by `bellows up --accept-store`, which moves this one aside")
	// ErrBehind is returned by Open when the store is missing, or an earlier state of it.
	ErrBehind = errors.New("restore its newest copy, or, if it was removed or replaced on purpose, go on without what " +
		"it lacks by `bellows up --accept-store`")
	// ErrNotFound is returned when there is no job or profile of that name.
	ErrNotFound = errors.New("not found")
)

// File is the name of the store in the state directory.
const File = "bellows.db"

// Store is an open store. Its methods may be called from several goroutines at once. Reads do not delay writes.
type Store struct {
	db     *sql.DB // writes: one connection, since writes exclude each other anyway
	reader *sql.DB // reads: each sees what was committed when it began
	path   string
	vfs    string // of SQLite; empty is the usual one
	mark   *mark

	commits atomic.Int64 // that the store has ever had: see countCommit
	full    atomic.Bool  // the last write has failed for want of space

	preparing sync.Mutex
	prepared  map[string]*sql.Stmt // by text, the queries of read
	changes   map[string]*sql.Stmt // by text, the statements of write; nil if it is to be parsed
}

// Open opens the store in a state directory, and makes both if they are missing. Only their owner may access the
// files. The error is ErrBehind if the store is not what it was: see Accept. A store that is there is opened on a
// full disk, too.
func Open(dir string) (*Store, error) {
	s, err := newStore(dir)
	if err != nil {
		return nil, err
	}
	err = s.isMissing()
	if err == nil {
		err = s.onAnyDisk(func() error { return s.open(s.isBehind) })
	}
	if err != nil {
		return nil, s.explain("open", err)
	}
	return s, nil
}

// newStore returns the store of a state directory, which is there then. It has yet to be opened.
func newStore(dir string) (*Store, error) {
	s := &Store{path: filepath.Join(dir, File), prepared: map[string]*sql.Stmt{}}
	err := statedir.Make(dir)
	if err == nil {
		s.mark, err = openMark(dir)
	}
	if err != nil {
		return nil, s.explain("open", err)
	}
	return s, nil
}

// onAnyDisk opens the file. What a loss of power interrupted before the store had a write-ahead log is undone first.
// If the disk has no space for the index of that log, which is for all processes, the index is in the memory of this
// process, and others cannot open the store meanwhile.
func (s *Store) onAnyDisk(open func() error) error {
	err := open()
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_READONLY_ROLLBACK {
		if err = s.rollBack(); err == nil {
			err = open()
		}
	}
	if causedBy(err, ErrFull) {
		s.vfs = "unix-excl"
		err = open()
	}
	return err
}

// rollBack undoes what the journal beside the file says, which readers may not.
func (s *Store) rollBack() error {
	db, err := s.connect(1, url.Values{"_pragma": {"busy_timeout(10000)"}})
	if err != nil {
		return err
	}
	_, err = db.Exec("SELECT count(*) FROM sqlite_schema") // Whoever reads does it.
	return errors.Join(err, db.Close())
}

// open opens the file, unless check fails. Readers come first: whoever closes a store that was opened for writing
// clears its write-ahead log.
func (s *Store) open(check func() error) error {
	fresh, err := s.touch()
	if err != nil {
		return err
	}
	const readers = 4 // further readers wait: each connection has its own cache, of at most 2 MB
	reads := url.Values{"mode": {"ro"}, "_pragma": {"busy_timeout(10000)"}}
	if s.vfs != "" { // which shares the index among connections that could write alone
		reads = url.Values{"_pragma": {"busy_timeout(10000)", "query_only(1)"}}
	}
	if s.reader, err = s.connect(readers, reads); err != nil {
		return err
	}
	if _, err = version(s.reader); err == nil { // What to do with another schema comes first.
		err = check()
	}
	if err != nil {
		return errors.Join(err, s.reader.Close())
	}
	// FULL makes every commit reach the disk before it is reported, so that a loss of power does not undo it.
	settings := []string{"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		"secure_delete(1)"}
	if fresh { // It comes first, and in a store that is there it would be a write.
		settings = slices.Insert(settings, 1, "auto_vacuum(incremental)")
	}
	s.db, err = s.connect(1, url.Values{"_pragma": settings, "_txlock": {"immediate"}})
	if err != nil {
		return errors.Join(err, s.reader.Close())
	}
	if err := s.migrate(); err != nil {
		return errors.Join(err, s.reader.Close(), s.db.Close())
	}
	return nil
}

// connect returns a pool of up to most connections to the file. They stay open: to open one takes longer than most
// queries.
func (s *Store) connect(most int, options url.Values) (*sql.DB, error) {
	if s.vfs != "" {
		options.Set("vfs", s.vfs)
	}
	name := url.URL{Scheme: "file", Path: s.path, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", name.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return db, nil
}

// touch makes the file with the right mode, and checks that the file can be written: SQLite would not notice before the
// first commit that changes something. fresh says that nothing is in it.
func (s *Store) touch() (fresh bool, err error) {
	f, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	return err == nil && info.Size() == 0, errors.Join(err, f.Close())
}

// Close closes the store.
func (s *Store) Close() error {
	if err := errors.Join(s.reader.Close(), s.db.Close(), s.mark.close()); err != nil {
		return s.explain("close", err)
	}
	return nil
}

// write runs f in a transaction that is on disk when write returns nil, and never happened otherwise.
func (s *Store) write(ctx context.Context, what string, f func(*change) error) (err error) {
	defer func() { s.full.Store(errors.Is(err, ErrFull)) }()
	s.parseChanges(ctx)
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return s.explain(what, err)
	}
	all := &change{tx, s}
	err = f(all)
	if err == nil {
		err = countCommit(ctx, all)
	}
	if err != nil {
		_ = tx.Rollback() // The error of f says more, and a transaction that is not committed is undone anyway.
		return s.explain(what, err)
	}
	durable.Before(durable.OpCommit, s.path)
	if err := tx.Commit(); err != nil {
		_ = tx.Rollback()
		return s.explain(what, err)
	}
	s.mark.count(s.commits.Add(1))
	return nil
}

// change is a transaction.
type change struct {
	*sql.Tx
	store *Store
}

// ExecContext executes a statement that was parsed before: to parse one takes longer than most of them. While a
// transaction has the connection, none can be parsed for later, so that the first time it is parsed for this time
// only.
func (c *change) ExecContext(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s := c.store
	s.preparing.Lock()
	if s.changes == nil {
		s.changes = map[string]*sql.Stmt{}
	}
	parsed := s.changes[text]
	s.changes[text] = parsed
	s.preparing.Unlock()
	if parsed == nil {
		return c.Tx.ExecContext(ctx, text, args...)
	}
	return c.StmtContext(ctx, parsed).ExecContext(ctx, args...)
}

// parseChanges parses the statements of earlier transactions. Those that cannot be parsed now are left to the next.
func (s *Store) parseChanges(ctx context.Context) {
	s.preparing.Lock()
	var texts []string
	for text, parsed := range s.changes {
		if parsed == nil {
			texts = append(texts, text)
		}
	}
	s.preparing.Unlock()
	for _, text := range texts {
		parsed, err := s.db.PrepareContext(ctx, text)
		if err != nil {
			continue
		}
		s.preparing.Lock()
		s.changes[text] = parsed
		s.preparing.Unlock()
	}
}

// explain describes the failure of an operation in one sentence.
func (s *Store) explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if _, unsafe := errors.AsType[*statedir.UnsafeError](err); unsafe || errors.Is(err, ErrNotFound) ||
		errors.Is(err, ErrProfiles) {
		return err
	}
	for _, cause := range []error{ErrFull, ErrReadOnly} {
		if causedBy(err, cause) {
			return fmt.Errorf("%s the store %s: %w", what, s.path, cause)
		}
	}
	if text, damaged := damage(err); damaged {
		return fmt.Errorf("%s the store %s: it is damaged (%s): %w", what, s.path, text, ErrDamaged)
	}
	return fmt.Errorf("%s the store %s: %w", what, s.path, err)
}

// causedBy reports whether cause, which is ErrFull or ErrReadOnly, explains err, an error of SQLite or of the operating
// system.
func causedBy(err, cause error) bool {
	code, extended := 0, 0
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		code, extended = e.Code()&0xff, e.Code()
	}
	switch cause {
	case ErrFull:
		// The index of the write-ahead log could not be made larger: SQLite does not say that as FULL.
		return code == sqlite3.SQLITE_FULL || extended == sqlite3.SQLITE_IOERR_SHMSIZE || errors.Is(err, unix.ENOSPC) ||
			errors.Is(err, unix.EDQUOT)
	case ErrReadOnly:
		return code == sqlite3.SQLITE_READONLY || errors.Is(err, unix.EROFS) || errors.Is(err, fs.ErrPermission)
	}
	return false
}
