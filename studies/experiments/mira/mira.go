package mira

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/bellows-rm/bellows/core/book"
	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/policy"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/importer"
	"github.com/bellows-rm/bellows/format/workload"
	"github.com/bellows-rm/bellows/sim"
	"github.com/bellows-rm/bellows/studies/experiments/lab"
)

// Runs has the runs of Mira's experiments.
var Runs = map[string]lab.Run{"mira/fig1-10": acquire, "mira/fig9-12": alone, "mira/fig13-16": shared,
	"mira/readings": readings, "mira/keep": keep}

// Mira's cluster (section IV.A): 14 servers of 8 executors.
const (
	servers   = 14
	perNode   = 8
	executors = servers * perNode
)

// heap is the memory of an executor: its heap in Table I, in GiB.
const heap = 8.0

// What Mira measured (sections II.A, IV.B and IV.C).
const (
	cold        = 1100 * time.Millisecond // until a new executor is available
	warm        = 36 * time.Millisecond   // until one is that has served before: the 75th percentile
	sparkStarts = 1900 * time.Millisecond // the start of a Spark executor
	// of its container on YARN, so that with a heartbeat the first is there after 3.2 s
	yarnContainer    = 1100 * time.Millisecond
	standaloneStarts = 560 * time.Millisecond // and what the standalone manager needs: see sim.SparkStandalone
	// From the submission of an application to its first task, it takes 4 s on Mira and 10 s on YARN. We take the driver
	// to need what is left of them beside the first executor.
	driver     = 4*time.Second - cold
	yarnDriver = 10*time.Second - 3200*time.Millisecond
)

// system is a way to share executors.
type system struct {
	name     string
	spark    *sparkManager // nil: the policy mira
	driver   time.Duration // from the submission of an application until it has tasks
	policy   string        // of Mira's executors; "" is mira
	settings map[string]string
	// executors of Mira; 0 is executors.
	executors int
}

// yarn is Spark on YARN. Applications that share it have a queue each, with half of the cluster guaranteed and 99
// % at most (section IV.D).
func yarn(idle time.Duration, shared bool) system {
	m := &sparkManager{name: "Spark+YARN", idle: idle, start: yarnContainer + sparkStarts, yarn: true,
		most: executors - 1}
	if shared {
		m.most, m.guaranteed, m.preemption = executors*99/100-1, executors/2, yarnTableOne
	}
	return system{name: "Spark+YARN, " + inSeconds(idle), spark: m, driver: yarnDriver}
}

// standalone is Spark's own manager. It takes nothing back, so that applications that share it may have half of
// the executors each.
func standalone(idle time.Duration, shared bool) system {
	m := &sparkManager{name: "Spark standalone", idle: idle, start: standaloneStarts + sparkStarts, most: executors}
	if shared {
		m.most = executors / 2
	}
	return system{name: "Spark standalone, " + inSeconds(idle), spark: m, driver: driver}
}

// inSeconds prints an idle time-out.
func inSeconds(d time.Duration) string { return lab.Decimals(d.Seconds(), 0) + " s" }

// rivals are the baselines: each manager, with the settings of Table I and with Spark's default.
func rivals(shared bool) []system {
	return []system{yarn(time.Second, shared), yarn(time.Minute, shared),
		standalone(time.Second, shared), standalone(time.Minute, shared)}
}

var (
	own        = system{name: "Mira", driver: driver}
	backToBack = system{name: "Mira's executors, stages back to back", driver: driver, policy: "fifo"}
)

// config is the simulated cluster: each node is an executor. Spark has one more node, the first, for drivers; on
// Mira, a driver takes an executor while it starts.
func (s *system) config() sim.Config {
	capacity := resource.Of(resource.Core, heap*resource.GiB)
	// it starts executors itself; the last one of an application may idle longer, and then counts as new
	if s.spark != nil {
		return sim.Config{Nodes: sim.Uniform(1+executors, capacity), KeepTasks: true,
			Startup: sim.Startup{Keep: s.spark.idle + time.Second}}
	}
	return sim.Config{Nodes: sim.Uniform(cmp.Or(s.executors, executors), capacity), KeepTasks: true,
		Startup: sim.Startup{Executor: cold, Handover: warm, Keep: 1000 * time.Hour, Shared: true}}
}

// run simulates applications. The meter reads what they have.
func (s *system) run(w *workload.Workload, m *meter) (*sim.Result, error) {
	var err error
	if s.spark != nil {
		m.spark = newSpark(*s.spark)
		m.Policy = m.spark
	} else if m.Policy, err = policy.New(cmp.Or(s.policy, "mira"), s.settings); err != nil {
		return nil, err
	}
	r, err := sim.Run(s.config(), w, m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.name, err)
	}
	return r, nil
}

// driverWaits reports whether the driver of an application has not started.
func driverWaits(j *book.JobState) bool {
	stage, ok := j.NextStage()
	return ok && stage == 0
}

// load is how many executors an application could use: its tasks that run or may start.
func load(j *book.JobState) (n int) {
	if j.Status.Ended() {
		return 0
	}
	for i := 1; i < len(j.Stages); i++ {
		n += j.Progress[i].Running + j.Progress[i].Booked
		if j.Ready(i) {
			n += j.Progress[i].Pending
		}
	}
	return n
}

// job is an application: its driver, and the stages of a query, or of anything else, after that.
func job(id int, name string, after int, driver time.Duration, stages []cluster.Stage,
	truth []workload.StageTruth) workload.Job {
	j := workload.Job{After: after, Job: cluster.Job{ID: cluster.JobID(id), Name: name}}
	j.Stages = append(j.Stages, cluster.Stage{Name: "driver", Tasks: 1, Ideal: resource.Of(resource.Core/2, resource.GB),
		Duration: driver})
	for _, s := range stages {
		parents := []int{0}
		for _, p := range s.Parents {
			parents = append(parents, p+1)
		}
		s.Parents, s.Ideal = parents, resource.Of(resource.Core, resource.GB)
		j.Stages = append(j.Stages, s)
	}
	if truth != nil {
		j.Truth = append([]workload.StageTruth{{}}, truth...)
	}
	return j
}

// queries are the queries of TPC-H that Decima's authors recorded, of one size, by the waves of their tasks.
func queries(l *lab.Lab, size string) (all []workload.Job, err error) {
	jobs, err := decimaWaves(l.Data)
	for _, j := range jobs {
		if strings.HasSuffix(j.Name, "-"+size) {
			all = append(all, j)
		}
	}
	return all, err
}

// drawn is how many jobs of Alibaba's are taken.
const drawn = 10

// daGs are n jobs of Alibaba's cluster, drawn among those that take the cluster less than a minute.
func daGs(l *lab.Lab, n int) (some []workload.Job, err error) {
	jobs, err := lab.ReadRecorded(importer.DefaultAlibaba(), filepath.Join(l.Data, "alibaba2018-dags",
		"random6600.csv.gz"))
	if err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(l.Seed, 0xa11))
	for _, i := range r.Perm(len(jobs)) {
		j, work := &jobs[i], time.Duration(0)
		for k := range j.Stages {
			work += time.Duration(j.Stages[k].Tasks) * j.Stages[k].Duration
		}
		if len(j.Stages) > 1 && j.Tasks() > perNode && work/executors < time.Minute && longestOf(j) < time.Minute {
			if some = append(some, *j); len(some) == n {
				break
			}
		}
	}
	return some, nil
}

// longestOf is how long the longest task of a job takes.
func longestOf(j *workload.Job) (longest time.Duration) {
	for k := range j.Stages {
		longest = max(longest, j.Stages[k].Duration)
	}
	return longest
}

// decimaWaves reads all queries of a folder of recorded data, once.
func decimaWaves(dir string) ([]workload.Job, error) {
	decimaOnce.Do(func() {
		f := importer.DefaultDecima()
		f.Waves = true
		decimaRead, decimaFault = lab.ReadRecorded(f, filepath.Join(dir, "decima-tpch", "tpch-spark-dags.jsonl.gz"))
	})
	return decimaRead, decimaFault
}

var (
	decimaOnce  sync.Once
	decimaRead  []workload.Job
	decimaFault error
)
