package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// healthy asks for a URL that answers 200 when all is well, and returns what it says otherwise.
func healthy(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", url, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", url, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", url, response.Status, body)
	}
	return nil
}
