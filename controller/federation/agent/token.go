package agent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"gridproxy/controller/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validity is when a token begins and ends, by its own words; zero: it does not say.
type validity struct{ from, until time.Time }

// validityOf reads a JWT's times, zero if it cannot. Nothing is verified: the hub does that.
func validityOf(token string) validity {
	parts := strings.Split(token, ".")
	if len(token) > tokenMax || len(parts) != 3 {
		return validity{}
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	var claims struct {
		IssuedAt float64 `json:"iat"`
		Expires  float64 `json:"exp"`
	}
	if err != nil || json.Unmarshal(payload, &claims) != nil {
		return validity{}
	}
	const last = 1 << 40 // seconds; later ones are mistakes
	if claims.IssuedAt <= 0 || claims.Expires <= claims.IssuedAt || claims.Expires > last {
		return validity{}
	}
	return validity{from: time.Unix(int64(claims.IssuedAt), 0), until: time.Unix(int64(claims.Expires), 0)}
}

func (v validity) expired(now time.Time) bool { return !v.until.IsZero() && !now.Before(v.until) }

// due reports whether a token is to be renewed now; tried is when that was last attempted. One that
// does not say when it ends is renewed for one that does. A clock that is far behind the hub's
// makes a token look as if it were of the future: that is renewed too.
func (v validity) due(now, tried time.Time) bool {
	pause := tokenRetryDelayMax
	if rest := v.until.Sub(now); rest > 0 {
		pause = min(pause, max(rest/10, secretPeriod))
	}
	if !tried.IsZero() && now.Sub(tried).Abs() < pause {
		return false
	}
	return v.until.IsZero() || now.Sub(v.from).Abs() >= min(tokenRenewalDelay, v.until.Sub(v.from)/2)
}

// bearer is the token of a member as it is now. It takes the place of a token in a rest.Config, so
// that a renewed one is used by connections that exist.
type bearer struct {
	token   atomic.Pointer[string]
	refused atomic.Bool // the hub did not accept the token in the last request
}

func (b *bearer) use(token string) {
	b.token.Store(&token)
	b.refused.Store(false)
}

type authorized struct {
	bearer *bearer
	next   http.RoundTripper
}

func (t authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	token := t.bearer.token.Load()
	r.Header.Set("Authorization", "Bearer "+*token)
	answer, err := t.next.RoundTrip(r)
	if err == nil && t.bearer.token.Load() == token {
		t.bearer.refused.Store(answer.StatusCode == http.StatusUnauthorized)
	}
	return answer, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t authorized) WrappedRoundTripper() http.RoundTripper { return t.next }

// renewToken asks the hub for a new token of the member's account, and returns it and when it
// expires. That may be earlier than requested.
func renewToken(ctx context.Context, hub client.Client, cluster string) (string, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	account := &corev1.ServiceAccount{}
	account.Namespace, account.Name = v1alpha1.NamespacePrefix+cluster, v1alpha1.MemberAccount
	seconds := int64(tokenLifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := hub.SubResource("token").Create(ctx, account, request); err != nil {
		return "", time.Time{}, fmt.Errorf("renewing the token for the hub: %w", err)
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}
