package leveling

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

const (
	// firstWidth is how many states of an interval are kept in the first pass, widening by how much more in each further
	// pass.
	firstWidth, widening = 4, 8
	// jointPass is the pass from which on there is a joint bound, which takes a millisecond or some to work out; in the
	// next pass its prices are better, for some more milliseconds.
	jointPass = 3
	// mostOthers is with how many sets beyond those of the joint bound better prices pay.
	mostOthers = 2
)

// key distinguishes states of an interval: per set, in how many intervals it stood still, or that it has ended, and
// whether it stands still now. Problems whose states do not fit are not searched.
type key [2]uint64

// state is the best known way to get to where its key says.
type state struct {
	key  key
	paid int64 // what it cost to get here
	low  int64 // no schedule that goes on from here costs less
	from int32 // the index of the state of the interval before
	next int32 // of the states of a layer that differ only in what stands still, the next one; -1 for none
	runs uint64
}

// field is where a set is in a key.
type field struct {
	word  int
	shift uint
	mask  uint64 // of idle, above the bit of still
	ended uint64 // of idle
}

// search is a search forward over the intervals. A state's value is bounded by the cheapest ways on of all sets, each
// alone at the prices of the bound.
type search struct {
	*program
	fields []field
	order  []int   // sets by falling work: large ones decide first what is over-allocated
	tail   []int64 // of all intervals from one on: prices times what is fixed beyond the capacity
	left   int     // states that may still be looked at

	layers [][]state     // by intervals that are over
	stills key           // the bits of all sets that say whether they stand still
	index  map[key]int32 // the first state of a layer by its key without these bits
	width  int
	limit  int64 // states with a low above it are dropped
	cut    int64 // the least low of a dropped state that could be better
	now    choices
	joint  *joint // nil until it pays
}

// choices are what the sets may do in one interval, starting from one state.
type choices struct {
	from      int32
	time      int
	of        []choice
	low, mid  []int64 // of all choices from one on, the least cost if demand costs nothing, or its price
	high      []int64 // or if a unit costs one
	price     int64
	joint     int   // from how many choices on the sets of the joint bound have decided
	following int64 // tail of the next interval
}

// choice is what one set may do.
type choice struct {
	set          int
	demand       int64
	run, wait    int64 // the least cost of all that is to come, without demand now; forbidden
	pause        int64 // the part of wait that is paid now
	runTo, waits key
}

// search improves the best schedule and the bound, looking at up to budget states, and returns at how many it looked.
func (g *program) search(budget int) (states int) {
	s := search{program: g, left: budget}
	if !s.layout() {
		return 0
	}
	s.tails()
	s.layers = make([][]state, len(g.excess)+1)
	s.width = firstWidth
	for passes := 1; g.bound < g.value && s.left > 0; passes++ {
		switch {
		case passes == jointPass:
			s.look()
		case passes == jointPass+1 && s.joint != nil:
			s.lookBetter()
		}
		s.pass()
		s.width *= widening
	}
	return budget - max(0, s.left)
}

// look begins to use a joint bound. Its sets decide first.
func (s *search) look() {
	if s.joint = s.newJoint(s.order); s.joint == nil {
		return
	}
	s.joint.finish(s.program, s.tail)
	s.left -= s.joint.done()
	rest := slices.DeleteFunc(s.order, func(j int) bool { return slices.Contains(s.joint.sets, j) })
	s.order = append(slices.Clone(s.joint.sets), rest...)
}

// lookBetter moves the prices to where the joint bound is higher, for at most half of the states that are left.
func (s *search) lookBetter() {
	if len(s.sets) > len(s.joint.sets)+mostOthers || s.left/2 < 3*s.joint.once {
		return
	}
	s.joint.ascend(s.program, s.left/2)
	s.tails()
	s.joint.finish(s.program, s.tail)
	s.left -= s.joint.done()
}

// tails works out the tail at the prices of the program.
func (s *search) tails() {
	s.tail = make([]int64, len(s.excess)+1)
	for t := len(s.excess) - 1; t >= 0; t-- {
		s.tail[t] = s.tail[t+1] + s.prices[t]*s.excess[t]
	}
}

// layout places the sets in keys. ok is false if they do not fit.
func (s *search) layout() (ok bool) {
	var used [2]int
	work := make([]int64, len(s.sets))
	for j := range s.sets {
		w := &s.sets[j]
		width := bits.Len(uint(w.float+1)) + 1
		word := 0
		if used[0]+width > 64 {
			word = 1
		}
		if used[word]+width > 64 {
			return false
		}
		s.fields = append(s.fields, field{word, uint(used[word]), 1<<(width-1) - 1, uint64(w.float + 1)})
		s.fields[j].set(&s.stills, 0, 1)
		used[word] += width
		s.order = append(s.order, j)
		for _, r := range w.demand {
			work[j] += r
		}
	}
	slices.SortStableFunc(s.order, func(a, b int) int { return cmp.Compare(work[b], work[a]) })
	return len(s.sets) <= 64
}

// pass goes over all intervals with up to width states each.
func (s *search) pass() {
	s.cut = math.MaxInt64
	var start key
	for j := range s.sets {
		if s.sets[j].still {
			s.fields[j].set(&start, 0, 1)
		}
	}
	s.layers[0] = append(s.layers[0][:0], state{key: start, low: s.bound * one})
	for t := range s.excess {
		s.enter(t)
		layer := s.layers[t]
		for i := range layer {
			if s.left <= 0 {
				for k := range layer[i:] {
					s.drop(layer[i+k].low)
				}
				break
			}
			s.expand(t, int32(i))
		}
		s.narrowTo(t+1, s.width)
	}
	if last := s.layers[len(s.excess)]; len(last) > 0 {
		s.backtrack()
	}
	s.bound = max(s.bound, min(s.value, ceil(min(s.cut, forbidden))))
}

// set writes a set's part of a key.
func (f *field) set(k *key, idle, still uint64) { k[f.word] |= (idle<<1 | still) << f.shift }

// drop remembers that a state was dropped which could lead to a better schedule.
func (s *search) drop(low int64) { s.cut = min(s.cut, low) }

// enter prepares for states of the interval after t.
func (s *search) enter(t int) {
	s.layers[t+1] = s.layers[t+1][:0]
	if s.index == nil {
		s.index = map[key]int32{}
	}
	clear(s.index)
	s.limit = (s.value - 1) * one
}

// expand adds to the next layer what can follow on state i of interval t.
func (s *search) expand(t int, i int32) {
	from := &s.layers[t][i]
	c := &s.now
	c.from, c.time, c.price, c.following = i, t, s.prices[t], s.tail[t+1]
	c.of = c.of[:0]
	var rest key // of sets that have ended
	c.joint = math.MaxInt
	for i, j := range s.order {
		if s.joint != nil && i == len(s.joint.sets) {
			c.joint = len(c.of)
		}
		f := &s.fields[j]
		idle := from.key[f.word] >> f.shift >> 1 & f.mask
		if idle == f.ended {
			f.set(&rest, idle, 0)
			continue
		}
		if !s.offer(j, t, int(idle), from.key[f.word]>>f.shift&1 == 1, from.key) {
			return
		}
	}
	n := len(c.of)
	if s.joint != nil && len(s.joint.sets) == len(s.order) {
		c.joint = n
	}
	c.low, c.mid, c.high = grown(c.low, n+1), grown(c.mid, n+1), grown(c.high, n+1)
	c.low[n], c.mid[n], c.high[n] = 0, 0, 0
	for k := n - 1; k >= 0; k-- {
		o := &c.of[k]
		c.low[k] = c.low[k+1] + min(o.run, o.wait)
		c.mid[k] = c.mid[k+1] + min(o.run+c.price*o.demand, o.wait)
		c.high[k] = c.high[k+1] + min(o.run+one*o.demand, o.wait)
	}
	s.choose(0, s.excess[t], from.paid, 0, 0, rest)
}

// offer adds what set j may do in interval t. ok is false if it may do nothing: the state leads nowhere.
func (s *search) offer(j, t, idle int, still bool, at key) (ok bool) {
	w, f, table := &s.sets[j], &s.fields[j], s.tables[j]
	done := t - idle
	o := choice{set: j, demand: w.demand[done], run: forbidden, wait: forbidden}
	mayRun, mayWait := w.moves(t, done, w.ready, w.float)
	if mayRun && (done < w.shuffle || s.ended(w.after, at)) {
		if o.run = table[w.at(t+1, idle, 0)]; done+1 == len(w.demand) {
			f.set(&o.runTo, f.ended, 0)
		} else {
			f.set(&o.runTo, uint64(idle), 0)
		}
	}
	if mayWait {
		if o.pause = w.delay; !still {
			o.pause += w.suspend
		}
		o.wait = o.pause + table[w.at(t+1, idle+1, 1)]
		f.set(&o.waits, uint64(idle+1), 1)
	}
	if o.run >= forbidden && o.wait >= forbidden {
		return false
	}
	s.now.of = append(s.now.of, o)
	return true
}

// ended reports whether all of sets have ended in a state.
func (s *search) ended(sets []int, at key) bool {
	for _, m := range sets {
		if f := &s.fields[m]; at[f.word]>>f.shift>>1&f.mask != f.ended {
			return false
		}
	}
	return true
}

// choose decides for all choices from k on. load is what is demanded beyond the capacity by the sets before, paid
// what the schedule cost so far, ahead what their cheapest ways on cost beyond that.
func (s *search) choose(k int, load, paid, ahead int64, runs uint64, to key) {
	s.left--
	c := &s.now
	low := paid + ahead + max(c.low[k], c.mid[k]+c.price*load, c.high[k]+one*load) + c.following
	if k >= c.joint && low <= s.limit {
		low += s.joint.gainAt(s.fields, to, c.time+1)
	}
	if low > s.limit || s.left < 0 {
		if low <= (s.value-1)*one {
			s.drop(low)
		}
		return
	}
	if k == len(c.of) {
		s.reach(state{key: to, paid: paid + max(0, load)*one, low: low, from: c.from, runs: runs})
		return
	}
	o := &c.of[k]
	if o.run < forbidden {
		s.choose(k+1, load+o.demand, paid, ahead+o.run, runs|1<<o.set, key{to[0] | o.runTo[0], to[1] | o.runTo[1]})
	}
	if o.wait < forbidden {
		s.choose(k+1, load, paid+o.pause, ahead+o.wait-o.pause, runs, key{to[0] | o.waits[0], to[1] | o.waits[1]})
	}
}

// reach adds a state to the layer after the current interval, unless one that is known dominates it.
//
// States in which the same work has been done differ in what they have paid, and in which sets stand still. A set
// that stands still may go on waiting without another suspension. So a state dominates another if what it has paid,
// plus the suspensions that only it would still have to pay, is no more than what the other has paid.
func (s *search) reach(x state) {
	layer := &s.layers[s.now.time+1]
	same := key{x.key[0] &^ s.stills[0], x.key[1] &^ s.stills[1]}
	first, known := s.index[same]
	if known {
		for i := first; i >= 0; i = (*layer)[i].next {
			a := &(*layer)[i]
			if s.dominates(a, &x) {
				return
			}
			if s.dominates(&x, a) {
				x.next = a.next
				*a = x
				return
			}
		}
	}
	if x.next = -1; known {
		x.next = first
	}
	s.index[same] = int32(len(*layer))
	*layer = append(*layer, x)
	if len(*layer) >= 4*s.width {
		s.narrowTo(s.now.time+1, s.width)
		s.reindex(*layer)
	}
}

// dominates reports whether no schedule that goes on from b is better than all that go on from a, which has done the
// same work.
func (s *search) dominates(a, b *state) bool {
	more := bits.OnesCount64(b.key[0]&^a.key[0]&s.stills[0]) + bits.OnesCount64(b.key[1]&^a.key[1]&s.stills[1])
	return a.paid+int64(more)*s.sets[0].suspend <= b.paid
}

// reindex writes the index of a layer anew.
func (s *search) reindex(layer []state) {
	clear(s.index)
	for i := range layer {
		x := &layer[i]
		same := key{x.key[0] &^ s.stills[0], x.key[1] &^ s.stills[1]}
		x.next = -1
		if first, known := s.index[same]; known {
			x.next = first
		}
		s.index[same] = int32(i)
	}
}

// narrowTo sorts the states of a layer, the most promising first, and drops all but width of them.
func (s *search) narrowTo(t, width int) {
	layer := s.layers[t]
	slices.SortFunc(layer, func(a, b state) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(b.paid, a.paid), cmp.Compare(a.key[0], b.key[0]),
			cmp.Compare(a.key[1], b.key[1]))
	})
	if len(layer) > width {
		s.drop(layer[width].low)
		s.limit = min(s.limit, layer[width-1].low)
		s.layers[t] = layer[:width]
	}
}

// backtrack makes the best way to the end the best schedule.
func (s *search) backtrack() {
	at := s.layers[len(s.excess)][0]
	for _, x := range s.layers[len(s.excess)] {
		if x.paid < at.paid {
			at = x
		}
	}
	if at.paid/one >= s.value {
		return
	}
	s.value = at.paid / one
	for t := len(s.excess) - 1; t >= 0; t-- {
		for j := range s.runs {
			s.runs[j][t] = at.runs>>j&1 == 1
		}
		at = s.layers[t][at.from]
	}
}

// grown returns a slice of length n, reusing the memory of a.
func grown(a []int64, n int) []int64 {
	if cap(a) < n {
		return make([]int64, n)
	}
	return a[:n]
}
