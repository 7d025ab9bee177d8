package server

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/executor"
	"github.com/bellows-rm/bellows/live/api"
)

// fakePools are Pools that record what was put, and whose messages a handler answers, the same for all pools; by
// default stubAnswers.
type fakePools struct {
	mu      sync.Mutex
	all     map[api.PoolRef]api.PoolDetail
	by      []cluster.Credentials
	handler http.Handler
}

// ofAda has pool p of ada.
func ofAda() *fakePools {
	r := api.PoolRef{UID: 1000, User: "ada", Name: "p"}
	return &fakePools{all: map[api.PoolRef]api.PoolDetail{r: {PoolSummary: api.PoolSummary{PoolRef: r,
		Spec: api.PoolSpec{Name: "p", Env: []string{secret + "env"}, Command: []string{secret + "command"}}}}}}
}

func (f *fakePools) find(r api.PoolRef) (api.PoolDetail, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, ok := f.all[r]
	if !ok {
		return d, api.Errorf(api.NotFound, "pool %q of %s: there is none", r.Name, r.User)
	}
	return d, nil
}

func (f *fakePools) Put(_ context.Context, by cluster.Credentials, owner api.Owner, s api.PoolSpec) (created bool,
	err error) {
	r := api.PoolRef{UID: owner.UID, User: owner.Name, Name: s.Name}
	_, err = f.find(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all == nil {
		f.all = map[api.PoolRef]api.PoolDetail{}
	}
	f.by = append(f.by, by)
	d := f.all[r]
	d.PoolRef, d.Spec = r, s
	f.all[r] = d
	return err != nil, nil
}

func (f *fakePools) Delete(_ context.Context, by cluster.Credentials, r api.PoolRef) error {
	if _, err := f.find(r); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.by = append(f.by, by)
	delete(f.all, r)
	return nil
}

func (f *fakePools) List(context.Context) (all []api.PoolSummary, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range slices.SortedFunc(maps.Keys(f.all), func(a, b api.PoolRef) int {
		return strings.Compare(a.User+a.Name, b.User+b.Name)
	}) {
		all = append(all, f.all[r].PoolSummary)
	}
	return all, nil
}

func (f *fakePools) Detail(_ context.Context, r api.PoolRef) (api.PoolDetail, error) {
	return f.find(r)
}

func (f *fakePools) Handler(r api.PoolRef) (http.Handler, error) {
	if _, err := f.find(r); err != nil {
		return nil, err
	}
	if f.handler != nil {
		return f.handler, nil
	}
	return http.HandlerFunc(stubAnswers), nil
}

// stubAnswers answers every message with an answer of its type, and some bytes.
func stubAnswers(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	var answer any = executor.Lease{Lease: "lease", Length: 1}
	switch {
	case r.Method == "DELETE":
		answer = struct{}{}
	case strings.HasSuffix(r.URL.Path, "/next"):
		answer = executor.Work{Do: executor.DoRun, Task: executor.Held{Key: "key"}, Size: 4}
	case strings.HasSuffix(r.URL.Path, "/beat"):
		answer = executor.BeatAnswer{Cancel: true}
	case strings.HasSuffix(r.URL.Path, "/tasks"):
		answer = executor.Room{}
	case strings.HasSuffix(r.URL.Path, "/results"):
		answer = executor.Results{Results: []executor.Result{{Size: 4}}}
	}
	text, err := executor.Encode(answer, []byte("\x00\xff\n1"))
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", executor.MediaType)
	_, _ = w.Write(text)
}
