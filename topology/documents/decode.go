package documents

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// byteOrderMark is U+FEFF in UTF-8.
const byteOrderMark = "\ufeff"

// notUTF8 is a byte that no text in UTF-8 has. It replaces what is malformed in UTF-16, so that
// chunk.check refuses it with its line.
const notUTF8 = 0xff

// decode returns the text in UTF-8, without its byte order mark. Without such a mark, it is taken
// to be UTF-8.
func decode(text []byte) []byte {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}):
		return decodeUTF16(text[2:], binary.LittleEndian)
	case bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return decodeUTF16(text[2:], binary.BigEndian)
	default:
		return bytes.TrimPrefix(text, []byte(byteOrderMark))
	}
}

func decodeUTF16(text []byte, order binary.ByteOrder) []byte {
	decoded := make([]byte, 0, len(text))
	for ; len(text) >= 2; text = text[2:] {
		r := rune(order.Uint16(text))
		if !utf16.IsSurrogate(r) {
			decoded = utf8.AppendRune(decoded, r)
			continue
		}
		if len(text) >= 4 {
			r = utf16.DecodeRune(r, rune(order.Uint16(text[2:])))
		}
		if !utf8.ValidRune(r) || r == utf8.RuneError {
			decoded = append(decoded, notUTF8)
			continue
		}
		decoded = utf8.AppendRune(decoded, r)
		text = text[2:]
	}
	if len(text) > 0 {
		decoded = append(decoded, notUTF8)
	}
	return decoded
}

// cutLine returns the first line of text, the line end that YAML 1.1 ends it with, and the
// remaining text. The line end is empty at the end of the text.
func cutLine(text []byte) (line, end, remaining []byte) {
	for i, b := range text {
		size := 0
		switch {
		case b == '\r' && bytes.HasPrefix(text[i:], []byte("\r\n")):
			size = 2
		case b == '\n' || b == '\r':
			size = 1
		case b == 0xc2 && bytes.HasPrefix(text[i:], []byte("\u0085")):
			size = len("\u0085")
		case b == 0xe2 && (bytes.HasPrefix(text[i:], []byte("\u2028")) || bytes.HasPrefix(text[i:], []byte("\u2029"))):
			size = len("\u2028")
		}
		if size > 0 {
			return text[:i], text[i : i+size], text[i+size:]
		}
	}
	return text, nil, nil
}

// unifyLineEnds returns the text with one "\n" for each line end of YAML 1.1.
func unifyLineEnds(text []byte) []byte {
	unified := make([]byte, 0, len(text))
	for len(text) > 0 {
		line, end, remaining := cutLine(text)
		unified = append(unified, line...)
		if len(end) > 0 {
			unified = append(unified, '\n')
		}
		text = remaining
	}
	return unified
}
