package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bellows-rm/bellows/durable"
	"github.com/bellows-rm/bellows/internal/recordingdisk"
)

// Programs that read from the same slow disk hinder each other: the daemon sees that the disk is pressed and says so, the
// policy prophet throttles the programs for a while, and the disk is not pressed any more when they have ended.
func TestPressedDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("long: run without -short")
	}
	needControlGroups(t)
	t.Parallel() // it mostly waits
	disk := recordingdisk.New(t, 192<<20)
	const readers = 4
	file := func(i int) string { return filepath.Join(disk.Path(), fmt.Sprint(i)) }
	for i := range readers {
		if err := durable.Write(file(i), make([]byte, 16<<20)); err != nil {
			t.Fatal(err)
		}
	}
	disk.Slow(recordingdisk.Pace{Rate: 32 << 20, Seek: 8 * time.Millisecond})
	state := filepath.Join(disk.Path(), "s")
	bellows := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("bellows", args...)
		cmd.Env = append(os.Environ(), "BELLOWS_STATE="+state)
		said, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%v: %v: %s", args, err, said)
		}
		return strings.Join(strings.Fields(string(said)), " ") // however lines are folded
	}
	await := func(what string, args ...string) {
		t.Helper()
		said := ""
		for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
			if said = bellows(args...); strings.Contains(said, what) {
				return
			}
		}
		t.Errorf("%v does not say %q in time: %s", args, what, said)
	}
	bellows("up", "--memory", "512MiB", "--policy", "prophet", "--set", "prophet.backoff=5s", "--detach")
	defer bellows("down", "--force")
	for i := range readers {
		bellows("run", "-d", "--memory", "64MiB", "--cpus", "100m", "--", "sh", "-c",
			"while :; do dd if="+file(i)+" of=/dev/null bs=128k iflag=direct 2>/dev/null; done")
	}
	await("throttled to", "ps", "1")
	await("of disk until", "explain", "1")
	await("node pressure: the node gives", "explain", "1")
	await("is pressed: it is busy for several containers, and gives", "status")
	for i := 1; i < readers; i++ {
		bellows("kill", fmt.Sprint(i))
	}
	log := filepath.Join(state, "daemon.log")
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "the disk is not pressed any more") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the disk stays pressed: %s", text)
		}
	}
	if said := bellows("status"); strings.Contains(said, "is pressed") {
		t.Errorf("status says %s", said)
	}
}
