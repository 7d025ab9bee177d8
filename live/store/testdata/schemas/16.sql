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
, task_count INTEGER NOT NULL DEFAULT 0, succeeded_count INTEGER NOT NULL DEFAULT 0, unlearned INTEGER NOT NULL DEFAULT 0, pauses TEXT, environment INTEGER);
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835264859709264,1795835264910772969,1795835264917558366,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,1,0,NULL,NULL);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835264958711608,1795835265030264512,1795835265044668963,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,NULL);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835265096525916,1795835265154591715,1795835265241843518,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,NULL);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835265329045496,1795835265403808698,1795835265478256289,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0,1]}',3,3,0,NULL,NULL);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835267237102581,1795835267299148408,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,NULL);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835267302412980,1795835267371226776,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,NULL);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835267416359564,1795835267480567833,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,NULL);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835267469586565,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,'[{"by":"root","since_ns":1795835267857038902}]',NULL);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835267881359584,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,1);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835267881359584,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL,1);
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
	detail            TEXT    NOT NULL DEFAULT '', throttle TEXT, progress TEXT,
	PRIMARY KEY (job, stage, idx, run)
) WITHOUT ROWID;
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835264860989450,1795835264910772969,1795835264912043699,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2670957,"started_ns":1795835264910772969,"ended_ns":1795835264912043699}','',NULL,NULL);
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835264960657418,1795835265030264512,1795835265030814136,'failed',3,782336,'{"code":3,"peak_memory_bytes":782336,"cpu_time_ns":2667573,"started_ns":1795835265030264512,"ended_ns":1795835265030814136}','ended with exit code 3',NULL,NULL);
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835265098396042,1795835265154591715,1795835265236449357,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":2795835,"started_ns":1795835265154591715,"ended_ns":1795835265236449357}','killed',NULL,NULL);
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835265330183385,1795835265402408781,1795835265405549923,'succeeded',0,786432,'{"code":0,"peak_memory_bytes":786432,"cpu_time_ns":2782715,"started_ns":1795835265402408781,"ended_ns":1795835265405549923}','',NULL,NULL);
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835265330183385,1795835265403808698,1795835265409083922,'succeeded',0,786432,'{"code":0,"peak_memory_bytes":786432,"cpu_time_ns":3325567,"started_ns":1795835265403808698,"ended_ns":1795835265409083922}','',NULL,NULL);
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835265418379869,1795835265470268430,1795835265471951051,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":3066305,"started_ns":1795835265470268430,"ended_ns":1795835265471951051}','',NULL,NULL);
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835267243189569,1795835267299148408,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835267303311452,1795835267371226776,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835267420497422,1795835267480567833,0,'',NULL,NULL,NULL,'',NULL,NULL);
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835264747647550,0);
CREATE TABLE removed (
	job       INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL
);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835264917645113,1,X'0306017902','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835265046622440,1,X'0306017902','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835265241943085,1,X'0306517902','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835265415314497,1,X'0306057903','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835265418573243,1,X'0306037902','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835265478791723,1,X'0306017903','');
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
INSERT INTO apps VALUES(0,'root','hello: echo hello',0,NULL,1795835264930499096,'{"version":1,"apps":[{"owner":"root","name":"hello: echo hello","observed":1,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835264917645113,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
INSERT INTO apps VALUES(0,'root','naps',1795835267153532659,'{"ideal_memory_bytes":33554432,"min_memory_bytes":8388608,"duration_ns":315620371,"elasticity":{"kind":"step","factor":1},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"step","ideal_memory_bytes":33554432,"ideal_duration_ns":315620371,"min_memory_bytes":8388608,"undersized_duration_ns":315620371},"fit":{"chosen":"step","samples":3,"trials":[{"kind":"step","missed":0.02072543550356167,"worst":0.02866282217597918,"left_out":2},{"kind":"sawtooth","missed":0.02072543550356167,"worst":0.02866282217597918,"left_out":2},{"kind":"monotone","missed":0.02051445189756964,"worst":0.028665113881988818,"left_out":2},{"kind":"interpolated","missed":0.021005853131954452,"worst":0.027579929759081693,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":317307120,"predicted_ns":315620371,"model_error":-0.005315824618117615,"constant_error":-0.004959579854369483,"linear_error":-0.019468642871927993,"noise":0,"noise_known":false}],"model_mean_error":0.005315824618117615,"constant_mean_error":0.004959579854369483,"linear_mean_error":0.019468642871927993},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.309812863,"repeats_s":[0.309812863],"cpu_s":0.002857,"others_cores":1.992,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.315620371,"model_error":0.018745212654388724},{"memory_bytes":16777216,"held_out":true,"duration_s":0.31730712,"repeats_s":[0.31730712],"cpu_s":0.003962,"others_cores":1.973,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.315620371,"model_error":-0.005315824618117615,"constant_error":-0.004959579854369483,"linear_error":-0.019468642871927993},{"memory_bytes":33554432,"held_out":false,"duration_s":0.31835748,"repeats_s":[0.31835748],"cpu_s":0.002861,"others_cores":2.033,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.315620371,"model_error":-0.008597596010623028},{"memory_bytes":67108864,"held_out":false,"duration_s":0.319029887,"repeats_s":[0.319029887],"cpu_s":0.003172,"others_cores":1.965,"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.315620371,"model_error":-0.010687136656886318}]}}',0,NULL);
INSERT INTO apps VALUES(0,'root','two: sh -c echo {task}',0,NULL,1795835265483855444,'{"version":1,"apps":[{"owner":"root","name":"two: sh -c echo {task}","stage":"a","observed":2,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835265415314497,"phases":[{"duration_ns":5000000,"demand":[600,0,0,0]}],"duration_ns":5000000,"peak":[600,0,0,0],"unknown":["memory"],"number":0},{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835265418573243,"phases":[{"duration_ns":3000000,"demand":[666,0,0,0]}],"duration_ns":3000000,"peak":[666,0,0,0],"unknown":["memory"],"number":1}]},{"owner":"root","name":"two: sh -c echo {task}","stage":"b","observed":1,"runs":[{"cpu_millicores":1000,"memory_bytes":16777216,"ended_ns":1795835265478791723,"phases":[{"duration_ns":1000000,"demand":[3000,0,0,0]}],"duration_ns":1000000,"peak":[3000,0,0,0],"unknown":["memory"],"number":0}]}]}');
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
INSERT INTO tokens VALUES(1,0,'root','submit',X'c3779d3b1408a4347a46d58d0e06510e5da97c8dbfc5313942ff161c50409330',1795835267204608068,1798427267204608068,0,0);
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
INSERT INTO keys VALUES(1,0,'root','S6S6WJOSYEZCJ2WJDP4E6YVTHO',1795835264859390665,X'ebfd9f386764b5008d2c7f5cc8836e3f7d74d6a0cf58aceb29654626bfe5a972',1,1);
INSERT INTO keys VALUES(2,0,'root','CC527GVVV3L2VJ35T5QIC37JVU',1795835264958425244,X'54c5275f274e601ac03434fd3faf60ef69c7ad22e145ae6c2438462ff5936ecf',2,1);
INSERT INTO keys VALUES(3,0,'root','4AJKU4ELGR3TMVZXSKTDIPPBGN',1795835265095703986,X'49db25b879c8280b89403f04a03a777cd1d30cfcb4e61ba8016c80ee72ad8286',3,1);
INSERT INTO keys VALUES(4,0,'root','DR5JNULZLUZIPFZDPGQFTTWUOW',1795835265328739236,X'68dd7eb333ffe09b938b1311775e6c25fc73f68d5b60586e4fd34b6750c0c35a',4,1);
INSERT INTO keys VALUES(5,0,'root','HAJDOCWRH6F572MHWZHTDBI6TV',1795835267236762156,X'aab7e9ce25e934bb3b8f30becb2108805109bc5247f44e59154a3df08a868f3d',5,1);
INSERT INTO keys VALUES(6,0,'root','QT5B66NOXCD3S5WMZZ2XK6MXML',1795835267302142740,X'bd9b4eb854e2bd9d58e4ab94089b0a2f609b40bb10dec82611a44254d0219834',6,1);
INSERT INTO keys VALUES(7,0,'root','SDOYE6JRIUFBZYMGPMA4LGFXGQ',1795835267415862471,X'4221feddc551dd1ae4a14d9e5bc391f820211914346bff8a8dd8e2cb164cef5a',7,1);
INSERT INTO keys VALUES(8,0,'root','MGT7KL5W3KVCLQYRWGFGWISDD5',1795835267469258745,X'5326c9634c5e444b093314d88ad638444af2c9ad36869575d6464cc7657a501b',8,1);
INSERT INTO keys VALUES(9,0,'root','SR7BSPS5BTDRN5JDFGTP2G3XXG',1795835267881134465,X'b55163828173b075a20472ebb11a7d8ccfc91253d3cdf843b33bbbf4a32b44e3',9,2);
CREATE TABLE environments (
	id        INTEGER PRIMARY KEY,
	owner_uid INTEGER NOT NULL,
	env       TEXT    NOT NULL -- JSON
);
INSERT INTO environments VALUES(1,0,'["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"]');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
INSERT INTO sqlite_sequence VALUES('tokens',1);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
CREATE INDEX jobs_environment ON jobs (environment) WHERE environment IS NOT NULL;
CREATE TRIGGER environment_gone AFTER UPDATE OF environment ON jobs WHEN OLD.environment IS NOT NULL AND NEW.environment IS NULL BEGIN
	DELETE FROM environments WHERE id = OLD.environment AND NOT EXISTS (SELECT 1 FROM jobs WHERE environment = OLD.environment);
END;
COMMIT;
PRAGMA user_version = 16
