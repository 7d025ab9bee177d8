// Package recordings opens files that other systems recorded, for the commands that import them.
package recordings

import (
	"context"
	"io"
	"os"

	"github.com/bellows-rm/bellows/cmd/internal/command"
	"github.com/bellows-rm/bellows/importer"
)

// Open opens files; - is in. When ctx ends, reading fails with its error. The caller closes what was opened, also after an
// error.
func Open(ctx context.Context, in io.Reader, files []string) (all []importer.Source, closeAll func(), err error) {
	var opened []*os.File
	closeAll = func() {
		for _, f := range opened {
			f.Close()
		}
	}
	for _, name := range files {
		if name == "-" {
			all = append(all, importer.Source{Name: name, Data: interruptible{ctx, in}})
			continue
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, closeAll, command.Usagef("import: %w", err)
		}
		opened = append(opened, f)
		all = append(all, importer.Source{Name: name, Data: interruptible{ctx, f}})
	}
	return all, closeAll, nil
}

// Wrong returns the error of an import: an interrupt, the user's mistake in an option or a file, or an error of the machine.
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
