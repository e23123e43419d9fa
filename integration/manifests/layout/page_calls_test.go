package layout

import (
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"

	"gridproxy/integration/env/document"
	"gridproxy/integration/suites"
)

type call struct {
	line  int
	words []string
}

// calls are the commands in the blocks and in the code of the text of a page, without what starts
// them in another place.
func (s *site) calls(name string) []call {
	var all []call
	add := func(line int, text string) {
		calls, err := document.Calls(text)
		if err != nil { // such as UNIT=<name>, which is in the text only
			calls = [][]string{strings.Fields(text)}
		}
		for _, words := range calls {
			if words = inner(words); len(words) > 0 {
				all = append(all, call{line, words})
			}
		}
	}
	page := s.pages[name]
	examples, _ := page.Examples() // checkBlocks reports the error
	for _, e := range examples {
		for _, c := range e.Commands {
			add(c.Line, c.Text)
		}
	}
	for _, span := range page.Spans {
		add(span.Line, span.Text)
	}
	return all
}

// inner are the words of a command that another command runs on a Node or in a Pod.
func inner(words []string) []string {
	switch {
	case words[0] == "sudo":
		return words[1:]
	case strings.HasSuffix(words[0], "on-each-node") && len(words) > 2:
		return words[2:]
	case words[0] == "kubectl" && slices.Contains(words, "exec") && slices.Contains(words, "--"):
		return words[slices.Index(words, "--")+1:]
	}
	return words
}

// checkCall checks a command by what it calls.
func (s *site) checkCall(words []string, report func(string, ...any)) {
	switch words[0] {
	case "make":
		s.checkMake(words[1:], report)
	case "helm":
		s.checkHelm(words, report)
	case "go":
		s.checkGoTest(words, report)
	case "gridproxy", "grid-controller", "grid-dns":
		s.checkProgram(words[0], words[1:], report)
	case "kubectl":
		if len(words) > 1 && words[1] == "grid" {
			s.checkProgram("kubectl grid", words[2:], report)
		}
	default:
		if slices.ContainsFunc([]string{"--set", "--set-string", "--set-json"}, func(flag string) bool { return words[0] == flag }) {
			s.checkHelm(words, report)
		}
	}
}

// placeholder is a word that stands for others: NAME, and what is left out.
var placeholder = regexp.MustCompile(`^([A-Z_]+|\[?…\]?|\.\.\.)$`)

// checkMake checks targets, variables and the names of suites.
func (s *site) checkMake(words []string, report func(string, ...any)) {
	for _, word := range words {
		variable, value, assigned := strings.Cut(word, "=")
		switch {
		case placeholder.MatchString(word):
		case strings.HasPrefix(word, "-"):
		case !assigned && !slices.Contains(s.targets(), word):
			report("make has no target %s, and there is no such suite", word)
		case assigned && variable != "REQUIRE" && variable != "FUZZTIME" && !regexp.MustCompile(`\b`+variable+`\b`).MatchString(s.makefile):
			report("the Makefile has no variable %s", variable)
		case variable == "SUITES" && !strings.Contains(value, "name"):
			if _, err := suites.Choose(suites.All(), strings.Split(value, ",")); err != nil {
				report("%v", err)
			}
		}
	}
}

// checkHelm checks that the chart has what is set.
func (s *site) checkHelm(words []string, report func(string, ...any)) {
	for i, word := range words {
		flag, setting, joined := strings.Cut(word, "=")
		if !strings.HasPrefix(flag, "--set") {
			continue
		}
		if !joined && i+1 < len(words) {
			setting = words[i+1]
		}
		key, _, assigned := strings.Cut(setting, "=")
		if assigned && !has(s.values, strings.Split(key, ".")) {
			report("the chart has no value %s", key)
		}
	}
}

// has says whether values have a key. An empty map may have any, and so may a list with an index.
func has(values any, keys []string) bool {
	if len(keys) == 0 {
		return true
	}
	key, _, indexed := strings.Cut(keys[0], "[")
	object, ok := values.(map[string]any)
	if !ok {
		return false
	}
	below, found := object[key]
	return len(object) == 0 || found && (indexed || has(below, keys[1:]))
}

// checkProgram asks a program itself: with --help at the end it reads its command line, and does
// nothing else. Only what it does not know is a finding; a page may have NAME in the place of a
// number.
func (s *site) checkProgram(program string, words []string, report func(string, ...any)) {
	words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return placeholder.MatchString(w) })
	if end := slices.Index(words, "--"); end >= 0 {
		words = words[:end]
	}
	said, err := exec.CommandContext(s.t.Context(), s.programs[program], append(words, "--help")...).CombinedOutput()
	first, _, _ := strings.Cut(string(said), "\n")
	if err != nil && strings.Contains(first, "unknown") {
		report("%s %s: %s", program, strings.Join(words, " "), first)
	}
}

// checkGoTest checks that the packages of go test exist, and that its pattern matches a test of
// each.
func (s *site) checkGoTest(words []string, report func(string, ...any)) {
	module := ""
	if len(words) > 2 && words[1] == "-C" {
		module, words = words[2], slices.Delete(slices.Clone(words), 1, 3)
	}
	if len(words) < 3 || words[1] != "test" {
		return
	}
	pattern := regexp.MustCompile(`-run[ =](\S+)`).FindStringSubmatch(strings.Join(words, " "))
	packages := 0
	for _, word := range words {
		if word != "." && !strings.HasPrefix(word, "./") {
			continue
		}
		packages++
		folder, below := strings.CutSuffix(word, "/...")
		folder = path.Join(module, folder)
		tests := testsIn(s.t, folder)
		if len(tests) == 0 && !below {
			report("%s has no tests", folder)
		}
		if len(tests) == 0 || pattern == nil {
			continue
		}
		top, _, _ := strings.Cut(strings.ReplaceAll(pattern[1], `\|`, "|"), "/")
		if run, err := regexp.Compile(top); err != nil || !slices.ContainsFunc(tests, run.MatchString) {
			report("no test of %s matches -run %s", folder, pattern[1])
		}
	}
	if packages == 0 {
		report("%s names no package", strings.Join(words, " "))
	}
}
