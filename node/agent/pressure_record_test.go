package agent

import (
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/internal/recordingdisk"
	"github.com/bellows-rm/bellows/internal/testswap"
	"github.com/bellows-rm/bellows/node/profiler"
)

var recordPressure = flag.Bool("record-pressure", false,
	"record anew what TestRecordedPressure judges, which takes ten minutes")

// pressedDisk is a disk whose statistics are recorded.
type pressedDisk struct {
	name, says string
	pace       recordingdisk.Pace // zero: the disk of this machine
}

var pressedDisks = []pressedDisk{
	{"arm", "a model: 32 MiB/s, one arm, 8 ms before a transfer elsewhere; ext4 on a loop device on FUSE",
		recordingdisk.Pace{Rate: 32 << 20, Seek: 8 * time.Millisecond}},
	{"bounded", "a model: 32 MiB/s, wherever transfers are; ext4 on a loop device on FUSE",
		recordingdisk.Pace{Rate: 32 << 20}},
	{"own", "the disk of the machine that made the recording, virtual, shared with other work, of no stated speed",
		recordingdisk.Pace{}},
}

// recordAll records what the statistics of disks say while 1 to 16 programs of each kind use them, as
// testdata/pressure.
func recordAll(t *testing.T) {
	for i := range pressedDisks {
		d := &pressedDisks[i]
		text := d.record(t, []string{"read", "write", "random"}, []int{1, 2, 4, 8, 16})
		if err := os.WriteFile(filepath.Join("testdata", "pressure", d.name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPressureOfDisks reads from the modelled disks with four programs: only the disk with an arm is pressed.
func TestPressureOfDisks(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	for i, want := range []map[string]string{{"read": "4"}, {}} {
		d := &pressedDisks[i]
		if got := pressedIn(t, d.name, d.record(t, []string{"read"}, []int{4})); !reflect.DeepEqual(got, want) {
			t.Errorf("disk %s is pressed with %v, want %v", d.name, got, want)
		}
	}
}

// record returns what the statistics of the disk say while the given numbers of programs use it in each of several
// ways.
func (d *pressedDisk) record(t *testing.T, ways []string, programs []int) string {
	dir, files := t.TempDir(), slices.Max(programs)
	if d.pace.Rate > 0 {
		disk := recordingdisk.New(t, 512<<20)
		dir = disk.Path()
		makeFiles(t, dir, files)
		disk.Slow(d.pace)
	} else {
		makeFiles(t, dir, files)
	}
	var out strings.Builder
	speed, err := profiler.MeasureDisk(dir)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(&out, "# %s\nspeed %d\n", d.says, speed)
	for _, how := range ways {
		for _, n := range programs {
			recordUse(t, &out, dir, how, n)
		}
	}
	return out.String()
}

const pressureFile = 16 << 20

func makeFiles(t *testing.T, dir string, n int) {
	for i := range n {
		if err := durable.Write(filepath.Join(dir, fmt.Sprint(i)), make([]byte, pressureFile)); err != nil {
			t.Fatal(err)
		}
	}
}

// recordUse records samples while n programs use the disk below a folder: milliseconds, and the statistics of the disk.
func recordUse(t *testing.T, out io.Writer, dir, how string, n int) {
	stat := filepath.Join("/sys/dev/block", deviceOf(dir), "stat")
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
