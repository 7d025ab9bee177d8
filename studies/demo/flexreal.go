package demo

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
)

//go:embed programs
var programFiles embed.FS

// realMix returns a larger mix, of a JVM, a sort, Python, and an in-memory server under load, as far as the machine has
// them, with the given number of jobs; one of every three jobs is large. It writes the programs' files to dir. missing
// has a sentence for each missing program.
//
// The largest working sets, and so containers of the peak, are slightly more than half of the node: one fits at a time,
// as one of 64 GB in the 120 GB of Pufferfish's nodes (section 5.2). The CPU is enough for eight containers at once, so
// that memory is scarce.
func realMix(ctx context.Context, dir string, jobs int) (m *flexMix, missing []string, err error) {
	const mib, peak = resource.MiB, 1600 * resource.MiB
	const live, numbers, swell, values = 760, 1504, 1440, 1280 // MiB, of the largest jobs
	if jobs == 0 {
		defer func() { m.least = time.Minute }()
	}
	m = &flexMix{node: resource.Of(2*resource.Core, 3*resource.GiB), swap: 4 * resource.GiB, cpu: resource.Core / 4,
		every: 2 * time.Second, attempts: 4,
		outOfMemory: 3, // exit code of a JVM whose heap is full
		stream:      own("grow", 64*mib, 100), streamSize: 64*mib + beside, streamEvery: 2 * time.Second}
	if err := os.CopyFS(dir, programFiles); err != nil {
		return nil, nil, fmt.Errorf("write the programs: %w", err)
	}
	files := filepath.Join(dir, "programs")
	add := func(name, about string, command func(share float64, most resource.Amount) []string) {
		m.programs = append(m.programs, hungryProgram{name: name, about: about, peak: peak, least: 96 * mib,
			command: command})
	}
	// scaled returns a whole number in proportion to the share of the largest job.
	scaled := func(share, largest float64) string { return fmt.Sprint(int(share * largest)) }
	if out, err := exec.CommandContext(ctx, "javac", "-d", files,
		filepath.Join(files, "Grow.java")).CombinedOutput(); err != nil {
		missing = append(missing, fmt.Sprintf("the program of the JVM: javac does not work (%v) %.100s", err, out))
	} else {
		about := fmt.Sprintf(
			"a JVM whose live set grows to %d MiB; its heap is four fifths of the container, of a FLEX one of the node", live)
		add("java", about, func(share float64, most resource.Amount) []string {
			heap := fmt.Sprintf("-Xmx%dm", int64(most)*4/5/int64(mib))
			return []string{"java", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", heap, "-cp", files, "Grow",
				scaled(share, live), scaled(share, 22_000)}
		})
	}
	add("sort", fmt.Sprintf("a sort of numbers in %d MiB", numbers), func(share float64, _ resource.Amount) []string {
		return own("sort", resource.Amount(share*float64(numbers*mib)), 0)
	})
	python, err := exec.LookPath("python3")
	if err != nil {
		return m.fill(jobs), append(missing, "the Python program and the server: there is no python3"), nil
	}
	if system := "/usr/bin/python3"; exec.CommandContext(ctx, system, "-c", "").Run() == nil {
		python = system
	}
	about := fmt.Sprintf("a Python program whose working set swells to %d MiB, shrinks, and swells half as much again",
		swell)
	add("python", about, func(share float64, _ resource.Amount) []string {
		return []string{python, filepath.Join(files, "swell.py"), scaled(share, swell), scaled(share, 5_000)}
	})
	if _, err := exec.LookPath("memcached"); err != nil {
		missing = append(missing, "the server: there is no memcached")
	} else {
		add("server", fmt.Sprintf("memcached under load, with %d MiB of values", values),
			func(share float64, _ resource.Amount) []string {
				return []string{python, filepath.Join(files, "server.py"), scaled(share, values), scaled(share, 60)}
			})
	}
	return m.fill(jobs), missing, nil
}

// fill distributes jobs to programs in turn; the first of every three is large.
func (m *flexMix) fill(jobs int) *flexMix {
	shares := []float64{1, 0.4, 0.3}
	for i := range jobs {
		p := &m.programs[i%len(m.programs)]
		p.sizes = append(p.sizes, shares[i%len(shares)])
	}
	return m
}
