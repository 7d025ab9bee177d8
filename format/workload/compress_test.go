package workload

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/bellows-rm/bellows/format/fault"
)

// testdata/blocks.lz4 and blocks.snappy have the same content: the lines below, 1,500 random bytes, and an end. The
// classes LZ4CompressionCodec and SnappyCompressionCodec of Spark 4.0.1 wrote them, in blocks of 1 KiB, flushed after
// 100 bytes, and as two streams behind each other, of which the second begins at byte 2,500. The random bytes are in
// blocks that lz4 does not compress.
func javaBlocks(t testing.TB, codec string) (packed []byte, lines string) {
	t.Helper()
	packed, err := os.ReadFile("testdata/blocks." + codec)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		lines += fmt.Sprintf(`{"Event":"SparkListenerTaskEnd","Task ID":%d}`+"\n", i)
	}
	return packed, lines
}

func unpack(packed []byte) ([]byte, error) {
	in, err := Unpack(bytes.NewReader(packed), "f")
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

func TestUnpackBlocksOfJava(t *testing.T) {
	contents := map[string][]byte{}
	for _, codec := range []string{"lz4", "snappy"} {
		packed, lines := javaBlocks(t, codec)
		got, err := unpack(packed)
		if err != nil || len(got) != len(lines)+1505 ||
			!bytes.HasPrefix(got, []byte(lines)) || !bytes.HasSuffix(got, []byte("\nend\n")) {
			t.Errorf("%s: %d bytes, %v", codec, len(got), err)
		}
		contents[codec] = got
	}
	if !bytes.Equal(contents["lz4"], contents["snappy"]) {
		t.Error("lz4 and snappy differ")
	}
}

// Wherever compressed data is cut off, what was read until then is whole.
func TestUnpackCutOff(t *testing.T) {
	for _, codec := range []Compression{Gzip, Zstd, LZ4, Snappy} {
		var packed []byte
		if codec == LZ4 || codec == Snappy {
			packed, _ = javaBlocks(t, codec.String())
		} else {
			var file bytes.Buffer
			out, err := pack(&file, codec)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 40_000 {
				fmt.Fprintf(out, "%d\n", uint32(i)*2654435761)
			}
			if err := out.Close(); err != nil {
				t.Fatal(err)
			}
			packed = file.Bytes()
		}
		whole, err := unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		most := 0
		for cut := longestMagic; cut < len(packed); cut += 1 + len(packed)/60 {
			got, err := unpack(packed[:cut])
			// snappy-java marks no end, so that a file may end after any block.
			if !bytes.HasPrefix(whole, got) || err == nil && codec != Snappy ||
				err != nil && (!IsTruncated(err) || !fault.Is(err)) {
				t.Fatalf("%s cut to %d of %d bytes: %d bytes, %v", codec, cut, len(packed), len(got), err)
			}
			most = max(most, len(got))
		}
		if most < len(whole)/2 {
			t.Errorf("%s: at most %d of %d bytes are read of a file that was cut off", codec, most, len(whole))
		}
	}
}

func TestUnpackDamaged(t *testing.T) {
	for _, codec := range []string{"lz4", "snappy"} {
		packed, _ := javaBlocks(t, codec)
		for at := range packed[16:200] { // heads of streams and blocks, and compressed data
			bad := bytes.Clone(packed)
			bad[16+at] ^= 0xff
			whole, err := unpack(packed)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := unpack(bad); err != nil && !fault.Is(err) || err == nil && len(got) != len(whole) {
				t.Errorf("%s with another byte at %d: %d bytes, %v", codec, 16+at, len(got), err)
			}
		}
	}
}

func TestUnpackNamesOtherCompressions(t *testing.T) {
	for name, start := range map[string]string{"lzf": "ZV\x01\x00\x05\x00\x05hello", "bzip2": "BZh91AY&SY",
		"xz": "\xfd7zXZ\x00\x00\x04", "zip": "PK\x03\x04", "the lz4 command": "\x04\x22\x4d\x18"} {
		_, err := unpack([]byte(start + strings.Repeat("x", 50)))
		want := "f: compression: must be none, gzip, zstd, or lz4 or snappy as Spark writes them, but is " + name +
			"; decompress the file first"
		if !fault.Is(err) || err.Error() != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	for _, codec := range []string{"lz4", "snappy"} {
		packed, _ := javaBlocks(f, codec)
		f.Add(packed)
		f.Add(packed[:200])
	}
	f.Fuzz(func(t *testing.T, packed []byte) {
		in, err := Unpack(bytes.NewReader(packed), "f")
		if err == nil {
			defer in.Close()
			_, err = io.CopyN(io.Discard, in, 64<<20)
		}
		if err != nil && err != io.EOF && !fault.Is(err) {
			t.Errorf("no fault: %v", err)
		}
	})
}
