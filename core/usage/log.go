package usage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"slices"
	"time"
)

// Log records the usage of a running container in a file, piece by piece. It does not write itself: Unwritten says
// what to write where, and Written that it was. What Unwritten returned last makes the file complete, up to the last
// sample. A file that is full is replaced by a smaller one: see Full. The zero Log is not valid.
//
// The file is a head, which says when the container's program began, and pieces: a length, spans, and a checksum. The
// last piece is written again until it is long enough, so that a span that grows is stored, too. A file that ends in
// the middle of a piece lacks that piece and nothing else.
type Log struct {
	recorder
	origin  time.Duration
	begun   bool   // the head is in the file
	at      int64  // where the next piece begins
	full    int64  // the value of at from which on the file is full
	closed  []Span // of that piece
	written int    // bytes of the piece of closed, at the last Unwritten, if it is long enough to end
}

const (
	headSize  = 16
	headMagic = "bellows1"
	// pieceBytes is the length at which a piece is not written again.
	pieceBytes = 512
	// pieceSpans is how many spans a piece has in a file that was thinned.
	pieceSpans = 64
	// pendingMost is how many spans wait to be written: if a disk stays full for longer, their details are lost.
	pendingMost = 512
)

// FileMost is the size in bytes from which on the file of a Log is full: 128 KiB hold nearly two hours of noise in
// all kinds, and the files of 100 containers take 13 MB, however long the containers run.
const FileMost = 128 << 10

// NewLog returns the log of a container whose program began at origin, a time of the machine's clock that does not
// jump.
func NewLog(origin time.Duration, t Tolerance) *Log {
	return &Log{recorder: recorder{tolerance: t}, origin: origin, at: headSize, full: FileMost}
}

func appendHead(text []byte, origin time.Duration) []byte {
	return binary.LittleEndian.AppendUint64(append(text, headMagic...), uint64(origin))
}

// ErrNoLog is returned by Parse for a text that is no log, or that lacks a part of the head.
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
	l := NewLog(p.Origin, t)
	l.begun, l.at = true, p.size
	l.last.pass(p.Usage.Spans, 1)
	return l
}

// pass moves a sample over spans, from their begin to their end if forth is 1 and back if it is -1. Levels stay as
// they are.
func (s *Sample) pass(spans []Span, forth int64) {
	for i := range spans {
		span := &spans[i]
		s.At += time.Duration(forth) * span.Length
		s.Suspended += time.Duration(forth) * span.Suspended
		s.Pressed += time.Duration(forth) * span.Pressed
		s.Idle += time.Duration(forth) * span.Idle
		s.Curbed += time.Duration(forth) * span.Curbed
		for _, k := range Kinds() {
			if !k.IsLevel() && span.Known.Has(k) {
				s.Value[k] += forth * span.Used[k]
			}
		}
	}
}

// Origin returns when the container's program began, by the machine's clock that does not jump.
func (l *Log) Origin() time.Duration { return l.origin }

// Add takes a sample in.
func (l *Log) Add(s Sample) { l.closed = append(l.closed, l.add(s)...) }

// Last returns the time of the last sample.
func (l *Log) Last() time.Duration { return l.last.At }

// Suspended returns how long the programs had stood still at the last sample.
func (l *Log) Suspended() time.Duration { return l.last.Suspended }

// Pressed returns how long the disk had been pressed at the last sample while the programs used it.
func (l *Log) Pressed() time.Duration { return l.last.Pressed }

// Idle returns how long the programs had been idle at the last sample.
func (l *Log) Idle() time.Duration { return l.last.Idle }

// Curbed returns for how long the programs had got less CPU than they would have used, at the last sample.
func (l *Log) Curbed() time.Duration { return l.last.Curbed }

// Unwritten returns a text to be written at an offset of the file, in bytes.
func (l *Log) Unwritten() (text []byte, offset int64) {
	offset = l.at
	if !l.begun {
		text, offset = appendHead(text, l.origin), 0
	}
	l.written = 0
	if piece := appendPiece(nil, l.closed); len(piece) >= pieceBytes {
		l.written = len(piece)
		text = append(text, piece...)
		return appendPiece(text, l.open), offset
	}
	return appendPiece(text, l.pending()), offset
}

// pending returns the spans that Unwritten has.
func (l *Log) pending() []Span { return append(l.closed[:len(l.closed):len(l.closed)], l.open...) }

// Written says that the last result of Unwritten is in the file.
func (l *Log) Written() {
	l.begun = true
	if l.written > 0 {
		l.at += int64(l.written)
		l.closed, l.written = nil, 0
	}
}

// Full reports whether the file is to be replaced, in one step, by the text that Thinned returns. Call Replaced after
// that. If the file cannot be replaced, call NotReplaced, and write what Unwritten returned as usual.
func (l *Log) Full() bool { return l.begun && l.at >= l.full }

// Thinned returns the content of a smaller file, given the content of the file before the offset of the last
// Unwritten, whose result text is at the end of the smaller file. The earlier spans are thinned, as by Usage.Thin,
// until they take at most half of FileMost. A damaged part of the file becomes a gap; lost is its length in bytes.
func (l *Log) Thinned(file, text []byte) (smaller []byte, lost int64) {
	p, err := Parse(file)
	if err != nil {
		p.Torn = int64(len(file))
	}
	if p.Torn > 0 {
		before, from := p.Continue(l.tolerance), l.last
		if from.pass(l.pending(), -1); from.At > before.last.At {
			from.Known = 0
			for _, s := range append(l.pending(), p.Usage.Spans...) {
				from.Known |= s.Known &^ levels
			}
			gap := before.since(from, from.At-before.last.At)
			gap.Gap, gap.Bounded = true, false
			p.Usage.Spans = append(p.Usage.Spans, gap)
		}
	}
	spans := p.Usage.Spans
	for most := len(spans); ; most = most * 3 / 4 {
		spans = Usage{spans}.Thin(max(1, most)).Spans
		smaller = appendHead(nil, l.origin)
		for chunk := range slices.Chunk(spans, pieceSpans) {
			smaller = appendPiece(smaller, chunk)
		}
		if len(smaller) <= FileMost/2 || len(spans) <= 1 {
			break
		}
	}
	return append(smaller, text...), p.Torn
}

// Replaced says that smaller, which Thinned returned for text, is the content of the file.
func (l *Log) Replaced(smaller, text []byte) {
	l.at, l.full = int64(len(smaller)-len(text)), FileMost
	l.Written()
}

// NotReplaced says that the file could not be replaced: it is full again when it has grown by an eighth of FileMost.
func (l *Log) NotReplaced() { l.full = l.at + FileMost/8 }

// Lost says that the last result of Unwritten could not be written. If more than pendingMost spans wait, they become
// one gap: details reports whether that happened.
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
