package matrix

import (
	_ "embed" // the page
	"html/template"
	"io"
	"strings"

	"gridproxy/cmd/table"
)

//go:embed page.html
var pageText string

// page is what the template prints. Every text is one that a table could have as a cell.
type page struct {
	Units   []string
	Rows    []pageRow
	LeftOut string
}

type pageRow struct {
	Service, ClosedBy string
	Cells             []pageCell
}

type pageCell struct{ Class, Text string }

// WriteHTML writes the Matrix as one page that needs neither a network nor a script.
func (m Matrix) WriteHTML(w io.Writer) error {
	parsed, err := template.New("page").Parse(pageText)
	if err != nil {
		return err
	}
	p := page{Rows: make([]pageRow, 0, len(m.Services)), LeftOut: m.leftOut()}
	for _, name := range m.names() {
		p.Units = append(p.Units, table.Cell(name))
	}
	printed := map[*Cell]pageCell{}
	for _, s := range m.Services {
		row := pageRow{Service: table.Cell(s.Service), ClosedBy: table.Cell(s.closedBy()), Cells: make([]pageCell, len(s.Cells))}
		for i, c := range s.Cells {
			cell, found := printed[c]
			if !found {
				cell = pageCell{strings.ReplaceAll(string(c.Answer), " ", "-"), table.Cell(c.String())}
				printed[c] = cell
			}
			row.Cells[i] = cell
		}
		p.Rows = append(p.Rows, row)
	}
	return parsed.Execute(w, p)
}
