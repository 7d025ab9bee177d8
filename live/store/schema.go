package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/bellows-rm/bellows/durable"
)

// migrations lead from each version of the schema to the next; version N is the result of the first N. A released
// migration is never changed. Times are nanoseconds since the Unix epoch, 0 or NULL for an event that has not happened.
var migrations = []string{`
-- Jobs. AUTOINCREMENT: an id is never given twice, even if the newest job is deleted.
CREATE TABLE jobs (
	id           INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid    INTEGER NOT NULL,
	owner_name   TEXT    NOT NULL,
	name         TEXT    NOT NULL,
	status       TEXT    NOT NULL,           -- pending, running, succeeded, failed, cancelled
	ended        INTEGER NOT NULL DEFAULT 0, -- 1: nothing more will happen to it
	cancelled    INTEGER NOT NULL DEFAULT 0, -- 1: its owner wants it to end
	submitted_ns INTEGER NOT NULL,
	started_ns   INTEGER NOT NULL DEFAULT 0,
	finished_ns  INTEGER NOT NULL DEFAULT 0,
	exit_code    INTEGER,
	detail       TEXT    NOT NULL DEFAULT '',
	request      TEXT    NOT NULL            -- JSON: what to run and as whom
);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;

-- Runs of tasks: one row per container that was ever asked for.
CREATE TABLE tasks (
	job               INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
	stage             INTEGER NOT NULL,
	idx               INTEGER NOT NULL,
	run               INTEGER NOT NULL,
	owner_uid         INTEGER NOT NULL,
	node              TEXT    NOT NULL,
	granted           TEXT    NOT NULL,           -- JSON: resource vector
	why               TEXT    NOT NULL,
	booked_ns         INTEGER NOT NULL,
	started_ns        INTEGER NOT NULL DEFAULT 0,
	ended_ns          INTEGER NOT NULL DEFAULT 0,
	outcome           TEXT    NOT NULL DEFAULT '', -- empty as long as it has not ended
	exit_code         INTEGER,
	peak_memory_bytes INTEGER,
	exit              TEXT,                        -- JSON: all that is known of the end
	detail            TEXT    NOT NULL DEFAULT '',
	PRIMARY KEY (job, stage, idx, run)
) WITHOUT ROWID;

-- Elasticity profiles, by owner and name.
CREATE TABLE profiles (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	body       TEXT    NOT NULL, -- JSON
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
`, `
-- What a list of jobs shows of their tasks, so that it reads neither requests nor tasks.
ALTER TABLE jobs ADD COLUMN task_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN succeeded_count INTEGER NOT NULL DEFAULT 0; -- once it has ended
UPDATE jobs SET
	task_count = (SELECT coalesce(sum(json_extract(value, '$.tasks')), 0) FROM json_each(jobs.request, '$.job.stages')),
	succeeded_count = (SELECT count(*) FROM tasks WHERE tasks.job = jobs.id AND outcome = 'succeeded');
`, `
-- Jobs that were removed, and whose files may still be there.
CREATE TABLE removed (
	job       INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL
);
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
`, `
-- Environments of jobs that have ended: they hold secrets, and are not needed any more.
UPDATE jobs SET request = json_remove(request, '$.env') WHERE ended = 1;
`, `
-- The records of containers, beside this file, hold envelopes: a program that does not know them must not manage the containers.
SELECT 1;
`, `
-- From here on the command of a stage stands in the stage, in new requests. Those of before stay as they are, and are still
-- read: an older program would start jobs without their commands, so that it must not open the store any more.
SELECT 1;
`, `
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
`, `
-- Applications, by owner and name: what was measured at several sizes of memory, which was a table of its own, and what runs
-- taught.
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
INSERT INTO apps (owner_uid, owner_name, name, made_ns, measured) SELECT owner_uid, owner_name, name, made_ns, body FROM profiles;
DROP TABLE profiles;
`, `
-- What bounds the rates of a run, for what is explained after a restart.
ALTER TABLE tasks ADD COLUMN throttle TEXT; -- JSON; NULL if nothing does
`, `
-- What is yet to be learned. An older program learned from a job right after its end.
ALTER TABLE jobs ADD COLUMN unlearned INTEGER NOT NULL DEFAULT 0; -- 1: it has ended, and its runs have not been learned from
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
`, `
-- How far a run had come when it last stood still, went on, was throttled or entered a phase, for the engine after a restart.
ALTER TABLE tasks ADD COLUMN progress TEXT; -- JSON; NULL if it just runs
`, `
-- Which of its tasks each holder of a job stops. An older program would let them go on.
ALTER TABLE jobs ADD COLUMN pauses TEXT; -- JSON; NULL if nothing is
`, `
-- From here on progress names leveling among the holders of a run, and the records of containers say until when it holds them: an
-- older program could read neither. A pause can demand that memory is paged out, and then containers have less memory than they were
-- granted: an older program would grant it twice.
SELECT 1;
`, `
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
`, `
-- Requests that have been carried out, by the key that their user chose. An older program would carry out a repetition.
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
`, `
-- Environments of jobs that were submitted together, each once. It goes with the end of the last of them. An older program would
-- start the jobs without it.
CREATE TABLE environments (
	id        INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL,
	env       TEXT    NOT NULL -- JSON
);
ALTER TABLE jobs ADD COLUMN environment INTEGER; -- NULL: it stands in the request, or the job has ended
CREATE INDEX jobs_environment ON jobs (environment) WHERE environment IS NOT NULL;
CREATE TRIGGER environment_gone AFTER UPDATE OF environment ON jobs WHEN OLD.environment IS NOT NULL AND NEW.environment IS NULL BEGIN
	DELETE FROM environments WHERE id = OLD.environment AND NOT EXISTS (SELECT 1 FROM jobs WHERE environment = OLD.environment);
END;
`}

// migrate brings the schema up to date. Each step is one transaction together with its version number.
func (s *Store) migrate() error {
	ctx := context.Background()
	var version int
	if err := s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version); err != nil {
		return err
	}
	if version > len(migrations) {
		return fmt.Errorf("its schema has version %d, and this bellows knows versions up to %d: start a newer bellows", version, len(migrations))
	}
	for v := version; v < len(migrations); v++ {
		tx, err := s.db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := migrateTo(ctx, tx, v+1); err != nil {
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
	if _, err := tx.ExecContext(ctx, migrations[version-1]); err != nil {
		return fmt.Errorf("bring the schema to version %d: %w", version, err)
	}
	_, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}
