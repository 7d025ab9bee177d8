// Command release builds what a version of bellows is published as: for each processor an archive, a Debian package
// and a wheel of Python, and SHA256SUMS. The same commit gives the same bytes, wherever and whenever it is built with
// the same version of Go: nothing comes from the clock, the user or the folder.
//
//	go run ./internal/release -commit COMMIT -date DATE [-arch amd64,arm64] [-out dist]
package main

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

func main() {
	var r release
	var arches, when string
	flag.StringVar(&r.commit, "commit", "", "commit that is built")
	flag.StringVar(&when, "date", "", "its date, RFC 3339: of all that is written")
	flag.StringVar(&arches, "arch", "amd64,arm64", "processors")
	flag.StringVar(&r.out, "out", "dist", "folder for what is built; what it has is removed")
	flag.Parse()
	err := r.build(".", when, strings.Split(arches, ","))
	if err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// release is one version of bellows on its way out.
type release struct {
	version, commit string
	date            time.Time
	out             string
	common          []file // for every processor: by their places in an archive
}

// file is a file of a package.
type file struct {
	path string // with slashes
	mode int64  // permissions
	text []byte
}

// build builds everything from the tree in dir.
func (r *release) build(dir, when string, arches []string) (err error) {
	if r.commit == "" || strings.HasSuffix(r.commit, "-dirty") {
		return fmt.Errorf("commit %q: must be a commit, with nothing changed since", r.commit)
	}
	if r.date, err = time.Parse(time.RFC3339, when); err != nil {
		return fmt.Errorf("date %q: must be as 2026-11-29T21:39:01Z", when)
	}
	r.date = r.date.UTC()
	text, err := os.ReadFile(filepath.Join(dir, "VERSION"))
	if err != nil {
		return err
	}
	r.version = strings.TrimSpace(string(text))
	work, err := os.MkdirTemp("", "bellows-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	own, err := r.compile(dir, work, runtime.GOARCH)
	if err != nil {
		return err
	}
	if err := r.findCommon(dir, own); err != nil {
		return err
	}
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, arch := range arches {
		program := own
		if arch != runtime.GOARCH {
			if program, err = r.compile(dir, work, arch); err != nil {
				return err
			}
		}
		text, err := os.ReadFile(program)
		if err != nil {
			return err
		}
		for _, pack := range []func(arch string, program []byte) (name string, packed []byte, err error){r.archive, r.deb,
			r.wheel} {
			name, packed, err := pack(arch, text)
			if err != nil {
				return fmt.Errorf("pack for %s: %w", arch, err)
			}
			if err := os.WriteFile(filepath.Join(r.out, name), packed, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(packed), name)
		}
	}
	return os.WriteFile(filepath.Join(r.out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// compile builds the program as one static file in a folder of its own below work, and returns its path.
func (r *release) compile(dir, work, arch string) (program string, err error) {
	program = filepath.Join(work, arch, "bellows")
	stamp := "-s -w"
	for _, v := range []string{"version=" + r.version, "commit=" + r.commit, "date=" + r.date.Format(time.RFC3339)} {
		stamp += " -X github.com/bellows-rm/bellows/door/cli/command." + v
	}
	// The records of the go command would depend on whether the tree is a clone.
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", stamp, "-o", program, "./cmd/bellows")
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+arch, "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFLAGS=")
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build for %s: %w", arch, err)
	}
	return program, nil
}

// findCommon gets the documents from the tree, and the manual pages and completions from the program for this
// machine, beside which the pages are written.
func (r *release) findCommon(dir, program string) error {
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		r.common = append(r.common, file{name, 0o644, text})
	}
	for _, shell := range []string{"bash", "fish", "zsh"} {
		text, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return fmt.Errorf("make the completion of %s: %w", shell, err)
		}
		r.common = append(r.common, file{"completions/" + completion[shell], 0o644, text})
	}
	beside := filepath.Dir(program)
	if out, err := exec.Command(program, "manual", beside).CombinedOutput(); err != nil {
		return fmt.Errorf("make the manual pages: %w: %s", err, out)
	}
	pages, err := filepath.Glob(filepath.Join(beside, "*.1"))
	if err != nil {
		return err
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			return err
		}
		r.common = append(r.common, file{"man/man1/" + filepath.Base(page), 0o644, text})
	}
	return nil
}

// completion has the name that the file of each shell must have.
var completion = map[string]string{"bash": "bellows", "fish": "bellows.fish", "zsh": "_bellows"}
