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
, task_count INTEGER NOT NULL DEFAULT 0, succeeded_count INTEGER NOT NULL DEFAULT 0, unlearned INTEGER NOT NULL DEFAULT 0);
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835232758569504,1795835232821331339,1795835232830610427,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,1,0);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835232862954206,1795835232923712747,1795835232938016678,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835232978191592,1795835233061312475,1795835233253164901,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835233343009141,1795835233399882996,1795835233494907519,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0,1]}',3,3,0);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835235158297928,1795835235247168495,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835235192376651,1795835235272823288,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835235270607600,1795835235386652754,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835235343017979,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835235562399551,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835235564246760,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
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
	detail            TEXT    NOT NULL DEFAULT '', throttle TEXT,
	PRIMARY KEY (job, stage, idx, run)
) WITHOUT ROWID;
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835232760349027,1795835232821331339,1795835232822731640,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2771539,"started_ns":1795835232821331339,"ended_ns":1795835232822731640}','',NULL);
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835232864987688,1795835232923712747,1795835232925720745,'failed',3,782336,'{"code":3,"peak_memory_bytes":782336,"cpu_time_ns":4304204,"started_ns":1795835232923712747,"ended_ns":1795835232925720745}','ended with exit code 3',NULL);
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835232979493163,1795835233061312475,1795835233242670513,'killed',143,782336,'{"code":143,"signal":15,"peak_memory_bytes":782336,"cpu_time_ns":2937488,"started_ns":1795835233061312475,"ended_ns":1795835233242670513}','killed',NULL);
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835233344073838,1795835233404702707,1795835233406704317,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2324044,"started_ns":1795835233404702707,"ended_ns":1795835233406704317}','',NULL);
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835233344073838,1795835233399882996,1795835233401244937,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2585668,"started_ns":1795835233399882996,"ended_ns":1795835233401244937}','',NULL);
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835233418289369,1795835233483015991,1795835233484867930,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2573506,"started_ns":1795835233483015991,"ended_ns":1795835233484867930}','',NULL);
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835235159355268,1795835235247168495,0,'',NULL,NULL,NULL,'',NULL);
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835235195816759,1795835235272823288,0,'',NULL,NULL,NULL,'',NULL);
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835235274257492,1795835235386652754,0,'',NULL,NULL,NULL,'',NULL);
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835232694471074,0);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835232831747326,1,X'0106017902','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835232938474518,1,X'0106027904','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835233253275944,2,X'010e677f02c805024e79','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835233414155008,1,X'0106027902','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835233418484482,1,X'0106017902','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835233495030539,1,X'0106017902','');
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
INSERT INTO apps VALUES(0,'root','hello: echo hello',0,NULL,1795835232836462369,'{"version":1,"apps":[{"owner":"root","name":"hello: echo hello","observed":1,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835232831747326,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
INSERT INTO apps VALUES(0,'root','naps',1795835235135975950,'{"ideal_memory_bytes":33554432,"min_memory_bytes":8388608,"duration_ns":317402143,"elasticity":{"kind":"points","points":[{"memory_bytes":8388608,"slowdown":1.0324642105519748},{"memory_bytes":12582911,"slowdown":1.0486963126773847},{"memory_bytes":12582912,"slowdown":1},{"memory_bytes":33554432,"slowdown":1}]},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"sawtooth","ideal_memory_bytes":33554432,"ideal_duration_ns":317402143,"min_memory_bytes":8388608,"buffer":{"share":1,"overhead_bytes":0},"input_bytes":12582912,"spill_rate_bytes_per_s":814095194},"fit":{"chosen":"sawtooth","samples":3,"trials":[{"kind":"step","missed":0.02741190121765677,"worst":0.02778753683078313,"left_out":2},{"kind":"sawtooth","missed":0.015823387365941074,"worst":0.022668498587209263,"left_out":2},{"kind":"monotone","missed":0.019533512050850535,"worst":0.02703626560453041,"left_out":2},{"kind":"interpolated","missed":0.019533512050850535,"worst":0.02703626560453041,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":314835880,"predicted_ns":317402143,"model_error":0.008151113526196569,"constant_error":0.019088056291423964,"linear_error":0.03556077852371845,"noise":0,"noise_known":false}],"model_mean_error":0.008151113526196569,"constant_mean_error":0.019088056291423964,"linear_mean_error":0.03556077852371845},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.327706353,"repeats_s":[0.327706353],"cpu_s":0.004006,"others_cores":1.33,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.327706353,"model_error":0},{"memory_bytes":16777216,"held_out":true,"duration_s":0.31483588,"repeats_s":[0.31483588],"cpu_s":0.003367,"others_cores":1.419,"spilled_bytes":0,"peak_memory_bytes":532480,"predicted_s":0.317402143,"model_error":0.008151113526196569,"constant_error":0.019088056291423964,"linear_error":0.03556077852371845},{"memory_bytes":33554432,"held_out":false,"duration_s":0.318846397,"repeats_s":[0.318846397],"cpu_s":0.003206,"others_cores":1.307,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.317402143,"model_error":-0.0045296230836818895},{"memory_bytes":67108864,"held_out":false,"duration_s":0.315983706,"repeats_s":[0.315983706],"cpu_s":0.003302,"others_cores":1.319,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.317402143,"model_error":0.004488956148897121}]}}',0,NULL);
INSERT INTO apps VALUES(0,'root','two: sh -c echo {task}',0,NULL,1795835233501974217,'{"version":1,"apps":[{"owner":"root","name":"two: sh -c echo {task}","stage":"a","observed":2,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835233414155008,"phases":[{"duration_ns":2000000,"demand":[1000,0,0,0]}],"duration_ns":2000000,"peak":[1000,0,0,0],"unknown":["memory"],"number":0},{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835233418484482,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":1}]},{"owner":"root","name":"two: sh -c echo {task}","stage":"b","observed":1,"runs":[{"cpu_millicores":1000,"memory_bytes":16777216,"ended_ns":1795835233495030539,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
COMMIT;
PRAGMA user_version = 10
