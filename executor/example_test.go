package executor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/bellows-rm/bellows/executor"
)

// A program of an executor in Go: its functions.
func ExampleMain() {
	square := func(_ context.Context, arguments []byte) ([]byte, error) {
		var x float64
		if err := json.Unmarshal(arguments, &x); err != nil {
			return nil, err
		}
		return json.Marshal(x * x)
	}
	executor.Main(map[string]executor.Function{"square": square})
}

// A program that submits tasks and collects their results.
func ExampleEnrol() {
	ctx := context.Background()
	a, err := executor.Enrol(ctx, executor.ApplicationConfig{Socket: os.Getenv("BELLOWS_SOCKET"), Pool: "stats"})
	if err != nil {
		log.Fatal(err)
	}
	stage := a.NewStage(executor.Stage{Function: "square"})
	go func() {
		for i := range 1000 {
			if err := a.Grow(ctx, stage, fmt.Append(nil, i)); err != nil {
				log.Fatal(err)
			}
		}
		a.Close()
	}()
	for {
		outcomes, err := a.Collect(ctx)
		if err == io.EOF {
			return
		}
		if err != nil {
			log.Fatal(err)
		}
		for _, o := range outcomes {
			fmt.Println(o.Task, o.Failed, o.Error, string(o.Payload))
		}
	}
}
