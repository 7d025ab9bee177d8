package doctor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

func (f *System) kernel() Finding {
	said := fmt.Sprintf("Linux %s on %s", cmp.Or(f.Release, "of unknown release"), f.Arch)
	var major, minor int
	if _, err := fmt.Sscanf(f.Release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 10 {
		return warning(said+": containers that are paused or suspended can be paged out only slowly",
			"use Linux 5.10 or later")
	}
	return fine("%s", said)
}

func (f *Facts) user() Finding {
	if f.UID == 0 {
		return fine("root, who can make control groups and swap")
	}
	return fine("%s, who needs a delegated control group, and cannot make swap",
		cmp.Or(f.User, fmt.Sprintf("user %d", f.UID)))
}

func (f *Capacity) resources() Finding {
	if f.CapacityErr != nil {
		return problem(f.CapacityErr.Error(), "mount /proc, or start the daemon outside of this container")
	}
	manages := f.Usable.Default()
	said := fmt.Sprintf("a daemon manages %s of the machine's %s, and %s, unless the flags of `bellows up` say otherwise",
		resource.FormatMemory(manages[resource.Memory]), resource.FormatMemory(f.Usable.Machine),
		resource.CPU.Format(manages[resource.CPU]))
	for _, k := range []resource.Kind{resource.Memory, resource.CPU} {
		if why := f.Usable.Less[k]; why != "" {
			said += fmt.Sprintf("; it may use only %s: %s", k.FormatOf(f.Usable.Has[k]), why)
		}
	}
	return fine("%s", said)
}

// had reports whether control groups can be had.
func (f *Groups) had() bool { return f.GroupsErr == nil }

// modes say in words what versions of control groups a machine has.
var modes = map[cgroup.Mode]string{cgroup.Legacy: "version 1", cgroup.Hybrid: "versions 1 and 2",
	cgroup.Unified: "version 2"}

func (f *Groups) groups() Finding {
	if need, ok := errors.AsType[*cgroup.NeedError](f.GroupsErr); ok {
		return problem(fmt.Sprintf("%s: %v", need.Missing, need.Err), need.Remedy)
	}
	if f.GroupsErr != nil {
		return problem(f.GroupsErr.Error(), "mount /proc, or start the daemon outside of this container")
	}
	if f.Found.Made {
		return fine("%s; those of the state directory are in the group %s", modes[f.Found.Mode], f.Found.Above)
	}
	return fine("%s; a daemon makes its own in the group %s", modes[f.Found.Mode], f.Found.Above)
}

// wanted are the controllers that bellows uses in addition to memory, without which it does not start, and what it
// lacks without them.
var wanted = []struct {
	controller cgroup.Controller
	lack       string
}{
	{cgroup.CPU, "cores are granted, but not bounded"},
	{cgroup.CPUAcct, "CPU time is unknown"},
	{cgroup.Freezer, "containers stand still by a bound on their CPU only"},
	{cgroup.IO, "disk transfers are neither counted nor bounded"},
	{cgroup.PIDs, "the number of processes is not bounded"},
}

func (f *Groups) controllers() Finding {
	has := []string{string(cgroup.Memory)}
	var lacks, names []string
	for _, w := range wanted {
		if f.Found.Has[w.controller] != 0 {
			has = append(has, string(w.controller))
			continue
		}
		lacks, names = append(lacks, fmt.Sprintf("%s: %s", w.controller, w.lack)), append(names, string(w.controller))
	}
	if len(lacks) == 0 {
		return fine("%s", strings.Join(has, ", "))
	}
	remedy := "mount them, or turn them on on the kernel command line"
	if f.Found.Above != "/" {
		remedy = fmt.Sprintf(
			"run `systemctl edit user@.service`, add the line Delegate=%s memory below [Service], and log in again",
			strings.Join(names, " "))
	}
	return warning("containers lack "+strings.Join(lacks, "; "), remedy)
}

func (f *Groups) processes() Finding {
	const few = 1000
	left := "any number"
	if f.Found.Processes != cgroup.NoLimit {
		left = fmt.Sprint(f.Found.Processes)
	}
	said := fmt.Sprintf("a container may have %d processes and threads, all together %s", f.Found.Threads, left)
	if f.Found.Processes < few {
		return warning(said,
			fmt.Sprintf("raise pids.max of the group %s and of the groups above it, which is TasksMax= in systemd",
				f.Found.Above))
	}
	return fine("%s", said)
}

func (f *Groups) pressure() Finding {
	switch {
	case f.PSI == nil:
		return fine("the kernel reports pressure stalls (PSI)")
	case f.Found.Has[cgroup.Memory] == cgroup.V1:
		return fine("the kernel reports no pressure stalls (PSI); version 1 has other notices that containers need memory")
	}
	why := "it has no PSI"
	if !errors.Is(f.PSI, os.ErrNotExist) {
		why = f.PSI.Error()
	}
	return warning("the kernel reports no pressure stalls ("+why+"), so that FLEX containers may wait longer for memory",
		"add psi=1 to the kernel command line")
}

func (f *Groups) network() Finding {
	if f.Found.NetworkUnknown != "" {
		return warning("what containers transfer over the network is unknown: "+f.Found.NetworkUnknown,
			"run the daemon as root on a machine with control groups version 2; without that, forecasts have no network")
	}
	return fine("the kernel counts the network bytes of containers")
}

func (f *Groups) priority() Finding {
	if f.Found.Priority != nil {
		return warning(fmt.Sprintf(
			"the memory loop cannot run before other programs (%v), so that it reacts some milliseconds later on busy cores",
			f.Found.Priority), "run the daemon as root, or with the right to set priorities (CAP_SYS_NICE)")
	}
	return fine("the memory loop can run before other programs")
}

func (f *Groups) protection() Finding {
	if f.Found.Unprotected != nil {
		return warning(fmt.Sprintf(
			"when the machine's memory runs out, the kernel may kill the daemon and its supervisors as soon as programs (%v)",
			f.Found.Unprotected),
			"run the daemon as root with CAP_SYS_RESOURCE, which containers often lack, or give it less of the memory "+
				"with `bellows up --memory`")
	}
	return fine("when the machine's memory runs out, the kernel kills programs before the daemon and its supervisors")
}
