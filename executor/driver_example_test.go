package executor_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"strconv"
	"sync"

	"github.com/bellows-rm/bellows/executor"
)

// serveSquares is what executors call that are attached to a squares: they connect to it, and square the numbers that
// it sends.
func serveSquares(ctx context.Context, where []byte) ([]byte, error) {
	to, _ := executor.AttachedTo(ctx)
	c, err := net.Dial("unix", string(where))
	if err != nil {
		return nil, err
	}
	defer c.Close()
	fmt.Fprintln(c, to.Attachment.Attachment)
	for lines := bufio.NewScanner(c); lines.Scan(); {
		n, err := strconv.Atoi(lines.Text())
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(c, n*n)
	}
	return nil, nil // The application has given the executor back, or is gone.
}

// squares is an application that starts its own tasks: it squares numbers on the executors that are attached to it.
type squares struct {
	app      *executor.Application
	function string // that executors call
	listen   net.Listener

	mu    sync.Mutex
	left  []int
	runs  int
	asked map[int64]bool
	gone  map[int64]context.CancelFunc // ends the connection of an attachment
	got   map[int]int                  // results
}

// run squares the numbers from 0 to n-1.
func (s *squares) run(ctx context.Context, n int) error {
	s.asked, s.gone, s.got = map[int64]bool{}, map[int64]context.CancelFunc{}, map[int]int{}
	for i := range n {
		s.left = append(s.left, i)
	}
	stage := s.app.NewStage(executor.Stage{Function: s.function})
	s.app.Demand(stage, n)
	go func() {
		for {
			c, err := s.listen.Accept()
			if err != nil {
				return
			}
			go s.use(c, stage)
		}
	}()
	for {
		changes, err := s.app.Changes(ctx)
		if err != nil {
			s.listen.Close()
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		s.mu.Lock()
		for _, c := range changes {
			switch number := c.Attachment.Attachment; c.What {
			case executor.AskedFor:
				s.asked[number] = true
			case executor.Ended:
				if end := s.gone[number]; end != nil {
					end()
				}
			}
		}
		s.mu.Unlock()
	}
}

// use sends tasks to an executor until it is asked for, or there are no more.
func (s *squares) use(c net.Conn, stage int) {
	defer c.Close()
	lines := bufio.NewScanner(c)
	lines.Scan()
	number, err := strconv.ParseInt(lines.Text(), 10, 64)
	if err != nil {
		return
	}
	defer s.app.GiveBack(number)
	ctx, end := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, func() { c.Close() })()
	s.mu.Lock()
	s.gone[number] = end
	s.mu.Unlock()
	for {
		n, ok := s.take(number)
		if !ok {
			return
		}
		fmt.Fprintln(c, n)
		said := lines.Scan()
		result, err := strconv.Atoi(lines.Text())
		s.end(n, result, said && err == nil && ctx.Err() == nil, stage)
	}
}

// take begins a task.
func (s *squares) take(attachment int64) (n int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[attachment] || len(s.left) == 0 {
		return 0, false
	}
	n, s.left = s.left[0], s.left[1:]
	s.runs++
	return n, true
}

// end takes the result of a task, or lets it run again.
func (s *squares) end(n, result int, ok bool, stage int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.runs--; ok {
		s.got[n] = result
	} else {
		s.left = append(s.left, n)
	}
	s.app.Demand(stage, len(s.left)+s.runs)
	if len(s.left)+s.runs == 0 {
		s.app.Close()
	}
}

// A program that starts its own tasks: it demands executors, and gives them back when it is asked for them.
func ExampleApplication_Changes() {
	ctx := context.Background()
	listen, err := net.Listen("unix", "/tmp/squares")
	if err != nil {
		log.Fatal(err)
	}
	a, err := executor.Enrol(ctx, executor.ApplicationConfig{Socket: os.Getenv("BELLOWS_SOCKET"), Pool: "squares",
		Attach: []byte("/tmp/squares"), Enrolment: executor.Enrolment{Drives: true}})
	if err != nil {
		log.Fatal(err)
	}
	s := squares{app: a, function: "squares", listen: listen}
	if err := s.run(ctx, 1000); err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.got[31])
}
