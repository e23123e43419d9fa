package expand

import (
	"encoding/json"

	v1 "gridproxy/controller/api/v1"
	"gridproxy/topology/excerpt"
)

// fitRows shortens the messages of rows and returns the first rows: as many as there is room for,
// in bytes.
func fitRows(rows []v1.UnitStatus, room int) []v1.UnitStatus {
	size := 0
	for i := range rows {
		rows[i].Message = excerpt.Fit(rows[i].Message, rowMessageMax)
		if size += sizeOf(rows[i]); i == rowsMax || size > room {
			return rows[:i]
		}
	}
	return rows
}

// fitNames returns the first names, as many as there is room for.
func fitNames(names []string) []string {
	size := 0
	for i, name := range names {
		if size += sizeOf(name); size > namesSizeMax {
			return names[:i]
		}
	}
	return names
}

// sizeOf returns how many bytes of JSON an element of a list or a map takes, with the comma.
func sizeOf(element any) int {
	text, err := json.Marshal(element)
	if err != nil {
		return rowsSizeMax // cannot be: only texts and numbers are measured
	}
	return len(text) + 1
}

// sizeOfJSON returns how many bytes a text of JSON takes, with the comma, once <, > and & are
// escaped as the encoder does.
func sizeOfJSON(text []byte) int {
	size := len(text) + 1
	for _, c := range text {
		if c == '<' || c == '>' || c == '&' {
			size += len(`\u003c`) - 1
		}
	}
	return size
}
