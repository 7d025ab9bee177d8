package machine

import (
	"encoding"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
)

// Formats of the log.
const (
	logText = "text"
	logJSON = "json"
)

// newLogger returns a logger that writes a line for each message, in one of the formats.
func newLogger(to io.Writer, format string, level slog.Leveler) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if format == logJSON {
		options.ReplaceAttr = plain
		return slog.New(slog.NewJSONHandler(to, options))
	}
	return slog.New(slog.NewTextHandler(to, options))
}

// plain returns an attribute as programs read it: durations are seconds, and a value that the text format prints in
// words is these words, not a number or an object.
func plain(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindDuration:
		return slog.Float64(a.Key, a.Value.Duration().Seconds())
	case slog.KindAny:
		switch v := a.Value.Any().(type) {
		case json.Marshaler, encoding.TextMarshaler, error:
		case fmt.Stringer:
			return slog.String(a.Key, v.String())
		}
	}
	return a
}
