// Package recordings opens files that other systems recorded, for the commands that import them.
package recordings

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/cli/command"
	"github.com/bellows-rm/bellows/door/terminal"
	"github.com/bellows-rm/bellows/format/importer"
)

// Open opens files; - is in. A folder stands for the files in it and in its folders, without those whose names begin
// with a dot or an underscore. When ctx ends, reading fails with its error. The caller closes what was opened, also
// after an error. A file is opened when it is read, since a folder can have more files than a process may open.
func Open(ctx context.Context, in io.Reader, files []string) (all []importer.Source, closeAll func(), err error) {
	var opened []*file
	closeAll = func() {
		for _, f := range opened {
			f.close()
		}
	}
	add := func(name string) {
		f := &file{name: name}
		opened = append(opened, f)
		all = append(all, importer.Source{Name: name, Data: interruptible{ctx, f}})
	}
	for _, name := range files {
		if name == "-" {
			all = append(all, importer.Source{Name: name, Data: interruptible{ctx, in}})
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return nil, closeAll, command.Usagef("import: %w", err)
		}
		if !info.IsDir() {
			add(name)
			continue
		}
		before := len(all)
		if err := walk(name, add); err != nil {
			return nil, closeAll, fmt.Errorf("import: list the files of a folder: %w", err)
		}
		if len(all) == before {
			return nil, closeAll, command.Usagef("import: %s: must have at least one file", name)
		}
	}
	return all, closeAll, nil
}

// walk passes on the files of a folder, and of the folders in it.
func walk(folder string, each func(name string)) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := filepath.Join(folder, e.Name())
		switch {
		case strings.HasPrefix(e.Name(), "."), strings.HasPrefix(e.Name(), "_"):
		case e.IsDir():
			if err := walk(name, each); err != nil {
				return err
			}
		default:
			each(name)
		}
	}
	return nil
}

// file is a file that is open from its first to its last byte.
type file struct {
	name string
	open *os.File
	done bool
}

// Read implements io.Reader.
func (f *file) Read(p []byte) (int, error) {
	if f.done {
		return 0, io.EOF
	}
	if f.open == nil {
		open, err := os.Open(f.name)
		if err != nil {
			return 0, err
		}
		f.open = open
	}
	n, err := f.open.Read(p)
	if err == io.EOF {
		f.close()
	}
	return n, err
}

func (f *file) close() {
	f.done = true
	if f.open != nil {
		f.open.Close()
		f.open = nil
	}
}

// Progress shows how much was read, until it is done; if quiet, shown is nil and nothing is shown.
func Progress(to io.Writer, quiet bool) (shown func(bytes int64), done func()) {
	if quiet {
		return nil, func() {}
	}
	p := terminal.NewProgress(to, "read")
	return func(bytes int64) { p.Show(resource.FormatMemory(resource.Amount(bytes))) }, p.Clear
}

// Wrong returns the error of an import: an interrupt, the user's mistake in an option or a file, or an error of the
// machine.
func Wrong(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !importer.IsWorld(err):
		return command.Usage(err)
	}
	return err
}

// interruptible is a reader that returns an error when the command is interrupted.
type interruptible struct {
	ctx context.Context
	in  io.Reader
}

// Read implements io.Reader.
func (r interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.in.Read(p)
}
