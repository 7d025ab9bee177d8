//go:build guest

package fleet_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/internal/guest"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/pool"
)

// packPython is a program of Python that packs the interpreter for a guest, which has a C library: it writes the
// standard library as an archive, and prints the names of the files that the interpreter and the modules of the
// worker are loaded from.
const packPython = `
import ctypes, glob, mmap, os, subprocess, sys, termios, zipfile
there = os.path.dirname(os.__file__)
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as out:
    for file in glob.glob(there + "/*.py") + glob.glob(there + "/*/*.py"):
        if "/test/" not in file and "/idlelib/" not in file and "/lib2to3/" not in file:
            out.write(file, os.path.relpath(file, there))
for module in ("_ctypes", "mmap", "termios"):
    file = getattr(sys.modules[module], "__file__", None)
    if file:
        print(file)
        for line in subprocess.check_output(["ldd", file], text=True).splitlines():
            if "=> /" in line:
                print(line.split()[2])
for line in subprocess.check_output(["ldd", sys.executable], text=True).splitlines():
    if "=> /" in line:
        print(line.split()[2])
`

// TestGuest runs TestClockJumps in a guest, with an interpreter of Python if this machine has one.
func TestGuest(t *testing.T) {
	const python = "/usr/bin/python3"
	files := map[string]string{}
	if _, err := os.Stat(python); err == nil {
		library := filepath.Join(t.TempDir(), "python.zip")
		out, err := exec.Command(python, "-c", packPython, library).Output()
		if err != nil {
			t.Fatal(err)
		}
		files["python3"], files["python.zip"] = python, library
		for _, file := range strings.Fields(string(out)) {
			files[filepath.Base(file)] = file
		}
	}
	t.Run("v2", func(t *testing.T) {
		guest.Run(t, guest.Config{Init: guest.Systemd, Cgroups: guest.Unified, MemoryMiB: 1536, Files: files,
			Timeout: 10 * time.Minute}, guest.Build(t, ".", "guest"), "-test.run=^TestClockJumps$")
	})
}

// The calendar is set forward and back by hours and a day while pools of Go and Python run tasks, and the machine
// sleeps for longer than a lease lasts: no lease ends, no task runs twice, and what is shown of times is what has
// passed. A daemon that then begins in the past goes on, too.
func TestClockJumps(t *testing.T) {
	guest.Need(t)
	r := newRig(t)
	r.python, r.env, r.once = "/guest/python3",
		append(r.env, "LD_LIBRARY_PATH=/guest", "PYTHONPATH=/guest/python.zip:/guest"), true
	began := time.Now()
	functions := r.putBoth(1)
	t.Logf("warm after %v", time.Since(began).Round(time.Millisecond))
	goOn, end := r.streams(functions)
	defer end()
	goOn()
	unharmed := func(what string) {
		t.Helper()
		goOn()
		t.Logf("%s: the streams go on after %v", what, time.Since(began).Round(time.Millisecond))
		for name := range functions {
			r.until(name, "shown", func(d *api.PoolDetail) bool {
				if c := d.Counters; c.Lost > 0 || c.Expired > 0 || c.Abandoned > 0 {
					t.Errorf("%s: pool %s has %+v", what, name, c)
				}
				for _, e := range d.Members {
					if most := time.Since(began) + time.Minute; e.Idle < 0 || e.Running < 0 || e.Idle > most || e.Running > most {
						t.Errorf("%s: pool %s shows %+v", what, name, e)
					}
				}
				return true
			})
		}
	}
	for _, by := range []time.Duration{3 * time.Hour, -27 * time.Hour, 25 * time.Hour} {
		guest.SetAhead(t, by)
		unharmed("set by " + by.String())
	}
	guest.StopMachine(t, guest.Asleep, pool.DefaultLease+time.Second)
	unharmed("asleep")
	guest.SetAhead(t, -5*time.Hour)
	r.kill()
	for name := range functions {
		r.until(name, "back", func(d *api.PoolDetail) bool { return d.Synced })
	}
	unharmed("a daemon in the past")
}
