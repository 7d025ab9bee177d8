// Package input carries bytes into the standard input of a program over connections that may break: from a client
// through the daemon to the supervisor of the program's container, which alone knows how many bytes the program's pipe
// has taken.
//
// A connection carries frames towards the program and acknowledgements back. The first acknowledgement comes before any
// frame: it says where a source that connects again must continue. A source keeps bytes until they are acknowledged, so
// that no byte is lost or sent twice when the daemon in between dies. Only bytes that the program's pipe has taken are
// acknowledged: a suspended program makes its source wait.
package input

import (
	"encoding/binary"
	"fmt"
	"io"
)

// MaxFrame is the largest number of bytes in a frame: the capacity of a pipe.
const MaxFrame = 64 << 10

// ReadFrame reads a frame into buffer, which must have room for MaxFrame bytes. An empty frame ends the input.
func ReadFrame(r io.Reader, buffer []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(head[:])
	if size > MaxFrame {
		return nil, fmt.Errorf("read input: frame of %d bytes: must be at most %d", size, MaxFrame)
	}
	_, err := io.ReadFull(r, buffer[:size])
	return buffer[:size], err
}

// WriteFrame writes bytes, at most MaxFrame, as one frame.
func WriteFrame(w io.Writer, bytes []byte) error {
	head := binary.BigEndian.AppendUint32(make([]byte, 0, 4), uint32(len(bytes)))
	if _, err := w.Write(head); err != nil || len(bytes) == 0 {
		return err
	}
	_, err := w.Write(bytes)
	return err
}

// taken is an acknowledgement: the number of bytes that the program's pipe has taken, and whether it takes no more.
type taken struct {
	bytes uint64
	over  bool
}

const overBit = 1 << 63

func (t taken) write(w io.Writer) error {
	n := t.bytes
	if t.over {
		n |= overBit
	}
	_, err := w.Write(binary.BigEndian.AppendUint64(nil, n))
	return err
}

func readTaken(r io.Reader) (taken, error) {
	var text [8]byte
	if _, err := io.ReadFull(r, text[:]); err != nil {
		return taken{}, err
	}
	n := binary.BigEndian.Uint64(text[:])
	return taken{n &^ overBit, n&overBit != 0}, nil
}
