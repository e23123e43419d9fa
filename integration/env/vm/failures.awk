# What failed in the output of go test: the tests, and the first lines of each message, cut short. It is
# for the end of a long log, where the dumps, which are messages too, fill thousands of lines.
BEGIN { lines = 3; width = 240 }

{ end[NR % 10] = $0; match($0, /^ */) }

/^ *--- FAIL: |^panic: |^FAIL\t|^vmexec: / { show(); left = 0; next }
/^ +[A-Za-z0-9_]+\.go:[0-9]+: / { indent = RLENGTH; left = lines; show(); next }
RLENGTH <= indent { left = 0 }
left > 1 { show() }

function show() { print substr($0, 1, width); shown++; left-- }

# Nothing of go test's own: the machine failed, or the build. Then the end says most.
END { if (!shown) for (i = NR - 9; i <= NR; i++) if (i > 0) print substr(end[i % 10], 1, width) }
