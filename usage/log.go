package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"
)

// Log records the usage of a running container in a file, piece by piece. It does not write itself: Unwritten says what to
// write where, and Written that it was. What Unwritten returned last makes the file complete, up to the last sample. The
// zero Log is not valid.
//
// The file is a head, which says when the container's program began, and pieces: a length, spans, and a checksum. The last
// piece is written again until it is long enough, so that a span that grows is stored, too. A file that ends in the middle
// of a piece lacks that piece and nothing else.
type Log struct {
	recorder
	head    []byte // nil once it is written
	at      int64  // where the next piece begins
	closed  []Span // of that piece
	written int    // bytes of the piece of closed, at the last Unwritten, if it is long enough to end
}

const (
	headSize  = 16
	headMagic = "bellows1"
	// pieceBytes is the length at which a piece is not written again.
	pieceBytes = 512
	// pendingMost is how many spans wait to be written: if a disk stays full for longer, their details are lost.
	pendingMost = 512
)

// NewLog returns the log of a container whose program began at origin, a time of the machine's clock that does not jump.
func NewLog(origin time.Duration, t Tolerance) *Log {
	head := binary.LittleEndian.AppendUint64([]byte(headMagic), uint64(origin))
	return &Log{recorder: recorder{tolerance: t}, head: head, at: headSize}
}

// ErrNoLog is returned by Parse for a text that is no log, or of which not even the head is there.
var ErrNoLog = errors.New("not a log of usage")

// Parsed is the content of the file of a Log.
type Parsed struct {
	Origin time.Duration
	Usage  Usage
	// Torn is the number of bytes at the end that are no whole piece.
	Torn int64
	size int64
}

// Parse reads the file of a Log.
func Parse(text []byte) (Parsed, error) {
	if len(text) < headSize || string(text[:len(headMagic)]) != headMagic {
		return Parsed{}, fmt.Errorf("read %d bytes: %w", len(text), ErrNoLog)
	}
	p := Parsed{Origin: time.Duration(binary.LittleEndian.Uint64(text[len(headMagic):])), size: headSize}
	for rest := text[headSize:]; ; {
		n, size := binary.Uvarint(rest)
		const sum = crc32.Size
		if size <= 0 || n == 0 || n > uint64(len(rest)-size) || uint64(len(rest)-size)-n < sum {
			break
		}
		piece, end := rest[:size+int(n)], rest[size+int(n):]
		if binary.LittleEndian.Uint32(end) != crc32.ChecksumIEEE(piece) {
			break
		}
		spans, ok := takeSpans(piece[size:])
		if !ok {
			break
		}
		p.Usage.Spans = append(p.Usage.Spans, spans...)
		p.size += int64(len(piece) + sum)
		rest = end[sum:]
	}
	p.Torn = int64(len(text)) - p.size
	return p, nil
}

// Continue returns a log that goes on where a file ends.
func (p Parsed) Continue(t Tolerance) *Log {
	l := &Log{recorder: recorder{tolerance: t}, at: p.size}
	for i := range p.Usage.Spans {
		s := &p.Usage.Spans[i]
		l.last.At += s.Length
		l.last.Still += s.Still
		for _, k := range Kinds() {
			if !k.IsLevel() && s.Known.Has(k) {
				l.last.Value[k] += s.Used[k]
			}
		}
	}
	return l
}

// Add takes a sample in.
func (l *Log) Add(s Sample) { l.closed = append(l.closed, l.add(s)...) }

// Last returns the time of the last sample.
func (l *Log) Last() time.Duration { return l.last.At }

// Still returns how long the programs had stood still at the last sample.
func (l *Log) Still() time.Duration { return l.last.Still }

// Unwritten returns a text to be written at an offset of the file, in bytes.
func (l *Log) Unwritten() (text []byte, offset int64) {
	offset = l.at
	if l.head != nil {
		text, offset = append(text, l.head...), 0
	}
	l.written = 0
	if piece := appendPiece(nil, l.closed); len(piece) >= pieceBytes {
		l.written = len(piece)
		text = append(text, piece...)
		return appendPiece(text, l.open), offset
	}
	return appendPiece(text, append(l.closed[:len(l.closed):len(l.closed)], l.open...)), offset
}

// Written says that the last result of Unwritten is in the file.
func (l *Log) Written() {
	l.head = nil
	if l.written > 0 {
		l.at += int64(l.written)
		l.closed, l.written = nil, 0
	}
}

// Lost says that the last result of Unwritten could not be written. When much waits to be written, it becomes a gap.
func (l *Log) Lost() (details bool) {
	if len(l.closed) <= pendingMost {
		return false
	}
	gap := l.closed[0]
	for _, s := range l.closed[1:] {
		gap = join(gap, s)
	}
	for _, k := range []Kind{Memory, Swap} {
		gap.Used[k] = 0
	}
	gap.Gap, gap.Known = true, gap.Known&^levels
	l.closed = []Span{gap}
	return true
}

func appendPiece(text []byte, spans []Span) []byte {
	if len(spans) == 0 {
		return text
	}
	content := appendSpans(nil, spans)
	from := len(text)
	text = binary.AppendUvarint(text, uint64(len(content)))
	text = append(text, content...)
	return binary.LittleEndian.AppendUint32(text, crc32.ChecksumIEEE(text[from:]))
}
