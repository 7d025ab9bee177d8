// Package profiler runs a real program at several memory sizes, each time in a control group of its own, and hands what
// was measured to package profile. Memory bounds count page cache too, so a program cannot borrow memory from the
// machine by way of its files; between runs the cache of its files is dropped, so that every run begins alike.
//
// What a run spills is what it wrote beyond the run that wrote least, as the kernel counts for the process and those it
// waited for (getrusage, blocks written): that is known in both versions of control groups.
package profiler
