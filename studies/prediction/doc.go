// Package prediction compares how much memory methods reserve for the tasks of recorded workflows, and what they waste
// and fail by it. What follows was fixed before the first run on the data; what has changed since is in sizey.yaml.
//
// # Data
//
// Tasks of six workflows of Nextflow, as Sizey's authors recorded them: for each its process, request, peak of
// resident memory, bytes read (which the authors take for the input, though it is known only afterwards), start and
// run time. A task counts if it completed and has a request, a peak and a run time above 0. There is one peak for each
// task and no curve over time.
//
// # Replay
//
// Tasks start when they were recorded to start. A method knows of a process what ended before: at equal times, ends
// come before starts, and otherwise the order is that of the file. A process of which a method knows nothing has its
// request reserved. No method reserves more than the request, which is known to suffice; their authors do not limit
// them, and so the limit can only help them. Each process has a state of its own, and nothing is known at the begin of
// a workflow.
//
// An attempt fails if less than the peak is reserved. The next attempt follows at once, with what the method reserves
// then, and its end is later by what the failed ones took. When a task fails is not recorded. Headline: the peak is
// there from the first second, so that an attempt fails after a second. Beside it: after half of the run time, and
// at its end, as Sizey's authors count.
//
// # Metric
//
// Wastage, as Sizey's authors have it, in GB·h (1e9 bytes): of an attempt that succeeds, what is reserved above the
// peak times the run time; of one that fails, all that was reserved until it failed. Failures are attempts that failed.
// The best baseline of a workflow is the one that wastes least in it; the workflow's own requests are one of them.
//
// # Methods
//
//   - requests: what the workflow asked for.
//   - Witt percentile (C. Witt and others, HPCS 2019): the 95th percentile of the peaks; then twice as much.
//   - Witt linear: least squares on the input, plus the deviation of its relative errors; then twice as much.
//   - Tovar (B. Tovar and others, TPDS 2018): the peak for which the expected wastage is least; then the largest peak,
//     then 128 GB.
//   - Sizey (J. Bader and others, CLUSTER 2024): see sizey.go for what is as in the authors' code.
//   - Autopilot (K. Rzadca and others, EuroSys 2020): the 98th percentile of a histogram with buckets of 5 % and a half
//     life of 48 h, plus 15 %; then 1.2 times as much, at least 100 MiB more, as in the vertical autoscaler of
//     Kubernetes, which follows it.
//   - bellows: profile.History.Reserve with the process as application and the bytes read as input, and
//     cluster.Reservation.After for what follows an attempt that failed. All constants are those of package profile.
//
// Left out: KS+ and k-Segments, which need curves of memory over time that the data does not have; Witt's low-wastage
// regression, which a general optimiser fits; Ponder.
//
// # Two readings of growth
//
// bellows puts no limit at what it reserves: a task that outgrows its reservation grows up to its request while the
// node has room. The data does not say whether it has. So each reading is computed for itself:
//
//   - growth fails: an attempt that outgrows its reservation fails, as under the other methods, and is a shortfall;
//   - growth is free: it has what it needs from then on, wastes nothing, and does not fail.
//
// With free growth alone, whoever reserves nothing wastes nothing. So what was grown is counted, too: tasks, and GB·h
// beyond what was reserved, that a node had to have at hand. Two rows more show what the reading itself gives: bellows
// when it starts unknown processes with 64 MiB and not with their request, and a method that learns nothing and starts
// every task with 64 MiB.
package prediction
