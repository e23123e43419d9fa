package need

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// Refusal is a folder of programs that stand before iptables-restore and play a kernel that
// refuses some rules. They are fakes, because a test cannot take a built-in match such as
// xt_recent away from the kernel that it runs on. As the real programs do, they write the
// tables before the refused line, and nothing of its table or of later ones.
type Refusal struct{ dir string }

// RefusalReport is what the programs print about the line that is refused.
type RefusalReport string

// The reports of real programs.
const (
	ReportExact  RefusalReport = "exact"  // iptables-nft-restore: the line
	ReportNext   RefusalReport = "next"   // iptables-nft-restore 1.8.9, at times: the line behind it
	ReportCommit RefusalReport = "commit" // iptables-legacy-restore: the table's COMMIT
	ReportNone   RefusalReport = "none"   // no line at all
)

// refusingProgram refuses an added rule that contains a line of the file "texts", and waits while
// there is a file "hang".
const refusingProgram = `#!/bin/sh
dir=%[1]q
tool=%[2]q
while [ -e "$dir/hang" ]; do sleep 0.1; done
input=$(mktemp "$dir/input.XXXXXX") || exit 1
trap 'rm -f "$input" "$input.good"' EXIT
cat >"$input"
echo "$0" >>"$dir/calls"
report=$(cat "$dir/report")
awk -v texts="$dir/texts" -v good="$input.good" -v report="$report" '
	BEGIN { while ((getline text < texts) > 0) if (text != "") want[text] = 1 }
	{ table[++lines] = $0 }
	!bad && /^-[AI] / { for (text in want) if (index($0, text)) bad = NR }
	$0 == "COMMIT" && !bad { for (i = 1; i <= lines; i++) print table[i] > good; lines = 0 }
	$0 == "COMMIT" && bad {
		if (report == "exact") print "line " bad ": RULE_APPEND failed (No such file or directory)"
		if (report == "next") print "line " bad + 1 ": RULE_APPEND failed (No such file or directory)"
		if (report == "commit") print "iptables-restore: line " NR " failed"
		if (report == "none") print "iptables-restore: the kernel refused it"
		exit 1
	}' "$input" >&2
refused=$?
if [ "$refused" = 0 ]; then
	"$tool" "$@" <"$input"
	exit $?
fi
if [ -s "$input.good" ]; then
	"$tool" "$@" <"$input.good" || exit $?
fi
exit 1
`

// NewRefusal writes the programs into a folder, which goes in front of PATH.
func NewRefusal(dir string) (*Refusal, error) {
	r := &Refusal{dir: dir}
	if err := r.Report(ReportExact); err != nil {
		return nil, err
	}
	if err := r.Refuse(); err != nil {
		return nil, err
	}
	for _, family := range []string{"iptables", "ip6tables"} {
		for _, variant := range []string{"-nft", "-legacy"} {
			name := family + variant + "-restore"
			tool, err := exec.LookPath(name)
			if err != nil {
				return nil, fmt.Errorf("looking for a program to stand before: %w", err)
			}
			text := fmt.Sprintf(refusingProgram, dir, tool)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil { //nolint:gosec // a program
				return nil, fmt.Errorf("writing %s: %w", name, err)
			}
		}
	}
	return r, nil
}

// Path is the value of PATH with the programs in front.
func (r *Refusal) Path() string { return r.dir + ":" + os.Getenv("PATH") }

// Program writes a program that runs another one with Path.
func (r *Refusal) Program(program string) (string, error) {
	path := filepath.Join(r.dir, filepath.Base(program))
	text := fmt.Sprintf("#!/bin/sh\nPATH=%q exec %q \"$@\"\n", r.Path(), program)
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil { //nolint:gosec // a program
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}

// Refuse makes the programs refuse every rule that contains one of these texts, and no other.
func (r *Refusal) Refuse(texts ...string) error {
	return r.replace("texts", strings.Join(texts, "\n")+"\n")
}

// Hang makes the programs wait before they do anything, as they do for a lock that is never given
// back. End lets them go on.
func (r *Refusal) Hang() (end func() error, err error) {
	name := filepath.Join(r.dir, "hang")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return nil, fmt.Errorf("telling the refusing programs to wait: %w", err)
	}
	return func() error { return os.Remove(name) }, nil
}

// Report sets what the programs print.
func (r *Refusal) Report(report RefusalReport) error { return r.replace("report", string(report)) }

func (r *Refusal) replace(name, text string) error {
	if err := Replace(filepath.Join(r.dir, name), []byte(text)); err != nil {
		return fmt.Errorf("telling the refusing programs: %w", err)
	}
	return nil
}

// Calls is how many restores there were since the last call.
func (r *Refusal) Calls() (int, error) {
	path := filepath.Join(r.dir, "calls")
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return 0, fmt.Errorf("counting restores: %w", err)
	}
	if err := os.RemoveAll(path); err != nil {
		return 0, fmt.Errorf("counting restores: %s: %w", strconv.Quote(path), err)
	}
	return strings.Count(string(text), "\n"), nil
}

// Replace writes a file in one step: whoever reads it sees the old text or the new one.
func Replace(path string, text []byte) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	if err := os.WriteFile(draft, text, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := os.Rename(draft, path); err != nil {
		return errors.Join(fmt.Errorf("replacing %s: %w", path, err), os.Remove(draft))
	}
	return nil
}
