package demo

import (
	"context"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
	"github.com/bellows-rm/bellows/format/jobfile"
	"github.com/bellows-rm/bellows/sim/trial"
)

// The programs of the part demand, and what makes their inputs.
//
//go:embed demand/*.yaml demand/*.sh
var demandFiles embed.FS

// demandMix is a mix of existing programs, and the policies that it compares.
type demandMix struct {
	name string
	// programs is the name of the files with its programs and what makes their inputs.
	programs string
	// about says in one clause what the programs have in common.
	about string
	// tools are the programs that the mix and its inputs need, and load prints something with those that load libraries
	// late.
	tools []string
	load  string
	// policies are the contenders. The others are compared with the last.
	policies []contender
	// atOnce is how many programs have cores at the same time, if all are granted the same; 0: the mix is about cores,
	// which programs need more or fewer of.
	atOnce resource.Amount
}

// demandMixes are the mixes of the part demand.
var demandMixes = []demandMix{
	{name: "disk", programs: "disk", about: "the demand of the disk comes and goes",
		tools: []string{"sh", "openssl", "base64", "cat", "dd", "head", "split", "fold", "sed", "tr", "gzip", "bzip2", "xz",
			"zstd", "sort", "tar", "sqlite3", "git", "python3"},
		load: "python3 -m zipfile -h; python3 -m json.tool -h; openssl version; git -C / archive -h; git -C / " +
			"pack-objects -h",
		policies: []contender{
			{Contender: trial.Contender{Label: "static", Policy: "static"},
				about: "fixed boxes: each job reserves the most of the disk that it demands at any time"},
			{Contender: trial.Contender{Label: "tetris", Policy: "tetris"},
				about: "packs by the same peaks, which it takes from the forecasts"},
			{Contender: trial.Contender{Label: "prophet", Policy: "prophet"},
				about: "places by the phases of the same forecasts"},
		},
		atOnce: 5, // fewer than there are programs, so that a policy chooses which of them run beside each other
	},
	coresMix("cores", inPeakBoxes, contender{Contender: trial.Contender{Label: "prophet", Policy: "prophet"},
		about: "the same boxes, placed by what the forecasts demand of the disk"}, byPhase),
	coresMix("weights", inPeakBoxes, byPhase,
		contender{Contender: trial.Contender{Label: "weights", Policy: "ecs",
			Settings: map[string]string{"ecs.short": "false", "ecs.cpu": "weight"}},
			about: "is ecs, where a grant of cores is a weight: a task may use what others leave of its box"}),
}

// Contenders of the mixes about cores.
var (
	inPeakBoxes = contender{Contender: trial.Contender{Label: "static", Policy: "static"},
		about: "fixed boxes: each task has the cores that it uses at its peak, throughout"}
	// No program of the mix is short: with a handful of programs, the faster half would be called so, and be granted its
	// peaks.
	byPhase = contender{Contender: trial.Contender{Label: "ecs", Policy: "ecs",
		Settings: map[string]string{"ecs.short": "false"}},
		about: "grants each task the cores that its present phase demands, and stops tasks that have time"}
)

// coresMix is a mix of the programs that use two cores, one or hardly any.
func coresMix(name string, policies ...contender) demandMix {
	return demandMix{name: name, programs: "cores", about: "the number of cores that they use comes and goes",
		tools: []string{"sh", "openssl", "base64", "cat", "dd", "head", "split", "sed", "tr", "gzip", "bzip2", "xz",
			"zstd", "sort", "tar", "sqlite3", "git", "python3", "go", "curl", "sha256sum"},
		load: "python3 -m http.server -h; python3 -m zipfile -h; openssl version; git -C / repack -h; go version; " +
			"go tool compile -V; go tool asm -V; go tool link -V",
		policies: policies}
}

// DemandMixes returns the names of the mixes of the part demand.
func DemandMixes() (names []string) {
	for i := range demandMixes {
		names = append(names, demandMixes[i].name)
	}
	return names
}

// demandMixOf returns the mix of that name; there must be one.
func demandMixOf(name string) *demandMix {
	return &demandMixes[slices.IndexFunc(demandMixes, func(m demandMix) bool { return m.name == name })]
}

// byCores reports whether the mix is about cores, and else about the disk.
func (m *demandMix) byCores() bool { return m.atOnce == 0 }

// last is the contender with which the others are compared.
func (m *demandMix) last() *contender { return &m.policies[len(m.policies)-1] }

// file returns a file of the mix.
func (m *demandMix) file(ending string) string {
	text, err := demandFiles.ReadFile("demand/" + m.programs + ending)
	if err != nil {
		panic(err) // it is part of this program
	}
	return string(text)
}

// lacking returns the tools that this machine does not have.
func (m *demandMix) lacking() []string {
	return slices.DeleteFunc(slices.Clone(m.tools), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// jobs returns the jobs of the mix, one of each program.
func (m *demandMix) jobs() (jobs []cluster.Job, err error) {
	w, err := jobfile.Read(strings.NewReader(m.file(".yaml")), "demand/"+m.programs+".yaml", nil)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		jobs = append(jobs, w.Jobs[i].Job)
	}
	return jobs, nil
}

// node returns what the jobs share: memory for all of them, a disk of the given speed, and cores for atOnce of them,
// or for the largest.
func (m *demandMix) node(jobs []cluster.Job, speed resource.Amount) (node resource.Vector) {
	most := resource.Amount(0)
	for i := range jobs {
		for k := range jobs[i].Stages {
			ideal := jobs[i].Stages[k].Ideal
			node, most = node.Add(ideal), max(most, ideal[resource.CPU])
		}
	}
	return node.With(resource.CPU, max(1, m.atOnce)*most).With(resource.Disk, speed)
}

// under returns the job as it is submitted under a contender: where the mix is about the disk, fixed boxes reserve
// the peak of the disk.
func (m *demandMix) under(c *contender, j cluster.Job, of *learned) cluster.Job {
	j.Stages = slices.Clone(j.Stages)
	if c.Policy == "static" && !m.byCores() {
		for i := range j.Stages {
			j.Stages[i].Ideal[resource.Disk] = of.by(&j, i).Peak
		}
	}
	return j
}

// warm lets the kernel read the tools, and what they load when they begin.
func (m *demandMix) warm(ctx context.Context) error {
	script := "for tool in " + strings.Join(m.tools, " ") + "; do $tool --version; done\n" + m.load
	cmd := exec.CommandContext(ctx, "sh", "-c", "("+script+") > /dev/null 2>&1 < /dev/null || true")
	cmd.Env = sandbox.Environment()
	return cmd.Run()
}

// results is the folder with what the programs write, below that of the inputs.
const results = "out"

// makeInputs makes the inputs in dir, with the given number of tenths of their full size.
func (m *demandMix) makeInputs(ctx context.Context, dir string, tenths int) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", "cd \"$2\" || exit 1\n"+m.file(".sh"), "sh", fmt.Sprint(tenths), dir)
	cmd.Env = sandbox.Environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("make the inputs: %w: %s", err, out)
	}
	return nil
}

// clearResults removes what the programs wrote.
func clearResults(dir string) error {
	out := filepath.Join(dir, results)
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Mkdir(out, 0o700)
}
