package importer

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/format/workload"
)

// Virtual machines become jobs of one task that runs for as long as the machine was observed, with one phase per
// sample. The estimate is what was provisioned, the truth is what was used.

// mostSamples is the largest number of samples of one machine.
const mostSamples = 1 << 20

// samples are the values of the metrics of one machine.
type samples struct {
	line   int
	values map[string][]float64
}

// readSamples reads lines of vm, metric and values, separated by spaces, after a head, and passes each machine on when
// its lines have ended. A missing value, -1 in the file, is the value before it, or the first value after it if there
// is none before.
func readSamples(in *input, metrics []string, machine func(name string, s samples) error) error {
	head, err := in.next()
	if err == io.EOF || err == nil && head != "vm,metric,values" {
		return in.faultAt(1, "head: must be vm,metric,values, not %q", cluster.Clip(head))
	}
	if err != nil {
		return err
	}
	first := map[string]int{}
	name, current := "", samples{}
	for {
		line, err := in.next()
		if err != nil && err != io.EOF {
			return err
		}
		cells := strings.Split(line, ",")
		if err == io.EOF || cells[0] != name {
			if name != "" {
				if err := machine(name, current); err != nil {
					return err
				}
			}
			if err == io.EOF {
				return nil
			}
			if line, twice := first[cells[0]]; twice {
				return in.fault("vm %q: given twice, first in line %d", cluster.Clip(cells[0]), line)
			}
			name, current = cells[0], samples{in.line, map[string][]float64{}}
			first[name] = in.line
		}
		if err := current.add(in, cells, metrics); err != nil {
			return err
		}
	}
}

// add reads one line.
func (s *samples) add(in *input, cells []string, metrics []string) error {
	if len(cells) != 3 {
		return in.fault("columns: must be vm, metric and values, but are %d", len(cells))
	}
	r := &row{in: in, cells: cells, at: columnsAt([]string{"vm", "metric", "values"})}
	r.named("vm")
	metric := r.text("metric")
	known := false
	for _, m := range metrics {
		known = known || m == metric
	}
	if !known {
		r.fail("metric", "must be one of %s", strings.Join(metrics, ", "))
	}
	if _, twice := s.values[metric]; twice {
		r.fail("metric", "given twice for the machine")
	}
	if r.err != nil {
		return r.err
	}
	texts := strings.Fields(cells[2])
	if len(texts) == 0 || len(texts) > mostSamples {
		return in.fault("values: must be 1 to %d, but are %d", mostSamples, len(texts))
	}
	values, missing := make([]float64, len(texts)), 0
	last := -1.0
	for i, text := range texts {
		v, ok := parseNumber(text, 0, mostBytes)
		switch {
		case text == "-1":
			missing++
			v = last
		case !ok:
			return in.fault("%s sample %d %q: must be a number from 0 on, or -1 for a missing one", metric, i,
				cluster.Clip(text))
		}
		if values[i], last = v, v; last >= 0 && i > 0 && values[0] < 0 {
			for k := range i {
				values[k] = last
			}
		}
	}
	if last < 0 {
		clear(values)
	}
	in.notes.add("missing samples were replaced by the previous sample", missing)
	s.values[metric] = values
	return nil
}

// vmJob makes the job of a machine. Consecutive equal samples are one phase.
func vmJob(in *input, name string, s samples, metrics []string, interval time.Duration, provisioned resource.Vector,
	demand func(at int) resource.Vector) (workload.Job, error) {
	slots := len(s.values[metrics[0]])
	for _, m := range metrics {
		if len(s.values[m]) != slots || slots == 0 {
			return workload.Job{},
				in.faultAt(s.line, "vm %q: must have as many samples of each metric, but has %d of %s and %d of %s",
					cluster.Clip(name), slots, metrics[0], len(s.values[m]), m)
		}
	}
	lasting := time.Duration(slots) * interval
	if lasting > mostSeconds*time.Second {
		return workload.Job{}, in.faultAt(s.line, "vm %q: must not run for more than %d s", cluster.Clip(name),
			int64(mostSeconds))
	}
	phases := make([]cluster.Phase, slots)
	for i := range phases {
		phases[i] = cluster.Phase{Duration: interval, Demand: demand(i)}
	}
	return machineJob(name, provisioned, phases), nil
}

// machineJob makes the job of a machine that used what phases say. Consecutive equal phases become one.
func machineJob(name string, provisioned resource.Vector, phases []cluster.Phase) workload.Job {
	merged := phases[:1]
	lasting, peak := phases[0].Duration, max(phases[0].Demand[resource.Memory], 1)
	for _, p := range phases[1:] {
		lasting, peak = lasting+p.Duration, max(peak, p.Demand[resource.Memory])
		if last := &merged[len(merged)-1]; last.Demand == p.Demand {
			last.Duration += p.Duration
			continue
		}
		merged = append(merged, p)
	}
	return workload.Job{
		Job: cluster.Job{Name: plainName("vm-" + name), Class: cluster.Flex,
			Stages: []cluster.Stage{{Name: "vm", Tasks: 1, Ideal: provisioned, Duration: lasting}}},
		Truth: []workload.StageTruth{{IdealMemory: workload.ForAll(peak), Phases: workload.ForAll(merged)}},
	}
}

// Bitbrains reads the GWA-T-12 trace: as it is published, a file for each machine, or as a study derived it, a file
// with lines of vm, metric and values and a file with the provisioned resources of each machine.
type Bitbrains struct {
	Interval time.Duration // between samples
	// VMs is the file with cores, cpu_capacity_mhz and mem_provisioned_mb of each vm, which a derived file needs.
	VMs Source
}

// DefaultBitbrains returns the interval of the trace.
func DefaultBitbrains() *Bitbrains { return &Bitbrains{Interval: 300 * time.Second} }

// Name implements Format.
func (f *Bitbrains) Name() string { return "bitbrains" }

// Node implements Format: a host of virtual machines.
func (f *Bitbrains) Node() resource.Vector {
	return resource.Of(32*resource.Core, 256*resource.GiB).With(resource.Disk, 500*resource.MB).With(resource.Network,
		1250*resource.MB)
}

func (f *Bitbrains) check() error { return checkInterval(f.Interval) }

func checkInterval(d time.Duration) error {
	if d < time.Second || d > 24*time.Hour {
		return fmt.Errorf("interval %v: must be 1s to 24h", d)
	}
	return nil
}

var bitbrainsMetrics = []string{"cpu_mhz", "mem_mb", "disk_read_kbps", "disk_write_kbps", "net_rx_kbps", "net_tx_kbps"}

// provision is the provisioned resources of a machine.
type provision struct{ cores, mhz, memory float64 }

// vmsOff is the note on machines of which nothing can be told.
const vmsOff = "machines were provisioned with nothing, being off, and were left out"

func (f *Bitbrains) read(in *input, job func(workload.Job) error) error {
	if start, _ := in.in.Peek(512); strings.Contains(string(start), ";") {
		return f.published(in, job)
	}
	if f.VMs.Data == nil {
		return in.faultAt(0, "vms: must name the file with the provisioned resources of each machine, unless this is the "+
			"file of one machine, as the trace is published")
	}
	vms, err := f.provisions(in)
	if err != nil {
		return err
	}
	return readSamples(in, bitbrainsMetrics, func(name string, s samples) error {
		p, known := vms[name]
		switch {
		case !known:
			return in.faultAt(s.line, "vm %q: must be in %s", cluster.Clip(name), f.VMs.Name)
		case p.cores == 0 || p.mhz == 0 || p.memory == 0:
			in.notes.add(vmsOff, 1)
			return nil
		}
		perMHz := p.cores * float64(resource.Core) / p.mhz
		j, err := vmJob(in, name, s, bitbrainsMetrics, f.Interval,
			resource.Of(amount(p.cores*float64(resource.Core)), amount(p.memory*float64(resource.MiB))),
			func(i int) resource.Vector {
				v := func(m string) float64 { return s.values[m][i] }
				return resource.Vector{
					resource.CPU:     amount(min(v("cpu_mhz")*perMHz, mostCores*1000)),
					resource.Memory:  amount(v("mem_mb") * float64(resource.MiB)),
					resource.Disk:    amount((v("disk_read_kbps") + v("disk_write_kbps")) * float64(resource.KB)),
					resource.Network: amount((v("net_rx_kbps") + v("net_tx_kbps")) * float64(resource.KB)),
				}
			})
		if err != nil {
			return err
		}
		return job(j)
	})
}

// provisions reads the file of machines.
func (f *Bitbrains) provisions(in *input) (map[string]provision, error) {
	vms, err := open([]Source{f.VMs}, false, in.options, in.notes)
	if err != nil {
		return nil, err
	}
	defer vms.close()
	t, err := vms.table("vm", "cores", "cpu_capacity_mhz", "mem_provisioned_mb")
	if err != nil {
		return nil, err
	}
	all, seen := map[string]provision{}, map[string]int{}
	return all, t.rows(func(r *row) error {
		// Machines that were always off have empty cells.
		all[r.once("vm", seen, "")] = provision{r.numberOr("cores", 0, mostCores, 0),
			r.numberOr("cpu_capacity_mhz", 0, mostBytes, 0), r.numberOr("mem_provisioned_mb", 0, 1e9, 0)}
		return nil
	})
}

// GoogleVMs reads the Google trace of 2011: parts of its tables task_usage and task_events as they are published, or
// its jobs as virtual machines, lines of vm, metric and values, in percent. The capacity of a machine is not
// documented.
type GoogleVMs struct {
	Interval time.Duration   // between samples of virtual machines
	CPU      resource.Amount // CPU of a machine at 100 %
	Memory   resource.Amount // memory of a machine at 100 %

	jobs  map[string]*googleJob // of the published tables
	order []*googleJob
	last  float64 // the end of the tables, microseconds
}

// DefaultGoogleVMs returns the interval of the trace, and machines of a common size.
func DefaultGoogleVMs() *GoogleVMs {
	return &GoogleVMs{Interval: 300 * time.Second, CPU: 4 * resource.Core, Memory: 8 * resource.GiB}
}

// Name implements Format.
func (f *GoogleVMs) Name() string { return "google-vms" }

// Node implements Format.
func (f *GoogleVMs) Node() resource.Vector { return resource.Of(32*resource.Core, 128*resource.GiB) }

func (f *GoogleVMs) check() error {
	f.jobs, f.order, f.last = map[string]*googleJob{}, nil, 0
	if err := checkInterval(f.Interval); err != nil {
		return err
	}
	return checkTask(f.CPU, f.Memory)
}

var googleMetrics = []string{"cpu_pct", "mem_pct"}

func (f *GoogleVMs) read(in *input, job func(workload.Job) error) error {
	start, _ := in.in.Peek(4096)
	if columns := googleTable(string(start)); columns != nil {
		return f.published(in, columns)
	}
	return readSamples(in, googleMetrics, func(name string, s samples) error {
		over := 0
		j, err := vmJob(in, name, s, googleMetrics, f.Interval, resource.Of(f.CPU, f.Memory), func(i int) resource.Vector {
			if s.values["mem_pct"][i] > 100 {
				over++
			}
			of := func(m string, whole resource.Amount, most float64) resource.Amount {
				return amount(min(s.values[m][i]/100*float64(whole), most))
			}
			return resource.Of(of("cpu_pct", f.CPU, mostCores*1000), of("mem_pct", f.Memory, mostBytes))
		})
		if err != nil {
			return err
		}
		in.notes.add("samples use more memory than the machine is said to have, and stay so", over)
		return job(j)
	})
}
