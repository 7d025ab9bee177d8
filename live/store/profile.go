package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/live/api"
)

// An owner is a uid with the name of its user, empty if the user has none: what was stored for the last user of a uid
// is not that of the next, whose application of the same name replaces it.

// App is what is known of an application of an owner: what was measured of it at several sizes of memory, what its runs
// taught, or both.
type App struct {
	UID  uint32
	User string
	Name string
	// Profile is nil if the application was not measured, or if that cannot be read: Unreadable says why.
	Profile    *Profile
	Unreadable error
	// Learned is what its runs taught, as a profile.History writes it; nil if nothing is. LearnedAt is when the latest of
	// them ended.
	Learned   json.RawMessage
	LearnedAt timeline.Time
}

// Profile is what measurements of a command at several sizes have shown. It belongs to the user who measured the
// command.
type Profile struct {
	UID  uint32        `json:"-"`
	User string        `json:"-"`
	Name string        `json:"-"`
	Made timeline.Time `json:"-"`
	api.Measured
}

// The largest number of profiles of an owner, and how many bytes they may take together.
const (
	mostProfiles     = 1000
	mostProfileBytes = 64 << 20
)

// ErrProfiles is returned by PutProfile for an owner who has too many profiles.
var ErrProfiles = fmt.Errorf("at most %d profiles and %d bytes of them are kept of a user: forget some", mostProfiles,
	mostProfileBytes)

// PutProfile stores a profile and replaces the owner's profile of the same name. What the runs of the application of
// that name taught stays. The error is ErrProfiles if the owner has too many.
func (s *Store) PutProfile(ctx context.Context, p Profile) error {
	if p.Name == "" {
		return fmt.Errorf("profile name %q: must not be empty", p.Name)
	}
	if err := p.Elasticity.Check(); err != nil {
		return fmt.Errorf("profile %q: %w", p.Name, err)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return fmt.Errorf("store profile %q: %w", p.Name, err)
	}
	return s.write(ctx, "write a profile to", func(tx *change) error {
		var others, bytes int64
		row := tx.QueryRowContext(ctx, `SELECT count(*), coalesce(sum(octet_length(measured)), 0) FROM apps
			WHERE owner_uid = ? AND owner_name = ? AND name <> ? AND measured IS NOT NULL`, p.UID, p.User, p.Name)
		if err := row.Scan(&others, &bytes); err != nil {
			return err
		}
		if others >= mostProfiles || bytes+int64(len(body)) > mostProfileBytes {
			return ErrProfiles
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO apps (owner_uid, owner_name, name, made_ns, measured) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET made_ns = excluded.made_ns, measured = excluded.measured,
				learned_ns = iif(owner_name = excluded.owner_name, learned_ns, 0),
				learned = iif(owner_name = excluded.owner_name, learned, NULL),
				owner_name = excluded.owner_name`,
			p.UID, p.User, p.Name, int64(p.Made), string(body))
		return err
	})
}

// PutLearned stores what the runs of an application taught, and replaces what they taught before. Its profile stays.
// from is what was learned from: it is marked so in the same transaction, so that each is learned from once.
func (s *Store) PutLearned(ctx context.Context, a App, from Lessons) error {
	return s.write(ctx, "write what was learned to", func(tx *change) error {
		if _, err := tx.ExecContext(ctx, `INSERT INTO apps (owner_uid, owner_name, name, learned_ns, learned) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET learned_ns = excluded.learned_ns, learned = excluded.learned,
				made_ns = iif(owner_name = excluded.owner_name, made_ns, 0),
				measured = iif(owner_name = excluded.owner_name, measured, NULL),
				owner_name = excluded.owner_name`,
			a.UID, a.User, a.Name, int64(a.LearnedAt), string(a.Learned)); err != nil {
			return err
		}
		return learned(ctx, tx, from)
	})
}

// ForgetOldest deletes what was learned of applications of which each owner has more than keep: those whose latest
// run is the oldest. Profiles stay, and what was learned of an application that has one.
func (s *Store) ForgetOldest(ctx context.Context, keep int) (forgotten int64, err error) {
	var all int
	query := `SELECT count(*) FROM apps WHERE measured IS NULL`
	if err := s.read(ctx, query, nil, func(scan func(...any) error) error { return scan(&all) }); err != nil ||
		all <= keep {
		return 0, err
	}
	err = s.write(ctx, "forget applications in", func(tx *change) error {
		res, err := tx.ExecContext(ctx, `DELETE FROM apps WHERE (owner_uid, name) IN (
			SELECT owner_uid, name FROM (
				SELECT owner_uid, name, row_number() OVER (PARTITION BY owner_uid ORDER BY learned_ns DESC, name) AS place
				FROM apps WHERE measured IS NULL)
			WHERE place > ?)`, keep)
		if err != nil {
			return err
		}
		forgotten, err = res.RowsAffected()
		return err
	})
	return forgotten, err
}

// Lessons are jobs whose runs were learned from, all that had ended, and runs whose ends for want of memory were.
type Lessons struct {
	Jobs  []cluster.JobID
	Short []cluster.ContainerID
}

// TaughtNothing is PutLearned for what teaches nothing.
func (s *Store) TaughtNothing(ctx context.Context, from Lessons) error {
	return s.write(ctx, "write what was learned to", func(tx *change) error { return learned(ctx, tx, from) })
}

// The values of a job's column unlearned.
const (
	allLearned   = iota
	endUnlearned // it has ended, and its runs have not been learned from
	// it has not ended, and a run that ended for want of memory has not been learned from; older programs take that for
	// allLearned
	shortUnlearned
)

func learned(ctx context.Context, tx *change, from Lessons) error {
	open := map[cluster.JobID]bool{}
	for _, id := range from.Short {
		open[id.Task.Job] = true
		if _, err := tx.ExecContext(ctx, `UPDATE tasks SET exit = json_set(exit, '$.taught', json('true'))
			WHERE job = ? AND stage = ? AND idx = ? AND run = ?`, int64(id.Task.Job), id.Task.Stage, id.Task.Index,
			id.Run); err != nil {
			return fmt.Errorf("task %s: %w", id.Task, err)
		}
	}
	for id := range open { // Meanwhile others may have fallen short, or the job has ended.
		if _, err := tx.ExecContext(ctx, `UPDATE jobs SET unlearned = ? WHERE id = ?2 AND unlearned = ?3 AND NOT EXISTS (
			SELECT 1 FROM tasks WHERE job = ?2 AND `+isShort+`)`, allLearned, int64(id), shortUnlearned); err != nil {
			return fmt.Errorf("job %d: %w", id, err)
		}
	}
	for _, id := range from.Jobs {
		if _, err := tx.ExecContext(ctx, `UPDATE jobs SET unlearned = ? WHERE id = ?`, allLearned, int64(id)); err != nil {
			return fmt.Errorf("job %d: %w", id, err)
		}
	}
	return nil
}

// fellShort notes that the job of a run that has ended for want of memory is to be learned from.
func fellShort(ctx context.Context, tx *change, t *Task) error {
	if !t.Teaches() {
		return nil
	}
	_, err := tx.ExecContext(ctx, `UPDATE jobs SET unlearned = ? WHERE id = ? AND ended = 0`, shortUnlearned,
		int64(t.Container.Task.Job))
	if err != nil {
		return fmt.Errorf("job %d: %w", t.Container.Task.Job, err)
	}
	return nil
}

// Teaches reports whether a run ended for want of memory, with an amount that is known and was not learned from; as
// does isShort.
func (t *Task) Teaches() bool {
	return t.Outcome == cluster.OutOfMemory && t.Exit != nil && t.Exit.Held > 0 && !t.Taught
}

const isShort = `outcome = 'out-of-memory' AND exit ->> '$.held_memory_bytes' > 0 AND exit ->> '$.taught' IS NULL`

// Short returns the runs of a job that ended for want of memory and have not been learned from, in the order in which
// they ended.
func (s *Store) Short(ctx context.Context, job cluster.JobID) ([]Task, error) {
	return s.tasks(ctx, "job = ? AND "+isShort+" ORDER BY ended_ns, stage, idx, run", int64(job))
}

// Unlearned returns the jobs that have ended and whose runs have not been learned from, those that ended first first.
func (s *Store) Unlearned(ctx context.Context) (ids []cluster.JobID, err error) {
	// endUnlearned stands in the text, so that the index jobs_unlearned serves the query as it is parsed.
	return s.jobIDs(ctx, `SELECT id FROM jobs WHERE unlearned = 1 ORDER BY finished_ns, id`)
}

// FellShort returns the jobs that have not ended, with a run that ended for want of memory and was not learned from.
func (s *Store) FellShort(ctx context.Context) (ids []cluster.JobID, err error) {
	return s.jobIDs(ctx, `SELECT id FROM jobs WHERE ended = 0 AND unlearned = ? ORDER BY id`, shortUnlearned)
}

// jobIDs returns the jobs that a query selects.
func (s *Store) jobIDs(ctx context.Context, query string, args ...any) (ids []cluster.JobID, err error) {
	err = s.read(ctx, query, args, func(scan func(...any) error) error {
		var id cluster.JobID
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

// Forget deletes all that is known of an application. The error is ErrNotFound if nothing is.
func (s *Store) Forget(ctx context.Context, uid uint32, user, name string) error {
	return s.forget(ctx, name, "owner_uid = ? AND owner_name = ?", uid, user)
}

// ForgetOfUser is Forget for the users that AppsOfUser returns applications of.
func (s *Store) ForgetOfUser(ctx context.Context, user, name string) error {
	return s.forget(ctx, name, ofUser, user)
}

func (s *Store) forget(ctx context.Context, name, whose string, args ...any) error {
	return s.write(ctx, "forget an application in", func(tx *change) error {
		res, err := tx.ExecContext(ctx, "DELETE FROM apps WHERE "+whose+" AND name = ?", append(args, name)...)
		if err != nil {
			return err
		}
		if n, err := res.RowsAffected(); err != nil || n > 0 {
			return err
		}
		return fmt.Errorf("profile %q: %w", name, ErrNotFound)
	})
}

// Profile returns the owner's profile of that name, or ErrNotFound.
func (s *Store) Profile(ctx context.Context, uid uint32, user, name string) (Profile, error) {
	a, err := s.App(ctx, uid, user, name)
	if err != nil {
		return Profile{}, err
	}
	switch {
	case a.Unreadable != nil:
		return Profile{}, a.Unreadable
	case a.Profile == nil:
		return Profile{}, fmt.Errorf("profile %q: %w", name, ErrNotFound)
	}
	return *a.Profile, nil
}

// App returns what is known of the owner's application of that name, or ErrNotFound.
func (s *Store) App(ctx context.Context, uid uint32, user, name string) (App, error) {
	apps, err := s.apps(ctx, "WHERE owner_uid = ? AND owner_name = ? AND name = ?", uid, user, name)
	if err != nil {
		return App{}, err
	}
	if len(apps) == 0 {
		return App{}, fmt.Errorf("profile %q: %w", name, ErrNotFound)
	}
	return apps[0], nil
}

// Apps returns what is known of all applications of an owner, by name.
func (s *Store) Apps(ctx context.Context, uid uint32, user string) ([]App, error) {
	return s.apps(ctx, "WHERE owner_uid = ? AND owner_name = ? ORDER BY name", uid, user)
}

// AppsOfUser returns what is known of all applications of the users of a name, or of the uid that a user without a
// name has, by name. A name may have been that of several uids.
func (s *Store) AppsOfUser(ctx context.Context, user string) ([]App, error) {
	return s.apps(ctx, "WHERE "+ofUser+" ORDER BY name, owner_uid", user)
}

// ofUser is the condition that an application belongs to a user of a name.
const ofUser = "iif(owner_name = '', CAST(owner_uid AS TEXT), owner_name) = ?"

// Unreadable returns the applications, of all owners, whose history is not valid JSON.
func (s *Store) Unreadable(ctx context.Context) (apps []App, err error) {
	query := "SELECT owner_uid, owner_name, name FROM apps WHERE learned IS NOT NULL AND NOT json_valid(learned)"
	err = s.read(ctx, query, nil, func(scan func(...any) error) error {
		var a App
		err := scan(&a.UID, &a.User, &a.Name)
		apps = append(apps, a)
		return err
	})
	return apps, err
}

// Profiles returns all profiles of an owner that can be read, by name.
func (s *Store) Profiles(ctx context.Context, uid uint32, user string) ([]Profile, error) {
	apps, err := s.apps(ctx, "WHERE owner_uid = ? AND owner_name = ? AND measured IS NOT NULL ORDER BY name", uid, user)
	var profiles []Profile
	for i := range apps {
		if p := apps[i].Profile; p != nil {
			profiles = append(profiles, *p)
		}
	}
	return profiles, err
}

func (s *Store) apps(ctx context.Context, where string, args ...any) ([]App, error) {
	var apps []App
	query := "SELECT owner_uid, owner_name, name, made_ns, measured, learned_ns, learned FROM apps " + where
	err := s.read(ctx, query, args, func(scan func(...any) error) error {
		var a App
		var p Profile
		var measured, learned sql.NullString
		if err := scan(&a.UID, &a.User, &a.Name, &p.Made, &measured, &a.LearnedAt, &learned); err != nil {
			return err
		}
		if measured.Valid {
			p.UID, p.User, p.Name = a.UID, a.User, a.Name
			if err := json.Unmarshal([]byte(measured.String), &p); err == nil {
				a.Profile = &p
			} else {
				a.Unreadable = fmt.Errorf("profile %q cannot be read: %w", a.Name, err)
			}
		}
		if learned.Valid {
			a.Learned = json.RawMessage(learned.String)
		}
		apps = append(apps, a)
		return nil
	})
	return apps, err
}
