package nodeproxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"gridproxy/cmd/kubectl-grid/fleet"

	"k8s.io/client-go/rest"
)

// MaxParallel is how many Nodes are asked at once.
const MaxParallel = 20

// Deadline is how long one Node may take, unless the user says otherwise.
const Deadline = 5 * time.Second

// bodyMax is how much of an answer is read. A body of /healthz takes some 300 bytes.
const bodyMax = 16 << 10

// Asker asks the daemons of Nodes.
type Asker struct {
	base     *url.URL
	client   *http.Client
	port     int
	deadline time.Duration
}

// New makes an Asker that uses the connection and the credentials of a config.
func New(config *rest.Config, port int, deadline time.Duration) (*Asker, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	client := *shared // which may be http.DefaultClient
	client.Timeout = 0
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Asker{base: base, client: &client, port: port, deadline: deadline}, nil
}

// Ask asks all Nodes and returns their answers, or errors in Answer.Err, in the order of names.
func (a *Asker) Ask(ctx context.Context, names []string) []fleet.Answer {
	answers := make([]fleet.Answer, len(names))
	var wait sync.WaitGroup
	slots := make(chan struct{}, MaxParallel)
	for i, name := range names {
		slots <- struct{}{} // each request ends at its deadline
		wait.Go(func() {
			defer func() { <-slots }()
			answers[i] = a.askOne(ctx, name)
		})
	}
	wait.Wait()
	return answers
}

func (a *Asker) askOne(ctx context.Context, name string) fleet.Answer {
	ctx, cancel := context.WithTimeoutCause(ctx, a.deadline, fmt.Errorf("no answer within %s", a.deadline))
	defer cancel()
	answer, err := a.get(ctx, name)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if full, ok := errors.AsType[*url.Error](err); ok {
		err = full.Err // the address is the same for all Nodes
	}
	answer.Err = err
	return answer
}

func (a *Asker) get(ctx context.Context, name string) (fleet.Answer, error) {
	address := a.base.JoinPath("api", "v1", "nodes", name+":"+strconv.Itoa(a.port), "proxy", "healthz")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return fleet.Answer{}, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return fleet.Answer{}, err
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	body, err := io.ReadAll(io.LimitReader(response.Body, bodyMax+1))
	if err != nil {
		return fleet.Answer{}, err
	}
	if len(body) > bodyMax {
		return fleet.Answer{}, fmt.Errorf("the answer is larger than %d bytes", bodyMax)
	}
	return fleet.Answer{Code: response.StatusCode, Body: body}, nil
}
