package sparkstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/node/cgroup"
)

// Contender is what gives applications their executors.
type Contender struct {
	Name string
	open func(context.Context, *study) (target, func() error, error)
}

// target is where applications run.
type target struct {
	master string
	args   []string // of spark-submit
	conf   map[string]any
}

const (
	ours    = "bellows"
	dynamic = "dynamic allocation"
)

// contenders are compared, bellows first. Spark's own defaults keep an idle executor for a minute; a second is the
// least that it takes.
var contenders = []Contender{
	{ours, ofPool},
	{dynamic, standalone(func(*study) map[string]any { return allocation(nil) })},
	{"dynamic allocation, idle 1 s", standalone(func(*study) map[string]any {
		return allocation(map[string]any{"spark.dynamicAllocation.executorIdleTimeout": "1s",
			"spark.dynamicAllocation.shuffleTracking.timeout": "1s"})
	})},
	{"cores split", standalone(func(s *study) map[string]any {
		return map[string]any{"spark.cores.max": max(1, s.Executors/s.Applications)}
	})},
}

// allocation is the configuration of dynamic allocation.
func allocation(more map[string]any) map[string]any {
	conf := map[string]any{"spark.dynamicAllocation.enabled": true,
		"spark.dynamicAllocation.shuffleTracking.enabled": true}
	for key, value := range more {
		conf[key] = value
	}
	return conf
}

// overhead is what an executor's container holds beside its heap, as the pool computes it.
const overhead = 384 * resource.MiB

// heap is the heap of an executor.
func (s *study) heap() resource.Amount { return s.Memory - max(s.Memory/10, overhead) }

var jarOf = regexp.MustCompile(`--jars (\S+)`)

// ofPool makes a daemon with a pool of warm executors.
func ofPool(ctx context.Context, s *study) (to target, stop func() error, err error) {
	memory := resource.Amount(s.Executors)*s.Memory + 256*resource.MiB
	if _, err := s.run(ctx, s.Bellows, "up", "--detach", "--memory", resource.FormatMemoryExact(memory), "--cpus",
		strconv.Itoa(s.Executors)); err != nil {
		return to, nil, err
	}
	stop = func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, err := s.run(ctx, s.Bellows, "down", "--force")
		return err
	}
	n := strconv.Itoa(s.Executors)
	line, err := s.run(ctx, s.Bellows, "pool", "create", "sp", "--spark", s.Spark, "--min", n, "--max", n, "--memory",
		resource.FormatMemoryExact(s.Memory))
	if err == nil {
		if jar := jarOf.FindStringSubmatch(line); jar != nil {
			return target{"spark-bellows://sp", []string{"--jars", jar[1]}, nil}, stop, nil
		}
		err = fmt.Errorf("pool create prints no jar: %s", line)
	}
	return to, nil, errors.Join(err, stop())
}

// standalone starts a master and a worker of Spark, with a worker in a control group of its own, as executors of a pool
// have.
func standalone(conf func(*study) map[string]any) func(context.Context, *study) (target, func() error, error) {
	return func(ctx context.Context, s *study) (to target, stop func() error, err error) {
		host, err := cgroup.Discover("")
		if err != nil {
			return to, nil, err
		}
		root, err := host.Root(fmt.Sprintf("sparkstream-%d", os.Getpid()), cgroup.CPU, cgroup.Memory)
		if err != nil {
			return to, nil, err
		}
		stop = func() error {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
			defer cancel()
			return root.Remove(ctx)
		}
		group, err := root.Create("worker")
		if err != nil {
			return to, nil, errors.Join(err, stop())
		}
		port, err := freePort()
		if err != nil {
			return to, nil, errors.Join(err, stop())
		}
		master := "spark://127.0.0.1:" + strconv.Itoa(port)
		class := func(name string, args ...string) error {
			cmd := group.Command(ctx, append([]string{filepath.Join(s.Spark, "bin/spark-class"),
				"org.apache.spark.deploy." + name, "--host", "127.0.0.1", "--webui-port", "0"}, args...)...)
			cmd.Env = append(s.env(), "SPARK_WORKER_DIR="+filepath.Join(s.work, "worker"))
			return startLogged(cmd, filepath.Join(s.work, name+".log"))
		}
		err = class("master.Master", "--port", strconv.Itoa(port))
		if err == nil {
			err = awaitPort(ctx, port)
		}
		if err == nil {
			err = class("worker.Worker", "--cores", strconv.Itoa(s.Executors), "--memory",
				megabytes(resource.Amount(s.Executors)*s.Memory), master)
		}
		if err != nil {
			return to, nil, errors.Join(err, stop())
		}
		all := conf(s)
		all["spark.executor.cores"], all["spark.executor.memory"] = 1, megabytes(s.heap())
		return target{master, nil, all}, stop, nil
	}
}

func megabytes(n resource.Amount) string { return fmt.Sprintf("%dm", n/resource.MiB) }

// startLogged starts a program that the removal of its group ends.
func startLogged(cmd *exec.Cmd, path string) error {
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }()
	return nil
}

// freePort returns a port of the loopback that is free.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(port))
}

// awaitPort waits until a program listens.
func awaitPort(ctx context.Context, port int) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		var d net.Dialer
		c, err := d.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("port %d: %w", port, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
