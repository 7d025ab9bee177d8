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
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835216597805230,1795835216690188576,1795835216703394367,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,1);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835216732371083,1795835216820346328,1795835216831747289,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835216870553686,1795835216953652979,1795835217093910455,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835217217997526,1795835217297765447,1795835217387289116,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',3,3);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835219087993572,1795835219195315027,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835219119386350,1795835219183579999,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835219329661619,1795835219425537295,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835219450243763,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835219840790349,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835219842526019,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}}}',1,0);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835216601266544,1795835216690188576,1795835216692567315,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":2740509,"started_ns":1795835216690188576,"ended_ns":1795835216692567315}','');
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835216735263594,1795835216820346328,1795835216821746508,'failed',3,520192,'{"code":3,"peak_memory_bytes":520192,"cpu_time_ns":2400955,"started_ns":1795835216820346328,"ended_ns":1795835216821746508}','ended with exit code 3');
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835216871791275,1795835216953652979,1795835217084827612,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":2439672,"started_ns":1795835216953652979,"ended_ns":1795835217084827612}','killed');
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835217219031659,1795835217310763339,1795835217311176836,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2224273,"started_ns":1795835217310763339,"ended_ns":1795835217311176836}','');
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835217219031659,1795835217297765447,1795835217298070183,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2651281,"started_ns":1795835217297765447,"ended_ns":1795835217298070183}','');
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835217324008664,1795835217379255329,1795835217380454463,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2212203,"started_ns":1795835217379255329,"ended_ns":1795835217380454463}','');
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835219089270108,1795835219195315027,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835219124323840,1795835219183579999,0,'',NULL,NULL,NULL,'');
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835219351772278,1795835219425537295,0,'',NULL,NULL,NULL,'');
CREATE TABLE profiles (
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	name       TEXT    NOT NULL,
	made_ns    INTEGER NOT NULL,
	body       TEXT    NOT NULL, -- JSON
	PRIMARY KEY (owner_uid, name)
) WITHOUT ROWID;
INSERT INTO profiles VALUES(0,'root','naps',1795835219059570612,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":313620555,"elasticity":{"kind":"step","factor":1.0113700583177656},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"step","ideal_memory_bytes":67108864,"ideal_duration_ns":313620555,"min_memory_bytes":8388608,"undersized_duration_ns":317186439},"fit":{"chosen":"step","samples":3,"trials":[{"kind":"step","missed":0.026596798303746415,"worst":0.027438052595860223,"left_out":2},{"kind":"sawtooth","missed":0.03296744369921055,"worst":0.04017934338678849,"left_out":2},{"kind":"monotone","missed":0.026595868568179193,"worst":0.027438052595860223,"left_out":2},{"kind":"interpolated","missed":0.02666384187754197,"worst":0.027438052595860223,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":314055788,"predicted_ns":317186439,"model_error":0.009968455031308004,"constant_error":0.006430370262750897,"linear_error":-0.003056377359298979,"noise":0,"noise_known":false}],"model_mean_error":0.009968455031308004,"constant_mean_error":0.006430370262750897,"linear_mean_error":0.003056377359298979},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.313008475,"repeats_s":[0.313008475],"cpu_s":0.003289,"others_cores":1.395,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.317186439,"model_error":0.013347766382363927},{"memory_bytes":16777216,"held_out":true,"duration_s":0.314055788,"repeats_s":[0.314055788],"cpu_s":0.004099,"others_cores":1.356,"spilled_bytes":0,"peak_memory_bytes":352256,"predicted_s":0.317186439,"model_error":0.009968455031308004,"constant_error":0.006430370262750897,"linear_error":-0.003056377359298979},{"memory_bytes":33554432,"held_out":false,"duration_s":0.321596818,"repeats_s":[0.321596818],"cpu_s":0.005367,"others_cores":1.538,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.317186439,"model_error":-0.01371400073989538},{"memory_bytes":67108864,"held_out":false,"duration_s":0.313620555,"repeats_s":[0.313620555],"cpu_s":0.003785,"others_cores":1.327,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.313620555,"model_error":0}]}}');
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835216429104689,0);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835216703486745,1,X'0106021902','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835216831845201,1,X'0106011902','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835217093988562,2,X'010e651f02c805021e19','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835217321987372,1,X'0106011902','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835217324664360,1,X'0106011902','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835217387403254,1,X'0106011902','');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
COMMIT;
PRAGMA user_version = 7
