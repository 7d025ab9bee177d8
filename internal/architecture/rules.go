package architecture

// folder is a row of the table: the packages of this module that a package may import, and why no others.
type folder struct {
	path   string   // below the module
	may    []string // import these of the module; "..." is any but a command
	reason string
}

// core are the packages that turn events into decisions. They are pure: see purity.
var core = []string{"internal/heap", "resource", "timeline", "cluster", "usage", "memory", "leveling", "profile", "share", "policy/resimulate", "policy", "engine"}

// folders has a row for every package. The order of rows is the direction of imports: a package imports only packages in
// rows above its own.
var folders = []folder{
	{"internal/heap", nil,
		"an order needs no knowledge of what is ordered"},
	{"internal/kept", nil,
		"as internal/heap: a cache needs no knowledge of what it keeps"},
	{"resource", nil,
		"amounts and their units mean the same everywhere, so they know nothing else"},
	{"timeline", []string{"resource"},
		"a step function over vectors needs no jobs and no nodes"},
	{"cluster", []string{"resource", "timeline"},
		"the nouns are plain values that no policy and no driver shapes"},
	{"usage", []string{"resource"},
		"samples are compressed and summed up in one way for the packages that measure, store, learn from and show them"},
	{"memory", []string{"resource", "timeline", "cluster"},
		"mechanisms are functions of their own: each can be understood, tested and switched off alone"},
	{"leveling", []string{"resource", "timeline", "cluster"},
		"as memory"},
	{"profile", []string{"resource", "timeline", "cluster", "usage"},
		"as memory"},
	{"share", nil,
		"who is due how many of a number of executors does not depend on what the executors are"},
	{"policy/resimulate", []string{"internal/heap", "resource", "timeline", "cluster"},
		"an estimator sees what a policy sees, and is asked by one"},
	{"policy", []string{"resource", "timeline", "cluster", "memory", "leveling", "profile", "share", "policy/resimulate"},
		"a policy combines mechanisms and sees estimates; it knows neither who asks nor what is true"},
	{"engine", []string{"resource", "timeline", "cluster", "memory", "leveling", "profile", "policy"},
		"the same engine runs in the simulator and on a machine, so it knows neither"},
	{"drive", []string{"timeline", "cluster", "engine"},
		"whoever owns an engine in real time has the same clock, agenda and steps: live and pool"},
	{"fault", []string{"cluster"},
		"errors in files have the same words in every reader"},
	{"form", []string{"resource", "cluster", "fault"},
		"a YAML file that people fill in is read in the same way, whatever it describes"},
	{"durable", nil,
		"what a file needs to survive is the same for every owner of files"},
	{"workload", []string{"resource", "timeline", "cluster", "profile", "fault", "durable"},
		"a workload is the nouns and the truth about them; what decides about them is not its business"},
	{"jobfile", []string{"resource", "timeline", "cluster", "fault", "form", "workload"},
		"a job file has stages and, for the simulator, their truth; its reader does not know what runs the jobs"},
	{"eventlog", []string{"resource", "timeline", "cluster", "fault"},
		"a recorded run has the events and decisions of an engine, and no truth"},
	{"importer", []string{"resource", "timeline", "cluster", "profile", "fault", "workload"},
		"recordings of other systems become workloads like any other, whatever their source"},
	{"bound", []string{"internal/heap", "resource", "timeline", "cluster", "workload"},
		"lower bounds of all schedules follow from the truth alone, not from a scheduler or simulator"},
	{"sim", []string{"internal/heap", "resource", "timeline", "cluster", "memory", "leveling", "profile", "policy", "engine", "workload"},
		"a driver knows the engine and no other driver; the truth of what tasks do lives here"},
	{"sim/clusterfile", []string{"resource", "cluster", "memory", "fault", "form", "workload", "sim"},
		"a description of a simulated cluster is independent of what runs on it"},
	{"trial", []string{"resource", "cluster", "policy", "workload", "bound", "sim"},
		"all callers compare policies in one way; it draws nothing and touches no machine"},
	{"foresee", []string{"resource", "timeline", "cluster", "workload", "eventlog", "sim", "trial"},
		"a running cluster is played forward in the simulator, wherever it runs"},
	{"lab/chart", nil,
		"a picture shows numbers, whatever they are about"},
	{"sweep", nil,
		"many runs in a fixed order, whatever is run"},
	{"lab/framework", []string{"internal/heap", "resource", "cluster", "profile", "lab/chart"},
		"what a framework spills follows from its settings, not from its scheduler"},
	{"lab/pattern", []string{"internal/heap", "resource"},
		"a measured program does not depend on what measures it"},
	{"lab/experiments", []string{"resource", "timeline", "cluster", "memory", "leveling", "profile", "policy", "engine", "workload", "importer", "bound", "sim", "trial", "sweep", "lab/chart", "lab/framework"},
		"an experiment compares policies in the simulator on made and on recorded workloads, and draws what came of it; it touches no machine"},
	{"lab/comparison", []string{"resource", "timeline", "cluster", "sim", "trial", "lab/chart"},
		"the results of all trials are drawn in one way"},
	{"executor", nil,
		"programs of users import it: what executors and applications say to a pool depends on no part of the daemon"},
	{"statedir", []string{"durable"},
		"the owner of a directory is checked before anything in it is read"},
	{"store", []string{"resource", "timeline", "cluster", "usage", "profile", "durable", "statedir"},
		"what must survive is stored as it is submitted; it does not decide and does not run anything"},
	{"live", []string{"internal/kept", "resource", "timeline", "cluster", "usage", "memory", "leveling", "profile", "policy", "engine", "drive", "eventlog", "durable", "store"},
		"a driver knows the engine and no other driver; its backend satisfies an interface that is defined here"},
	{"pool", []string{"resource", "timeline", "cluster", "policy", "engine", "drive", "executor"},
		"a pool is driven like a cluster, and starts no process: it knows neither live nor agent"},
	{"pools", []string{"resource", "cluster", "policy", "share", "durable", "live", "executor", "pool"},
		"executors are jobs of their owner: it submits them to the driver like any other, and starts no process itself"},
	{"cgroup", nil,
		"groups of processes are the kernel's business: this package could serve any other project"},
	{"netcount", nil,
		"as cgroup"},
	{"swap", []string{"resource", "durable", "statedir"},
		"swap belongs to the machine: this package knows neither jobs nor control groups"},
	{"input", nil,
		"input of a program has one protocol for its client, the daemon and the supervisor"},
	{"inherited", []string{"cluster"},
		"what a process inherits is the kernel's business; the nouns say what the job's programs are to inherit"},
	{"agent", []string{"resource", "timeline", "cluster", "usage", "memory", "durable", "cgroup", "netcount", "swap", "input", "inherited"},
		"one node carries out orders; it satisfies live.Backend without knowing it, and decides nothing but in the memory loop"},
	{"server", []string{"internal/kept", "resource", "timeline", "cluster", "usage", "fault", "profile", "policy", "eventlog", "store", "live", "executor", "pool", "pools", "input"},
		"the API shows what live, store and pools know; it runs nothing itself"},
	{"profiler", []string{"resource", "timeline", "cluster", "profile", "cgroup", "swap"},
		"measuring a program needs containers and models, but no scheduler"},
	{"daemon", []string{"resource", "timeline", "cluster", "memory", "policy", "durable", "store", "live", "pools", "agent", "swap", "profiler", "server"},
		"one place opens the parts of a daemon and closes them, in the right order, for the command, the demonstration and tests"},
	{"internal/hungry", nil,
		"a program in a container does not depend on what runs it"},
	{"internal/sandbox", []string{"resource", "cluster", "policy", "workload", "live", "agent", "daemon", "profiler", "swap"},
		"demonstrations and studies of real programs need bellows in their own process, and must leave nothing behind"},
	{"internal/fusedisk", nil,
		"as swap"},
	{"internal/boundeddisk", []string{"resource", "internal/fusedisk"},
		"a disk of a stated speed does not depend on the programs that use it"},
	{"internal/terminal", []string{"resource", "cluster"},
		"every command and every report prints tables and paragraphs, and shows progress, in the same way"},
	{"doctor", []string{"resource", "cgroup", "swap", "statedir", "store", "live", "agent", "server", "internal/terminal"},
		"it asks the parts that a daemon opens, and opens none of them"},
	{"lab/demo", []string{"resource", "timeline", "cluster", "profile", "policy", "engine", "workload", "jobfile", "eventlog", "sim", "trial", "store", "live", "agent", "profiler", "lab/chart", "internal/hungry", "internal/sandbox", "internal/boundeddisk", "internal/terminal"},
		"runs of real programs are repeated, judged, and drawn together with the simulator's predictions"},
	{"lab/paging", []string{"resource", "cluster", "profile", "swap", "profiler", "lab/chart"},
		"what paging costs is measured in the containers in which programs are profiled"},
	{"cmd/internal/picture", nil,
		"values over time are drawn for a terminal in one way, whatever they are"},
	{"cmd/internal/flags", []string{"resource"},
		"every command reads sizes and times in the same way"},
	{"cmd/internal/command", []string{"fault", "internal/terminal"},
		"every command reports wrong usage in the same way, as files do their fields, and exits with the same codes"},
	{"cmd/bellows/internal/demo", []string{"resource", "timeline", "cluster", "workload", "live", "agent", "profiler", "internal/hungry", "internal/sandbox", "internal/terminal"},
		"a demonstration runs real programs, checks and explains them; lab/demo repeats and judges them"},
	{"cmd/internal/command/commandtest", []string{"internal/terminal", "cmd/internal/command"},
		"scripts that test commands know the same words"},
	{"cmd/internal/supervisor", []string{"agent"},
		"both programs start containers, and are their supervisors before anything else is initialized"},
	{"cmd/internal/workloadfile", []string{"fault", "jobfile", "workload", "cmd/internal/command"},
		"commands open files with workloads in one way"},
	{"cmd/internal/simulate", []string{"resource", "timeline", "cluster", "profile", "policy", "jobfile", "workload", "bound", "sim", "sim/clusterfile", "trial", "sweep", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/internal/workloadfile"},
		"both commands simulate what the same flags say; neither touches a machine for that"},
	{"cmd/bellows-lab", []string{"..."},
		"studies have a command of their own, so that the other one is the resource manager's alone"},
	{"cmd/bellows/internal/place", []string{"cluster", "jobfile", "store", "live", "server", "cmd/internal/command"},
		"every command finds the daemon, and the profiles that it keeps, in the same way"},
	{"cmd/bellows/internal/recordings", []string{"importer", "cmd/internal/command"},
		"what other systems recorded is opened in one way, whatever it becomes"},
	{"cmd/bellows/internal/trace", []string{"resource", "cluster", "workload", "jobfile", "importer", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/internal/workloadfile", "cmd/bellows/internal/recordings"},
		"a group of commands: flags and wiring of what it is about, and of nothing else"},
	{"cmd/bellows/internal/phases", []string{"resource", "live", "internal/terminal"},
		"what a task demands when looks the same of a job and of an application"},
	{"cmd/bellows/internal/jobs", []string{"resource", "timeline", "cluster", "usage", "policy", "workload", "jobfile", "eventlog", "trial", "foresee", "live", "agent", "swap", "input", "inherited", "server", "internal/terminal", "cmd/internal/picture", "cmd/internal/flags", "cmd/internal/command", "cmd/internal/simulate", "cmd/bellows/internal/place", "cmd/bellows/internal/phases"},
		"as trace"},
	{"cmd/bellows/internal/mapping", []string{"executor", "live", "server", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place"},
		"functions run on the executors of a pool, and the daemon finds it"},
	{"cmd/bellows/internal/top", []string{"cluster", "live", "pool", "pools", "server", "internal/terminal", "cmd/internal/command", "cmd/bellows/internal/place", "cmd/bellows/internal/jobs"},
		"a view of the whole machine says of jobs what the commands for jobs say"},
	{"cmd/bellows/internal/replay", []string{"resource", "timeline", "cluster", "policy", "workload", "sim", "trial", "live", "server", "internal/terminal", "cmd/internal/command", "cmd/internal/simulate", "cmd/bellows/internal/place"},
		"as trace"},
	{"cmd/bellows/internal/machine", []string{"resource", "cluster", "memory", "policy", "fault", "form", "store", "live", "agent", "swap", "inherited", "statedir", "server", "daemon", "doctor", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place"},
		"as trace"},
	{"cmd/bellows/internal/profiling", []string{"resource", "timeline", "cluster", "profile", "importer", "profiler", "store", "live", "agent", "server", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place", "cmd/bellows/internal/phases", "cmd/bellows/internal/recordings"},
		"as trace"},
	{"cmd/bellows/internal/pooling", []string{"resource", "cluster", "inherited", "live", "pool", "pools", "server", "internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place", "cmd/bellows/internal/top"},
		"as trace"},
	{"cmd/bellows", []string{"..."},
		"only the command wires the drivers that it shows side by side; a daemon is opened elsewhere"},
	{"guest/internal/plan", nil,
		"it is compiled into the first program of a guest, which must stay small"},
	{"guest/init", []string{"guest/internal/plan"},
		"as its plan"},
	{"guest", []string{"guest/internal/plan"},
		"a harness that knows nothing of what it tests serves every package"},
	{"internal/architecture", nil,
		"a judge has no friends"},
	{"internal/testswap", nil,
		"tests of any package may need it"},
	{"internal/testgroups", []string{"cgroup"},
		"as testswap"},
	{"internal/testfile", nil,
		"as testswap"},
	{"internal/testcert", nil,
		"as testswap"},
	{"internal/testterminal", nil,
		"as testswap"},
	{"internal/testrequest", []string{"resource", "cluster"},
		"every front door is tried with the same requests"},
	{"internal/recordingdisk", []string{"internal/fusedisk"},
		"as testswap"},
	{"internal/testrun", nil,
		"it must also run where nothing else of the project compiles"},
}

// harnesses are the packages that tests of every package may import.
var harnesses = []string{"guest", "internal/testswap", "internal/testgroups", "internal/testfile", "internal/testcert", "internal/testterminal", "internal/testrequest", "internal/recordingdisk", "cmd/internal/command/commandtest"}

// tests has a row for every package whose tests import more of this module than the package and the harnesses. The order of
// folders does not bind tests: no package depends on them.
var tests = []folder{
	{"usage", []string{"cluster", "store"},
		"how large a day of samples is shows in the store's file"},
	{"policy", []string{"engine", "workload", "sim"},
		"what a policy decides shows in a simulated run"},
	{"drive", []string{"resource", "policy"},
		"a loop needs a policy, and a policy with a bug"},
	{"pools", []string{"agent", "daemon"},
		"deaths of a whole daemon and of executors lose no result"},
	{"executor", []string{"timeline", "cluster", "share", "policy", "workload", "importer", "pool", "pools"},
		"executors and a pool, set as pools are, speak to each other, and run what was recorded elsewhere"},
	{"cmd/bellows/internal/mapping", []string{"policy", "pool"},
		"the command needs a pool"},
	{"bound", []string{"policy", "sim"},
		"no simulated schedule may beat a bound"},
	{"lab/framework", []string{"jobfile"},
		"what it prints for a job file is read back"},
	{"lab/paging", []string{"cgroup"},
		"a test asks first whether there are groups with little memory"},
	{"swap", []string{"cgroup"},
		"only a group with little memory is swapped out"},
	{"agent", []string{"profiler"},
		"how fast the recorded disk is, is measured as before a profile"},
	{"live", []string{"agent", "cgroup", "daemon"},
		"deaths of a whole daemon lose nothing that the driver acknowledged, and leave no container stopped"},
	{"daemon", []string{"engine", "eventlog", "profile"},
		"the event log of an earlier release is decided again"},
	{"internal/recordingdisk", []string{"durable"},
		"what is durable survives a loss of power on this disk"},
	{"docs", []string{"resource", "timeline", "cluster", "memory", "policy", "workload", "sim", "lab/chart", "cgroup"},
		"pages show what the code computes"},
	{"scenarios", []string{"resource", "timeline", "cluster", "usage", "leveling", "policy", "engine", "eventlog", "workload", "sim", "store", "live"},
		"both drivers of the engine replay the same stories"},
}

// purity lists what the core does not import, by import path; a path includes everything below it.
var purity = []struct{ path, reason string }{
	{"os", "what the core knows comes in as events"},
	{"net", "what the core knows comes in as events"},
	{"syscall", "what the core knows comes in as events"},
	{"io/ioutil", "what the core knows comes in as events"},
	{"database", "what lasts is stored by others"},
	{"log", "decisions carry their reasons; others log"},
	{"context", "a step is short and is never given up"},
	{"sync", "one goroutine owns the engine: there is nothing to lock, and nothing to wait for"},
	{"runtime", "decisions do not depend on the process they are taken in"},
	{"plugin", "the policies are in one map"},
	{"unsafe", "the core has no need of it"},
	{"C", "the main program is pure Go"},
	{"testing", "it is no test"},
}

// numeric are the libraries that the core may use in addition to the standard library.
var numeric = []string{"gonum.org/v1/gonum"}

// clocked are the packages that take now as an argument: the core, and others because a simulation gives the same bytes
// whenever it runs.
var clocked = append([]string{"sim", "bound", "workload", "jobfile", "eventlog", "importer"}, core...)

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// seeded are the names of math/rand and math/rand/v2 that do not use the global source: constructors and types.
var seeded = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

// durables are the packages whose files must survive a crash. changers are the functions of package os that change
// files and bypass package durable.
var (
	durables = []string{"store", "live", "agent", "daemon"}
	changers = []string{"Create", "CreateTemp", "Link", "Mkdir", "MkdirAll", "Remove", "RemoveAll", "Rename", "Symlink", "Truncate", "WriteFile"}
)

// vague are names that do not say what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

// truthful are the packages that handle the truth of tasks. Two use it, three read it from files. Four give the
// simulator facts that policies do not know: measured ones, another run time than the estimated one, or the subject of an experiment.
var truthful = []string{"sim", "bound", "workload", "jobfile", "importer", "foresee", "cmd/bellows/internal/replay", "lab/experiments", "lab/demo"}

// vectors are names of fields that hold a resource.Vector.
var vectors = []string{"Ideal", "Capacity", "Free", "Grant", "Demand"}
