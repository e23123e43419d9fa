package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gridproxy/integration/suites"
)

// runTiers runs the suites, one tier after the other. At the end of each tier, failed tests run
// once more.
func (r *runner) runTiers(ctx context.Context, chosen []suites.Suite) []suites.Result {
	var all []suites.Result
	for _, tier := range []suites.Tier{suites.Core, suites.Extended, suites.Fuzz} {
		results := r.tryAgain(ctx, chosen, r.run(ctx, suites.Tiers(chosen, tier)))
		all, r.earlier = append(all, results...), slices.Concat(r.earlier, results)
	}
	return all
}

// tryAgain runs the failed tests of a tier once more, one after the other, and judges their suites
// by that. The output of a second try is kept beside that of the suite.
func (r *runner) tryAgain(ctx context.Context, chosen []suites.Suite, results []suites.Result) []suites.Result {
	results, tests := suites.ToTryAgain(results)
	for i, result := range results {
		at := slices.IndexFunc(chosen, func(s suites.Suite) bool { return s.Name == result.Suite })
		for number, f := range tests[result.Suite] {
			log := result.Suite + ".again"
			if number > 0 {
				log += fmt.Sprint(number + 1)
			}
			fmt.Printf("== start %s of %s once more\n", f.Name, result.Suite)
			again := r.runSuite(ctx, chosen[at].Again(f), log, 1, 0)
			fmt.Printf("== %s of %s: %s, %s\n", f.Name, result.Suite, again.Outcome, suites.Seconds(again.Took()))
			logs := filepath.Join(r.logs, result.Suite+".log") + ", " + filepath.Join(r.logs, log+".log")
			results[i] = results[i].AfterSecondTry(f, again, strings.ReplaceAll(logs, r.root+string(os.PathSeparator), ""))
		}
	}
	return results
}
