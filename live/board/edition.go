package board

// Edition is a board in the making. It is shown by Bulletin.Publish.
type Edition struct {
	Board
	next     int64           // its revision, if anything changes
	replaced []chan struct{} // to be closed once it is published
}

// Edit returns an edition that shows what the board shows.
func (b *Board) Edit() *Edition { return &Edition{Board: *b, next: b.revision + 1} }

// Next is the revision of the edition if anything changes.
func (e *Edition) Next() int64 { return e.next }

// Show shows a job in place of what was shown of it, which may be nil.
func (e *Edition) Show(j, was *Job) {
	e.Jobs = e.Jobs.with(j)
	e.Tally.Count(was, -1)
	e.Tally.Count(j, 1)
	e.Last = max(e.Last, j.ID)
	e.changed(j, was)
}

// Drop shows that a job has left the driver.
func (e *Edition) Drop(j, was *Job) {
	j.revision = e.next // even if its end has been shown
	e.Jobs = e.Jobs.without(j.ID)
	e.Tally.Count(was, -1)
	e.left, e.leftSize = append(e.left, j), e.leftSize+j.size()
	for e.leftSize > mostLeft {
		e.first, e.leftSize = e.left[0].revision, e.leftSize-e.left[0].size()
		e.left = e.left[1:]
	}
	e.changed(j, was)
}

func (e *Edition) changed(j, was *Job) {
	if j.revision != e.next {
		return
	}
	e.revision = e.next
	if was != nil {
		e.replaced = append(e.replaced, was.replaced)
	}
}
