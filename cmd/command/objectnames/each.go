package objectnames

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The bounds of one list of names: objects and bytes of a page, and pages.
const (
	namesPerPage = 500
	pageBytesMax = 32 << 20
	namePagesMax = 100
)

// acceptNames asks an API server for the metadata of objects; one that cannot do so sends all.
const acceptNames = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"

// Each calls add with the namespace and name of each object at a path of the API, such as
// /api/v1/services, until add returns false. Objects after namePagesMax pages are left out
// without an error. It prints nothing, and never asks for a password.
func Each(ctx context.Context, config *rest.Config, path string, add func(namespace, name string) (more bool)) error {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{}
	if config.ExecProvider != nil {
		config.ExecProvider.StdinUnavailable = true
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("making a client for %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("reading the address %s: %w", config.Host, err)
	}
	target, next := base.JoinPath(path), ""
	for range namePagesMax {
		query := url.Values{"limit": {strconv.Itoa(namesPerPage)}}
		if next != "" {
			query.Set("continue", next)
		}
		target.RawQuery = query.Encode()
		page, err := getNames(ctx, client, target.String())
		if err != nil {
			return fmt.Errorf("listing %s of API server %s: %w", path, config.Host, err)
		}
		for _, item := range page.Items {
			if !add(item.Namespace, item.Name) {
				return nil
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
	return nil
}

func getNames(ctx context.Context, client *http.Client, target string) (page metav1.PartialObjectMetadataList, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return page, err
	}
	request.Header.Set("Accept", acceptNames)
	answer, err := client.Do(request)
	if err != nil {
		return page, err
	}
	defer answer.Body.Close() //nolint:errcheck // everything that is needed has been read
	if answer.StatusCode != http.StatusOK {
		return page, fmt.Errorf("answer %s", answer.Status)
	}
	return page, json.NewDecoder(io.LimitReader(answer.Body, pageBytesMax)).Decode(&page)
}
