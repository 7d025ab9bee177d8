package profile

import _ "embed" // the measurements are a file

//go:embed paging.json
var pagingJSON []byte

// MeasuredPaging returns the measurements that come with bellows: merge, sort, hash and scan on one machine with a swap
// file (studies/measured.md). Ratios of paging to spilling, and between sizes, carry over to machines with a similar
// disk and processor.
//
// For the run time as a function of memory under paging use Curve(pattern) and PageSlowdown(share), which never
// extrapolates; Points has the raw repeats.
func MeasuredPaging() Paging {
	p, err := ReadPaging(pagingJSON)
	if err != nil {
		panic("profile: paging.json: " + err.Error()) // a test reads it
	}
	return p
}
