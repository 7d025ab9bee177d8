// Package plan is the protocol between the host and a guest: the host sends a file in the initial file system, and the
// guest answers with lines on the second serial port. On that port the host also answers a request to stop the guest.
package plan

// Plan is what a guest does between booting and switching itself off.
type Plan struct {
	// Systemd makes systemd the init, on the root file system on Root. Otherwise the guest has nothing but the plan's own
	// first program.
	Systemd bool   `json:"systemd"`
	Root    string `json:"root"` // Device.
	// Mounts are made in this order.
	Mounts []Mount `json:"mounts"`
	// Swap is a device to be made into swap, Scratch one that any user may overwrite; empty if there is none.
	Swap    string `json:"swap"`
	Scratch string `json:"scratch"`
	// Programs is a device with programs of the host; empty if there is none. Only with systemd.
	Programs string `json:"programs"`
	// Zram is the size of swap on zram, bytes; 0 means none.
	Zram int64 `json:"zram_bytes"`
	// Program is started once per run, with Args and Env, one run after the other.
	Program string   `json:"program"`
	Args    []string `json:"args"`
	Env     []string `json:"env"`
	Runs    []Run    `json:"runs"`
}

// Mount is a file system without a device.
type Mount struct {
	Kind    string `json:"kind"`
	Dir     string `json:"dir"`
	Options string `json:"options"`
}

// Run is one start of the program.
type Run struct {
	Name string `json:"name"`
	// UID and GID are those of the run.
	UID uint32 `json:"uid"`
	GID uint32 `json:"gid"`
	// Args follow those of the plan.
	Args []string `json:"args"`
	// Scope puts it into a scope that systemd delegates, below the user's own manager unless the user is root.
	Scope bool `json:"scope"`
}

// Where things are in the guest.
const (
	File    = "/guest/plan.json"
	Init    = "/guest/init"
	Program = "/guest/program"
	Modules = "/guest/modules"
	// Programs is where the disk with programs of the host is mounted.
	Programs = "/programs"
	Port     = "/dev/ttyS1" // the second serial port
)

// Lines that begin with these marks are about the run, all other lines are the program's output. A mark begins a line
// even if the program's output did not end in a newline.
const (
	Mark  = "\x1eguest "
	Begin = Mark + "begin " // followed by the name of the run
	End   = Mark + "end "   // followed by the exit code
	Fail  = Mark + "fail "  // followed by a failure outside of the program
	Done  = Mark + "done"
	// Stop asks the host to stop the guest: followed by how and for how long. The host answers with GoesOn, or with Fail.
	Stop   = Mark + "stop "
	GoesOn = Mark + "goes on"
)
