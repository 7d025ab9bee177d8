package doctor

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/resource"
)

func (f *Limits) openFiles() Finding {
	said := fmt.Sprintf("a process may have %d open: %d connections, and about %d containers", f.Descriptors,
		f.Connections, f.Descriptors/2)
	if f.Connections < f.Most {
		return warning(said, "run `ulimit -n 65536` before `bellows up`, or write LimitNOFILE=65536 into its unit of systemd")
	}
	return fine("%s", said)
}

// The limits that matter to a daemon, by what they limit.
const (
	fileSize      = "the size of a file"
	addressSpace  = "the virtual memory of a process"
	userProcesses = "the number of the user's processes"
)

func (f *Facts) limits() Finding { return f.Limits.judge(f.UID == 0) }

// judge is the finding on a shell of root, or of another user.
func (f *Limits) judge(root bool) Finding {
	var low []string
	for _, name := range []string{fileSize, addressSpace} {
		if n, known := f.Rlimits[name]; known && n != unix.RLIM_INFINITY {
			low = append(low, fmt.Sprintf("%s (%s)", name, resource.FormatMemory(resource.Amount(n))))
		}
	}
	const few = 1000
	if n, known := f.Rlimits[userProcesses]; known && n < few && !root {
		low = append(low, fmt.Sprintf("%s (%d)", userProcesses, n))
	}
	if len(low) > 0 {
		return warning("this shell limits "+strings.Join(low, ", ")+", which a daemon that is started in it inherits",
			"run `ulimit -f unlimited -v unlimited -u 65536` before `bellows up`")
	}
	return fine("no limit of this shell hinders a daemon")
}
