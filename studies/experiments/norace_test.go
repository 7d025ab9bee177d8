//go:build !race

package experiments

// raced says that the race detector watches, which makes an experiment ten times slower.
const raced = false
