// Package cgroup bounds, freezes, kills and measures groups of processes through Linux control groups: version 1 (one
// hierarchy per controller), version 2 (one hierarchy) and hybrid hosts that mount both. It knows nothing of jobs.
//
// What a machine has is discovered, never assumed:
//
//	host, err := cgroup.Discover("")                      // which hierarchy serves what, and where we are in it
//	root, err := host.Root("main", cgroup.Memory)         // the subtree that is ours, or one sentence why not
//	g, err := root.Create("c1")                           // one group, in every hierarchy at once
//	err = g.Apply(ctx, cgroup.Limits{MemoryBytes: cgroup.At(64 << 20)})
//	reading, err := g.Read()                              // values that are missing say so
//	err = g.Remove(ctx)                                   // kills what is left inside
//
// The step from wanted limits to (file, content) pairs is a pure function, Plan. Apply reads the state that Plan needs,
// calls Plan and writes. Every parser is pure, too, and looks values up by key, never by line number. A value that the
// kernel does not report is missing (Maybe), which differs from zero.
//
// A path is not an identity: after a group is removed, another group may get its path. Identity distinguishes them.
//
// Two libraries are used: github.com/moby/sys/mountinfo parses mountinfo, escapes and optional fields included, from
// any reader, so that tests can hand it a file; golang.org/x/sys/unix has the system calls. The rest is a few dozen
// lines here: libraries for whole container runtimes neither reclaim memory on request, nor distinguish a missing
// reading from zero, nor give up a slow write of a limit.
package cgroup
