package agent

import (
	"sync"

	"github.com/bellows-rm/bellows/core/cluster"
)

// queue is a channel that accepts any number of events without making the sender wait.
type queue struct {
	out  chan cluster.Event
	done chan struct{}
	once sync.Once

	mu      sync.Mutex
	waiting []cluster.Event
	more    chan struct{} // contains a token while waiting may not be empty
}

func newQueue() *queue {
	q := &queue{out: make(chan cluster.Event), done: make(chan struct{}), more: make(chan struct{}, 1)}
	go q.pump()
	return q
}

func (q *queue) put(events ...cluster.Event) {
	q.mu.Lock()
	q.waiting = append(q.waiting, events...)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

func (q *queue) pump() {
	for {
		select {
		case <-q.more:
		case <-q.done:
			return
		}
		q.mu.Lock()
		events := q.waiting
		q.waiting = nil
		q.mu.Unlock()
		for _, e := range events {
			select {
			case q.out <- e:
			case <-q.done:
				return
			}
		}
	}
}

func (q *queue) close() { q.once.Do(func() { close(q.done) }) }
