package workload

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/bellows-rm/bellows/core/cluster"
	"github.com/bellows-rm/bellows/format/fault"
)

// Compression is the compression of a file.
type Compression uint8

const (
	Plain Compression = iota
	Gzip
	Zstd
	LZ4    // in the frames of Java programs such as Spark; read alone
	Snappy // like LZ4
)

var compressionNames = [...]string{"none", "gzip", "zstd", "lz4", "snappy"}

func (c Compression) String() string { return cluster.NameOf(compressionNames[:], c, "compression") }

// CompressionOf returns the compression that the ending of a file's name stands for: .gz, .zst or .zstd, else none. It
// determines how a file is written; a reader detects the compression from the first bytes.
func CompressionOf(name string) Compression {
	switch {
	case strings.HasSuffix(name, ".gz"):
		return Gzip
	case strings.HasSuffix(name, ".zst"), strings.HasSuffix(name, ".zstd"):
		return Zstd
	}
	return Plain
}

const (
	gzipMagic    = "\x1f\x8b"
	zstdMagic    = "\x28\xb5\x2f\xfd"
	longestMagic = 10
	// A frame that requests a larger window is rejected: it could not be read as a stream.
	mostWindow = 256 << 20
)

// unpacker reads the content of a file and decompresses it if necessary. Damaged or truncated data gives a *fault.Fault
// that says how many bytes could be read; IsTruncated tells which.
type unpacker struct {
	name   string
	packed Compression
	raw    *rawReader
	in     io.Reader
	close  func()
	read   int64 // bytes, after unpacking
}

// rawReader records errors of reading the file itself: any other error is one of its content.
type rawReader struct {
	in  io.Reader
	err error
}

// Read implements io.Reader.
func (r *rawReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// Unpack returns a reader of the content of r, which may be gzip, zstd, lz4 or snappy in the frames of Java programs,
// or uncompressed: its first bytes decide. Another compression is a *fault.Fault that names it. Name is used in errors.
// The caller must close the reader, which does not close r.
func Unpack(r io.Reader, name string) (io.ReadCloser, error) {
	raw := &rawReader{in: r}
	in := bufio.NewReaderSize(raw, 64<<10)
	u := &unpacker{name: name, raw: raw, in: in, close: func() {}}
	// Peek's error is returned again by the first Read.
	start, _ := in.Peek(longestMagic)
	switch {
	case strings.HasPrefix(string(start), gzipMagic):
		u.packed = Gzip
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, u.explain(err)
		}
		u.in = z
	case strings.HasPrefix(string(start), zstdMagic):
		u.packed = Zstd
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(mostWindow))
		if err != nil {
			return nil, u.explain(err)
		}
		u.in, u.close = z, z.Close
	case strings.HasPrefix(string(start), lz4Magic):
		u.packed, u.in = LZ4, &blockReader{in: in, next: lz4Block}
	case strings.HasPrefix(string(start), snappyMagic):
		u.packed, u.in = Snappy, &blockReader{in: in, next: snappyBlock}
	default:
		if other := foreignName(start); other != "" {
			return nil, fault.At(name, 0, "compression: must be none, gzip, zstd, or lz4 or snappy as Spark writes them, "+
				"but is %s; decompress the file first", other)
		}
	}
	return u, nil
}

// Read implements io.Reader.
func (u *unpacker) Read(p []byte) (int, error) {
	n, err := u.in.Read(p)
	u.read += int64(n)
	if err != nil && err != io.EOF {
		err = u.explain(err)
	}
	return n, err
}

// Close implements io.Closer.
func (u *unpacker) Close() error { u.close(); return nil }

func (u *unpacker) explain(err error) error {
	switch {
	case u.raw.err != nil:
		return fmt.Errorf("read %s: %w", u.name, u.raw.err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return truncated{fault.At(u.name, 0, "the %s data is truncated: it ends after %d bytes of content", u.packed, u.read)}
	}
	return fault.At(u.name, 0, "the %s data is damaged after %d bytes of content: %v", u.packed, u.read, err)
}

// truncated marks the fault of a compressed file that ends too early.
type truncated struct{ *fault.Fault }

// Unwrap returns the fault.
func (t truncated) Unwrap() error { return t.Fault }

// IsTruncated reports whether err, of a reader that Unpack returned or of Unpack, says that a compressed file ends too
// early: what was read until then is whole.
func IsTruncated(err error) bool {
	_, ok := errors.AsType[truncated](err)
	return ok
}

// pack returns a writer that compresses to out. Close writes what is still buffered; it does not close out.
func pack(out io.Writer, c Compression) (io.WriteCloser, error) {
	switch c {
	case Gzip:
		return gzip.NewWriter(out), nil
	case Zstd:
		return zstd.NewWriter(out, zstd.WithEncoderConcurrency(1))
	}
	return unpacked{out}, nil
}

type unpacked struct{ io.Writer }

// Close implements io.Closer.
func (unpacked) Close() error { return nil }
