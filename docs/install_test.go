package docs_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// release is the version under which TestInstall offers this project.
const release = "v0.0.1"

// TestInstall installs the commands as README says, from a module proxy in a folder that has this project, as people
// would get it, and otherwise what the module cache has.
func TestInstall(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	const path = "github.com/bellows-rm/bellows"
	if !strings.Contains(read(t, "../README.md"), "CGO_ENABLED=0 go install "+path+"/cmd/bellows@latest\n") {
		t.Error("README says something else")
	}
	proxy, bin := t.TempDir(), t.TempDir()
	offer(t, filepath.Join(proxy, path, "@v"), path)
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	modules := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	commands, err := filepath.Glob("../cmd/bellows*")
	if err != nil || len(commands) == 0 {
		t.Fatalf("commands: %v %v", commands, err)
	}
	for _, command := range commands {
		name := filepath.Base(command)
		install := exec.Command("go", "install", path+"/cmd/"+name+"@latest")
		install.Dir = t.TempDir() // outside of any module
		install.Env = append(os.Environ(), "CGO_ENABLED=0", "GOBIN="+bin, "GOMODCACHE="+filepath.Join(bin, "modules"),
			"GOSUMDB=off", "GOFLAGS=-modcacherw -trimpath", "GOTOOLCHAIN=local",
			fmt.Sprintf("GOPROXY=file://%s,file://%s", proxy, modules))
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", install, err, out)
		}
		out, err := exec.Command(filepath.Join(bin, name), "version").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), name+" "+strings.TrimPrefix(release, "v")+" ") {
			t.Errorf("%s version: %v: %s", name, err, out)
		}
	}
}

// offer makes the files of one version of this project that a module proxy has.
func offer(t *testing.T, dir, path string) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z")
	list.Dir = ".."
	names, err := list.Output()
	if err != nil {
		t.Skipf("needs a git checkout: %v", err)
	}
	var files []modzip.File
	for _, name := range strings.Split(strings.TrimSuffix(string(names), "\x00"), "\x00") {
		if info, err := os.Lstat(filepath.Join("..", name)); err == nil && info.Mode().IsRegular() {
			files = append(files, file{name})
		}
	}
	var packed bytes.Buffer
	if err := modzip.Create(&packed, module.Version{Path: path, Version: release}, files); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"list": release + "\n", release + ".info": fmt.Sprintf(`{"Version":%q}`, release),
		release + ".mod": read(t, "../go.mod"), release + ".zip": packed.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// file is a file of this project, by its path in it.
type file struct{ path string }

func (f file) Path() string                 { return f.path }
func (f file) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join("..", f.path)) }
func (f file) Open() (io.ReadCloser, error) { return os.Open(filepath.Join("..", f.path)) }
