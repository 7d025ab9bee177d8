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
);
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835159312084696,1795835159400526486,1795835159412186261,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","hello"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835159448221251,1795835159510182909,1795835159517284575,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","exit 3"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835159547032117,1795835159654202241,1795835159760313909,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835159815815641,1795835159883276722,1795835159949910321,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo {task}"]},{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835161756750794,1795835161844662550,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835161791559039,1795835161872148481,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835161880100536,1795835161932421191,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"elasticity":{"kind":"none"}}]},"commands":[{"args":["sleep","1000"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835161980978372,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["echo","waited"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835162268031047,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835162271783930,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"elasticity":{"kind":"none"}}]},"commands":[{"args":["true"]}],"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/"}');
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159319244146,1795835159400526486,1795835159402163360,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2745992,"started_ns":1795835159400526486,"ended_ns":1795835159402163360}','');
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159449204313,1795835159510182909,1795835159511908710,'failed',3,520192,'{"code":3,"peak_memory_bytes":520192,"cpu_time_ns":2424515,"started_ns":1795835159510182909,"ended_ns":1795835159511908710}','ended with exit code 3');
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159550534189,1795835159654202241,1795835159755727443,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":3347792,"started_ns":1795835159654202241,"ended_ns":1795835159755727443}','killed');
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159816698939,1795835159878993702,1795835159880943016,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":2399325,"started_ns":1795835159878993702,"ended_ns":1795835159880943016}','');
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159816698939,1795835159883276722,1795835159883520353,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2142928,"started_ns":1795835159883276722,"ended_ns":1795835159883520353}','');
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835159895881451,1795835159943688988,1795835159944858542,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":2307535,"started_ns":1795835159943688988,"ended_ns":1795835159944858542}','');
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835161757676630,1795835161844662550,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835161792624127,1795835161872148481,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835161880924050,1795835161932421191,0,'',NULL,NULL,NULL,'');
CREATE TABLE profiles (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	body       TEXT    NOT NULL, -- JSON
	PRIMARY KEY (owner_uid, name)
) WITHOUT ROWID;
INSERT INTO profiles VALUES(0,'root','naps',1795835161715267745,'{"ideal_memory_bytes":33554432,"min_memory_bytes":8388608,"duration_ns":315938124,"elasticity":{"kind":"points","points":[{"memory_bytes":8388608,"slowdown":1.1604918816318603},{"memory_bytes":12582911,"slowdown":1.24073780345673},{"memory_bytes":12582912,"slowdown":1},{"memory_bytes":33554432,"slowdown":1}]},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"sawtooth","ideal_memory_bytes":33554432,"ideal_duration_ns":315938124,"min_memory_bytes":8388608,"buffer":{"share":1,"overhead_bytes":0},"input_bytes":12582912,"spill_rate_bytes_per_s":165437818},"fit":{"chosen":"sawtooth","samples":3,"trials":[{"kind":"step","missed":0.14747811495099455,"worst":0.1582945148919031,"left_out":2},{"kind":"sawtooth","missed":0.0694029277770217,"worst":0.13503315541051758,"left_out":2},{"kind":"monotone","missed":0.11274942669179913,"worst":0.13666171501008603,"left_out":2},{"kind":"interpolated","missed":0.11274942669179913,"worst":0.13666171501008603,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":316610473,"predicted_ns":315938124,"model_error":-0.0021235842062621853,"constant_error":0.051264855032132815,"linear_error":0.1348803581743804,"spread":0,"spread_known":false}],"model_mean_error":0.0021235842062621853,"constant_mean_error":0.051264855032132815,"linear_mean_error":0.1348803581743804},"goal_reached":true,"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.366643628,"repeats_s":[0.366643628],"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.366643628,"model_error":0},{"memory_bytes":16777216,"held_out":true,"duration_s":0.316610473,"repeats_s":[0.316610473],"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.315938124,"model_error":-0.0021235842062621853,"constant_error":0.051264855032132815,"linear_error":0.1348803581743804},{"memory_bytes":33554432,"held_out":false,"duration_s":0.316537481,"repeats_s":[0.316537481],"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.315938124,"model_error":-0.0018934787694225696},{"memory_bytes":67108864,"held_out":false,"duration_s":0.31534328,"repeats_s":[0.31534328],"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.315938124,"model_error":0.0018863379616017187}]}}');
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835159268111644,0);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
COMMIT;
PRAGMA user_version = 1
