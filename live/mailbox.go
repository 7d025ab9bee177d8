package live

// mailbox is how other goroutines reach the loop. Its methods may be called from any goroutine, except end.
type mailbox struct {
	calls chan func()   // run by the loop, between steps
	stop  chan struct{} // requests the end of the loop
	done  chan struct{} // closed by the loop
}

func newMailbox() mailbox {
	return mailbox{calls: make(chan func()), stop: make(chan struct{}), done: make(chan struct{})}
}

// to takes what the loop runs between steps.
func (m *mailbox) to() chan<- func() { return m.calls }

func (m *mailbox) received() <-chan func() { return m.calls }

// stopper takes a request to end the loop.
func (m *mailbox) stopper() chan<- struct{} { return m.stop }

func (m *mailbox) toEnd() <-chan struct{} { return m.stop }

// end says that the loop has ended.
func (m *mailbox) end() { close(m.done) }

// ended is closed when the loop has ended.
func (m *mailbox) ended() <-chan struct{} { return m.done }
