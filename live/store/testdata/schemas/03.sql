PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
, task_count INTEGER NOT NULL DEFAULT 0, succeeded_count INTEGER NOT NULL DEFAULT 0);
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835171639901293,1795835171773136959,1795835171791401130,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","hello"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,1);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835171875604196,1795835171959329197,1795835171968353037,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","exit 3"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835172041440629,1795835172257596237,1795835172384441238,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835172530228697,1795835172672624230,1795835172817327089,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo {task}"]},{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',3,3);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835175289172823,1795835175777446852,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835176116314991,1795835177638276895,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835176919492556,1795835178771155496,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835182446750945,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","waited"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835184342431205,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835184346435657,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835171649936610,1795835171773136959,1795835171774578239,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":3277341,"started_ns":1795835171773136959,"ended_ns":1795835171774578239}','');
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835171881572295,1795835171959329197,1795835171960893423,'failed',3,782336,'{"code":3,"peak_memory_bytes":782336,"cpu_time_ns":3477128,"started_ns":1795835171959329197,"ended_ns":1795835171960893423}','ended with exit code 3');
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835172044883562,1795835172257596237,1795835172371617926,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":4193317,"started_ns":1795835172257596237,"ended_ns":1795835172371617926}','killed');
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835172539279586,1795835172672408487,1795835172672751149,'succeeded',0,786432,'{"code":0,"peak_memory_bytes":786432,"cpu_time_ns":2989561,"started_ns":1795835172672408487,"ended_ns":1795835172672751149}','');
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835172539279586,1795835172672624230,1795835172674611128,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":3139729,"started_ns":1795835172672624230,"ended_ns":1795835172674611128}','');
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835172686435277,1795835172811257033,1795835172812130266,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":3608016,"started_ns":1795835172811257033,"ended_ns":1795835172812130266}','');
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835175365594620,1795835175777446852,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835176118759454,1795835177638276895,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835176927227264,1795835178771155496,0,'',NULL,NULL,NULL,'');
CREATE TABLE profiles (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	body       TEXT    NOT NULL, -- JSON
	PRIMARY KEY (owner_uid, name)
) WITHOUT ROWID;
INSERT INTO profiles VALUES(0,'root','naps',1795835174799590759,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":468892062,"elasticity":{"kind":"points","points":[{"memory_bytes":8388608,"slowdown":0.689773022858297},{"memory_bytes":33554432,"slowdown":0.7104858580438072},{"memory_bytes":67108864,"slowdown":1}]},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"interpolated","ideal_memory_bytes":67108864,"ideal_duration_ns":468892062,"min_memory_bytes":8388608,"points":[{"memory_bytes":8388608,"duration_ns":323429095},{"memory_bytes":33554432,"duration_ns":333141179},{"memory_bytes":67108864,"duration_ns":468892062}]},"fit":{"chosen":"interpolated","samples":3,"trials":[{"kind":"step","refused":"it says 356ms at 64MiB, where 469ms was measured","missed":0,"worst":0,"left_out":0},{"kind":"sawtooth","refused":"it says 356ms at 64MiB, where 469ms was measured","missed":0,"worst":0,"left_out":0},{"kind":"monotone","refused":"it says 375ms at 8MiB, where 323ms was measured","missed":0,"worst":0,"left_out":0},{"kind":"interpolated","missed":0.09400355624729058,"worst":0.1579786328366209,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":325180594,"predicted_ns":326666456,"model_error":0.00456934401196155,"constant_error":0.15367927521529776,"linear_error":0.05851802152744699,"noise":0,"noise_known":false}],"model_mean_error":0.00456934401196155,"constant_mean_error":0.15367927521529776,"linear_mean_error":0.05851802152744699},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.323429095,"repeats_s":[0.323429095],"cpu_s":0.004414,"others_cores":1.996,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.323429095,"model_error":0},{"memory_bytes":16777216,"held_out":true,"duration_s":0.325180594,"repeats_s":[0.325180594],"cpu_s":0.004478,"others_cores":1.985,"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.326666456,"model_error":0.00456934401196155,"constant_error":0.15367927521529776,"linear_error":0.05851802152744699},{"memory_bytes":33554432,"held_out":false,"duration_s":0.333141179,"repeats_s":[0.333141179],"cpu_s":0.004406,"others_cores":2.058,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.333141179,"model_error":0},{"memory_bytes":67108864,"held_out":false,"duration_s":0.468892062,"repeats_s":[0.468892062],"cpu_s":0.003976,"others_cores":1.975,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.468892062,"model_error":0}]}}');
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835171525458631,0);
CREATE TABLE removed (
	job       INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL
);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
COMMIT;
PRAGMA user_version = 3
