package architecture

// folder is a row of a table: which packages of this module the packages of a folder may import, and why no others.
type folder struct {
	path   string   // below the module
	may    []string // folders and packages of the module
	reason string
}

// folders has a row for every folder at the top. A package imports packages of its own folder, and those of the folders
// that the row names. All of them stand above it, so that no import runs back up.
var folders = []folder{
	{"core", nil,
		"events become decisions in one way wherever they come from: the core knows neither machines, nor files, nor " +
			"the clock"},
	{"durable", nil,
		"what a file needs to survive is the same for every owner of files"},
	{"executor", nil,
		"programs of users import it: what executors and applications say to a pool depends on no part of the daemon"},
	{"format", []string{"core", "durable"},
		"a file is read in the same way by all who read it, whatever they do with it"},
	{"sim", []string{"core", "format"},
		"a driver knows the engine and no other driver; the truth of what tasks do lives here"},
	{"live", []string{"core", "durable", "format"},
		"a driver knows the engine and no other driver; its backend satisfies an interface that is defined here"},
	{"node", []string{"core", "durable"},
		"a node carries out orders and decides nothing but in the memory loop; it satisfies live.Backend without knowing it"},
	{"connector", []string{"durable", "executor", "node"},
		"it is a program of a user in a container, which speaks to a pool like any other: it knows no part of the daemon"},
	{"pool", []string{"core", "durable", "executor", "live"},
		"executors are jobs of their owner, submitted to the driver like any other: a pool starts no process itself"},
	{"door", []string{"core", "durable", "executor", "format", "sim", "live", "node", "pool"},
		"what people and programs ask comes in here: the parts of a daemon are opened, and what they know is shown"},
	{"cmd", []string{"connector", "core", "durable", "executor", "format", "sim", "live", "node", "pool", "door"},
		"only the command wires the drivers that it shows side by side"},
	{"internal", []string{"core", "durable", "node"},
		"tests of every package may need it, so that it needs few of them"},
}

// narrower has the packages that may import less than their folder does: nothing but what the row names.
var narrower = []folder{
	{"core/heap", nil,
		"an order needs no knowledge of what is ordered"},
	{"core/resource", nil,
		"amounts and their units mean the same everywhere, so they know nothing else"},
	{"core/timeline", []string{"core/resource"},
		"a step function over vectors needs no jobs and no nodes"},
	{"core/cluster", []string{"core/resource", "core/timeline"},
		"the nouns are plain values that no policy and no driver shapes"},
	{"core/book", []string{"core/heap", "core/resource", "core/timeline", "core/cluster"},
		"what an engine knows follows from events and decisions alone"},
	{"core/memory", []string{"core/resource", "core/timeline", "core/cluster"},
		"mechanisms are functions of their own: each can be understood, tested and switched off alone"},
	{"core/leveling", []string{"core/resource", "core/timeline", "core/cluster"},
		"as memory"},
	{"core/profile", []string{"core/resource", "core/timeline", "core/cluster", "core/usage"},
		"as memory"},
	{"core/share", nil,
		"who is due how many of a number of executors does not depend on what the executors are"},
	{"core/policy", []string{"core/heap", "core/resource", "core/timeline", "core/cluster", "core/book", "core/memory",
		"core/leveling", "core/profile", "core/share", "core/policy"},
		"a policy combines mechanisms and sees estimates; it knows neither who asks nor what is true"},
	{"core/policy/contract", []string{"core/resource", "core/timeline", "core/cluster", "core/book"},
		"what a policy is does not depend on which policies there are"},
	{"core/policy/queue", []string{"core/resource", "core/timeline", "core/cluster", "core/book"},
		"an order of jobs serves every policy, and knows none"},
	{"sim/sweep", nil,
		"many runs in a fixed order, whatever is run"},
	{"live/api", []string{"core/resource", "core/timeline", "core/cluster"},
		"who only reads what a daemon shows needs no driver"},
	{"live/kept", nil,
		"a cache needs no knowledge of what it keeps"},
	{"live/drive", []string{"core"},
		"whoever owns an engine in real time has the same clock, agenda and steps: live and pool"},
	{"live/learn", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "core/profile", "live/api",
		"live/drive", "live/store"}, "what runs taught does not depend on who runs jobs: it knows no driver and no engine"},
	{"live/output", []string{"core/cluster", "durable"},
		"files of output know nothing of how they came about"},
	{"live/launch", []string{"core/resource", "core/cluster", "live/store"},
		"what runs in a container follows from a request and a decision"},
	{"live/retention", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "live/api", "live/output",
		"live/segments", "live/store"},
		"what is removed has ended: no engine knows it"},
	{"live/segments", []string{"core/timeline", "core/cluster", "format/eventlog", "durable"},
		"which files have the steps of a run does not depend on how the steps come about"},
	{"live/admission", []string{"core/resource", "core/timeline", "core/cluster", "live/api", "live/output",
		"live/store"}, "what bounds submissions is counted without an engine"},
	{"live/board", []string{"core/timeline", "core/cluster", "core/book", "live/api", "live/drive", "live/kept",
		"live/store"}, "what is shown never changes, and knows nothing of who decides"},
	{"live/counts", []string{"core/timeline", "core/cluster", "live/api"},
		"counters know what happened, and not how"},
	{"live/store", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "core/profile", "live/api",
		"durable"},
		"what must survive is stored as it is submitted; the store does not decide and does not run anything"},
	{"live/view", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "core/book", "live/api",
		"live/drive"}, "words for what an engine knows change nothing"},
	{"live/watchdog", []string{"core/cluster", "durable"},
		"whether a loop makes progress does not depend on what it does"},
	{"node/agent", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "core/memory", "durable",
		"node"}, "one node carries out orders: it knows no policy and no engine"},
	{"node/keeper", []string{"core/resource", "core/timeline", "core/cluster", "core/memory", "node/cgroup", "node/swap"},
		"it keeps the memory of containers whoever owns them: it knows neither supervisors, nor folders, nor the agent"},
	{"node/cgroup", nil,
		"groups of processes are the kernel's business: this package could serve any other project"},
	{"node/netcount", nil,
		"as cgroup"},
	{"node/swap", []string{"core/resource", "durable"},
		"swap belongs to the machine: this package knows neither jobs nor control groups"},
	{"node/input", nil,
		"input of a program has one protocol for its client, the daemon and the supervisor"},
	{"connector/spark", []string{"durable", "executor", "node/cgroup"},
		"of a node it knows the group of its container"},
	{"pool", []string{"core", "executor", "live/api", "live/drive"},
		"a pool is driven like a cluster, and starts no process: it knows neither live nor agent"},
	{"door/terminal", []string{"core/resource", "core/cluster"},
		"every command and every report prints tables and paragraphs, and shows progress, in the same way"},
	{"door/client", []string{"core/cluster", "core/profile", "format/eventlog", "live/api", "door/peercred", "node/input"},
		"a client needs no driver, no store and no node"},
	{"door/peercred", nil,
		"who is at the other end of a socket, the kernel knows"},
	{"door/server", []string{"core/resource", "core/timeline", "core/cluster", "core/usage", "core/profile",
		"core/policy", "format", "live", "executor", "pool", "node/input", "door/peercred", "door/server/openapi"},
		"the API shows what live, store and pools know; it asks no engine and no node, and runs nothing itself"},
	{"door/server/openapi", nil,
		"a document of OpenAPI is the same for every API"},
	{"internal/architecture", nil,
		"a judge has no friends"},
	{"internal/testrun", nil,
		"it must also run where nothing else of the project compiles"},
	{"internal/guest/init", []string{"internal/guest/internal/plan"},
		"it is the first program of a guest, which must stay small"},
}

// tests has a row for every package whose tests import more of this module than the package, package internal and its
// folders. The order of folders does not bind tests: no package depends on them.
var tests = []folder{
	{"core/usage", []string{"live/store"},
		"how large a day of samples is shows in the store's file"},
	{"core/policy", []string{"core/engine", "format/workload", "sim"},
		"what a policy decides shows in a simulated run"},
	{"pool/fleet", []string{"node/agent", "door/daemon"},
		"deaths of a whole daemon and of executors lose no result"},
	{"executor", []string{"core/timeline", "core/cluster", "core/book", "core/share", "core/policy", "format/workload",
		"format/importer", "live/api", "pool"},
		"executors and a pool, set as pools are, speak to each other, and run what was recorded elsewhere"},
	{"node/swap", []string{"node/cgroup"},
		"only a group with little memory is swapped out"},
	{"live", []string{"node/agent", "node/cgroup", "door/daemon"},
		"deaths of a whole daemon lose nothing that the driver acknowledged, and leave no container stopped"},
	{"door/server", []string{"core/book", "door/client"},
		"the server is asked by its client, and what a caller may see of a running cluster is tested with the inventory of " +
			"a book"},
	{"docs", []string{"node/cgroup"},
		"some commands of documents need control groups"},
	{"scenarios", []string{"core/resource", "core/timeline", "core/cluster", "core/book", "core/usage", "core/leveling",
		"core/policy", "core/engine", "format/eventlog", "format/workload", "sim", "live"},
		"both drivers of the engine replay the same stories"},
}

// daemons are packages that a daemon is made of. clients has a row for every package that asks a daemon: which of them
// it links all the same, even through others, and why.
var (
	daemons = []string{"core/engine", "core/policy", "door/server", "live", "live/store", "node/agent", "pool",
		"pool/fleet", "sim"}
	clients = []folder{
		{"door/client", nil,
			"it sends requests and reads answers"},
		{"cmd/bellows/internal/phases", nil,
			"it prints"},
		{"cmd/bellows/internal/place", []string{"live/store"},
			"where no daemon runs, profiles are read from the store"},
		{"cmd/bellows/internal/mapping", []string{"core/engine", "core/policy", "live/store", "sim"},
			"a command with each item is a job: as jobs"},
		{"cmd/bellows/internal/profiling", []string{"live/store", "node/agent"},
			"where no daemon runs, it measures in containers of its own and stores the profile"},
		{"cmd/bellows/internal/jobs", []string{"core/engine", "core/policy", "live/store", "sim"},
			"`bellows plan` plays the running cluster forward"},
		{"cmd/bellows/internal/top", []string{"core/engine", "core/policy", "live/store", "sim"},
			"it shows the same views as jobs"},
		{"cmd/bellows/internal/advise", []string{"core/engine", "core/policy", "live/store", "sim"},
			"it plays what was recorded again, with other reservations"},
		{"cmd/bellows/internal/replay", []string{"core/engine", "core/policy", "live/store", "sim"},
			"it plays what has happened again under other policies"},
	}
)

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

// clocked are the folders that take now as an argument: the core, and others because a simulation gives the same bytes
// whenever it runs.
var clocked = []string{"core", "format", "sim"}

// clock are the functions of package time that read or wait for the clock.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// seeded are the names of math/rand and math/rand/v2 that do not use the global source: constructors and types.
var seeded = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "Source64", "PCG",
	"ChaCha8", "Zipf"}

// durables are the folders whose files must survive a crash. changers are the functions of package os that change
// files and bypass package durable.
var (
	durables = []string{"live", "node/agent", "node/keeper", "door/daemon"}
	changers = []string{"Create", "CreateTemp", "Link", "Mkdir", "MkdirAll", "Remove", "RemoveAll", "Rename", "Symlink",
		"Truncate", "WriteFile"}
)

// wide has the types that may have more than mostFields fields, how many, and why.
var wide = []wideType{
	{"live/api.PoolDetail", 39,
		"what a person sees of a pool, in documents that stay flat"},
	{"live/api.Task", 36,
		"as live/api.PoolDetail, of a run of a task"},
	{"live/api.TaskUsage", 29,
		"as live/api.PoolDetail, of what a run used: two sets of the same rates"},
	{"door/cli/simulate.simulationJSON", 28,
		"as live/api.PoolDetail, of a simulation"},
	{"cmd/bellows/internal/demo.Part", 30,
		"as live/api.PoolDetail, of a demonstration: two runs with the same numbers"},
	{"cmd/bellows/internal/machine.upOptions", 30,
		"a field is a flag or a setting of a daemon, which one table describes"},
	{"cmd/bellows/internal/top.state", 45,
		"all that the screen shows, and a key changes: each picture is a function of it"},
	{"core/book.Snapshot", 42,
		"all that an engine knows: one event changes many parts, which a twin made anew compares as a whole"},
	{"core/book.JobState", 27,
		"as core/book.Snapshot, of a job"},
	{"core/memory.Manager", 32,
		"all that a memory loop knows of a node: one reading changes many parts, which an oracle compares as a whole"},
	{"core/memory.container", 66,
		"as core/memory.Manager, of a container"},
	{"core/policy.bellows", 40,
		"a policy that combines mechanisms, whose lists it goes through in one loop"},
	{"core/policy.prophet", 35,
		"as core/policy.bellows"},
	{"core/policy/ecs.Leveler", 37,
		"as core/policy.bellows"},
	{"core/policy/ecs.ecs", 39,
		"as core/policy.bellows"},
	{"core/policy/mira.mira", 30,
		"as core/policy.bellows"},
	{"live.Driver", 29,
		"what keeps it from working is five plain answers, which each kind of event asks for"},
	{"sim.run", 44,
		"a simulated cluster: each kind of event changes many parts"},
	{"sim.job", 27,
		"as sim.run, of a job"},
	{"sim.task", 30,
		"as sim.run, of a task"},
}

// wideType is a type with more than mostFields fields.
type wideType struct {
	path   string
	most   int
	reason string
}

// vague are names that do not say what a package is for.
var vague = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base"}

// truthful are the folders that handle the truth of tasks: formats read it, the simulator uses it, and a replay gives
// the simulator measured facts that policies do not know.
var truthful = []string{"format", "sim", "cmd/bellows/internal/advise", "cmd/bellows/internal/replay"}

// vectors are names of fields that hold a resource.Vector.
var vectors = []string{"Ideal", "Capacity", "Free", "Grant", "Demand"}
