package server

import (
	"cmp"
	"context"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/core/resource"
	"github.com/bellows-rm/bellows/door/server/openapi"
	"github.com/bellows-rm/bellows/live/api"
	"github.com/bellows-rm/bellows/live/counts"
)

// metrics are what GET /metrics shows: what the driver has counted, what its nodes have, and the requests to this
// server. No label has a text that a user chose, so that the number of series is bounded.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	latency  *prometheus.HistogramVec
	errors   *prometheus.CounterVec
	refused  prometheus.Counter
}

func newMetrics(s *Server) *metrics {
	m := &metrics{registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bellows_api_requests_total",
			Help: "Requests that were answered, by operation and status."}, []string{"operation", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "bellows_api_request_duration_seconds",
			Help: "Time from a request to the end of its answer, by operation. An operation that waits for something " +
				"includes that.",
			Buckets: []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5, 10}}, []string{"operation"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "bellows_api_errors_total",
			Help: "Requests that were answered with an error, by its kind, which is code in the answer."}, []string{"reason"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{Name: "bellows_api_refused_total",
			Help: "Requests over the network that had no valid token."}),
	}
	m.registry.MustRegister(m.requests, m.latency, m.errors, m.refused, &collector{s}, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	for _, kind := range api.KindNames() {
		m.errors.WithLabelValues(kind) // A series from the beginning: that of an error that has not happened is 0.
	}
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4})
}

// unnamed has the patterns of the mux that are no operations of the document, with the names under which they are
// counted.
var unnamed = map[string]string{"GET /openapi.json": "openapi", "GET /metrics": "metrics"}

// counted counts the requests to a handler of the operations of a document.
func (m *metrics) counted(doc openapi.Document, next http.Handler) http.Handler {
	operations := map[string]string{} // by pattern
	for path, item := range doc.Paths {
		for method, o := range item {
			operations[strings.ToUpper(method)+" "+path] = o.OperationID
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begun, status := time.Now(), http.StatusInternalServerError // of a handler that panics
		answer, ok := w.(*answering)
		if !ok {
			answer = &answering{ResponseWriter: w}
		}
		defer func() {
			operation := cmp.Or(operations[r.Pattern], unnamed[r.Pattern], "none")
			m.requests.WithLabelValues(operation, strconv.Itoa(status)).Inc()
			m.latency.WithLabelValues(operation).Observe(time.Since(begun).Seconds())
			if answer.failed != 0 {
				m.errors.WithLabelValues(answer.failed.String()).Inc()
			}
		}()
		next.ServeHTTP(answer, r)
		status = cmp.Or(answer.status, http.StatusOK)
	})
}

// collector turns what the driver and the server know into metrics, when they are asked for. It describes none
// beforehand: the registry checks what it collects.
type collector struct{ server *Server }

// Describe implements prometheus.Collector.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

func described(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("bellows_"+name, help, labels, nil)
}

var (
	descStep      = described("engine_step_duration_seconds", "Time that a step of the engine took.")
	descEvents    = described("engine_events_total", "Events that the engine handled, by kind.", "kind")
	descDecisions = described("engine_decisions_total", "Decisions that the engine took, by kind.", "kind")
	descHangs     = described("engine_hangs_total",
		"How often the engine stopped answering for longer than a step may take.")
	descReady     = described("ready", "1 if the daemon serves, as GET /v1/ready says, else 0.")
	descJobs      = described("jobs", "Jobs that have not ended, by status.", "status")
	descJobsEnded = described("jobs_ended_total", "Jobs that have ended, by status.", "status")
	descTasks     = described("tasks", "Tasks of jobs that have not ended, by state.", "state")
	descRunsEnded = described("task_runs_ended_total", "Runs of tasks that have ended, by outcome.", "outcome")
	descHeld      = described("tasks_held",
		"Tasks that stand still now, by holder; a task with several holders counts for each.", "holder")
	descHolds    = described("task_holds_total", "How often a holder began to keep a task from running.", "holder")
	descHoldTime = described("task_held_seconds_total",
		"Time for which a holder kept tasks from running, added up.", "holder")
	descMemory        = described("memory_capacity_bytes", "Memory that all tasks together may be granted.")
	descMemoryGranted = described("memory_granted_bytes", "Memory that tasks are granted.")
	descMemoryOver    = described("memory_overgranted_bytes",
		"Memory that is granted beyond the capacity, because it comes back to resumed tasks.")
	descMemoryAsked = described("memory_asked_bytes",
		"Sum of the limits that were asked for the tasks that run; of some, none was.")
	descPastAsked = described("ended_memory_asked_bytes_total",
		"Memory that was asked for runs of tasks that have ended.")
	descPastReserved = described("ended_memory_granted_bytes_total",
		"Memory that was granted to runs of tasks that have ended.")
	descPastUsed = described("ended_memory_used_bytes_total",
		"The most memory that runs of tasks that have ended held, with what was in swap and without page cache.")
	descMemoryHeld = described("memory_held_bytes",
		"What containers hold: more than is granted if flex containers have grown.")
	descMemoryLeft = described("memory_left_bytes",
		"Memory with which tasks could start now: neither granted nor held, nor left over by tasks that have ended.")
	descMemoryUsed = described("memory_used_bytes", "Memory that containers use, with page cache.")
	descAnonymous  = described("memory_anonymous_bytes", "Memory that containers use, without page cache.")
	descSwapped    = described("memory_swapped_bytes", "Memory of containers that is in swap.")
	descCPU        = described("cpu_capacity_cores", "Cores that all tasks together may be granted.")
	descCPUGranted = described("cpu_granted_cores", "Cores that tasks are granted.")
	descCPUOver    = described("cpu_overgranted_cores",
		"Cores that are granted beyond the capacity, because tasks were resumed or resized.")
	descContainers    = described("containers", "Containers that are there.")
	descWrite         = described("store_write_duration_seconds", "Time that a write to the store took.")
	descWriteFailures = described("store_write_failures_total",
		"How often events could not be recorded; each attempt counts.")
	descRefused = described("quota_refusals_total",
		"Submissions that a quota refused, by what it limits, and whether it is of a user or a queue.", "of", "quota")
	descConnections = described("api_connections", "Connections to the socket.")
	descOfExecutors = described("api_executor_connections",
		"Connections to the socket that executors of pools have, which do not count among the others.")
	descTurnedAway = described("api_connections_refused_total",
		"Connections that were refused because their user, or their place of the network, has its share.", "door")
	descMost       = described("api_connections_limit", "Connections to the socket that there may be at a time.")
	descRemote     = described("api_network_connections", "Connections over the network.")
	descMostRemote = described("api_network_connections_limit",
		"Connections over the network that there may be at a time; 0 if the daemon does not listen there.")
	descBuild = described("build_info", "1, with the version of the daemon and of Go.", "version", "goversion")
)

// sink takes metrics.
type sink chan<- prometheus.Metric

func (s sink) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s sink) counter(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, value, labels...)
}

func (s sink) histogram(d *prometheus.Desc, h counts.Histogram) {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, count := range h.Counts {
		n += uint64(count)
		if i < len(counts.HistogramBounds) {
			buckets[counts.HistogramBounds[i].Seconds()] = n
		}
	}
	s <- prometheus.MustNewConstHistogram(d, n, h.Sum.Seconds(), buckets)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	s, m := sink(ch), c.server.driver.Metrics()
	s.histogram(descStep, m.Steps)
	s.histogram(descWrite, m.Writes)
	s.counter(descWriteFailures, float64(m.WriteFailures))
	s.counter(descHangs, float64(m.Hangs))
	for kind, n := range m.Events {
		if kind > 0 {
			s.counter(descEvents, float64(n), cluster.EventKind(kind).String())
		}
	}
	for kind, n := range m.Decisions {
		if kind > 0 {
			s.counter(descDecisions, float64(n), cluster.DecisionKind(kind).String())
		}
	}
	ending := int64(0) // jobs whose tasks are being killed
	for status, n := range m.Open {
		if status := cluster.JobStatus(status); status.Ended() {
			ending += n
		} else {
			s.gauge(descJobs, float64(n), status.String())
		}
	}
	s.gauge(descJobs, float64(ending), "ending")
	for status, n := range m.Jobs {
		if status := cluster.JobStatus(status); status.Ended() {
			s.counter(descJobsEnded, float64(n), status.String())
		}
	}
	for outcome, n := range m.Runs {
		if outcome > 0 {
			s.counter(descRunsEnded, float64(n), cluster.Outcome(outcome).String())
		}
	}
	for _, h := range m.Holds {
		s.gauge(descHeld, float64(h.Tasks), h.By.String())
		s.counter(descHolds, float64(h.Begun), h.By.String())
		s.counter(descHoldTime, h.Time.Seconds(), h.By.String())
	}
	for of, refused := range map[string][]int64{"user": m.RefusedOfUsers, "queue": m.RefusedOfQueues} {
		for kind, n := range refused {
			s.counter(descRefused, float64(n), of, cluster.QuotaKind(kind).String())
		}
	}
	s.gauge(descSwapped, float64(m.Swapped))
	c.machine(s)
	c.process(s)
}

// machine collects what the daemon's nodes have. A daemon that has stopped has none.
func (c *collector) machine(s sink) {
	status, err := c.server.driver.Status(context.Background())
	if err != nil {
		return
	}
	s.gauge(descTasks, float64(status.Pending), "pending")
	s.gauge(descTasks, float64(status.Running), "running")
	var sum api.Node
	var held int64
	for i := range status.Nodes {
		n := &status.Nodes[i]
		sum.Memory, sum.FreeMemory, sum.OverdrawnMemory = sum.Memory+n.Memory, sum.FreeMemory+n.FreeMemory,
			sum.OverdrawnMemory+n.OverdrawnMemory
		sum.LeftoverMemory, sum.LeftMemory = sum.LeftoverMemory+n.LeftoverMemory, sum.LeftMemory+n.LeftMemory
		held += n.Holds()
		sum.CPU, sum.FreeCPU, sum.OverdrawnCPU = sum.CPU+n.CPU, sum.FreeCPU+n.FreeCPU, sum.OverdrawnCPU+n.OverdrawnCPU
		sum.UsedMemory, sum.UsedAnonymous, sum.Containers = sum.UsedMemory+n.UsedMemory, sum.UsedAnonymous+n.UsedAnonymous,
			sum.Containers+n.Containers
	}
	cores := func(milli int64) float64 { return float64(milli) / float64(resource.Core) }
	s.gauge(descMemory, float64(sum.Memory))
	s.gauge(descMemoryGranted, float64(sum.Reserved()))
	s.gauge(descMemoryHeld, float64(held))
	s.gauge(descMemoryAsked, float64(status.Slack.Now.Asked))
	s.counter(descPastAsked, float64(status.Slack.Past.Asked))
	s.counter(descPastReserved, float64(status.Slack.Past.Reserved))
	s.counter(descPastUsed, float64(status.Slack.Past.Used))
	s.gauge(descMemoryLeft, float64(sum.LeftMemory))
	s.gauge(descMemoryOver, float64(sum.OverdrawnMemory))
	s.gauge(descMemoryUsed, float64(sum.UsedMemory))
	s.gauge(descAnonymous, float64(sum.UsedAnonymous))
	s.gauge(descCPU, cores(sum.CPU))
	s.gauge(descCPUGranted, cores(sum.CPU-sum.FreeCPU+sum.OverdrawnCPU))
	s.gauge(descCPUOver, cores(sum.OverdrawnCPU))
	s.gauge(descContainers, float64(sum.Containers))
}

// process collects what this server knows of itself.
func (c *collector) process(s sink) {
	ready := 1.0
	if c.server.driver.Ready() != nil {
		ready = 0
	}
	open, most := c.server.connections.count()
	s.gauge(descReady, ready)
	s.gauge(descConnections, float64(open))
	s.gauge(descOfExecutors, float64(c.server.connections.countExecutors()))
	s.counter(descTurnedAway, float64(c.server.connections.turnedAway.Load()), "socket")
	s.counter(descTurnedAway, float64(c.server.network.connections.turnedAway.Load()), "network")
	s.gauge(descMost, float64(most))
	remote, mostRemote := c.server.network.connections.count()
	if c.server.listens() == nil {
		mostRemote = 0
	}
	s.gauge(descRemote, float64(remote))
	s.gauge(descMostRemote, float64(mostRemote))
	s.gauge(descBuild, 1, c.server.daemon.Version, runtime.Version())
}
