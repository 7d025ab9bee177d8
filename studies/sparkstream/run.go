package sparkstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/bellows-rm/bellows/core/resource"
)

// Options are what is measured.
type Options struct {
	Applications int             // that run at once
	Executors    int             // of one core each
	Memory       resource.Amount // of the container of an executor
	Queries      int             // of each application
	Think        time.Duration   // mean time between the end of a query and the next
	Orders       int             // rows of the table of orders
	Rounds       int
	Bellows      string // the program
	Spark        string // folder of an installation of Spark
	Programs     string // folder with session.py and tpch.sql
	Dir, Out     string // for working files, and where every run is written to
	// Say gets the events, one line at a time; Show gets a line that changes all the time.
	Say, Show func(line string)
}

// Result is what was measured.
type Result struct {
	Applications int           `json:"applications"`
	Executors    int           `json:"executors"`
	Queries      int           `json:"queries"`
	Think        time.Duration `json:"think_ns"`
	Orders       int           `json:"orders"`
	Runs         []Run         `json:"runs"` // in the order in which they ran
}

// Run is one run of all streams under one contender. Times count from the beginning of the streams, when all
// applications have started and have run one query each.
type Run struct {
	Contender string    `json:"contender"`
	Round     int       `json:"round"` // from 1
	Took      float64   `json:"took_s"`
	Machine   machine   `json:"machine"`
	Queries   []Query   `json:"queries"`
	Starts    []float64 `json:"starts_s"` // see starts
}

// Query is a query in a Run.
type Query struct {
	Application int     `json:"application"`
	Number      int     `json:"number"` // in TPC-H
	Begun       float64 `json:"begun_s"`
	Took        float64 `json:"took_s"`
	Rows        string  `json:"rows"`
}

// study is a measurement in progress.
type study struct {
	Options
	work, tables string
	rows         map[int]string // of each query
	result       *Result
}

const queryCount = 22

// Measure runs the streams under every contender, round after round.
func Measure(ctx context.Context, o Options) (res *Result, err error) {
	s := &study{Options: o, rows: map[int]string{}, result: &Result{Applications: o.Applications, Executors: o.Executors,
		Queries: o.Queries, Think: o.Think, Orders: o.Orders}}
	if s.work, err = os.MkdirTemp(o.Dir, "stream"); err != nil { // The name of a socket is short.
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.work)) }()
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(o.Out, "runs.jsonl"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := s.makeTables(ctx); err != nil {
		return nil, err
	}
	for round := 1; round <= s.Rounds; round++ {
		for i := range contenders {
			c := &contenders[(i+round-1)%len(contenders)]
			s.Show(fmt.Sprintf("round %d of %d: %s", round, s.Rounds, c.Name))
			r, err := s.one(ctx, c, round)
			if err != nil {
				return nil, fmt.Errorf("round %d, %s: %w", round, c.Name, err)
			}
			s.result.Runs = append(s.result.Runs, *r)
			if err := json.NewEncoder(log).Encode(r); err != nil {
				return nil, err
			}
			s.Say(fmt.Sprintf("round %d: %-28s %s", round, c.Name, r.words()))
		}
	}
	return s.result, nil
}

// env is the environment of programs of Spark.
func (s *study) env() []string {
	gateway, _ := filepath.Glob(filepath.Join(s.Spark, "python/lib/py4j-*.zip"))
	return append(os.Environ(), "SPARK_HOME="+s.Spark, "SPARK_LOCAL_DIRS="+s.work, "SPARK_LOCAL_IP=127.0.0.1",
		"PYTHONPATH="+strings.Join(append(gateway, filepath.Dir(s.Spark)), ":"), "PYTHONDONTWRITEBYTECODE=1",
		"BELLOWS_STATE="+filepath.Join(s.work, "state"), "BELLOWS_SOCKET=")
}

// run runs a program to its end, and returns its standard output.
func (s *study) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	var said bytes.Buffer
	cmd.Env, cmd.Stderr = s.env(), &said
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%q: %w: %s%s", args, err, out, said.String())
	}
	return string(out), err
}

// makeTables writes the tables, and notes the rows of each query.
func (s *study) makeTables(ctx context.Context) error {
	s.Show("making the tables")
	s.tables = filepath.Join(s.work, "tables")
	if err := os.Mkdir(s.tables, 0o700); err != nil {
		return err
	}
	d, err := s.driver(ctx, "tables", "--driver-memory", "2g")
	if err != nil {
		return err
	}
	do := func(do string, arguments map[string]any) {
		if err == nil {
			_, err = d.ask(do, arguments)
		}
	}
	do("open", map[string]any{"master": "local[*]", "name": "tables", "conf": nil})
	do("make", map[string]any{"folder": s.tables, "orders": s.Orders})
	do("tables", map[string]any{"folder": s.tables})
	for n := 1; n <= queryCount && err == nil; n++ {
		s.Show(fmt.Sprintf("query %d on local[*]", n))
		s.rows[n], err = d.query(n)
	}
	do("close", nil)
	return errors.Join(err, d.close())
}

// one runs all streams once under a contender.
func (s *study) one(ctx context.Context, c *Contender, round int) (r *Run, err error) {
	to, stop, err := c.open(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	events := filepath.Join(s.work, "events")
	if err := os.RemoveAll(events); err != nil {
		return nil, err
	}
	if err := os.Mkdir(events, 0o700); err != nil {
		return nil, err
	}
	drivers := make([]*driver, s.Applications)
	var starting errgroup.Group
	for a := range drivers {
		starting.Go(func() (err error) {
			drivers[a], err = s.application(ctx, a, events, to)
			return err
		})
	}
	err = starting.Wait()
	defer func() {
		for _, d := range drivers {
			if d != nil {
				err = errors.Join(err, d.close())
			}
		}
	}()
	if err != nil {
		return nil, err
	}
	r = &Run{Contender: c.Name, Round: round}
	if err := s.streams(ctx, r, drivers); err != nil {
		return nil, err
	}
	for _, d := range drivers {
		if _, err := d.ask("close", nil); err != nil { // so that the log of events is whole
			return nil, err
		}
	}
	return r, s.check(r, events)
}

// application starts an application, which runs one query.
func (s *study) application(ctx context.Context, a int, events string, to target) (*driver, error) {
	name := "application-" + strconv.Itoa(a)
	d, err := s.driver(ctx, name, to.args...)
	if err != nil {
		return nil, err
	}
	conf := map[string]any{"spark.eventLog.enabled": true, "spark.eventLog.compress": false,
		"spark.eventLog.dir": "file://" + events}
	for key, value := range to.conf {
		conf[key] = value
	}
	if _, err := d.ask("open", map[string]any{"master": to.master, "name": name, "conf": conf}); err != nil {
		return d, err
	}
	if _, err := d.ask("tables", map[string]any{"folder": s.tables}); err != nil {
		return d, err
	}
	_, err = d.query(1)
	return d, err
}

// streams runs the streams of all applications at once. Which queries they have, and when, depends on the round alone.
func (s *study) streams(ctx context.Context, r *Run, drivers []*driver) error {
	before, err := readMachine()
	if err != nil {
		return err
	}
	queries := make([][]Query, len(drivers))
	begun := time.Now()
	var running errgroup.Group
	for a, d := range drivers {
		running.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(r.Round), uint64(a)))
			for range s.Queries {
				think := time.Duration(random.ExpFloat64() * float64(s.Think))
				q := Query{Application: a, Number: 1 + random.IntN(queryCount)}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(think):
				}
				at := time.Now()
				var err error
				if q.Rows, err = d.query(q.Number); err != nil {
					return err
				}
				q.Begun, q.Took = at.Sub(begun).Seconds(), time.Since(at).Seconds()
				queries[a] = append(queries[a], q)
			}
			return nil
		})
	}
	if err := running.Wait(); err != nil {
		return err
	}
	r.Took = time.Since(begun).Seconds()
	for _, all := range queries {
		r.Queries = append(r.Queries, all...)
	}
	after, err := readMachine()
	r.Machine = after.since(before)
	return err
}

// check compares the rows with those of local[*], and reads when the tasks of the queries began.
func (s *study) check(r *Run, events string) error {
	for _, q := range r.Queries {
		if q.Rows != s.rows[q.Number] {
			return fmt.Errorf("query %d has %s, and %s on local[*]", q.Number, q.Rows, s.rows[q.Number])
		}
	}
	var err error
	r.Starts, err = starts(events)
	return err
}
