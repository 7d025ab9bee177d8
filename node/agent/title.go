package agent

import (
	"os"
	"path/filepath"
	"strings"
	"unsafe"
)

// self is the program that this process runs, whatever lies at its path by now: it may have been removed, or replaced
// by another.
const self = "/proc/self/exe"

// A supervisor has one container after another. So that people find, and end, the right one in a list of processes, it
// shows the folder of its present container among its arguments, and between two containers the folder of all.

// titled returns the argument that names the first folder of a supervisor. Slashes at its end, which change nothing,
// leave room for the longest name of a container.
func titled(f folder) string {
	const number = len("9223372036854775807")
	longest := len(filepath.Dir(string(f))) + len("/") + 4*number + len("---")
	return string(f) + strings.Repeat("/", max(0, longest-len(f)))
}

// title is an argument of this process, in the memory that the kernel shows of it.
type title []byte

// titleOf returns the title that is in the last argument; nil, which shows nothing, if arg is another text.
func titleOf(arg string) title {
	if last := os.Args[len(os.Args)-1]; arg == "" || unsafe.StringData(last) != unsafe.StringData(arg) {
		return nil
	}
	// The list of processes has the name of the file that was executed, which is that of self.
	if name, err := os.OpenFile("/proc/self/comm", os.O_WRONLY, 0); err == nil {
		_, _ = name.WriteString("bellows")
		name.Close()
	}
	return unsafe.Slice(unsafe.StringData(arg), len(arg))
}

// show replaces the argument.
func (t title) show(f folder) { clear(t[copy(t, f):]) }

// folderOf returns the folder of an argument of titled. The text is its own, which a title does not change.
func folderOf(arg string) folder { return folder(strings.Clone(filepath.Clean(arg))) }

// none is the folder of all containers, which a supervisor without one shows.
func (f folder) none() folder { return folder(filepath.Dir(string(f))) }
