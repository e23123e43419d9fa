package table

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"gridproxy/topology/excerpt"
)

// Table is rows of cells under the names of their columns. Its zero value prints nothing.
type Table struct {
	Columns []string // none = the rows have no heading
	Rows    [][]string
}

// Add adds a row. An empty cell is printed as "-".
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Write prints the table with aligned columns. If w is Coloured, words of state have colours.
func (t *Table) Write(w io.Writer) error {
	if _, has := w.(colourWriter); !has {
		return t.align(w)
	}
	var text bytes.Buffer
	if err := t.align(&text); err != nil {
		return err
	}
	rows := t.Rows
	if len(t.Columns) > 0 {
		rows = append([][]string{nil}, rows...) // the heading has no state
	}
	lines := strings.Split(text.String(), "\n")
	for i, row := range rows {
		lines[i] = painted(lines[i], t.Columns, printed(row))
	}
	_, err := io.WriteString(w, strings.Join(lines, "\n"))
	return err
}

// align prints the table without colours.
func (t *Table) align(w io.Writer) error {
	aligned := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	if len(t.Columns) > 0 {
		if err := writeRow(aligned, t.Columns); err != nil {
			return err
		}
	}
	for _, row := range t.Rows {
		if err := writeRow(aligned, row); err != nil {
			return err
		}
	}
	return aligned.Flush()
}

func writeRow(w io.Writer, cells []string) error {
	_, err := fmt.Fprintln(w, strings.Join(printed(cells), "\t"))
	return err
}

func printed(cells []string) []string {
	all := make([]string, len(cells))
	for i, cell := range cells {
		all[i] = Cell(cell)
	}
	return all
}

// Cell returns the text of a cell as it is printed: "-" if it is empty, else one printable line
// of at most excerpt.MaxLineChars characters.
func Cell(text string) string {
	if text == "" {
		return "-"
	}
	return excerpt.Message(text)
}

const mostListed = 3

// List returns a text for a cell with the first names of a list, and how many more there are.
func List(names []string) string {
	if len(names) <= mostListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:mostListed-1], ", "), len(names)-mostListed+1)
}
