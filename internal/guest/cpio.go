package guest

import (
	"fmt"
	"io"
)

// archive writes an initial file system in the format the kernel unpacks ("newc": a header of hexadecimal numbers, the
// name and the contents, each padded to four bytes).
type archive struct {
	w       io.Writer
	written int
	entries int
	err     error
}

const (
	fileType = 0o100000
	dirType  = 0o040000
)

// dir adds a directory. Directories come before what is in them.
func (a *archive) dir(name string) { a.entry(name, dirType|0o755, nil) }

// file adds a file.
func (a *archive) file(name string, perm int, content []byte) {
	a.entry(name, fileType|perm, content)
}

// close adds the end mark and returns the first error.
func (a *archive) close() error {
	a.entry("TRAILER!!!", 0, nil)
	return a.err
}

func (a *archive) entry(name string, mode int, content []byte) {
	a.entries++
	a.print("070701")
	for _, field := range []int{a.entries, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0} {
		a.print(fmt.Sprintf("%08X", field))
	}
	a.print(name + "\x00")
	a.pad()
	a.print(string(content))
	a.pad()
}

func (a *archive) pad() {
	for a.written%4 != 0 {
		a.print("\x00")
	}
}

func (a *archive) print(s string) {
	if a.err != nil {
		return
	}
	n, err := io.WriteString(a.w, s)
	a.written += n
	a.err = err
}
