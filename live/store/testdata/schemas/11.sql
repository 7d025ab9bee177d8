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
INSERT INTO jobs VALUES(1,0,'root','hello','succeeded',1,0,1795835237104855393,1795835237191494515,1795835237199739376,0,'','{"job":{"id":0,"name":"hello","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"hello: echo hello","stages":[{"name":"hello","tasks":1,"ideal":[250,16777216,0,0],"args":["echo","hello"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,1,0);
INSERT INTO jobs VALUES(2,0,'root','fails','failed',1,0,1795835237252078773,1795835237366530690,1795835237381543338,3,'task 2.0.0: ended with exit code 3','{"job":{"id":0,"name":"fails","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"fails: sh -c exit #","stages":[{"name":"fails","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","exit 3"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(3,0,'root','cancelled','cancelled',1,1,1795835237450832660,1795835237524810867,1795835237583252153,143,'','{"job":{"id":0,"name":"cancelled","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"cancelled: sleep #","stages":[{"name":"cancelled","tasks":1,"ideal":[250,16777216,0,0],"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(4,0,'root','two','succeeded',1,0,1795835237652974159,1795835237729392226,1795835237805818118,0,'','{"job":{"id":0,"name":"two","owner":"root","submitted_ns":0,"class":"regular","app":"two: sh -c echo {task}","stages":[{"name":"a","tasks":2,"ideal":[250,16777216,0,0],"args":["sh","-c","echo {task}"]},{"name":"b","tasks":1,"parents":[0],"ideal":[1000,16777216,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0,1]}',3,3,0);
INSERT INTO jobs VALUES(5,0,'root','ends','running',0,0,1795835239585344803,1795835239648023381,0,NULL,'','{"job":{"id":0,"name":"ends","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends: sh -c echo before; read x \u003c * echo after $x; exit #","stages":[{"name":"ends","tasks":1,"ideal":[250,33554432,0,0],"args":["sh","-c","echo before; read x \u003c /tmp/go; echo after $x; exit 7"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(6,0,'root','ends-alone','running',0,0,1795835239628477083,1795835239739689125,0,NULL,'','{"job":{"id":0,"name":"ends-alone","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"ends-alone: sh -c echo alone; read x \u003c * exit #","stages":[{"name":"ends-alone","tasks":1,"ideal":[250,16777216,0,0],"args":["sh","-c","echo alone; read x \u003c /tmp/go.alone; exit 5"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(7,0,'root','flex','running',0,0,1795835239768357190,1795835239845656475,0,NULL,'','{"job":{"id":0,"name":"flex","owner":"root","submitted_ns":0,"class":"flex","max_attempts":1,"app":"flex: sleep #","stages":[{"name":"flex","tasks":1,"ideal":[250,33554432,0,0],"max_memory_bytes":67108864,"args":["sleep","1000"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(8,0,'root','waits','pending',0,0,1795835239821814867,0,0,NULL,'','{"job":{"id":0,"name":"waits","owner":"root","submitted_ns":0,"class":"regular","max_attempts":1,"app":"waits: echo waited","stages":[{"name":"waits","tasks":1,"ideal":[250,234881024,0,0],"args":["echo","waited"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(9,0,'root','pair-1','pending',0,0,1795835240150716717,0,0,NULL,'','{"job":{"id":0,"name":"pair-1","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
INSERT INTO jobs VALUES(10,0,'root','pair-2','pending',0,0,1795835240153358383,0,0,NULL,'','{"job":{"id":0,"name":"pair-2","owner":"root","submitted_ns":0,"class":"regular","app":"pair-#: true","stages":[{"name":"a","tasks":1,"ideal":[250,241172480,0,0],"args":["true"]}]},"as":{"uid":0,"gid":0,"user":"root"},"env":["PATH=/usr/local/bin:/usr/bin:/bin","BELLOWS_STATE=/var/lib/bellows"],"dir":"/","inherited":{"umask":18,"nice":19,"limits":{"as":{"soft":-1,"hard":-1},"core":{"soft":0,"hard":-1},"cpu":{"soft":-1,"hard":-1},"data":{"soft":-1,"hard":-1},"fsize":{"soft":-1,"hard":-1},"locks":{"soft":-1,"hard":-1},"memlock":{"soft":8388608,"hard":8388608},"msgqueue":{"soft":819200,"hard":819200},"nice":{"soft":0,"hard":0},"nofile":{"soft":20000,"hard":20000},"nproc":{"soft":96365,"hard":96365},"rss":{"soft":-1,"hard":-1},"rtprio":{"soft":0,"hard":0},"rttime":{"soft":-1,"hard":-1},"sigpending":{"soft":96365,"hard":96365},"stack":{"soft":8388608,"hard":-1}}},"untimed":[0]}',1,0,0);
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
INSERT INTO tasks VALUES(1,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237108932362,1795835237191494515,1795835237193074370,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2644159,"started_ns":1795835237191494515,"ended_ns":1795835237193074370}','',NULL,NULL);
INSERT INTO tasks VALUES(2,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237255537046,1795835237366530690,1795835237367036303,'failed',3,782336,'{"code":3,"peak_memory_bytes":782336,"cpu_time_ns":2814283,"started_ns":1795835237366530690,"ended_ns":1795835237367036303}','ended with exit code 3',NULL,NULL);
INSERT INTO tasks VALUES(3,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237451778210,1795835237524810867,1795835237578842224,'killed',143,520192,'{"code":143,"signal":15,"peak_memory_bytes":520192,"cpu_time_ns":2127720,"started_ns":1795835237524810867,"ended_ns":1795835237578842224}','killed',NULL,NULL);
INSERT INTO tasks VALUES(4,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237653939956,1795835237729392226,1795835237731610405,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2426899,"started_ns":1795835237729392226,"ended_ns":1795835237731610405}','',NULL,NULL);
INSERT INTO tasks VALUES(4,0,1,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237653939956,1795835237730393004,1795835237730758689,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2709506,"started_ns":1795835237730393004,"ended_ns":1795835237730758689}','',NULL,NULL);
INSERT INTO tasks VALUES(4,1,0,1,0,'vm','[1000,16777216,0,0]','fits with its ideal memory, 16MiB',1795835237740511309,1795835237795682613,1795835237796736052,'succeeded',0,782336,'{"code":0,"peak_memory_bytes":782336,"cpu_time_ns":2923598,"started_ns":1795835237795682613,"ended_ns":1795835237796736052}','',NULL,NULL);
INSERT INTO tasks VALUES(5,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835239586725922,1795835239648023381,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(6,0,0,1,0,'vm','[250,16777216,0,0]','fits with its ideal memory, 16MiB',1795835239629491170,1795835239739689125,0,'',NULL,NULL,NULL,'',NULL,NULL);
INSERT INTO tasks VALUES(7,0,0,1,0,'vm','[250,33554432,0,0]','fits with its ideal memory, 32MiB',1795835239770774088,1795835239845656475,0,'',NULL,NULL,NULL,'',NULL,NULL);
CREATE TABLE runs (
	id         INTEGER PRIMARY KEY AUTOINCREMENT,
	owner_uid  INTEGER NOT NULL,
	owner_name TEXT    NOT NULL,
	policy     TEXT    NOT NULL,
	settings   TEXT    NOT NULL, -- JSON object
	started_ns INTEGER NOT NULL,
	ended_ns   INTEGER NOT NULL DEFAULT 0
);
INSERT INTO runs VALUES(1,0,'','fifo','{}',1795835237049070474,0);
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
INSERT INTO usage VALUES(1,0,0,1,0,1795835237200073114,1,X'0206017902','');
INSERT INTO usage VALUES(2,0,0,1,0,1795835237381742669,1,X'0206017902','');
INSERT INTO usage VALUES(3,0,0,1,0,1795835237583355735,1,X'0206367902','');
INSERT INTO usage VALUES(4,0,0,1,0,1795835237737585861,1,X'0206027902','');
INSERT INTO usage VALUES(4,0,1,1,0,1795835237743340114,1,X'0206017902','');
INSERT INTO usage VALUES(4,1,0,1,0,1795835237805898489,1,X'0206017902','');
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
INSERT INTO apps VALUES(0,'root','hello: echo hello',0,NULL,1795835237205408578,'{"version":1,"apps":[{"owner":"root","name":"hello: echo hello","observed":1,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835237200073114,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
INSERT INTO apps VALUES(0,'root','naps',1795835239523809901,'{"ideal_memory_bytes":67108864,"min_memory_bytes":8388608,"duration_ns":304555229,"elasticity":{"kind":"step","factor":1.0002982940082765},"args":["sleep","0.3"],"evidence":{"name":"naps","args":["sleep","0.3"],"model":{"version":1,"kind":"step","ideal_memory_bytes":67108864,"ideal_duration_ns":304555229,"min_memory_bytes":8388608,"undersized_duration_ns":304646076},"fit":{"chosen":"step","samples":3,"trials":[{"kind":"step","missed":0.003683654486097444,"worst":0.004128842598012996,"left_out":2},{"kind":"sawtooth","missed":0.0042765920767480385,"worst":0.005314717779314184,"left_out":2},{"kind":"monotone","missed":0.003682886329487574,"worst":0.004128842598012996,"left_out":2},{"kind":"interpolated","missed":0.00374538217546369,"worst":0.004128842598012996,"left_out":2}],"noise":0},"held_out":{"misses":[{"memory_bytes":16777216,"measured_ns":303284531,"predicted_ns":304646076,"model_error":0.004489332164455166,"constant_error":0.004395169762219096,"linear_error":0.0026800476678449517,"noise":0,"noise_known":false}],"model_mean_error":0.004489332164455166,"constant_mean_error":0.004395169762219096,"linear_mean_error":0.0026800476678449517},"sizes":[{"memory_bytes":8388608,"held_out":false,"duration_s":0.304021035,"repeats_s":[0.304021035],"cpu_s":0.002568,"others_cores":1.965,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.304646076,"model_error":0.0020559136640002557},{"memory_bytes":16777216,"held_out":true,"duration_s":0.303284531,"repeats_s":[0.303284531],"cpu_s":0.002573,"others_cores":1.97,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.304646076,"model_error":0.004489332164455166,"constant_error":0.004395169762219096,"linear_error":0.0026800476678449517},{"memory_bytes":33554432,"held_out":false,"duration_s":0.30527629,"repeats_s":[0.30527629],"cpu_s":0.003308,"others_cores":1.955,"spilled_bytes":0,"peak_memory_bytes":262144,"predicted_s":0.304646076,"model_error":-0.0020644053293493577},{"memory_bytes":67108864,"held_out":false,"duration_s":0.304555229,"repeats_s":[0.304555229],"cpu_s":0.003025,"others_cores":1.993,"spilled_bytes":0,"peak_memory_bytes":352256,"predicted_s":0.304555229,"model_error":0}]}}',0,NULL);
INSERT INTO apps VALUES(0,'root','two: sh -c echo {task}',0,NULL,1795835237808677723,'{"version":1,"apps":[{"owner":"root","name":"two: sh -c echo {task}","stage":"a","observed":2,"runs":[{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835237737585861,"phases":[{"duration_ns":2000000,"demand":[1000,0,0,0]}],"duration_ns":2000000,"peak":[1000,0,0,0],"unknown":["memory"],"number":0},{"cpu_millicores":250,"memory_bytes":16777216,"ended_ns":1795835237743340114,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":1}]},{"owner":"root","name":"two: sh -c echo {task}","stage":"b","observed":1,"runs":[{"cpu_millicores":1000,"memory_bytes":16777216,"ended_ns":1795835237805898489,"phases":[{"duration_ns":1000000,"demand":[2000,0,0,0]}],"duration_ns":1000000,"peak":[2000,0,0,0],"unknown":["memory"],"number":0}]}]}');
DELETE FROM sqlite_sequence;
INSERT INTO sqlite_sequence VALUES('runs',1);
INSERT INTO sqlite_sequence VALUES('jobs',10);
CREATE INDEX jobs_open ON jobs (id) WHERE ended = 0;
CREATE INDEX jobs_ended ON jobs (finished_ns) WHERE ended = 1;
CREATE INDEX usage_age ON usage (ended_ns, spans);
CREATE INDEX jobs_unlearned ON jobs (finished_ns, id) WHERE unlearned = 1;
COMMIT;
PRAGMA user_version = 11
