package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
)

// Ask asks the daemon that listens at a socket. The error says what that means, and what to do.
func Ask(ctx context.Context, path string) (Status, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", path)
		},
	}}
	s, err := get(ctx, client)
	switch {
	case err == nil:
		return s, nil
	case errors.Is(err, fs.ErrNotExist):
		return s, fmt.Errorf("no daemon: there is no socket %s: gridproxy run does not run on this machine, is still starting, or has another --status-socket; "+
			"see its Pod or its unit, or give the --status-socket that it has", path)
	case errors.Is(err, syscall.ECONNREFUSED) && !isSocket(path):
		return s, fmt.Errorf("no daemon: %s is no socket; give the --status-socket that the daemon has", path)
	case errors.Is(err, syscall.ECONNREFUSED):
		return s, fmt.Errorf("no daemon: the gridproxy run that made %s has ended; the rules in the kernel stay in force; see its log, and start it again", path)
	case errors.Is(err, context.DeadlineExceeded):
		return s, fmt.Errorf("no answer: the process that listens at %s hangs: it did not answer within %s; see its log, and restart it", path, askTimeout)
	case errors.Is(err, fs.ErrPermission):
		return s, fmt.Errorf("asking the daemon at %s: %w; run this as the user of the daemon, which is root", path, err)
	default:
		return s, fmt.Errorf("asking the daemon at %s: %w; check that the socket is of gridproxy run", path, err)
	}
}

func isSocket(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().Type() == fs.ModeSocket
}

func get(ctx context.Context, client http.Client) (s Status, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://gridproxy"+Path, nil)
	if err != nil {
		return s, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return s, err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, answerMax))
	if err != nil {
		return s, err
	}
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("the answer has code %d", answer.StatusCode)
	}
	if err := json.Unmarshal(body, &s); err != nil {
		return s, fmt.Errorf("the answer is no status: %w", err)
	}
	return s, nil
}
