package spark

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/bellows-rm/bellows/executor"
)

// Command is the name of the command that runs the executor of a pool.
const Command = "spark-executor"

// Environment variables by which bellows tells a program how large its container is.
const (
	memoryVariable = "BELLOWS_MEMORY_BYTES"
	cpuVariable    = "BELLOWS_CPU_MILLICORES"
	// mostVariable is of FLEX containers alone: how large they may become. The heap of a JVM cannot grow with them.
	mostVariable = "BELLOWS_MAX_MEMORY_BYTES"
)

// Run is an executor of a pool of Spark, which bellows has started, until the pool ends it or ctx ends: a launcher that
// speaks with the pool, and one JVM. The launcher keeps the lease while the JVM collects garbage, and starts another
// one when it dies or has grown. home is the folder of the Spark. What applications print goes to out and said.
func Run(ctx context.Context, home string, out, said io.Writer) error {
	j, err := prepare(ctx, home, said)
	if err != nil {
		return err
	}
	defer j.scratch.end()
	j.out, j.err = out, said
	l := newLauncher()
	e, err := executor.FromEnvironment(map[string]executor.Function{Function: l.function})
	if err != nil {
		return err
	}
	e.Memory, e.Language = j.group.anonymous, Language
	l.begin, l.forget, l.kills, l.log = j.begin, e.Forget, j.group.kills, said
	var trained int64 // memory of the container when its first JVM was trained, bytes
	l.unused = func() int64 {
		limit, _ := mostMemory()
		return limit - j.group.anonymous()
	}
	l.room = func() bool { return trained > 0 && l.unused() >= trained+trained/4 }
	return keep(ctx, l, func(ctx context.Context) error {
		trained = j.group.anonymous()
		return e.Run(ctx)
	})
}

// function is the function of attachments.
func (l *launcher) function(ctx context.Context, payload []byte) ([]byte, error) {
	to, attached := executor.AttachedTo(ctx)
	if !attached {
		return nil, errors.New("executors of Spark run no tasks of bellows: they serve drivers of Spark")
	}
	return nil, l.serve(to, payload)
}

// keep runs a launcher, and run as soon as and as long as its JVMs are ready. It ends with either of them.
func keep(ctx context.Context, l *launcher, run func(context.Context) error) (err error) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	go l.run(ctx)
	select {
	case <-l.ready:
		running, stop := context.WithCancel(ctx)
		go func() {
			<-l.ended
			stop()
		}()
		err = run(running)
	case <-l.ended:
	}
	end()
	<-l.ended
	switch {
	case l.failed != nil:
		return l.failed
	case errors.Is(err, context.Canceled):
		return nil
	}
	return err
}

// prepare finds and makes all that the JVMs of an executor need.
func prepare(ctx context.Context, home string, said io.Writer) (*jvms, error) {
	memory, err := mostMemory()
	if err != nil {
		return nil, err
	}
	cpu, err := number(cpuVariable)
	if err != nil {
		return nil, err
	}
	j := &jvms{cores: int(max(1, cpu/1000)), group: ownGroup()}
	if j.heap, err = Heap(memory); err != nil {
		return nil, err
	}
	if j.spark, err = Find(ctx, home); err != nil {
		return nil, err
	}
	if j.java, err = FindJava(ctx); err != nil {
		return nil, err
	}
	slow := func() { fmt.Fprintf(said, "bellows: compiling the connector for Spark %s\n", j.spark.Spark) }
	if j.compiled, err = Compile(ctx, j.spark, j.java, slow); err != nil {
		return nil, err
	}
	j.scratch, err = newScratch()
	return j, err
}

// mostMemory is how much memory the container may have, bytes.
func mostMemory() (int64, error) {
	if os.Getenv(mostVariable) != "" {
		return number(mostVariable)
	}
	return number(memoryVariable)
}

// number returns the number in an environment variable.
func number(variable string) (int64, error) {
	n, err := strconv.ParseInt(os.Getenv(variable), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s must be set to a number: a pool of bellows starts this program", variable)
	}
	return n, nil
}
