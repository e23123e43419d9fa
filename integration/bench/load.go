package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// namespace holds everything that is made.
const namespace = "default"

func protobuf(c *rest.Config) *rest.Config {
	c.ContentType, c.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf
	return c
}

func nameOf(number int) string { return fmt.Sprintf("svc-%05d", number) }

// seed makes Services until there are n. The older ones are kept.
func (w *world) seed(ctx context.Context, n int) error {
	say("making %d Services of two endpoints", n)
	first := len(w.vips)
	w.vips = append(w.vips, make([]netip.AddrPort, n-first)...)
	return inParallel(ctx, n-first, func(i int) error {
		vip, err := w.addService(ctx, nameOf(first+i))
		w.vips[first+i] = vip
		return err
	})
}

// addService makes a closed Service whose endpoints are the old Pods.
func (w *world) addService(ctx context.Context, name string) (netip.AddrPort, error) {
	s, err := w.api.CoreV1().Services(namespace).Create(ctx, closedService(name), metav1.CreateOptions{})
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("making Service %s: %w", name, err)
	}
	if _, err := w.api.DiscoveryV1().EndpointSlices(namespace).Create(ctx, w.slice(name, oldPod), metav1.CreateOptions{}); err != nil {
		return netip.AddrPort{}, fmt.Errorf("making EndpointSlice %s: %w", name, err)
	}
	addr, err := netip.ParseAddr(s.Spec.ClusterIP)
	return netip.AddrPortFrom(addr, 80), err
}

func (w *world) removeService(ctx context.Context, name string) error {
	return errors.Join(
		w.api.CoreV1().Services(namespace).Delete(ctx, name, metav1.DeleteOptions{}),
		w.api.DiscoveryV1().EndpointSlices(namespace).Delete(ctx, name, metav1.DeleteOptions{}))
}

// point makes the endpoints of a Service the old or the new Pods.
func (w *world) point(ctx context.Context, name string, says byte) error {
	if _, err := w.api.DiscoveryV1().EndpointSlices(namespace).Update(ctx, w.slice(name, says), metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("changing EndpointSlice %s: %w", name, err)
	}
	return nil
}
