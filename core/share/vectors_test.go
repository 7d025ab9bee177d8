package share

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/bellows-rm/bellows/internal/testfile"
)

// vector is a division among the stages of an application, as other implementations of the rule read it.
type vector struct {
	Executors int           `json:"executors"`
	Stages    []vectorStage `json:"stages"`
	Granted   []int         `json:"granted"`
}

type vectorStage struct {
	Ready bool  `json:"ready"`
	Left  int   `json:"left"`
	Held  int   `json:"held"`
	Next  []int `json:"next"`
}

// drawVector makes a division. Stages are in any order, not parents first.
func drawVector(random *rand.Rand, n int) vector {
	v := vector{Executors: random.IntN([]int{8, 40, 1000}[random.IntN(3)]), Stages: make([]vectorStage, n)}
	order := random.Perm(n)
	for i, at := range order {
		s := &v.Stages[at]
		*s = vectorStage{random.IntN(3) > 0, random.IntN([]int{2, 8, 100, 100_000}[random.IntN(4)]), 0, []int{}}
		if s.Ready {
			s.Held = random.IntN(5)
		}
		for _, next := range order[i+1:] {
			if random.IntN(3) == 0 {
				s.Next = append(s.Next, next)
			}
		}
	}
	if random.IntN(4) == 0 { // Equal stages are told apart by what they hold, and by their place.
		for i := range v.Stages {
			v.Stages[i].Ready, v.Stages[i].Left, v.Stages[i].Next = true, v.Stages[0].Left+1, []int{}
		}
	}
	return v
}

// What Stages divides is written to a file of test vectors. The application scheduler of the connector to Spark, which
// is no Go, must divide the same: its tests read that file.
func TestVectors(t *testing.T) {
	random := rand.New(rand.NewPCG(8, 3))
	vectors := []vector{{Stages: []vectorStage{}}}
	for n := range 120 {
		vectors = append(vectors, drawVector(random, 1+n/10))
	}
	for n := range 10 { // The rests of shares are equal to 32 bits, or nearly.
		near := vector{Executors: 1 + n%2, Stages: make([]vectorStage, 8)}
		for i := range near.Stages {
			near.Stages[i] = vectorStage{true, MaxWeight - random.IntN(4), 0, []int{}}
		}
		vectors = append(vectors, near)
	}
	// What a stage of this one writes is read by all that follow, so that weights reach their limit.
	deep := vector{Executors: 50, Stages: make([]vectorStage, 40)}
	for i := range deep.Stages {
		s := &deep.Stages[i]
		*s = vectorStage{i%4 == 0, 100 - i, i % 2, []int{}}
		for next := i + 1; next < len(deep.Stages); next++ {
			s.Next = append(s.Next, next)
		}
	}
	vectors = append(vectors, deep)
	var text bytes.Buffer
	var s Stages
	for i := range vectors {
		v := &vectors[i]
		stages := make([]Stage, len(v.Stages))
		for n, st := range v.Stages {
			stages[n] = Stage(st)
		}
		v.Granted = s.Divide(v.Executors, stages, SumOfPaths, make([]int, len(stages)))
		line, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		text.Write(append(line, '\n'))
	}
	testfile.Golden(t, "stages.jsonl", text.Bytes())
}
