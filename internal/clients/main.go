// Command clients uses the client that was generated from the document of the API: a job, its result, and refusals.
// Package bellows is the generated client, which TestGeneratedClients puts here: see run.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"

	"clients/bellows"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: clients SOCKET")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := use(ctx, os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
	fmt.Println("the client in Go is usable")
}

func use(ctx context.Context, socket string) error {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	c, err := bellows.NewClientWithResponses("http://bellows",
		bellows.WithHTTPClient(&http.Client{Transport: &http.Transport{DialContext: dial}}))
	if err != nil {
		return err
	}
	job := bellows.Submission{Dir: new("/"), Env: &[]string{"PATH=/usr/bin:/bin"}, Stages: &[]bellows.StageSpec{{
		Tasks: 1, CpuMillicores: new(int64(10)), IdealMemoryBytes: new(int64(4 << 20)),
		Args: &[]string{"echo", "hello from Go"}}}}
	// A job is submitted once, though its request is sent twice.
	var ids []int64
	for range 2 {
		r, err := c.SubmitWithResponse(ctx, &bellows.SubmitParams{IdempotencyKey: new("go")}, job)
		if err != nil || r.JSON201 == nil {
			return fmt.Errorf("submit: %v %+v", err, r)
		}
		ids = append(ids, r.JSON201.Id)
	}
	if ids[0] != ids[1] {
		return fmt.Errorf("one request was carried out as jobs %d", ids)
	}
	ended, err := c.JobWithResponse(ctx, ids[0], &bellows.JobParams{Ended: new(true)})
	if err != nil || ended.JSON200 == nil || ended.JSON200.Status != "succeeded" ||
		(*ended.JSON200.Stages)[0].Succeeded != 1 {
		return fmt.Errorf("job: %v %+v", err, ended)
	}
	printed, err := c.OutputWithResponse(ctx, strconv.FormatInt(ids[0], 10)+".0.0", &bellows.OutputParams{})
	if err != nil || printed.StatusCode() != http.StatusOK || string(printed.Body) != "hello from Go\n" {
		return fmt.Errorf("output: %v %+v", err, printed)
	}

	(*job.Stages)[0].Tasks = 0
	refused, err := c.SubmitWithResponse(ctx, nil, job)
	if err != nil || refused.StatusCode() != http.StatusBadRequest || refused.ApplicationproblemJSONDefault == nil {
		return fmt.Errorf("submit no tasks: %v %+v", err, refused)
	}
	if p := refused.ApplicationproblemJSONDefault; p.Code != "invalid" || p.Status != 400 ||
		*p.Field != "stages[0].tasks" {
		return fmt.Errorf("submit no tasks: %+v", p)
	}
	return read(ctx, c)
}

// read reads everything that there is. An answer that is not as the document says is an error, or has no value.
func read(ctx context.Context, c *bellows.ClientWithResponses) error {
	jobs, e1 := c.JobsWithResponse(ctx, &bellows.JobsParams{All: new(true)})
	tasks, e2 := c.TasksWithResponse(ctx, &bellows.TasksParams{Usage: new(true)})
	pools, e3 := c.PoolsWithResponse(ctx, nil)
	profiles, e4 := c.ProfilesWithResponse(ctx, nil)
	apps, e5 := c.ApplicationsWithResponse(ctx, nil)
	tokens, e6 := c.TokensWithResponse(ctx)
	quotas, e7 := c.QuotasWithResponse(ctx, nil)
	status, e8 := c.StatusWithResponse(ctx)
	health, e9 := c.HealthWithResponse(ctx)
	for i, err := range []error{e1, e2, e3, e4, e5, e6, e7, e8, e9} {
		if err != nil {
			return fmt.Errorf("read %d: %w", i, err)
		}
	}
	for what, n := range map[string]int{"jobs": count(jobs.JSON200), "tasks": count(tasks.JSON200),
		"pools": count(pools.JSON200)} {
		if n == 0 {
			return fmt.Errorf("there are no %s", what)
		}
	}
	if profiles.JSON200 == nil || apps.JSON200 == nil || tokens.JSON200 == nil || quotas.JSON200 == nil ||
		status.JSON200 == nil || health.JSON200 == nil {
		return fmt.Errorf("%+v %+v %+v %+v %+v %+v", profiles, apps, tokens, quotas, status, health)
	}
	for _, j := range *jobs.JSON200 {
		r, err := c.ExplainWithResponse(ctx, j.Id)
		if err != nil || r.JSON200 == nil {
			return fmt.Errorf("explain: %v %+v", err, r)
		}
	}
	return watch(ctx, c)
}

func count[T any](list *[]T) int {
	if list == nil {
		return 0
	}
	return len(*list)
}

// watch reads the first event, which has all jobs that have not ended. Only the description of the operation says
// what an event has.
func watch(ctx context.Context, c *bellows.ClientWithResponses) error {
	r, err := c.ClientInterface.Watch(ctx, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	for lines := bufio.NewScanner(r.Body); lines.Scan(); {
		if data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: ")); ok {
			var u bellows.Update
			if err := json.Unmarshal(data, &u); err != nil || count(u.Jobs) == 0 {
				return fmt.Errorf("watch: %v: %s", err, data)
			}
			return nil
		}
	}
	return fmt.Errorf("watch: %s without an event", r.Status)
}
