package agent

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"gridproxy/controller/api/v1alpha1"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

func issued(claims string) string {
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

func tokenOf(from time.Time, life time.Duration) string {
	return issued(fmt.Sprintf(`{"iat": %d, "exp": %d, "sub": "member"}`, from.Unix(), from.Add(life).Unix()))
}

// TestValidityOf: what is no token of the hub does not say when it ends.
func TestValidityOf(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	if v := validityOf(tokenOf(start, time.Hour)); !v.from.Equal(start) || !v.until.Equal(start.Add(time.Hour)) || v.expired(start) || !v.expired(v.until) {
		t.Errorf("%+v", v)
	}
	for _, text := range []string{
		"", "a.b", "a.!.c", issued("["), issued("{}"), issued(`{"iat": 5}`), issued(`{"iat": 5, "exp": 4}`), issued(`{"iat": -5, "exp": 4}`),
		issued(`{"iat": 5, "exp": 1e300}`), issued(`{"iat": "5", "exp": 6}`), issued(`{"iat": 5, "exp": 6, "x": "` + strings.Repeat("x", tokenMax) + `"}`),
	} {
		if v := validityOf(text); v != (validity{}) || v.expired(start) {
			t.Errorf("%.40s: %+v", text, v)
		}
	}
	rapid.Check(t, func(t *rapid.T) { validityOf("h." + rapid.String().Draw(t, "payload") + ".s") })
}

// TestTokenIsDue: a token is renewed when it is older than a day or than half of its life, however
// often the process has started, and not again and again.
func TestTokenIsDue(t *testing.T) {
	start := time.Unix(1_800_000_000, 0)
	const day = 24 * time.Hour
	for _, test := range []struct {
		what        string
		life        time.Duration // 0: it does not say
		age, beside time.Duration // since it was made, and since the last attempt; 0: there was none
		want        bool
	}{
		{"new", 90 * day, 0, 0, false},
		{"nearly a day old", 90 * day, day - time.Second, 0, false},
		{"a day old", 90 * day, day, 0, true},
		{"a day old, tried just now", 90 * day, day, time.Minute, false},
		{"a day old, tried an hour ago", 90 * day, day, time.Hour, true},
		{"a day old, tried in the future", 90 * day, day, -2 * time.Hour, true},
		{"of one day, less than half", day, 11 * time.Hour, 0, false},
		{"of one day, half", day, 12 * time.Hour, 0, true},
		{"of one hour, half", time.Hour, 30 * time.Minute, 0, true},
		{"of one hour, tried when a tenth of the rest was not over", time.Hour, 30 * time.Minute, 2 * time.Minute, false},
		{"of one hour, tried before that", time.Hour, 30 * time.Minute, 3 * time.Minute, true},
		{"about to end, tried just now", time.Hour, time.Hour - time.Second, secretPeriod - 1, false},
		{"about to end", time.Hour, time.Hour - time.Second, secretPeriod, true},
		{"expired", day, 2 * day, 0, true},
		{"expired, tried just now", day, 2 * day, 59 * time.Minute, false},
		{"expired, tried an hour ago", day, 2 * day, time.Hour, true},
		{"by a clock that is an hour behind", 90 * day, -time.Hour, 0, false},
		{"by a clock that is years behind", 90 * day, -1000 * day, 0, true},
		{"without an end", 0, 0, 0, true},
		{"without an end, tried just now", 0, 0, time.Minute, false},
	} {
		var v validity
		if test.life > 0 {
			v = validity{from: start, until: start.Add(test.life)}
		}
		now, tried := start.Add(test.age), time.Time{}
		if test.beside != 0 {
			tried = now.Add(-test.beside)
		}
		if got := v.due(now, tried); got != test.want {
			t.Errorf("a token %s: %t", test.what, got)
		}
	}
}

// pulling is a member in memory, with a hub that gives a token.
type pulling struct {
	*Pull
	store, hub client.Client
	log        bytes.Buffer
	fresh      string
	refusal    error
}

func newPulling(t *testing.T, now time.Time) *pulling {
	scheme := runtime.NewScheme()
	must(t, AddToScheme(scheme))
	p := &pulling{fresh: tokenOf(now, time.Hour)}
	p.hub = interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, o client.Object, _ ...client.SubResourceCreateOption) error {
			r := o.(*authenticationv1.TokenRequest)
			r.Status = authenticationv1.TokenRequestStatus{Token: p.fresh, ExpirationTimestamp: metav1.NewTime(now.Add(time.Hour))}
			return p.refusal
		},
	})
	p.store = fake.NewClientBuilder().WithScheme(scheme).Build()
	p.Pull = &Pull{
		Target: Access{Client: p.store, Live: p.store}, Namespace: "gridproxy", Now: func() time.Time { return now },
		Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
	return p
}

// join writes the Secret, and returns what is read of it.
func (p *pulling) join(t *testing.T, token string) joined {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: v1alpha1.HubSecret}}
	secret.Data = map[string][]byte{"server": []byte("s"), "cluster": []byte("west"), "hub": []byte("h"), "token": []byte(token), "expires": []byte("x")}
	err := p.store.Create(t.Context(), secret)
	if apierrors.IsAlreadyExists(err) {
		secret.ResourceVersion = ""
		err = p.store.Update(t.Context(), secret)
	}
	must(t, err)
	j, err := p.read(t.Context())
	must(t, err)
	return j
}

// said is what the Secret has for a field.
func (p *pulling) said(t *testing.T, field string) string {
	t.Helper()
	var s corev1.Secret
	must(t, p.store.Get(t.Context(), client.ObjectKey{Namespace: p.Namespace, Name: v1alpha1.HubSecret}, &s))
	if text, found := s.StringData[field]; found { // the client in memory keeps what is written there
		return text
	}
	return string(s.Data[field])
}

// TestTokenAtStart: a process that has just begun renews a token that is old. A Secret that was
// written in between stays as it is.
func TestTokenAtStart(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := newPulling(t, now)
	ended, stop := context.WithCancel(t.Context())
	stop()
	watch := func(j joined) *bearer {
		token := &bearer{}
		token.use(j.token)
		if err := p.watchSecret(ended, p.hub, token, j); err != nil {
			t.Error(err)
		}
		return token
	}
	young := tokenOf(now.Add(-time.Hour), 90*24*time.Hour)
	if got := *watch(p.join(t, young)).token.Load(); got != young {
		t.Error("a young token is renewed")
	}
	old := tokenOf(now.Add(-25*time.Hour), 90*24*time.Hour)
	expires := now.Add(time.Hour).UTC().Format(time.RFC3339)
	if got := *watch(p.join(t, old)).token.Load(); got != p.fresh || p.said(t, "token") != p.fresh || p.said(t, "expires") != expires {
		t.Errorf("the token is not renewed: %s", p.said(t, "expires"))
	}
	j := p.join(t, old)
	p.join(t, young)
	token := &bearer{}
	token.use(old)
	if err := p.renew(t.Context(), p.hub, token, j); !apierrors.IsConflict(err) || p.said(t, "token") != young || *token.token.Load() != old {
		t.Errorf("a newer Secret is overwritten: %v", err)
	}
}

// TestTokenExpired: the log has the word of docs/federation.md and the remedy, once.
func TestTokenExpired(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := newPulling(t, now)
	p.refusal = apierrors.NewUnauthorized("no")
	past, valid := tokenOf(now.Add(-time.Hour), time.Minute), tokenOf(now, 24*time.Hour)
	token := &bearer{}
	said := ""
	tell := func(text string) int {
		before := strings.Count(p.log.String(), "TokenExpired")
		if now := token.token.Load(); now == nil || *now != text {
			token.use(text)
		}
		said = p.tellExpired(token, joined{cluster: "west"}, said)
		return strings.Count(p.log.String(), "TokenExpired") - before
	}
	if a, b, c := tell(valid), tell(past), tell(past); a != 0 || b != 1 || c != 0 {
		t.Errorf("said %d, %d and %d times", a, b, c)
	}
	if !strings.Contains(p.log.String(), "run grid-controller join --cluster west on the hub") {
		t.Error(p.log.String())
	}
	token.use(valid)
	hub := authorized{bearer: token, next: answering(http.StatusUnauthorized)}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://hub", nil)
	must(t, err)
	ask := func() error {
		answer, err := hub.RoundTrip(r)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	if err := ask(); err != nil || tell(valid) != 1 {
		t.Errorf("a refusal is not said: %v", err)
	}
	said = ""
	hub.next = answering(http.StatusForbidden)
	if err := ask(); err != nil || tell(valid) != 0 {
		t.Errorf("a token that is accepted counts as expired: %v", err)
	}
}

type answering int

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: int(a), Body: http.NoBody}, nil
}
