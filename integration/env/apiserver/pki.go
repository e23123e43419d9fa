package apiserver

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// lifetime of every certificate: longer than any test, shorter than anybody could want to keep one.
const lifetime = 24 * time.Hour

// authority is a certificate authority that lives in memory; only what a child process must read is
// ever written down.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// pair is a certificate and its key, both PEM.
type pair struct{ cert, key []byte }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the CA's key: %w", err)
	}
	template, err := certificate("gridproxy-test-ca")
	if err != nil {
		return nil, err
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the CA's certificate: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the CA's certificate: %w", err)
	}
	return &authority{cert: cert, key: key}, nil
}

func (a *authority) pem() []byte { return encode("CERTIFICATE", a.cert.Raw) }

// client issues a certificate for a user; groups become its organisations, as Kubernetes reads them.
func (a *authority) client(user string, groups ...string) (pair, error) {
	template, err := certificate(user)
	if err != nil {
		return pair{}, err
	}
	template.Subject.Organization = groups
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

func (a *authority) server(names []string, addrs []netip.Addr) (pair, error) {
	template, err := certificate("kube-apiserver")
	if err != nil {
		return pair{}, err
	}
	template.DNSNames = names
	for _, addr := range addrs {
		template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, fmt.Errorf("making a key for %s: %w", template.Subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, fmt.Errorf("making a certificate for %s: %w", template.Subject.CommonName, err)
	}
	private, err := encodeKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: encode("CERTIFICATE", der), key: private}, nil
}

// tokenKeys makes the pair that signs and checks ServiceAccount tokens.
func tokenKeys() (public, private []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("making the key of the tokens: %w", err)
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encoding the public key of the tokens: %w", err)
	}
	private, err = encodeKey(key)
	return encode("PUBLIC KEY", der), private, err
}

func certificate(name string) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("making a serial number: %w", err)
	}
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(lifetime),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func encodeKey(key crypto.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encoding a private key: %w", err)
	}
	return encode("PRIVATE KEY", der), nil
}

// writePKI writes what the API server reads to dir and returns the paths by name: ca.crt, server.crt,
// server.key, tokens.pub, tokens.key.
func writePKI(dir string, ca *authority, names []string, addrs []netip.Addr) (map[string]string, error) {
	server, err := ca.server(names, addrs)
	if err != nil {
		return nil, err
	}
	public, private, err := tokenKeys()
	if err != nil {
		return nil, err
	}
	paths := map[string]string{}
	for name, content := range map[string][]byte{
		"ca.crt": ca.pem(), "server.crt": server.cert, "server.key": server.key,
		"tokens.pub": public, "tokens.key": private,
	} {
		paths[name] = filepath.Join(dir, name)
		if err := os.WriteFile(paths[name], content, 0o600); err != nil {
			return nil, fmt.Errorf("writing the keys of the API server: %w", err)
		}
	}
	return paths, nil
}
