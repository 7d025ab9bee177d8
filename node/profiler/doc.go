// Package profiler runs a real program at several memory sizes, each time in a control group of its own, and passes the
// measurements to package profile. Memory limits include page cache, so a program cannot borrow memory from the machine
// through its files; between runs the cache of its files is dropped, so that every run begins alike.
//
// The spill of a run is the bytes that it wrote beyond the run that wrote least, as the kernel counts for the process
// and the children that it waited for (getrusage, blocks written): this works with both versions of control groups.
package profiler
