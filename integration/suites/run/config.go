package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"gridproxy/integration/suites"
)

type config struct {
	required []string      // REQUIRE: suites in which an unexpected skip is a failure
	budget   suites.Budget // CI_START, CI_BUDGET, CI_DEADLINE
	results  string        // CI_RESULTS: folder for the results of the parts of one run; "" = none
	fuzzTime time.Duration // FUZZTIME
	base     string        // CI_BASE: the commit since which changed files count; "" = the last day
	burden   int           // BURDEN: busy processes beside the suites
}

// maxBurden bounds BURDEN: with more, limits of time would end suites.
const maxBurden = 8

// requires reports whether an unexpected skip in a suite is a failure.
func (c config) requires(suite string) bool {
	return slices.Contains(c.required, suite)
}

// splitList returns the words of a list that has commas or spaces between them.
func splitList(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

// readEnvironment reads the variables. An empty one is not set.
func readEnvironment(lookup func(string) string) (config, error) {
	c := config{results: lookup("CI_RESULTS"), base: lookup("CI_BASE"), budget: suites.Budget{Start: time.Now()}}
	if text := lookup("BURDEN"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 0 || n > maxBurden {
			return config{}, fmt.Errorf("BURDEN=%s: write a number of busy processes, at most %d", text, maxBurden)
		}
		c.burden = n
	}
	if text := lookup("REQUIRE"); text != "" {
		names := splitList(text)
		if slices.Contains(names, "all") {
			names = []string{"*"}
		}
		required, err := suites.Choose(suites.All(), names)
		if err != nil {
			return config{}, fmt.Errorf("REQUIRE=%s: %w", text, err)
		}
		for _, s := range required {
			c.required = append(c.required, s.Name)
		}
	}
	if text := lookup("CI_START"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return config{}, fmt.Errorf("CI_START=%s: write the seconds since 1970, as `date +%%s` prints them", text)
		}
		c.budget.Start = time.Unix(seconds, 0)
	}
	c.fuzzTime = 30 * time.Second
	for name, value := range map[string]*time.Duration{"CI_BUDGET": &c.budget.Soft, "CI_DEADLINE": &c.budget.Deadline, "FUZZTIME": &c.fuzzTime} {
		if text := lookup(name); text != "" {
			d, err := time.ParseDuration(text)
			if err != nil || d < 0 {
				return config{}, fmt.Errorf("%s=%s: write a duration such as 75m or 30s", name, text)
			}
			*value = d
		}
	}
	return c, nil
}

// resultsFile returns the path of the results in a folder.
func resultsFile(folder string) string { return filepath.Join(folder, "results.json") }

// readResults reads the results of an earlier part of this run; without a folder, nothing.
func readResults(folder string) (results []suites.Result, err error) {
	content, err := os.ReadFile(resultsFile(folder))
	if folder == "" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(content, &results)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the results in %s: %w", resultsFile(folder), err)
	}
	return results, nil
}

// writeResults writes the results of all parts; without a folder, nothing.
func writeResults(folder string, results []suites.Result) error {
	if folder == "" {
		return nil
	}
	content, err := json.Marshal(results)
	if err == nil {
		err = os.WriteFile(resultsFile(folder), content, 0o644)
	}
	if err != nil {
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}
