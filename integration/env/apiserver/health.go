package apiserver

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"time"
)

// healthy asks a server for a path that answers 200 when all is well, and returns what it says otherwise.
func healthy(ctx context.Context, client *http.Client, addr netip.AddrPort, path string) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+addr.String()+path, nil)
	if err != nil {
		return fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(r)
	if err != nil {
		return fmt.Errorf("asking for %s: %w", path, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s: %s", path, response.Status, body)
	}
	return nil
}
