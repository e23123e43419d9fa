// Program thisbuild says what it was built from.
package main

import (
	"fmt"
	"os"

	"gridproxy/cmd/command"
)

func main() {
	if err := command.ThisBuild().WriteTable(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
