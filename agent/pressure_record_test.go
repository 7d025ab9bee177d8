package agent

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/internal/recordingdisk"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/profiler"
)

var recordPressure = flag.Bool("record-pressure", false, "record testdata/pressure anew, which takes ten minutes")

// TestRecordPressure records what the statistics of disks say while 1 to 16 programs use them.
func TestRecordPressure(t *testing.T) {
	if !*recordPressure {
		t.Skip("records a fixture: run with -record-pressure")
	}
	for _, c := range []struct {
		name, says string
		pace       recordingdisk.Pace
	}{
		{"arm", "a model: 32 MiB/s, one arm, 8 ms before a transfer elsewhere; ext4 on a loop device on FUSE",
			recordingdisk.Pace{Rate: 32 << 20, Seek: 8 * time.Millisecond}},
		{"bounded", "a model: 32 MiB/s, wherever transfers are; ext4 on a loop device on FUSE", recordingdisk.Pace{Rate: 32 << 20}},
		{"own", "the disk of the machine that made the recording, virtual, shared with other work, of no stated speed", recordingdisk.Pace{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var dir string
			if c.pace.Rate > 0 {
				disk := recordingdisk.New(t, 512<<20)
				dir = disk.Path()
				makeFiles(t, dir)
				disk.Slow(c.pace)
			} else {
				dir = t.TempDir()
				makeFiles(t, dir)
			}
			var out strings.Builder
			speed, err := profiler.MeasureDisk(dir)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "# %s\nspeed %d\n", c.says, speed)
			for _, how := range []string{"read", "write", "random"} {
				for n := 1; n <= 16; n *= 2 {
					recordUse(t, &out, dir, how, n)
				}
			}
			if err := os.WriteFile(filepath.Join("testdata", "pressure", c.name), []byte(out.String()), 0o644); err != nil {
				t.Fatal(err)
			}
		})
	}
}

const pressureFile = 16 << 20

func makeFiles(t *testing.T, dir string) {
	for i := range 16 {
		if err := durable.Write(filepath.Join(dir, fmt.Sprint(i)), make([]byte, pressureFile)); err != nil {
			t.Fatal(err)
		}
	}
}

// recordUse records samples while n programs use the disk below a folder: milliseconds, and the statistics of the disk.
func recordUse(t *testing.T, out io.Writer, dir, how string, n int) {
	a := &Agent{config: Config{Dir: dir}}
	stat := filepath.Join("/sys/dev/block", a.device(), "stat")
	stop := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { useDisk(t, filepath.Join(dir, fmt.Sprint(i)), how, stop) })
	}
	fmt.Fprintf(out, "case %s %d\n", how, n)
	begun := time.Now()
	tick := time.NewTicker(sampling)
	defer tick.Stop()
	for range 9 {
		<-tick.C
		fmt.Fprintln(out, time.Since(begun).Milliseconds(), strings.TrimSpace(read(t, stat)))
	}
	close(stop)
	all.Wait()
}

// useDisk transfers until it is stopped: reads or writes in order in pieces of 128 KiB, or reads pages at random.
func useDisk(t *testing.T, path, how string, stop <-chan struct{}) {
	flags, piece := os.O_RDWR|unix.O_DIRECT, 128<<10
	switch how {
	case "write":
		flags = os.O_RDWR
	case "random":
		piece = 4 << 10
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close()
	block := testswap.Memory[byte](piece)
	defer unix.Munmap(block)
	for at := int64(0); ; at = (at + int64(piece)) % pressureFile {
		select {
		case <-stop:
			return
		default:
		}
		switch how {
		case "read":
			_, err = f.ReadAt(block, at)
		case "random":
			_, err = f.ReadAt(block, rand.Int64N(pressureFile/4096)*4096)
		case "write":
			if _, err = f.WriteAt(block, at); err == nil && at%(1<<20) == 0 {
				err = f.Sync()
			}
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}
