package live

// signal has an element if there is something to do that its receiver has not begun. It is made by newSignal.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// raise says that there is something to do. It does not block: what the receiver has not begun includes it.
func (s signal) raise() {
	select {
	case s <- struct{}{}:
	default:
	}
}
