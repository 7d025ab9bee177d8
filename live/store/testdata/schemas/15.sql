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
, task_count INTEGER NOT NULL DEFAULT 0, succeeded_count INTEGER NOT NULL DEFAULT 0, unlearned INTEGER NOT NULL DEFAULT 0, pauses TEXT);
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835259865790067,1795835259930158800,1795835259943736199,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,1,0,NULL);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835260023832208,1795835260060211089,1795835260066625970,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835260144255090,1795835260229158948,1795835260427374807,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835260530492962,1795835260587002197,1795835260649692309,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0,1]}',3,3,0,NULL);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835262411490716,1795835262458788230,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835262445336457,1795835262490483264,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835262511478597,1795835262563376839,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835262547532926,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,'[{"by":"root","since_ns":1795835262841487076}]');
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835262864945149,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835262866870706,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835259866646410,1795835259930158800,1795835259930932809,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":2234304,"started_ns":1795835259930158800,"ended_ns":1795835259930932809}','',NULL,NULL);
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835260026267489,1795835260060211089,1795835260061828682,'failed',3,520192,'{"code":3,"peak_memory_bytes":520192,"cpu_time_ns":2240337,"started_ns":1795835260060211089,"ended_ns":1795835260061828682}','ended with exit code 3',NULL,NULL);
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835260147684283,1795835260229158948,1795835260418064319,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":2988478,"started_ns":1795835260229158948,"ended_ns":1795835260418064319}','killed',NULL,NULL);
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835260531899486,1795835260587002197,1795835260591647801,'succeeded',0,524288,'{"code":0,"peak_memory_bytes":524288,"cpu_time_ns":2826878,"started_ns":1795835260587002197,"ended_ns":1795835260591647801}','',NULL,NULL);
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835260531899486,1795835260587257646,1795835260587438527,'succeeded',0,524288,'{"code":0,"peak_memory_bytes":524288,"cpu_time_ns":1749824,"started_ns":1795835260587257646,"ended_ns":1795835260587438527}','',NULL,NULL);
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835260602255987,1795835260641932285,1795835260643693442,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":3184674,"started_ns":1795835260641932285,"ended_ns":1795835260643693442}','',NULL,NULL);
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835262412305669,1795835262458788230,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835262446112346,1795835262490483264,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835262514369920,1795835262563376839,0,'',NULL,NULL,NULL,'',NULL,NULL);
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835259723723533,0);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835259943879394,1,X'0306017902','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835260066875122,1,X'032601790208','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835260427482312,2,X'030e687f02b805025479','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835260600927331,1,X'0306047902','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835260602334967,1,X'0306017901','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835260650887064,1,X'0306017903','');
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
INSERT INTO apps VALUES(0,'root','hello: echo hello',0,NULL,1795835259952516889,'{"version":1,"apps":[{"owner":"root","name":"hello: echo hello","observed":1,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835259943879394,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
INSERT INTO apps VALUES(0,'root','naps',1795835262346144778,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":313708680,"elasticity":{"kind":"step","factor":1.018377502337519},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"step","ideal_memory_bytes":67108864,"ideal_duration_ns":313708680,"min_memory_bytes":8388608,"undersized_duration_ns":319473862},"fit":{"chosen":"step","samples":3,"trials":[{"kind":"step","missed":0.012902337113153525,"worst":0.012985568800887333,"left_out":2},{"kind":"sawtooth","missed":0.02488777746062945,"worst":0.025354604153138692,"left_out":2},{"kind":"monotone","missed":0.015388446163055448,"worst":0.017791323525223564,"left_out":2},{"kind":"interpolated","missed":0.015388446163055448,"worst":0.017791323525223564,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":315467257,"predicted_ns":319473862,"model_error":0.012700541533538614,"constant_error":0.0066650498691849976,"linear_error":0.00456203288317811,"noise":0,"noise_known":false}],"model_mean_error":0.012700541533538614,"constant_mean_error":0.0066650498691849976,"linear_mean_error":0.00456203288317811},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.317439387,"repeats_s":[0.317439387],"cpu_s":0.003381,"others_cores":1.974,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.319473862,"model_error":0.00640901880269823},{"memory_bytes":16777216,"held_out":true,"duration_s":0.315467257,"repeats_s":[0.315467257],"cpu_s":0.003213,"others_cores":1.955,"spilled_bytes":0,"peak_memory_bytes":528384,"predicted_s":0.319473862,"model_error":0.012700541533538614,"constant_error":0.0066650498691849976,"linear_error":0.00456203288317811},{"memory_bytes":33554432,"held_out":false,"duration_s":0.321561518,"repeats_s":[0.321561518],"cpu_s":0.00324,"others_cores":1.949,"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.319473862,"model_error":-0.006492244510426773},{"memory_bytes":67108864,"held_out":false,"duration_s":0.31370868,"repeats_s":[0.31370868],"cpu_s":0.002953,"others_cores":1.935,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.31370868,"model_error":0}]}}',0,NULL);
INSERT INTO apps VALUES(0,'root','two: sh -c echo {task}',0,NULL,1795835260659060419,'{"version":1,"apps":[{"owner":"root","name":"two: sh -c echo {task}","stage":"a","observed":2,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835260600927331,"phases":[{"duration_ns":4000000,"demand":[500,0,0,0]}],"duration_ns":4000000,"peak":[500,0,0,0],"unknown":["memory"],"number":0},{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835260602334967,"phases":[{"duration_ns":1000000,"demand":[1000,0,0,0]}],"duration_ns":1000000,"peak":[1000,0,0,0],"unknown":["memory"],"number":1}]},{"owner":"root","name":"two: sh -c echo {task}","stage":"b","observed":1,"runs":[{"cpu_millicores":1000,"memory_bytes":16777216,"ended_ns":1795835260650887064,"phases":[{"duration_ns":1000000,"demand":[3000,0,0,0]}],"duration_ns":1000000,"peak":[3000,0,0,0],"unknown":["memory"],"number":0}]}]}');
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
INSERT INTO tokens VALUES(1,0,'root','submit',X'530c6ba1e4d0abf7f6788e0e1717925b13493d824dafd28a0ab21e2e9e012233',1795835262388233508,1798427262388233508,0,0);
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
INSERT INTO keys VALUES(1,0,'root','OPJVKVRNYIN6P2ST566SXWYRRH',1795835259865386377,X'22107d77b73d80b5f14e40cdca4fb0713c136c2c3c76a9996155e39f1cf1b2de',1,1);
INSERT INTO keys VALUES(2,0,'root','OAEU2V62XJZLD5GI2477Y3ALDL',1795835260023462087,X'd9b0df0f7b3d93206d192977c3571b1ae66f15f4079afabac41904729c4ee37d',2,1);
INSERT INTO keys VALUES(3,0,'root','EDBCLIRSHA2KZVPL4PBBBY5MY5',1795835260143857715,X'5bd565209b8dc9c33f720450b52e0771fbeae2d5f944de291060a9f14238882a',3,1);
INSERT INTO keys VALUES(4,0,'root','3DT6HCHFLR2IXUDLUOGTBBK4GX',1795835260529573852,X'496157329ed6fc4831603033622641783705a335becfbc9c91f5d70594141c35',4,1);
INSERT INTO keys VALUES(5,0,'root','DNZNSLP3GS5NSVPG4GW44TZ6LU',1795835262411051419,X'04966e27a8c57e1f6698eb47a4f3c29bcbba685c8e9e4d0b1ddbeca1b1ef9d07',5,1);
INSERT INTO keys VALUES(6,0,'root','RX4CKXSI7VA5LFKQPDOSH4KNRK',1795835262444959219,X'fd56b64831ab7af3977bd289a450bf8ade5198427c3b81aa85cb351631ae5af7',6,1);
INSERT INTO keys VALUES(7,0,'root','JVJT2RQTDLS3CMU4UKVKPHWN4P',1795835262511025471,X'e56c7e1b0028b7fd82a8cd7ef610edf655ffed2209e9c38bc0c3aba16641183a',7,1);
INSERT INTO keys VALUES(8,0,'root','2YW7CVMVPCZYPHRJWMUNJBTVHT',1795835262545766510,X'91e3237eb722ebbe35d2ce922a4f1a6c043aa4808ca3c0563be415383bf8fe57',8,1);
INSERT INTO keys VALUES(9,0,'root','42XMS7HA2ZPE5EJ4QMUXJNNRGB',1795835262864616175,X'7fc8cd066012e2171c16e0236178a0c8af30ac74133c510085ee3d278a1f79d2',9,1);
INSERT INTO keys VALUES(10,0,'root','OICMUUDUUBXSX6V7PYTX7DFO4V',1795835262866596522,X'931e46285be98ea77ad1ecc66457dd30d244629e15475a3ee2dc3da82408d0cd',10,1);
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
INSERT INTO sqlite_sequence VALUES('tokens',1);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
COMMIT;
PRAGMA user_version = 15
