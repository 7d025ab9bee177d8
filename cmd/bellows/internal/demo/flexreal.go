package demo

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/bellows-rm/bellows/resource"
)

//go:embed programs
var programFiles embed.FS

// realMix is a larger mix, of a JVM, a sort, Python, and an in-memory server under load, as far as the machine has them: so
// many jobs, of every three of which one is large. It puts into dir what the programs need. Of what is not there missing
// says so, a sentence each.
func realMix(ctx context.Context, dir string, jobs int) (m *flexMix, missing []string, err error) {
	const mib, cpu = resource.MiB, resource.Core * 3 / 10
	m = &flexMix{node: resource.Of(2*resource.Core, 1536*mib), swap: 2 * resource.GiB, cpu: cpu, every: 2 * time.Second, attempts: 4,
		outOfMemory: 3, // of a JVM that ends when its heap is full
		stream:      own("grow", 64*mib, 100), streamSize: 64*mib + beside, streamEvery: 2 * time.Second}
	if err := os.CopyFS(dir, programFiles); err != nil {
		return nil, nil, fmt.Errorf("write the programs: %w", err)
	}
	files := filepath.Join(dir, "programs")
	add := func(name, about string, peak resource.Amount, command func(share float64, most resource.Amount) []string) {
		m.programs = append(m.programs, hungry{name: name, about: about, peak: peak, least: 96 * mib, command: command})
	}
	// scaled is a whole number that grows with the share of the largest job.
	scaled := func(share, largest float64) string { return fmt.Sprint(int(share * largest)) }
	if out, err := exec.CommandContext(ctx, "javac", "-d", files, filepath.Join(files, "Grow.java")).CombinedOutput(); err != nil {
		missing = append(missing, fmt.Sprintf("no JVM: javac does not work (%v) %.100s", err, out))
	} else {
		add("java", "a JVM whose live set grows; its heap is four fifths of the container, of a FLEX one of the node", 640*mib, func(share float64, most resource.Amount) []string {
			heap := fmt.Sprintf("-Xmx%dm", int64(most)*4/5/int64(mib))
			return []string{"java", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError", heap, "-cp", files, "Grow", scaled(share, 320), scaled(share, 25_000)}
		})
	}
	add("sort", "a sort of numbers in memory", 480*mib+beside, func(share float64, _ resource.Amount) []string {
		return own("sort", resource.Amount(share*float64(480*mib)), 0)
	})
	python, err := exec.LookPath("python3")
	if err != nil {
		return m.fill(jobs), append(missing, "no Python, and so no server: there is no python3"), nil
	}
	if system := "/usr/bin/python3"; exec.CommandContext(ctx, system, "-c", "").Run() == nil {
		python = system
	}
	add("python", "a Python program whose working set swells and shrinks twice", 440*mib, func(share float64, _ resource.Amount) []string {
		return []string{python, filepath.Join(files, "swell.py"), scaled(share, 400), scaled(share, 10_000)}
	})
	if _, err := exec.LookPath("memcached"); err != nil {
		missing = append(missing, "no server: there is no memcached")
	} else {
		add("server", "memcached under load", 420*mib, func(share float64, _ resource.Amount) []string {
			return []string{python, filepath.Join(files, "server.py"), scaled(share, 280), scaled(share, 120)}
		})
	}
	return m.fill(jobs), missing, nil
}

// fill gives programs their jobs, in turn; of every three the first is large.
func (m *flexMix) fill(jobs int) *flexMix {
	shares := []float64{1, 0.4, 0.3}
	for i := range jobs {
		p := &m.programs[i%len(m.programs)]
		p.sizes = append(p.sizes, shares[i%len(shares)])
	}
	return m
}
