package paging

import _ "embed" // the measurements are a file

//go:embed paging.json
var measured []byte

// Measured returns our measurements: merge, sort, hash and scan on one machine with a swap
// file (studies/measured.md). Ratios of paging to spilling, and between sizes, carry over to machines with a similar
// disk and processor.
//
// For the run time as a function of memory under paging use Curve(pattern) and PageSlowdown(share), which never
// extrapolates; Points has the raw repeats.
func Measured() Series {
	p, err := Read(measured)
	if err != nil {
		panic("paging.json: " + err.Error()) // a test reads it
	}
	return p
}
