package architecture

// folder is a row of the table: the packages of this module that a package may import, and why no others.
type folder struct {
	path   string   // below the module
	may    []string // import these of the module; "..." is any but a command
	reason string
}

// core are the packages that turn events into decisions. They are pure: see purity.
var core = []string{"internal/heap", "resource", "timeline", "cluster", "usage", "memory", "share", "leveling", "profile", "policy/resimulate", "policy", "engine"}

// folders has a row for every package, also for planned packages. The order of rows is the direction of imports: a
// package imports only packages in rows above its own.
var folders = []folder{
	{"internal/heap", nil,
		"an order needs no knowledge of what is ordered"},
	{"resource", nil,
		"amounts and their units mean the same everywhere, so they know nothing else"},
	{"timeline", []string{"resource"},
		"a step function over vectors needs no jobs and no nodes"},
	{"cluster", []string{"resource", "timeline"},
		"the nouns are plain values that no policy and no driver shapes"},
	{"usage", []string{"resource"},
		"what was used over time is compressed and summed up in one way, whoever measures, stores, learns from or shows it"},
	{"memory", []string{"resource", "timeline", "cluster"},
		"mechanisms are functions of their own: each can be understood, tested and switched off alone"},
	{"share", []string{"resource", "timeline", "cluster"},
		"as memory"},
	{"leveling", []string{"resource", "timeline", "cluster"},
		"as memory"},
	{"profile", []string{"resource", "timeline", "cluster", "usage"},
		"as memory"},
	{"policy/resimulate", []string{"internal/heap", "resource", "timeline", "cluster"},
		"an estimator sees what a policy sees, and is asked by one"},
	{"policy", []string{"resource", "timeline", "cluster", "memory", "share", "leveling", "profile", "policy/resimulate"},
		"a policy combines mechanisms and sees estimates; it knows neither who asks nor what is true"},
	{"engine", []string{"resource", "timeline", "cluster", "memory", "share", "leveling", "profile", "policy"},
		"the same engine runs in the simulator and on a machine, so it knows neither"},
	{"fault", []string{"cluster"},
		"what is wrong with a file is said in the same words, whoever reads the file"},
	{"form", []string{"resource", "cluster", "fault"},
		"a YAML file that people fill in is read in the same way, whatever it describes"},
	{"workload", []string{"resource", "timeline", "cluster", "profile", "fault"},
		"a workload is the nouns and the truth about them; what decides about them is not its business"},
	{"jobfile", []string{"resource", "timeline", "cluster", "fault", "form", "workload"},
		"people write stages and, for the simulator, their truth; nobody who reads a job file learns who runs it"},
	{"eventlog", []string{"resource", "timeline", "cluster", "fault"},
		"a recorded run holds what an engine was told and what it decided, and no truth"},
	{"importer", []string{"resource", "timeline", "cluster", "profile", "fault", "workload"},
		"what other systems recorded becomes a workload like any other; nobody needs to know where one came from"},
	{"bound", []string{"internal/heap", "resource", "timeline", "cluster", "workload"},
		"what no schedule can beat is worked out from the truth alone, without knowing who schedules or simulates"},
	{"sim", []string{"internal/heap", "resource", "timeline", "cluster", "memory", "share", "leveling", "profile", "policy", "engine", "workload"},
		"a driver knows the engine and no other driver; the truth of what tasks do lives here"},
	{"sim/clusterfile", []string{"resource", "cluster", "memory", "fault", "form", "workload", "sim"},
		"people describe simulated clusters; nobody who reads a description learns what runs on it"},
	{"trial", []string{"resource", "cluster", "policy", "workload", "bound", "sim"},
		"policies are compared in one way, whoever asks; it draws nothing and touches no machine"},
	{"lab/chart", nil,
		"a picture shows numbers, whatever they are about"},
	{"sweep", nil,
		"many runs in a fixed order, whatever is run"},
	{"lab/framework", []string{"internal/heap", "resource", "cluster", "profile", "lab/chart"},
		"what a framework spills follows from its settings, whoever schedules it"},
	{"lab/pattern", []string{"internal/heap", "resource"},
		"a program that is measured knows nothing of who measures it"},
	{"lab/experiments", []string{"resource", "timeline", "cluster", "memory", "share", "leveling", "profile", "policy", "engine", "workload", "bound", "sim", "trial", "sweep", "lab/chart", "lab/framework"},
		"an experiment compares policies in the simulator and draws what came of it; it touches no machine"},
	{"lab/comparison", []string{"resource", "timeline", "cluster", "sim", "trial", "lab/chart"},
		"what trials came to is drawn, whoever asked for them"},
	{"durable", nil,
		"what a file needs to survive is the same for every owner of files"},
	{"statedir", []string{"durable"},
		"whose directory it is matters before anybody reads what is in it"},
	{"store", []string{"resource", "timeline", "cluster", "usage", "profile", "durable", "statedir"},
		"what must survive is stored as it is submitted; it does not decide and does not run anything"},
	{"live", []string{"resource", "timeline", "cluster", "usage", "memory", "share", "leveling", "profile", "policy", "engine", "eventlog", "durable", "store"},
		"a driver knows the engine and no other driver; its backend satisfies an interface that is defined here"},
	{"cgroup", nil,
		"groups of processes are the kernel's business: this package could serve any other project"},
	{"netcount", nil,
		"as cgroup"},
	{"swap", []string{"resource", "durable", "statedir"},
		"swap is the machine's business, whoever needs it: this package knows neither jobs nor control groups"},
	{"input", nil,
		"bytes on their way into a program look the same to whoever sends, passes on or takes them"},
	{"inherited", []string{"cluster"},
		"what a process has from its parent is the kernel's business; the nouns say whose it shall be"},
	{"agent", []string{"resource", "timeline", "cluster", "usage", "memory", "durable", "cgroup", "netcount", "swap", "input", "inherited"},
		"one node carries out orders; it satisfies live.Backend without knowing it, and decides nothing but in the memory loop"},
	{"kube", []string{"resource", "timeline", "cluster", "memory", "share", "leveling", "profile", "policy", "engine", "eventlog"},
		"a driver knows no other driver; nobody else pays for its dependencies"},
	{"server", []string{"resource", "timeline", "cluster", "usage", "fault", "profile", "policy", "store", "live", "input"},
		"the API shows what live and store know; it runs nothing itself"},
	{"profiler", []string{"resource", "timeline", "cluster", "profile", "cgroup", "swap"},
		"measuring a program needs containers and models, but no scheduler"},
	{"daemon", []string{"resource", "timeline", "cluster", "memory", "policy", "durable", "store", "live", "agent", "swap", "profiler", "server"},
		"one place opens the parts of a daemon and closes them, in the right order, for the command, the demonstration and tests"},
	{"internal/hungry", nil,
		"a program that runs in a container knows nothing of who runs it"},
	{"internal/sandbox", []string{"resource", "cluster", "policy", "workload", "live", "agent", "daemon", "profiler", "swap"},
		"demonstrations and studies of real programs need bellows in their own process, and must leave nothing behind"},
	{"internal/fusedisk", nil,
		"as swap"},
	{"internal/boundeddisk", []string{"resource", "internal/fusedisk"},
		"programs are studied on a disk of a stated speed, whoever runs them"},
	{"lab/demo", []string{"resource", "timeline", "cluster", "profile", "policy", "engine", "workload", "jobfile", "eventlog", "sim", "trial", "store", "live", "agent", "profiler", "lab/chart", "internal/hungry", "internal/sandbox", "internal/boundeddisk"},
		"real programs are repeated, judged and drawn beside what the simulator predicted of them"},
	{"lab/paging", []string{"resource", "cluster", "profile", "swap", "profiler", "lab/chart"},
		"what paging costs is measured in the containers in which programs are profiled"},
	{"cmd/internal/terminal", []string{"resource", "cluster"},
		"every command prints tables and shows progress in the same way"},
	{"cmd/internal/picture", nil,
		"values over time are drawn for a terminal in one way, whatever they are"},
	{"cmd/internal/flags", []string{"resource", "workload"},
		"every command reads sizes and times in the same way"},
	{"cmd/internal/command", []string{"cmd/internal/terminal"},
		"every command tells a wrong usage in the same way, and exits with the same codes"},
	{"cmd/bellows/internal/demo", []string{"resource", "timeline", "cluster", "workload", "live", "agent", "profiler", "internal/hungry", "internal/sandbox", "cmd/internal/terminal"},
		"a demonstration runs real programs, checks and explains them; who wants to repeat and judge them finds that in lab/demo"},
	{"cmd/internal/command/commandtest", []string{"cmd/internal/terminal"},
		"scripts that test commands know the same words"},
	{"cmd/internal/workloadfile", []string{"fault", "jobfile", "workload", "cmd/internal/command"},
		"commands open files with workloads in one way"},
	{"cmd/internal/simulate", []string{"resource", "timeline", "cluster", "profile", "policy", "jobfile", "workload", "bound", "sim", "sim/clusterfile", "trial", "sweep", "cmd/internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/internal/workloadfile"},
		"both commands simulate what the same flags say; neither touches a machine for that"},
	{"cmd/bellows-lab", []string{"..."},
		"studies have a command of their own, so that the other one is the resource manager's alone"},
	{"cmd/bellows/internal/place", []string{"cluster", "jobfile", "store", "live", "server", "cmd/internal/command"},
		"every command finds the daemon, and the profiles that it keeps, in the same way"},
	{"cmd/bellows/internal/recordings", []string{"importer", "cmd/internal/command"},
		"what other systems recorded is opened in one way, whatever it becomes"},
	{"cmd/bellows/internal/trace", []string{"resource", "workload", "jobfile", "importer", "cmd/internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/internal/workloadfile", "cmd/bellows/internal/recordings"},
		"a group of commands: flags and wiring of what it is about, and of nothing else"},
	{"cmd/bellows/internal/phases", []string{"resource", "live", "cmd/internal/terminal"},
		"what a task demands when looks the same of a job and of an application"},
	{"cmd/bellows/internal/jobs", []string{"resource", "cluster", "usage", "workload", "jobfile", "live", "agent", "swap", "input", "inherited", "server", "cmd/internal/terminal", "cmd/internal/picture", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place", "cmd/bellows/internal/phases"},
		"as trace"},
	{"cmd/bellows/internal/machine", []string{"resource", "cluster", "memory", "policy", "store", "live", "agent", "swap", "inherited", "statedir", "server", "daemon", "cmd/internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place"},
		"as trace"},
	{"cmd/bellows/internal/profiling", []string{"resource", "timeline", "cluster", "profile", "importer", "profiler", "store", "live", "agent", "server", "cmd/internal/terminal", "cmd/internal/flags", "cmd/internal/command", "cmd/bellows/internal/place", "cmd/bellows/internal/phases", "cmd/bellows/internal/recordings"},
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
	{"internal/testfile", nil,
		"as testswap"},
	{"internal/testrequest", []string{"resource", "cluster"},
		"every front door is tried with the same requests"},
	{"internal/recordingdisk", []string{"internal/fusedisk"},
		"as testswap"},
	{"internal/testrun", nil,
		"it must also run where nothing else of the project compiles"},
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

// truthful are the packages that handle the truth of tasks. Two use it, three read it from files. Two give the
// simulator facts that policies do not know: measured ones, or the subject of an experiment.
var truthful = []string{"sim", "bound", "workload", "jobfile", "importer", "lab/experiments", "lab/demo"}

// vectors are names of fields that hold a resource.Vector.
var vectors = []string{"Ideal", "Capacity", "Free", "Grant", "Demand"}
