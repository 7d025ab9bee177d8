package importer

import (
	"math"
	"path"
	"time"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/core/timeline"
	"github.com/bellows-rm/bellows/format/workload"
)

// vmSample is what a machine had and used from a time on.
type vmSample struct {
	at          float64 // seconds
	provisioned resource.Vector
	used        resource.Vector
}

// published reads a file of the trace as it is published: the samples of one machine, which has the name of the file.
func (f *Bitbrains) published(in *input, job func(workload.Job) error) error {
	t, err := in.separated(";", "Timestamp [ms]", "CPU cores", "CPU capacity provisioned [MHZ]", "CPU usage [MHZ]",
		"Memory capacity provisioned [KB]", "Memory usage [KB]", "Disk read throughput [KB/s]",
		"Disk write throughput [KB/s]",
		"Network received throughput [KB/s]", "Network transmitted throughput [KB/s]")
	if err != nil {
		return err
	}
	var samples []vmSample
	err = t.rows(func(r *row) error {
		s := bitbrainsSample(r)
		switch n := len(samples); {
		case r.err != nil:
		case n > 0 && s.at <= samples[n-1].at:
			in.notes.add("samples are not later than the sample before them and were left out", 1)
		case n > 0 && s.at-samples[0].at > mostSeconds-f.Interval.Seconds():
			r.fail("Timestamp [ms]", "must be less than %d s after the first", int64(mostSeconds))
		case n == mostSamples:
			return in.fault("samples: must be at most %d", mostSamples)
		default:
			samples = append(samples, s)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(samples) == 0 {
		in.notes.add("machines have no sample and were left out", 1)
		return nil
	}
	var provisioned resource.Vector
	phases := make([]cluster.Phase, len(samples))
	for i, s := range samples {
		provisioned = provisioned.Max(s.provisioned)
		lasting := f.Interval
		if i+1 < len(samples) {
			lasting = seconds(samples[i+1].at - s.at)
			in.notes.add("missing samples were replaced by the previous sample",
				int(math.Round(lasting.Seconds()/f.Interval.Seconds()))-1)
		}
		phases[i] = cluster.Phase{Duration: max(lasting, time.Millisecond), Demand: s.used}
	}
	if provisioned[resource.CPU] == 0 || provisioned[resource.Memory] == 0 {
		in.notes.add(vmsOff, 1)
		return nil
	}
	j := machineJob(path.Base(in.fileName()), provisioned, phases)
	j.Submitted = timeline.Time(seconds(samples[0].at))
	return job(j)
}

// bitbrainsSample reads a line.
func bitbrainsSample(r *row) vmSample {
	v := func(name string) float64 { return r.number(name, 0, mostBytes) }
	s := vmSample{at: r.number("Timestamp [ms]", 0, mostMilliseconds)}
	if s.at > 1e11 {
		s.at /= 1000 // the files count seconds, whatever the head says
	}
	cores, mhz := min(v("CPU cores"), mostCores), v("CPU capacity provisioned [MHZ]")
	busy := 0.0
	if mhz > 0 {
		busy = min(v("CPU usage [MHZ]")/mhz*cores, mostCores)
	}
	kib := func(name string) resource.Amount { return amount(v(name) * float64(resource.KiB)) }
	rate := func(in, out string) resource.Amount { return amount((v(in) + v(out)) * float64(resource.KB)) }
	s.provisioned = resource.Of(amount(cores*float64(resource.Core)), kib("Memory capacity provisioned [KB]"))
	s.used = resource.Of(amount(busy*float64(resource.Core)), kib("Memory usage [KB]")).
		With(resource.Disk, rate("Disk read throughput [KB/s]", "Disk write throughput [KB/s]")).
		With(resource.Network, rate("Network received throughput [KB/s]", "Network transmitted throughput [KB/s]"))
	return s
}
