package firstuse

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/sandbox"
)

// Options are what is measured: one kind of jobs on one node.
type Options struct {
	Kind   string          // see Kinds
	Node   resource.Amount // memory
	Swap   resource.Amount // 0: none
	Rounds int             // of each contender; at least 5 are needed for a result
	Tenths int             // of the full size of the inputs: with less than 10, everything is a trial
	// Against are the names of the contenders beside bellows; empty means all, and with less everything is a trial.
	Against []string
	// Bellows is the program. Dir is where the working directory is made; empty is the folder for temporary files. Out is
	// where every run is written to.
	Bellows, Dir, Out string
	// Say gets the events, one line at a time; Show gets a line that changes all the time.
	Say, Show func(line string)
}

// Result is what was measured.
type Result struct {
	// Why says in one clause why nothing was measured; empty if something was.
	Why string `json:"why_left_out,omitempty"`

	Kind     string            `json:"kind"`
	Node     resource.Amount   `json:"node_bytes"`
	Swap     resource.Amount   `json:"swap_bytes"`
	Tenths   int               `json:"tenths"`
	Cores    int               `json:"cores"`
	Versions map[string]string `json:"versions"`
	Programs []Alone           `json:"programs"`
	Runs     []Run             `json:"runs"` // in the order in which they ran
}

// Alone is what a program does alone, where nothing bounds its memory.
type Alone struct {
	Name string `json:"name"`
	// Took are the times of its runs, seconds. Peak is the most memory of any of them, without page cache.
	Took []float64       `json:"took_s"`
	Peak resource.Amount `json:"peak_bytes"`
	CPU  float64         `json:"cpu_s"` // its least processor time, seconds
	// Box is its box: the peak and a tenth.
	Box    resource.Amount `json:"box_bytes"`
	Digest string          `json:"sha256"` // of its result
}

// Run is one run of the mix under one contender. Times count from the submission of the first job.
type Run struct {
	Contender string   `json:"contender"`
	Round     int      `json:"round"` // from 1
	Begun     string   `json:"begun"`
	Order     []string `json:"order"` // in which the jobs were submitted
	Took      float64  `json:"took_s"`
	Jobs      []Job    `json:"jobs"`
}

// Job is a job in a Run.
type Job struct {
	Name  string  `json:"name"`
	Ended float64 `json:"ended_s,omitempty"` // omitted if it is unknown
	Exit  int     `json:"exit"`
	// Right says that its result is that of the program alone.
	Right bool   `json:"right"`
	Said  string `json:"said,omitempty"` // the last line of its errors, if it is not right
}

// lost counts the jobs that are not right.
func (r *Run) lost() (n int) {
	for i := range r.Jobs {
		if !r.Jobs[i].Right {
			n++
		}
	}
	return n
}

// study is a measurement in progress.
type study struct {
	Options
	work, input string
	result      *Result
}

// Measure runs the mix under every contender, round after round.
func Measure(ctx context.Context, o Options) (res *Result, err error) {
	s := &study{Options: o, result: &Result{Kind: o.Kind, Node: o.Node, Swap: o.Swap, Tenths: o.Tenths,
		Cores: runtime.NumCPU(), Versions: map[string]string{}}}
	if s.result.Why = s.lacks(ctx); s.result.Why != "" {
		return s.result, nil
	}
	parent := sandbox.Parent(o.Dir)
	if _, err := sandbox.Sweep(ctx, parent); err != nil {
		return nil, err
	}
	place, err := sandbox.Make(parent, o.Swap+4*resource.GiB)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, place.Remove(ctx)) }()
	s.work, s.input = place.Dir, filepath.Join(place.Dir, sandbox.InputDir)
	if s.result.Why, err = s.openSwap(); s.result.Why != "" || err != nil {
		return s.result, err
	}
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, err
	}
	s.Show("making the inputs")
	if err := makeInputs(ctx, s.input, o.Tenths); err != nil {
		return nil, err
	}
	if err := s.runAlone(ctx); err != nil {
		return nil, err
	}
	return s.result, s.rounds(ctx)
}

// lacks says in one clause what this machine lacks for the measurement.
func (s *study) lacks(ctx context.Context) string {
	versions, lacking := find(ctx)
	if len(lacking) > 0 {
		return "programs are missing: " + strings.Join(lacking, ", ")
	}
	if os.Geteuid() != 0 {
		return "only root can make control groups and swap"
	}
	out, err := exec.CommandContext(ctx, s.Bellows, "version").CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s does not run: %v", s.Bellows, err)
	}
	s.result.Versions = versions
	s.result.Versions["bellows"] = strings.TrimSpace(string(out))
	return ""
}

// openSwap makes the swap of the node. Without swap, the machine must have none either.
func (s *study) openSwap() (why string, err error) {
	if s.Swap > 0 {
		_, why, err := sandbox.OpenSwap(s.work, s.Swap)
		return why, err
	}
	text, err := os.ReadFile("/proc/swaps")
	if err == nil && strings.Count(string(text), "\n") > 1 {
		return "the machine has swap, and a node without swap is to be measured", nil
	}
	return "", err
}

// runAlone runs each program twice alone.
func (s *study) runAlone(ctx context.Context) error {
	for i := range programs {
		p := &programs[i]
		a := Alone{Name: p.name}
		for range 2 {
			s.Show("alone: " + p.name)
			if err := s.clear(); err != nil {
				return err
			}
			c, err := openContainer(ctx, 0, 0)
			if err != nil {
				return err
			}
			most, begun := c.watch(), time.Now()
			cmd := c.command(ctx, s.input, strings.Fields(p.commandOf(s.Kind))...)
			out, failure := cmd.CombinedOutput()
			a.Took, a.Peak = append(a.Took, time.Since(begun).Seconds()), max(a.Peak, most())
			if err := c.close(ctx); err != nil {
				return err
			}
			if failure != nil {
				return fmt.Errorf("%s alone: %w: %s", p.name, failure, lastLine(out))
			}
			if s.Kind == Wait && a.Took[len(a.Took)-1] < arrival/2 {
				return fmt.Errorf("%s alone: took %.1f s, although its input comes in %d s", p.name, a.Took[len(a.Took)-1], arrival)
			}
			if used := (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(); a.CPU == 0 || used < a.CPU {
				a.CPU = used
			}
			was := a.Digest
			if a.Digest, err = digest(filepath.Join(s.input, p.result)); err != nil {
				return fmt.Errorf("%s alone: %w", p.name, err)
			}
			if was != "" && was != a.Digest {
				return fmt.Errorf("%s alone: two runs have different results", p.name)
			}
		}
		const step = 8 * resource.MiB
		a.Box = (a.Peak*11/10 + step - 1) / step * step
		s.result.Programs = append(s.result.Programs, a)
		s.Say(fmt.Sprintf("alone: %-12s %5.1f s, %s", p.name, min(a.Took[0], a.Took[1]), resource.FormatMemory(a.Peak)))
	}
	s.Say("sum of the peaks: " + resource.FormatMemory(s.result.sum()))
	return nil
}

// clear removes the results of an earlier run, and lets the kernel write what is to be written.
func (s *study) clear() error {
	for _, name := range []string{"out", "slow", "text.xz"} {
		if err := os.RemoveAll(filepath.Join(s.input, name)); err != nil {
			return err
		}
	}
	return errors.Join(os.MkdirAll(filepath.Join(s.input, "out", "javac"), 0o700),
		os.Mkdir(filepath.Join(s.input, "slow"), 0o700), exec.Command("sync").Run())
}

// digest is the hash of a file, or of the files in a folder with their names.
func digest(path string) (string, error) {
	sum, files := sha256.New(), 0
	err := filepath.WalkDir(path, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(name)
		fmt.Fprintf(sum, "%s %d\n", filepath.Base(name), len(text))
		sum.Write(text)
		files++
		return err
	})
	if err == nil && files == 0 {
		err = fmt.Errorf("%s has no files", path)
	}
	return hex.EncodeToString(sum.Sum(nil)), err
}

// lastLine is the last line of what a program said.
func lastLine(out []byte) string {
	text := strings.TrimSpace(string(out))
	return text[strings.LastIndexByte(text, '\n')+1:]
}

// rounds runs the mix under every contender, in an order that is another one in each round.
func (s *study) rounds(ctx context.Context) error {
	log, err := os.Create(filepath.Join(s.Out, "runs.jsonl"))
	if err != nil {
		return err
	}
	defer log.Close()
	all := slices.DeleteFunc(contenders(s), func(c contender) bool {
		return len(s.Against) > 0 && c.name != ours && !slices.Contains(s.Against, c.name)
	})
	for round := 1; round <= s.Rounds; round++ {
		random := rand.New(rand.NewPCG(uint64(round), 1))
		order := slices.Clone(programs)
		random.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		for i := range all {
			c := all[(i+round-1)%len(all)]
			s.Show(fmt.Sprintf("round %d of %d: %s", round, s.Rounds, c.name))
			r, err := s.one(ctx, c, round, order)
			if err != nil {
				return fmt.Errorf("round %d, %s: %w", round, c.name, err)
			}
			s.result.Runs = append(s.result.Runs, *r)
			if err := json.NewEncoder(log).Encode(r); err != nil {
				return err
			}
			s.Say(fmt.Sprintf("round %d: %-20s %6.1f s, %d of %d jobs lost", round, c.name, r.Took, r.lost(), len(r.Jobs)))
		}
	}
	return nil
}

// one runs the mix once under a contender.
func (s *study) one(ctx context.Context, c contender, round int, order []program) (*Run, error) {
	if err := s.clear(); err != nil {
		return nil, err
	}
	r := &Run{Contender: c.name, Round: round, Begun: time.Now().UTC().Format(time.RFC3339)}
	for i := range order {
		r.Order = append(r.Order, order[i].name)
	}
	var err error
	if r.Jobs, err = c.run(ctx, order); err != nil {
		return nil, err
	}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		r.Took = max(r.Took, j.Ended)
		p := &order[i]
		found, err := digest(filepath.Join(s.input, p.result))
		j.Right = j.Exit == 0 && err == nil && found == s.alone(p).Digest
		if j.Right {
			j.Said = ""
		}
	}
	return r, nil
}
