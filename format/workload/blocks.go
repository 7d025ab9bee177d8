package workload

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/s2"
)

// Java programs such as Spark write lz4 and snappy in frames of their libraries' own, of the classes
// LZ4BlockOutputStream and SnappyOutputStream: blocks with a head each. They differ from the frames that lz4 and
// snappy describe.

const (
	lz4Magic    = "LZ4Block"
	snappyMagic = "\x82SNAPPY\x00"
	// The largest block that lz4-java writes, far above the usual 64 KiB, and the bound for snappy, too.
	mostBlock = 32 << 20
)

// blockReader reads compressed blocks.
type blockReader struct {
	in     *bufio.Reader
	next   func(in *bufio.Reader, packed, plain []byte) (packedBuffer, plainBuffer []byte, err error)
	packed []byte // for the next block
	plain  []byte // of the block that was read last
	at     int    // what was passed on of plain
	err    error
}

// Read implements io.Reader.
func (b *blockReader) Read(p []byte) (int, error) {
	for b.at == len(b.plain) && b.err == nil {
		b.at = 0
		b.packed, b.plain, b.err = b.next(b.in, b.packed, b.plain[:0])
	}
	if b.at < len(b.plain) {
		n := copy(p, b.plain[b.at:])
		b.at += n
		return n, nil
	}
	return 0, b.err
}

var errBlock = errors.New("a block is malformed")

// lz4Block reads a block of lz4-java: magic, token, lengths of the compressed and of the plain data, checksum, data. A
// block without data is the end of the stream; another stream may follow. The checksum is not computed.
func lz4Block(in *bufio.Reader, packed, plain []byte) ([]byte, []byte, error) {
	const (
		raw, compressed = 0x10, 0x20 // methods, in the upper half of the token
		headSize        = len(lz4Magic) + 1 + 3*4
	)
	for ended := false; ; ended = true {
		var head [headSize]byte
		if _, err := io.ReadFull(in, head[:]); err == io.EOF && ended {
			return packed, plain, io.EOF
		} else if err != nil {
			return packed, plain, noEOF(err)
		}
		method := head[len(lz4Magic)] & 0xf0
		packedSize := binary.LittleEndian.Uint32(head[len(lz4Magic)+1:])
		size := binary.LittleEndian.Uint32(head[len(lz4Magic)+5:])
		switch {
		case string(head[:len(lz4Magic)]) != lz4Magic, size > mostBlock, packedSize > mostBlock,
			method != raw && method != compressed, method == raw && size != packedSize, (size == 0) != (packedSize == 0):
			return packed, plain, errBlock
		case size == 0:
			continue
		}
		packed = grow(packed, int(packedSize))
		if _, err := io.ReadFull(in, packed); err != nil {
			return packed, plain, noEOF(err)
		}
		if method == raw {
			return packed, append(plain, packed...), nil
		}
		plain, err := unpackLZ4(plain, packed, int(size))
		return packed, plain, err
	}
}

// unpackLZ4 unpacks a block of lz4 by way of the block of s2 that means the same: the library unpacks s2 alone.
func unpackLZ4(plain, packed []byte, size int) ([]byte, error) {
	// A match of lz4 takes at least 3 bytes and one of s2 at most 5; literals take a head of at most 5 bytes.
	same := binary.AppendUvarint(make([]byte, 0, 3*len(packed)+64), uint64(size))
	var lz4 s2.LZ4Converter
	same, n, err := lz4.ConvertBlock(same, packed)
	if err != nil || n != size {
		return plain, errBlock
	}
	whole, err := s2.Decode(grow(plain, size), same)
	if err != nil {
		return plain[:0], errBlock
	}
	return whole, nil
}

// snappyBlock reads a block of snappy-java: the length and the data. The head of a stream, magic and two versions, may
// stand before any block, since streams may follow each other.
func snappyBlock(in *bufio.Reader, packed, plain []byte) ([]byte, []byte, error) {
	for {
		start, _ := in.Peek(len(snappyMagic))
		if string(start) == snappyMagic {
			if _, err := io.CopyN(io.Discard, in, int64(len(snappyMagic)+2*4)); err != nil {
				return packed, plain, noEOF(err)
			}
			continue
		}
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return packed, plain, err
		}
		packedSize := binary.BigEndian.Uint32(head[:])
		if strings.HasPrefix(snappyMagic, string(start)) {
			return packed, plain, io.ErrUnexpectedEOF // within the magic of another stream
		}
		if packedSize > mostBlock+mostBlock/4 {
			return packed, plain, errBlock
		}
		packed = grow(packed, int(packedSize))
		if _, err := io.ReadFull(in, packed); err != nil {
			return packed, plain, noEOF(err)
		}
		if n, err := s2.DecodedLen(packed); err != nil || n > mostBlock {
			return packed, plain, errBlock
		}
		whole, err := s2.Decode(plain[:cap(plain)], packed) // s2 contains snappy
		if err != nil {
			return packed, plain[:0], errBlock
		}
		return packed, whole, nil
	}
}

// grow returns a buffer of a size, which is old if that is large enough.
func grow(old []byte, size int) []byte {
	if cap(old) >= size {
		return old[:size]
	}
	return make([]byte, size)
}

// noEOF is an error of reading within a block.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// foreign are compressions that are known by their first bytes, and not read.
var foreign = []struct{ magic, name string }{
	{"ZV\x00", "lzf"}, {"ZV\x01", "lzf"}, {"\x04\x22\x4d\x18", "the lz4 command"},
	{"\xff\x06\x00\x00sNaPpY", "snappy in its own frames"},
	{"BZh", "bzip2"}, {"\xfd7zXZ\x00", "xz"}, {"PK\x03\x04", "zip"}, {"7z\xbc\xaf\x27\x1c", "7-Zip"},
}

// foreignName returns the name of the compression of which a file starts so, "" if it is none of foreign.
func foreignName(start []byte) string {
	for _, f := range foreign {
		if strings.HasPrefix(string(start), f.magic) {
			return f.name
		}
	}
	return ""
}
