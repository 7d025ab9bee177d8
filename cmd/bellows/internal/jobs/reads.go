package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
)

// mostFiles is how many files a folder of input may have.
const mostFiles = 100_000

// dataFlag is a flag for an amount of data: the size of a file, the sum of the files of a folder, or an amount as it
// is. Repeated, it adds up.
type dataFlag struct{ to *resource.Amount }

// String implements pflag.Value.
func (v dataFlag) String() string {
	if *v.to == 0 {
		return ""
	}
	return resource.FormatMemoryExact(*v.to)
}

// Type implements pflag.Value.
func (v dataFlag) Type() string { return "file|size" }

// Set implements pflag.Value.
func (v dataFlag) Set(text string) error {
	n, err := sizeOf(text)
	if errors.Is(err, fs.ErrNotExist) {
		if n, err = resource.ParseMemory(text); err == nil && n <= 0 {
			err = errors.New("must be above 0")
		}
		if err != nil && !strings.HasPrefix(err.Error(), "must be") {
			err = fmt.Errorf("must be a file or folder that exists, or a size such as 3GiB: %w", err)
		}
	}
	if err == nil {
		*v.to += n
	}
	return err
}

// sizeOf returns the size of a file, or the sum of the regular files below a folder.
func sizeOf(name string) (sum resource.Amount, err error) {
	info, err := os.Stat(name)
	if err != nil || !info.IsDir() {
		if err == nil && !info.Mode().IsRegular() {
			return 0, fmt.Errorf("%s is neither a regular file nor a folder: give the size", name)
		}
		if err != nil {
			return 0, err
		}
		return resource.Amount(info.Size()), nil
	}
	files := 0
	err = filepath.WalkDir(name, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		if files++; files > mostFiles {
			return fmt.Errorf("%s has more than %d files: give the size", name, mostFiles)
		}
		info, err := e.Info()
		if err == nil {
			sum += resource.Amount(info.Size())
		}
		return err
	})
	return sum, err
}

// readsFiles returns the size of the files that a command reads according to its text: its standard input, and every
// argument behind the program that as a whole is the name of an existing regular file, except behind -o and --output,
// which write. Each file counts once. 0 is unknown.
func readsFiles(c *cluster.Command, dir string) (sum resource.Amount) {
	switch {
	case filepath.IsAbs(c.Dir):
		dir = c.Dir
	case c.Dir != "":
		dir = filepath.Join(dir, c.Dir)
	}
	names := []string{c.Stdin}
	for i, arg := range c.Args {
		if i > 0 && c.Args[i-1] != "-o" && c.Args[i-1] != "--output" {
			names = append(names, arg)
		}
	}
	type file struct{ device, inode uint64 }
	counted := map[file]bool{}
	for _, name := range names {
		if name == "" {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		var stat unix.Stat_t
		if unix.Stat(name, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || counted[file{stat.Dev, stat.Ino}] {
			continue
		}
		counted[file{stat.Dev, stat.Ino}] = true
		sum += resource.Amount(stat.Size)
	}
	return min(sum, resource.MostMemory)
}
