package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/bellows-rm/bellows/durable"
)

// baseline is the version of the schema of bellows 0.1.0, the first one. Programs before that counted up to 16, and
// no release opens what they wrote.
const baseline = 17

// migrations lead from an empty file to the baseline, and from each version of the schema to the next: the result of
// the last of N has the version baseline+N-1. A released migration is never changed. Times are nanoseconds since the
// Unix epoch, 0 or NULL for an event that has not happened.
var migrations = []string{`
-- Jobs. AUTOINCREMENT: an id is never given twice, even if the newest job is deleted.
CREATE TABLE jobs (
	id              INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid       INTEGER NOT NULL,
	owner_name      TEXT    NOT NULL,
	name            TEXT    NOT NULL,
	status          TEXT    NOT NULL,           -- pending, running, succeeded, failed, cancelled
	ended           INTEGER NOT NULL DEFAULT 0, -- 1: nothing more will happen to it
	cancelled       INTEGER NOT NULL DEFAULT 0, -- 1: its owner wants it to end
	submitted_ns    INTEGER NOT NULL,
	started_ns      INTEGER NOT NULL DEFAULT 0,
	finished_ns     INTEGER NOT NULL DEFAULT 0,
	exit_code       INTEGER,
	detail          TEXT    NOT NULL DEFAULT '',
	request         TEXT    NOT NULL,           -- JSON: what to run and as whom; without $.env once it has ended: that holds secrets
	task_count      INTEGER NOT NULL DEFAULT 0, -- this and the next: for lists of jobs, which read neither requests nor tasks
	succeeded_count INTEGER NOT NULL DEFAULT 0, -- once it has ended
	unlearned       INTEGER NOT NULL DEFAULT 0, -- 1: it has ended, and its runs have not been learned from
	pauses          TEXT,                       -- JSON: which of its tasks each holder stops; NULL if nothing is
	environment     INTEGER                     -- NULL: it stands in the request, or the job has ended
);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
CREATE INDEX jobs_environment ON jobs (environment) WHERE environment IS NOT NULL;

-- Environments of jobs that were submitted together, each once. It goes with the end of the last of them.
CREATE TABLE environments (
	id        INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL,
	env       TEXT    NOT NULL -- JSON
);
CREATE TRIGGER environment_gone AFTER UPDATE OF environment ON jobs WHEN OLD.environment IS NOT NULL AND NEW.environment IS NULL BEGIN
	DELETE FROM environments WHERE id = OLD.environment AND NOT EXISTS (SELECT 1 FROM jobs WHERE environment = OLD.environment);
END;

-- Jobs that were removed, and whose files may still be there.
CREATE TABLE removed (
	job       INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL
);

-- Runs of tasks: one row per container that was ever asked for.
CREATE TABLE tasks (
	job               INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	stage             INTEGER NOT NULL,
	idx               INTEGER NOT NULL,
	run               INTEGER NOT NULL,
	owner_uid         INTEGER NOT NULL,
	node              TEXT    NOT NULL,
	granted           TEXT    NOT NULL,            -- JSON: resource vector
	why               TEXT    NOT NULL,
	booked_ns         INTEGER NOT NULL,
	started_ns        INTEGER NOT NULL DEFAULT 0,
	ended_ns          INTEGER NOT NULL DEFAULT 0,
	outcome           TEXT    NOT NULL DEFAULT '', -- empty as long as it has not ended
	exit_code         INTEGER,
	peak_memory_bytes INTEGER,
	exit              TEXT,                        -- JSON: all that is known of the end
	detail            TEXT    NOT NULL DEFAULT '',
	throttle          TEXT,                        -- JSON: what bounds its rates; NULL if nothing does
	progress          TEXT,                        -- JSON: how far it had come when it last stood still, went on, was throttled or entered a phase; NULL if it just runs
	PRIMARY KEY (job, stage, idx, run)
) WITHOUT ROWID;

-- What runs of tasks used over time. A run without a row was not measured.
CREATE TABLE usage (
	job       INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	stage     INTEGER NOT NULL,
	idx       INTEGER NOT NULL,
	run       INTEGER NOT NULL,
	owner_uid INTEGER NOT NULL,
	ended_ns  INTEGER NOT NULL,
	spans     INTEGER NOT NULL,           -- in body
	body      BLOB    NOT NULL,           -- what package usage makes of it
	missing   TEXT    NOT NULL DEFAULT '',
	PRIMARY KEY (job, stage, idx, run)
);
CREATE INDEX usage_age ON usage (ended_ns, spans);

-- Applications, by owner and name: what was measured at several sizes of memory, and what runs taught.
CREATE TABLE apps (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL DEFAULT 0, -- of measured
	measured   TEXT,                       -- JSON: an elasticity profile; NULL if there is none
	learned_ns INTEGER NOT NULL DEFAULT 0, -- when the latest run ended
	learned    TEXT,                       -- JSON: a history of runs; NULL if there is none
	PRIMARY KEY (owner_uid, name)
) WITHOUT ROWID;

-- Runs of the daemon: each has an event log of its own.
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);

-- Tokens: whoever presents the secret of one over the network has rights of its owner. AUTOINCREMENT: an id is never given twice.
CREATE TABLE tokens (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	scope      TEXT    NOT NULL,           -- read, submit, admin
	hash       BLOB    NOT NULL,           -- SHA-256 of the secret, which is not stored
	created_ns INTEGER NOT NULL,
	expires_ns INTEGER NOT NULL,
	revoked_ns INTEGER NOT NULL DEFAULT 0,
	used_ns    INTEGER NOT NULL DEFAULT 0  -- when it was last used, to the hour
);

-- Requests that have been carried out, by the key that their user chose.
CREATE TABLE keys (
	id         INTEGER PRIMARY KEY, -- in the order of arrival
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	key        TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	digest     BLOB    NOT NULL,    -- of the request
	first_job  INTEGER NOT NULL,    -- of the jobs that it added
	jobs       INTEGER NOT NULL,    -- how many these are
	UNIQUE (owner_uid, owner_name, key)
);
`}

// latest is the version of the schema that a store has once it is open.
func latest() int { return baseline + len(migrations) - 1 }

// version returns the version of the schema, 0 for an empty file; one that this program does not open is an error.
func version(db *sql.DB) (v int, err error) {
	if err := db.QueryRow("PRAGMA user_version").Scan(&v); err != nil {
		return 0, err
	}
	switch {
	case v != 0 && v < baseline:
		return v, fmt.Errorf(
			"its schema has version %d, from before bellows 0.1.0: finish its jobs with the program that wrote it, "+
				"and start this one with another state directory", v)
	case v > latest():
		return v, fmt.Errorf("its schema has version %d, and this bellows knows versions up to %d: start a newer bellows",
			v, latest())
	}
	return v, nil
}

// migrate brings the schema up to date. Each step is one transaction together with its version number.
func (s *Store) migrate() error {
	ctx := context.Background()
	from, err := version(s.db)
	if err != nil {
		return err
	}
	for v := max(from+1, baseline); v <= latest(); v++ {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := migrateTo(ctx, tx, v); err != nil {
			_ = tx.Rollback()
			return err
		}
		durable.Before(durable.OpCommit, s.path)
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

func migrateTo(ctx context.Context, tx *sql.Tx, version int) error {
	if _, err := tx.ExecContext(ctx, migrations[version-baseline]); err != nil {
		return fmt.Errorf("bring the schema to version %d: %w", version, err)
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}
