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
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835164617342227,1795835164689759178,1795835164701091420,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","hello"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,1);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835164751688992,1795835164821618257,1795835164834994974,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","exit 3"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835164880084289,1795835164960244650,1795835165061686605,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835165141618593,1795835165248809602,1795835165377757944,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo {task}"]},{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',3,3);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835167235051537,1795835167435168040,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835167294774924,1795835167439030094,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835167447854957,1795835167567216610,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835167520649999,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","waited"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835167878676353,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835167881871894,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}',1,0);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835164619504364,1795835164689759178,1795835164691247301,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":4077388,"started_ns":1795835164689759178,"ended_ns":1795835164691247301}','');
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835164754972421,1795835164821618257,1795835164823564999,'failed',3,782336,'{"code":3,"peak_memory_bytes":782336,"cpu_time_ns":4225202,"started_ns":1795835164821618257,"ended_ns":1795835164823564999}','ended with exit code 3');
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835164883498805,1795835164960244650,1795835165053158367,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":4275463,"started_ns":1795835164960244650,"ended_ns":1795835165053158367}','killed');
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835165144304675,1795835165275363314,1795835165277186570,'succeeded',0,622592,'{"code":0,"peak_memory_bytes":622592,"cpu_time_ns":3182116,"started_ns":1795835165275363314,"ended_ns":1795835165277186570}','');
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835165144304675,1795835165248809602,1795835165250883826,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":5079077,"started_ns":1795835165248809602,"ended_ns":1795835165250883826}','');
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835165286044686,1795835165370627226,1795835165371017832,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":4523410,"started_ns":1795835165370627226,"ended_ns":1795835165371017832}','');
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835167237011271,1795835167435168040,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835167296449447,1795835167439030094,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835167449000934,1795835167567216610,0,'',NULL,NULL,NULL,'');
CREATE TABLE profiles (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	body       TEXT    NOT NULL, -- JSON
	PRIMARY KEY (owner_uid, name)
) WITHOUT ROWID;
INSERT INTO profiles VALUES(0,'root','naps',1795835167161998210,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":386626936,"elasticity":{"kind":"points","points":[{"memory_bytes":8388608,"slowdown":0.8210904917395616},{"memory_bytes":33554432,"slowdown":0.9057071905616012},{"memory_bytes":67108864,"slowdown":1}]},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"interpolated","ideal_memory_bytes":67108864,"ideal_duration_ns":386626936,"min_memory_bytes":8388608,"points":[{"memory_bytes":8388608,"duration_ns":317455701},{"memory_bytes":33554432,"duration_ns":350170796},{"memory_bytes":67108864,"duration_ns":386626936}]},"fit":{"chosen":"interpolated","samples":3,"trials":[{"kind":"step","missed":0.08434215979980061,"worst":0.1548050668020607,"left_out":2},{"kind":"sawtooth","missed":0.08434215979980061,"worst":0.1548050668020607,"left_out":2},{"kind":"monotone","missed":0.08290752402345174,"worst":0.16047330332870602,"left_out":2},{"kind":"interpolated","missed":0.05591099887929115,"worst":0.10305404784650568,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":318974938,"predicted_ns":328360733,"model_error":0.029424866601902123,"constant_error":0.10170978699273232,"linear_error":0.026216379419752408,"spread":0,"spread_known":false}],"model_mean_error":0.029424866601902123,"constant_mean_error":0.10170978699273232,"linear_mean_error":0.026216379419752408},"goal_reached":true,"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.317455701,"repeats_s":[0.317455701],"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.317455701,"model_error":0},{"memory_bytes":16777216,"held_out":true,"duration_s":0.318974938,"repeats_s":[0.318974938],"spilled_bytes":0,"peak_memory_bytes":270336,"predicted_s":0.328360733,"model_error":0.029424866601902123,"constant_error":0.10170978699273232,"linear_error":0.026216379419752408},{"memory_bytes":33554432,"held_out":false,"duration_s":0.350170796,"repeats_s":[0.350170796],"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.350170796,"model_error":0},{"memory_bytes":67108864,"held_out":false,"duration_s":0.386626936,"repeats_s":[0.386626936],"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.386626936,"model_error":0}]}}');
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835164562721524,0);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
COMMIT;
PRAGMA user_version = 2
