package demo

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bellows-rm/bellows/cluster"
	"github.com/bellows-rm/bellows/internal/sandbox"
	"github.com/bellows-rm/bellows/jobfile"
	"github.com/bellows-rm/bellows/resource"
	"github.com/bellows-rm/bellows/trial"
)

// The programs of the part demand, and what makes their inputs.
var (
	//go:embed demand/mix.yaml
	demandFile string
	//go:embed demand/inputs.sh
	demandInputs string
)

// demandPolicies are the contenders of the part demand, prophet last. The others are compared with the last. All of them
// grant the same CPU and memory.
var demandPolicies = []contender{
	{Contender: trial.Contender{Label: "static", Policy: "static"},
		about: "fixed boxes: each job reserves the most of the disk that it demands at any time"},
	{Contender: trial.Contender{Label: "tetris", Policy: "tetris"},
		about: "packs by the same peaks, which it takes from the forecasts"},
	{Contender: trial.Contender{Label: "prophet", Policy: "prophet"},
		about: "places by the phases of the same forecasts"},
}

// tools are the programs that the mix and its inputs need.
var tools = []string{"sh", "openssl", "base64", "cat", "dd", "head", "split", "fold", "sed", "tr", "gzip", "bzip2", "xz", "zstd", "sort", "tar", "sqlite3", "git", "python3"}

// lacking returns the tools that this machine does not have.
func lacking() []string {
	return slices.DeleteFunc(slices.Clone(tools), func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	})
}

// demandJobs returns the jobs of the part demand, one of each program.
func demandJobs() (jobs []cluster.Job, err error) {
	w, err := jobfile.Read(strings.NewReader(demandFile), "demand/mix.yaml", nil)
	if err != nil {
		return nil, err
	}
	for i := range w.Jobs {
		jobs = append(jobs, w.Jobs[i].Job)
	}
	return jobs, nil
}

// demandAtOnce is how many of the jobs have a core at the same time: fewer than there are, so that a policy chooses which
// of them run beside each other.
const demandAtOnce = 5

// demandNode returns what the jobs share: memory for all of them, cores for demandAtOnce, and a disk of the given speed.
func demandNode(jobs []cluster.Job, speed resource.Amount) (node resource.Vector) {
	most := resource.Amount(0)
	for i := range jobs {
		node, most = node.Add(jobs[i].Stages[0].Ideal), max(most, jobs[i].Stages[0].Ideal[resource.CPU])
	}
	return node.With(resource.CPU, demandAtOnce*most).With(resource.Disk, speed)
}

// under returns the job as it is submitted under a contender: fixed boxes reserve the peak of the disk.
func under(c *contender, j cluster.Job, peak resource.Amount) cluster.Job {
	j.Stages = slices.Clone(j.Stages)
	if c.Policy == "static" {
		j.Stages[0].Ideal[resource.Disk] = peak
	}
	return j
}

// load lets the kernel read the tools, and what they load when they begin.
func load(ctx context.Context) error {
	script := "for tool in " + strings.Join(tools, " ") + `; do $tool --version; done
python3 -m zipfile -h; python3 -m json.tool -h; openssl version; git -C / archive -h; git -C / pack-objects -h`
	cmd := exec.CommandContext(ctx, "sh", "-c", "("+script+") > /dev/null 2>&1 < /dev/null || true")
	cmd.Env = sandbox.Environment()
	return cmd.Run()
}

// results is the folder with what the programs write, below that of the inputs.
const results = "out"

// makeInputs makes the inputs in dir, with the given number of tenths of their full size.
func makeInputs(ctx context.Context, dir string, tenths int) error {
	cmd := exec.CommandContext(ctx, "sh", "-c", "cd \"$2\" || exit 1\n"+demandInputs, "sh", fmt.Sprint(tenths), dir)
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
