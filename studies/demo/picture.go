package demo

import (
	"time"

	"github.com/bellows-rm/bellows/studies/chart"
)

// Picture is a picture of a result.
type Picture struct {
	Name string // of its file, without an ending
	chart.Picture
}

// sinceFirst is the label of the time axis.
const sinceFirst = "seconds since the first job was submitted"

// steps returns a step function with its values at the given times.
func steps(times []time.Duration, of func(at time.Duration) float64) (x, y []float64) {
	for _, at := range times {
		x, y = append(x, at.Seconds()), append(y, of(at))
	}
	return x, y
}
