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
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835242426592687,1795835242545354905,1795835242583471387,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,1,0,NULL);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835242672750409,1795835242751208402,1795835242760897850,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835242821010369,1795835242907363574,1795835243064835415,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835243182135319,1795835243284983518,1795835243396772087,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0,1]}',3,3,0,NULL);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835246206443420,1795835248242846433,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835248390737495,1795835248674164401,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835248682060141,1795835249125241776,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835248857369537,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,'[{"by":"root","since_ns":1795835251267334362}]');
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835251301593104,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835251307226359,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0,NULL);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835242433155869,1795835242545354905,1795835242547871192,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":4357671,"started_ns":1795835242545354905,"ended_ns":1795835242547871192}','',NULL,NULL);
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835242674217004,1795835242751208402,1795835242752174604,'failed',3,520192,'{"code":3,"peak_memory_bytes":520192,"cpu_time_ns":3762390,"started_ns":1795835242751208402,"ended_ns":1795835242752174604}','ended with exit code 3',NULL,NULL);
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835242823676903,1795835242907363574,1795835243055623342,'killed',143,520192,'{"code":143,"signal":15,"peak_memory_bytes":520192,"cpu_time_ns":2382311,"started_ns":1795835242907363574,"ended_ns":1795835243055623342}','killed',NULL,NULL);
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835243188247950,1795835243292270567,1795835243294453886,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":3340294,"started_ns":1795835243292270567,"ended_ns":1795835243294453886}','',NULL,NULL);
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835243188247950,1795835243284983518,1795835243286756531,'succeeded',0,520192,'{"code":0,"peak_memory_bytes":520192,"cpu_time_ns":2553024,"started_ns":1795835243284983518,"ended_ns":1795835243286756531}','',NULL,NULL);
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835243305703239,1795835243383773019,1795835243385295336,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":3489628,"started_ns":1795835243383773019,"ended_ns":1795835243385295336}','',NULL,NULL);
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835246208866438,1795835248242846433,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835248391665284,1795835248674164401,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835248683211601,1795835249125241776,0,'',NULL,NULL,NULL,'',NULL,NULL);
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835242290524778,0);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835242583711369,1,X'0306027904','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835242761031192,1,X'0306017903','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835243065489164,2,X'030e667f02c005022e79','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835243298308013,2,X'030e057f028004020179','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835243305994407,1,X'0306027903','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835243396871403,1,X'0306017903','');
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
INSERT INTO apps VALUES(0,'root','hello: echo hello',0,NULL,1795835242595316174,'{"version":1,"apps":[{"owner":"root","name":"hello: echo hello","observed":1,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835242583711369,"phases":[{"duration_ns":2000000,"demand":[2000,0,0,0]}],"duration_ns":2000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
INSERT INTO apps VALUES(0,'root','naps',1795835246067569015,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":1008244275,"elasticity":{"kind":"points","points":[{"memory_bytes":8388608,"slowdown":0.42370999031955825},{"memory_bytes":16777216,"slowdown":0.31642918081533367},{"memory_bytes":33554432,"slowdown":0.3232048642180487},{"memory_bytes":67108864,"slowdown":1}]},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"interpolated","ideal_memory_bytes":67108864,"ideal_duration_ns":1008244275,"min_memory_bytes":8388608,"points":[{"memory_bytes":8388608,"duration_ns":427203172},{"memory_bytes":16777216,"duration_ns":319037910},{"memory_bytes":33554432,"duration_ns":325869454},{"memory_bytes":67108864,"duration_ns":1008244275}]},"fit":{"chosen":"interpolated","samples":4,"trials":[{"kind":"step","refused":"it says 356ms at 64MiB, where 1.01s was measured","missed":0,"worst":0,"left_out":0},{"kind":"sawtooth","refused":"it says 356ms at 64MiB, where 1.01s was measured","missed":0,"worst":0,"left_out":0},{"kind":"monotone","refused":"it says 520ms at 8MiB, where 427ms was measured","missed":0,"worst":0,"left_out":0},{"kind":"interpolated","missed":0.3901278995699175,"worst":0.6840282458631425,"left_out":3}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":319037910,"predicted_ns":393425266,"model_error":0.23316149482047446,"constant_error":0.8402378388198444,"linear_error":0.5992113413731929,"noise":0,"noise_known":false}],"model_mean_error":0.23316149482047446,"constant_mean_error":0.8402378388198444,"linear_mean_error":0.5992113413731929},"refitted":true,"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.427203172,"repeats_s":[0.427203172],"cpu_s":0.002897,"others_cores":2.006,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.427203172,"model_error":0},{"memory_bytes":16777216,"held_out":true,"duration_s":0.31903791,"repeats_s":[0.31903791],"cpu_s":0.002987,"others_cores":1.965,"spilled_bytes":0,"peak_memory_bytes":270336,"predicted_s":0.393425266,"model_error":0.23316149482047446,"constant_error":0.8402378388198444,"linear_error":0.5992113413731929},{"memory_bytes":33554432,"held_out":false,"duration_s":0.325869454,"repeats_s":[0.325869454],"cpu_s":0.003427,"others_cores":2.015,"spilled_bytes":0,"peak_memory_bytes":524288,"predicted_s":0.325869454,"model_error":0},{"memory_bytes":67108864,"held_out":false,"duration_s":1.008244275,"repeats_s":[1.008244275],"cpu_s":0.002898,"others_cores":2.001,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":1.008244275,"model_error":0}]}}',0,NULL);
INSERT INTO apps VALUES(0,'root','two: sh -c echo {task}',0,NULL,1795835243401323468,'{"version":1,"apps":[{"owner":"root","name":"two: sh -c echo {task}","stage":"a","observed":2,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835243298308013,"phases":[{"duration_ns":6000000,"demand":[400,262144,0,0]}],"duration_ns":6000000,"peak":[400,262144,0,0],"number":0},{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835243305994407,"phases":[{"duration_ns":2000000,"demand":[1500,0,0,0]}],"duration_ns":2000000,"peak":[1500,0,0,0],"unknown":["memory"],"number":1}]},{"owner":"root","name":"two: sh -c echo {task}","stage":"b","observed":1,"runs":[{"cpu_millicores":1000,"memory_bytes":16777216,"ended_ns":1795835243396871403,"phases":[{"duration_ns":1000000,"demand":[3000,0,0,0]}],"duration_ns":1000000,"peak":[3000,0,0,0],"unknown":["memory"],"number":0}]}]}');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
COMMIT;
PRAGMA user_version = 13
